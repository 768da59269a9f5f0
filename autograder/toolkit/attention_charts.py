"""The pictures of the first stage: the model as a whole, attention by hand, a row on its way through a block, a head.

Most are tables of numbers in cells. Colors and hatches are those of chart_style.KINDS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from autograder.toolkit.cell_charts import kinds
from autograder.toolkit.chart_style import GRAY, Chart, blank_figure, finish, kind_look
from autograder.toolkit.charts import heatmap
from autograder.toolkit.visible import visible

_CELL, _LINE = 0.46, 0.28  # inches, of a cell with a number in it
_PAGE = 9.4  # inches, of a laptop's page


def model_drawing(config: Any) -> Chart:
    """The whole model with the shapes between its parts: a row of boxes below the line of the residual stream."""
    from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

    _, axes = blank_figure(_PAGE, 3.5, (0, 100), (0, 36))

    def box(x, y, text, width=9.0):
        shape = FancyBboxPatch((x - width / 2, y - 2.6), width, 5.2, boxstyle="round,pad=0.2", fc="white", ec="black")
        axes.add_patch(shape)
        axes.text(x, y, text, ha="center", va="center", fontsize=9)

    def arrow(start, end, **look):
        axes.annotate(
            "", end, start, arrowprops={"arrowstyle": "-|>", "color": "black", "shrinkA": 0, "shrinkB": 0, **look}
        )

    stream = 26
    axes.add_patch(Rectangle((19.5, 3), 57, 30.5, fc="#F4F4F4", ec=GRAY, ls=(0, (4, 3))))
    axes.text(
        48, 4.2, f"one block; there are {config.n_layer}, one after the other", ha="center", color=GRAY, fontsize=9
    )
    axes.text(48, 29.8, f"x  [n_seq, {config.n_embd}], the residual stream", ha="center", fontsize=9)
    arrow((13, stream), (83.1, stream), linewidth=2.4)
    box(6.5, stream, "rows of wte\n+ rows of wpe", 12)
    box(6.5, 12, "token ids\n[n_seq]", 12)
    arrow((6.5, 15), (6.5, 22.6))
    for left, parts, join in (
        (22.5, ((27, "ln_1", 5.5), (38, "causal\nself-attention", 11.5)), 46.5),
        (50.5, ((55, "ln_2", 5.5), (65, "MLP: linear,\ngelu, linear", 10.5)), 73.5),
    ):
        axes.plot((left, left), (stream, 14), color="black", lw=1.2)
        arrow((left, 14), (parts[0][0] - parts[0][2] / 2 - 0.4, 14))
        arrow((parts[0][0] + parts[0][2] / 2 + 0.4, 14), (parts[1][0] - parts[1][2] / 2 - 0.4, 14))
        axes.plot((parts[1][0] + parts[1][2] / 2 + 0.3, join), (14, 14), color="black", lw=1.2)
        arrow((join, 14), (join, stream - 1.2))
        for x, text, width in parts:
            box(x, 14, text, width)
        axes.add_patch(Circle((join, stream), 1.3, fc="white", ec="black", zorder=3))
        axes.text(join, stream, "+", ha="center", va="center", fontweight="bold", zorder=4)
    axes.text(38, 10.6, "rows meet here,\nand nowhere else", ha="center", va="top", color=GRAY, fontsize=8)
    box(88, stream, "ln_f", 9)
    box(88, 14, "times wte.T", 10.5)
    arrow((88, stream - 3), (88, 17))
    arrow((88, 11.2), (88, 7.4))
    axes.text(88, 5, f"logits\n[n_seq, {config.n_vocab}]", ha="center", va="center", fontsize=9)
    words = "token ids; wte + wpe; blocks of x + attention(ln_1(x)), x + mlp(ln_2(x)); ln_f; times wte.T; logits"
    return finish(axes, "GPT-2 from token ids to logits", words, model=config)


def by_hand(q: np.ndarray, k: np.ndarray, v: np.ndarray, tokens: Sequence[str]) -> Chart:
    """Causal attention of a few tokens in one head, each number in a cell. q, k: [n_seq, head_dim]; v: [n_seq, n]."""
    n_seq, head_dim = q.shape
    visible_keys = np.tri(n_seq, dtype=bool)
    scaled = q @ k.T / np.sqrt(head_dim)
    weights = _softmax(np.where(visible_keys, scaled, -np.inf))
    names, height = [visible(token) for token in tokens], _LINE * n_seq + 0.95
    axes = _page(2 * height + 0.5)
    x = 1.0
    for heading, rows in (("q", q), ("k", k), ("v", v)):
        x = _table(axes, x, 0.5, rows, heading=heading, row_names=names if heading == "q" else ()) + 0.45
    x = 1.0
    for heading, rows, shown in (
        ("1. scores: q @ k.T", q @ k.T, None),
        (f"2. divided by sqrt({head_dim})", scaled, None),
        ("3. later keys hidden", scaled, visible_keys),
        ("4. softmax: weights", weights, visible_keys),
    ):
        x = _table(axes, x, height + 0.5, rows, shown, heading, names if x == 1.0 else (), names) + 0.45
    _table(axes, x, height + 0.5, weights @ v, heading="5. weights @ v", column_names=[""])
    title = f"Attention of {n_seq} tokens in one head, by hand"
    note = "Rows: the token that looks. Columns of tables 1 to 4: the token that is seen."
    return finish(axes, title, f"weights:\n{weights.round(3)}\nresult:\n{(weights @ v).round(3)}", note)


def row_through_block(
    weights: Any, token_ids: Sequence[int], tokens: Sequence[str], position: int, layer: int = 0, head: int = 0
) -> Chart:
    """One token's row on its way through a block, with the model's own numbers: the first few of each step."""
    steps = row_steps(weights, token_ids, position, layer, head)
    names, shown = [visible(token) for token in tokens], np.arange(len(token_ids))[None] <= position
    notes = {
        "x": f"the row of {names[position]} at position {position}",
        "ln_1(x)": "brought to a standard size, then scaled",
        "q": f"what it looks for, in head {head}",
        "k": "what it offers, in the same head",
        "v": "what it passes on, in the same head",
        "scores": "its q with the k of each token",
        "weights": "from 0 to 1; they add up to 1",
        "mix": "the sum of all v, each times its weight",
        "attention": "all heads' mixes, through c_proj",
        "x + attention": "added to the row",
        "ln_2": "brought to a standard size again",
        "mlp": "two linear layers, gelu between them",
        "x + attention + mlp": "the row that enters the next block",
    }
    axes = _page(len(notes) * (_LINE + 0.12) + 0.95)
    y = 0.1
    for name, note in notes.items():
        row, of_tokens = steps[name], name in ("scores", "weights")
        y += 0.2 if name == "scores" else 0
        axes.text(1.75, y + _LINE / 2, name, ha="right", va="center", fontweight="bold", fontsize=9)
        some = row if of_tokens else row[:8]
        x = _table(
            axes, 1.9, y, some[None], shown if of_tokens else None, column_names=names if name == "scores" else ()
        )
        more = "" if of_tokens else f"… {len(row)} in all;  "
        axes.text(x + 0.1, y + _LINE / 2, more + note, va="center", fontsize=8.5, color=GRAY)
        y += _LINE + 0.12
    title = f"The row of {names[position]} on its way through block {layer}"
    table = "\n".join(f"{name}: {' '.join(f'{value:.2f}' for value in steps[name][:8])}" for name in notes)
    return finish(axes, title, table, "Dotted: later tokens, which are hidden.", weights)


def row_steps(weights: Any, token_ids: Sequence[int], position: int, layer: int, head: int) -> dict[str, np.ndarray]:
    """The steps of one row through a block: a vector by name; scores and weights have a number per token."""
    x = weights.wte[list(token_ids)].astype(np.float64) + weights.wpe[: len(token_ids)]
    for block in weights.blocks[: layer + 1]:
        steps, x = _block(x, block, weights.config.n_head, position, head)
    return steps


def _block(
    x: np.ndarray, block: Any, n_head: int, position: int, head: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    normed = _norm(x, block.ln_1)
    parts = np.split(normed @ block.attn.c_attn.weight + block.attn.c_attn.bias, 3, axis=-1)
    q, k, v = (np.stack(np.split(part, n_head, axis=-1)) for part in parts)  # [n_head, n_seq, head_dim]
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    weights = _softmax(np.where(np.tri(len(x), dtype=bool), scores, -np.inf))
    mix = weights @ v
    attention = np.concatenate(list(mix), axis=-1) @ block.attn.c_proj.weight + block.attn.c_proj.bias
    middle = x + attention
    normed_2 = _norm(middle, block.ln_2)
    wide = normed_2 @ block.mlp.c_fc.weight + block.mlp.c_fc.bias
    wide = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    mlp = wide @ block.mlp.c_proj.weight + block.mlp.c_proj.bias
    of_rows = {"x": x, "ln_1(x)": normed, "attention": attention, "x + attention": middle}
    of_rows |= {"ln_2": normed_2, "mlp": mlp, "x + attention + mlp": middle + mlp}
    of_head = {"q": q, "k": k, "v": v, "scores": scores, "weights": weights, "mix": mix}
    steps = {name: rows[position] for name, rows in of_rows.items()}
    return steps | {name: rows[head, position] for name, rows in of_head.items()}, middle + mlp


def who_sees_whom(tokens: Sequence[str]) -> Chart:
    """The causal mask of a text."""
    return kinds(
        np.where(np.tri(len(tokens)), "visible", "hidden").tolist(),
        x_label="key: the token that is seen",
        y_label="query: the token that looks",
        x_ticks=tokens,
        y_ticks=tokens,
        title="Who may see whom",
    )


def queries_at_the_end(n_query: int, n_seq: int) -> Chart:
    """The positions that the last n_query of n_seq cached positions see."""
    first = n_seq - n_query
    return kinds(
        np.where(np.tri(n_query, n_seq, k=first), "visible", "hidden").tolist(),
        x_label="position of the key",
        y_label="query → its position",
        x_ticks=range(n_seq),
        y_ticks=[f"{i}→{first + i}" for i in range(n_query)],
        title=f"{n_query} queries at the end of {n_seq} cached positions",
    )


def passes(n_prompt: int, n_generated: int) -> Chart:
    """Which pass computes which position: prefill computes the whole prompt, each decode step one more."""
    n_seq = n_prompt + n_generated
    rows = [["computed"] * n_prompt + [None] * n_generated]
    for n_cached in range(n_prompt, n_seq - 1):
        rows.append(["cached"] * n_cached + ["computed"] + [None] * (n_seq - 1 - n_cached))
    return kinds(
        rows,
        x_label="position",
        y_label="pass: 0 is prefill, the others decode",
        x_ticks=range(n_seq),
        y_ticks=range(n_generated),
        title=f"A prompt of {n_prompt} tokens and {n_generated} new ones: no position is computed twice",
    )


def table_x(x: np.ndarray, tokens: Sequence[str], model: Any) -> Chart:
    """The first 32 features of each row of x, [n_seq, n_embd]."""
    return heatmap(
        x[:, :32],
        x_label="feature (the first 32)",
        y_label="token, one row each",
        value_label="value",
        y_ticks=tokens,
        annotate=False,
        title="The table x before the first block: one row for each position",
        model=model,
    )


def changed_keys(change: np.ndarray, layers: Sequence[int], tokens: Sequence[str], place: int, model: Any) -> Chart:
    """How far keys change, [layers, n_seq], when the token at `place` is replaced. Rounding counts as no change."""
    return heatmap(
        np.where(change < 1e-4, np.nan, change),
        x_label=f"position (the token at position {place} was replaced)",
        y_label="layer",
        value_label="largest change of a key",
        x_ticks=tokens,
        y_ticks=layers,
        log=True,
        missing="",
        title="A token changes its own keys and later ones, never earlier ones",
        note="White: no change at all.",
        model=model,
    )


def head_map(weights: np.ndarray, tokens: Sequence[str], title: str, model: Any) -> Chart:
    """One head's attention weights [n_seq, n_seq], the hidden ones dotted, the largest of each row framed."""
    chart = heatmap(
        np.where(np.tri(len(weights), dtype=bool), weights, np.nan),
        x_label="key: the token that is seen",
        y_label="query: the token that looks",
        value_label="attention weight",
        x_ticks=tokens,
        y_ticks=tokens,
        title=title,
        note="A frame is around the largest weight of each row.",
        model=model,
    )
    from matplotlib.patches import Rectangle

    for row, column in enumerate(weights.argmax(axis=-1)):
        place = (column - 0.5, row - 0.5)
        for color, width in (("black", 3.6), ("white", 1.4)):
            chart.figure.axes[0].add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=color, lw=width, zorder=3))
    return chart


def _softmax(scores: np.ndarray) -> np.ndarray:
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def _norm(x: np.ndarray, norm: Any) -> np.ndarray:
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-5) * norm.weight + norm.bias


def _page(height: float) -> Any:
    """The axes of a figure as wide as a page, which count inches, from the top."""
    return blank_figure(_PAGE, height, (0, _PAGE), (height - 0.5, 0))[1]


def _table(
    axes: Any,
    x: float,
    y: float,
    rows: np.ndarray,
    shown: np.ndarray | None = None,
    heading: str = "",
    row_names: Sequence[str] = (),
    column_names: Sequence[str] = (),
) -> float:
    """Draw numbers in cells from the upper left corner (x, y); returns where it ends. shown: False for hidden cells."""
    from matplotlib.patches import Rectangle

    for (i, j), value in np.ndenumerate(rows):
        kind = "" if shown is None else "visible" if shown[i, j] else "hidden"
        place = (x + j * _CELL, y + i * _LINE)
        axes.add_patch(Rectangle(place, _CELL, _LINE, **kind_look(kind)))
        if kind != "hidden":
            text = f"{round(value, 2) + 0.0:.2f}" if value % 1 else f"{value:.0f}"  # + 0.0: no -0.00
            axes.text(place[0] + _CELL / 2, place[1] + _LINE / 2, text, ha="center", va="center", fontsize=8.5)
    for i, name in enumerate(row_names):
        axes.text(x - 0.08, y + (i + 0.5) * _LINE, name, ha="right", va="center", fontsize=8.5)
    for j, name in enumerate(column_names):
        axes.text(x + (j + 0.5) * _CELL, y - 0.03, name, ha="center", va="bottom", fontsize=7.5, color=GRAY)
    if heading:
        axes.text(x, y - (0.2 if len(column_names) else 0.05), heading, va="bottom", fontsize=9, fontweight="bold")
    return x + _CELL * rows.shape[1]
