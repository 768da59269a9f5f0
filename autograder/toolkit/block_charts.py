"""The charts of a store of blocks: prompts cut into blocks, the tree of blocks, and the work that a store saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograder.toolkit.chart_style import GRAY, Chart, behind_words, blank_figure, describe, finish, kind_look
from autograder.toolkit.charts import line_chart
from autograder.toolkit.timing import machine
from autograder.toolkit.visible import visible

_REUSED = kind_look("cached")
_NEW = kind_look("")


def block_strip(
    rows: Mapping[str, Sequence[str]],
    block_size: int,
    *,
    reused: Mapping[str, int] | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
    title: str = "",
    note: str = "",
) -> Chart:
    """Prompts as tokens in blocks, each row `label: token texts`; only full blocks have a name above.

    reused: how many blocks of a row come from the store; they are shaded. names: of a row's blocks, by default B0, B1,
    ...
    """
    from matplotlib.patches import Rectangle

    texts = {label: [visible(t) for t in tokens] for label, tokens in rows.items()}
    widest = max(sum(len(t) + 1.2 for t in row) + 1.2 * (len(row) // block_size) for row in texts.values())
    size = max(6.0, widest * 0.1 + 1.9), 0.8 + 0.62 * len(rows)
    _, axes = blank_figure(*size, (-0.3, widest + 0.3), ((len(rows) - 1) * 1.75 + 0.6, -1.1))
    table = []
    for number, (label, row) in enumerate(texts.items()):
        x, y, n_full = 0.0, number * 1.75, len(row) // block_size
        of_row = (names or {}).get(label) or [f"B{i}" for i in range(n_full)]
        axes.text(-1, y, label, ha="right", va="center", fontweight="bold")
        cells = []
        for i in range(0, len(row), block_size):
            block, start = i // block_size, x
            shaded = block < (reused or {}).get(label, 0)
            for text in row[i : i + block_size]:
                width = len(text) + 1.2
                axes.add_patch(Rectangle((x, y - 0.42), width, 0.84, **(_REUSED if shaded else _NEW)))
                axes.text(x + width / 2, y, text, ha="center", va="center_baseline", family="DejaVu Sans Mono",
                          fontsize=8.5, bbox=behind_words(_REUSED["facecolor"]) if shaded else None)  # fmt: skip
                x += width
            if block < n_full:
                axes.add_patch(Rectangle((start, y - 0.42), x - start, 0.84, fill=False, lw=2.2))
                axes.text((start + x) / 2, y - 0.5, of_row[block], ha="center", va="bottom", fontsize=8.5)
            cells.append(f"[{'|'.join(row[i : i + block_size])}]{' reused' if shaded else ''}")
            x += 1.2
        table.append(f"{label}: {' '.join(cells)}")
    return finish(axes, title, "\n".join(table), note)


def block_tree(
    blocks: Mapping[str, tuple[str | None, str]],
    *,
    shaded: Sequence[str] = (),
    crossed: Sequence[str] = (),
    title: str = "",
    note: str = "",
) -> Chart:
    """A store as a tree, each block `name: (the block before it or None, a line of text)`; parents come first.

    shaded: the blocks of the run in use. crossed: the evicted blocks.
    """
    from matplotlib.patches import Rectangle

    places: dict[str, tuple[int, int]] = {}  # column and line
    lines = 0
    for name, (before, _) in blocks.items():
        column = places[before][0] + 1 if before else 0
        first_child = before and not any(blocks[other][0] == before for other in places)
        line = places[before][1] if first_child else lines
        lines = max(lines, line + 1)
        places[name] = column, line
    width = 1 + max(column for column, _ in places.values())
    _, axes = blank_figure(max(6.0, 1.95 * width), 0.9 + 0.72 * lines, (-0.1, width), (lines - 0.5, -0.5))
    for name, (before, text) in blocks.items():
        column, line = places[name]
        look = _REUSED if name in shaded else _NEW
        if before:
            start, end = places[before], (column - 0.02, line)
            axes.plot((start[0] + 0.72, end[0] - 0.13, end[0] - 0.13, end[0]), (start[1], start[1], line, line),
                      color=GRAY, lw=1, zorder=1)  # fmt: skip
        axes.add_patch(Rectangle((column - 0.02, line - 0.34), 0.74, 0.68, zorder=2, **look))
        box = behind_words(look["facecolor"])
        axes.text(column + 0.35, line, f"{name}\n{text}", ha="center", va="center", fontsize=8.5, bbox=box, zorder=5)
        if name in crossed:
            axes.plot((column - 0.02, column + 0.72), (line - 0.34, line + 0.34), color="black", lw=1.6, zorder=4)
            axes.plot((column - 0.02, column + 0.72), (line + 0.34, line - 0.34), color="black", lw=1.6, zorder=4)
    table = (f"{name} after {before or 'nothing'}: {text}" for name, (before, text) in blocks.items())
    return finish(axes, title, "\n".join(table), note)


def hit_rates(capacities: Sequence[int], computed: Mapping[str, Sequence[int]], total: int, title: str) -> Chart:
    """The share of a trace's `total` tokens that each store reused, from what it left to compute at each capacity."""
    rates = {store: (capacities, [100 * (1 - n / total) for n in counts]) for store, counts in computed.items()}
    return line_chart(
        rates, x_label="capacity", x_unit="blocks of 16", y_label="hit rate", y_unit="%", log="x", title=title
    )


def computed_tokens(capacities: Sequence[int], computed: Mapping[str, Sequence[int]], total: int, title: str) -> Chart:
    """What each store left to compute at each capacity, beside the `total` tokens of the trace."""
    return line_chart(
        {store: (capacities, counts) for store, counts in computed.items()},
        reference={"nothing stored": ([capacities[0], capacities[-1]], [total, total])},
        x_label="capacity",
        x_unit="blocks of 16",
        y_label="computed",
        y_unit="tokens",
        log="x",
        title=title,
    )


def error_chart(lengths: Sequence[int], errors: Mapping[str, Sequence[float]], title: str, model: Any) -> Chart:
    """The largest error of a logit at each length of the prompt, beside the tolerance of the course's checks."""
    return line_chart(
        {name: (lengths, values) for name, values in errors.items()},
        reference={"tolerance": ([lengths[0], lengths[-1]], [1e-3, 1e-3])},
        x_label="length of the prompt",
        x_unit="tokens",
        y_label="largest error of a logit",
        log="y",
        title=title,
        model=model,
    )


def waiting_times(times: Mapping[str, Sequence[float]], title: str, model: Any) -> Chart:
    """The times to first token of the requests in a trace: the seconds that each share of them does not exceed."""
    shares = [0, 10, 25, 50, 75, 90, 95, 100]
    return line_chart(
        {name: (shares, np.percentile(seconds, shares)) for name, seconds in times.items()},
        x_label="share of the requests that wait no longer",
        x_unit="%",
        y_label="time to first token",
        y_unit="s",
        log="y",
        title=title,
        model=f"{describe(model)}. {machine()}",
    )


def steps_picture(row: Sequence[float], title: str, note: str = "") -> Chart:
    """Each number of a row between its nearest steps, with the step that int8 keeps; a step is the largest / 127."""
    step = max(map(abs, row)) / 127
    _, axes = blank_figure(6.6, 1.2 + 0.55 * len(row), (-0.5, 2.6), (len(row) - 0.5, -0.7))
    table = []
    for y, x in enumerate(row):
        exact, kept = x / step, round(x / step)
        left = min(kept, 126) - (exact < kept)
        axes.plot((0, 1), (y, y), color="black", lw=1)
        for place in (0, 1):
            is_kept = left + place == kept
            axes.plot(place, y, marker="s", ms=9, color="black", mfc="#0072B2" if is_kept else "white", zorder=3)
            axes.text(place, y - 0.25, f"{left + place}", ha="center", va="bottom", fontsize=9,
                      fontweight="bold" if is_kept else "normal")  # fmt: skip
        axes.plot(exact - left, y, marker="|", ms=15, mew=2.5, color="#D55E00", zorder=4)
        axes.text(-0.12, y, f"{x:.3f}", ha="right", va="center")
        axes.text(1.12, y, f"kept as {kept}, given back as {kept * step:.3f}", ha="left", va="center")
        table.append(f"{x:.3f} = {exact:.2f} steps, kept as {kept}")
    return finish(axes, title, "\n".join(table), note)
