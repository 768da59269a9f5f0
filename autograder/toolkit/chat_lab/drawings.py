"""The four differences between GPT-2 and a Llama, drawn."""

from __future__ import annotations

import numpy as np

from autograder.toolkit.chart_style import GRAY, LOOKS, Chart, blank_figure, finish
from autograder.toolkit.charts import bar_chart, line_chart
from autograder.toolkit.chat.config import LlamaConfig


def norms() -> Chart:
    """One row, and what the two norms make of it (weight 1, bias 0)."""
    x = np.array([2.6, 3.4, 1.1, 2.9, 0.4, 3.8, 2.2, 5.2, 1.7, 2.4])
    elements = list(range(len(x)))
    return line_chart(
        {
            "the row": (elements, x),
            "RMS norm": (elements, x / np.sqrt((x**2).mean())),
            "layer norm": (elements, (x - x.mean()) / x.std()),
        },
        x_label="element",
        y_label="value",
        title="An RMS norm scales; a layer norm also moves the mean to 0",
    )


def activations() -> Chart:
    """GPT-2's gelu and Llama's silu."""
    z = np.linspace(-6, 4, 21)
    gelu = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    return line_chart(
        {"gelu (GPT-2)": (z, gelu), "silu (the gate)": (z, z / (1 + np.exp(-z)))},
        x_label="z",
        y_label="value",
        title="Nearly the same curve. What is new: silu(gate) multiplies the up part",
    )


def turned_pairs() -> Chart:
    """Where the pair (1, 0) points at positions 0 to 7, for each pair of a head of 8 elements; theta is 100."""
    from matplotlib.patches import Circle

    theta, half, n_seq = 100.0, 4, 8
    _, axes = blank_figure(7.2, 2.6, (-1.4, 3.1 * half - 1.7), (-2.1, 1.35))
    axes.set_aspect("equal")
    rows = []
    for pair in range(half):
        frequency = theta ** (-pair / half)
        axes.add_patch(Circle((3.1 * pair, 0), 1, fill=False, color=GRAY, linewidth=0.8))
        for position in range(n_seq):
            x, y = np.cos(position * frequency), np.sin(position * frequency)
            color = LOOKS[0][0] if position == 0 else LOOKS[1][0]
            axes.plot([3.1 * pair, 3.1 * pair + x], [0, y], color=color, linewidth=1.2, alpha=1 - 0.09 * position)
            if position in (0, n_seq - 1) or frequency > 0.2:  # where there is room for it
                axes.annotate(str(position), (3.1 * pair + 1.17 * x, 1.17 * y), ha="center", va="center", fontsize=8)
        axes.annotate(f"elements {pair} and {pair + half}\n{frequency:.2g} rad per position",
                      (3.1 * pair, -1.42), ha="center", va="top", fontsize=9)  # fmt: skip
        rows.append(f"elements {pair} and {pair + half}: {frequency:.3g} radians per position")
    title = "The first pair turns fast, the last one slowly"
    note = f"A head of {2 * half} elements: where (1, 0) points at positions 0 to {n_seq - 1}; theta = {theta:g}."
    return finish(axes, title, "\n".join(rows), note)


def grouped_heads(n_head: int, n_kv_head: int) -> Chart:
    """Which head of queries attends to which head of keys."""
    from matplotlib.patches import Rectangle

    _, axes = blank_figure(7.2, 2.3, (-0.7, n_head - 0.3), (-1.4, 1.4))
    size = n_head // n_kv_head
    rows = []
    for group in range(n_kv_head):
        color = LOOKS[group % len(LOOKS)][0]
        center = group * size + (size - 1) / 2
        axes.add_patch(Rectangle((center - 0.9, -1.2), 1.8, 0.6, fill=False, color=color, linewidth=1.6))
        axes.annotate(f"keys, values {group}", (center, -0.9), ha="center", va="center", fontsize=9)
        for head in range(group * size, (group + 1) * size):
            axes.add_patch(Rectangle((head - 0.4, 0.6), 0.8, 0.6, fill=False, color=color, linewidth=1.6))
            axes.annotate(f"q {head}", (head, 0.9), ha="center", va="center", fontsize=9)
            axes.plot([head, center], [0.6, -0.6], color=color, linewidth=1.2)
        rows.append(f"queries {group * size} to {(group + 1) * size - 1} -> keys and values {group}")
    title = f"{n_head} heads of queries share {n_kv_head} heads of keys and values"
    return finish(axes, title, "\n".join(rows))


def bytes_of_a_cache(config: LlamaConfig, n_seq: int) -> Chart:
    """What n_seq cached tokens take: with a key head for each query head, grouped, and grouped in int8."""
    numbers = 2 * config.n_layer * config.n_embd * n_seq
    grouped = numbers * config.n_kv_head // config.n_head
    return bar_chart(
        {
            f"{config.n_head} heads, float32": 4 * numbers,
            f"{config.n_kv_head} heads, float32": 4 * grouped,
            f"{config.n_kv_head} heads, int8": grouped,
        },
        label=f"keys and values of {n_seq:,} tokens",
        unit="B",
        title="Grouped heads and int8 both make the cache smaller",
        note=f"{config.n_layer} layers, head_dim {config.head_dim}. The few scales that int8 needs are not counted.",
    )
