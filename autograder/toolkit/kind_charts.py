"""Pictures of cells that are of a few kinds: who sees whom, what is computed and what is read from the cache.

One convention in all notebooks, which reads in gray as well: each kind has a color and a hatch of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograder.toolkit.chart_style import Chart, finish, new_figure
from autograder.toolkit.visible import visible

KINDS = {  # what a cell is: its color and its hatch
    "computed": ("#0072B2", ""),
    "visible": ("#0072B2", ""),
    "cached": ("#F2C879", "////"),
    "hidden": ("#FFFFFF", "...."),
}


def kinds(
    rows: Sequence[Sequence[str | None]],
    *,
    x_label: str,
    y_label: str,
    x_ticks: Sequence[Any],
    y_ticks: Sequence[Any],
    title: str,
    note: str = "",
) -> Chart:
    """A table of cells, each of a kind of KINDS, or None for one that is not there; row 0 is at the top."""
    from matplotlib.patches import Patch, Rectangle

    unknown = sorted({kind for row in rows for kind in row if kind is not None} - KINDS.keys())
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no kind of cell; there are {', '.join(KINDS)}")
    n_columns = max(map(len, rows))
    side = min(0.5, 6.0 / max(len(rows), n_columns))
    figure, axes = new_figure(2.8 + side * n_columns, 1.9 + side * len(rows))

    def look(kind: str) -> dict[str, Any]:
        color, hatch = KINDS[kind]
        return {"facecolor": color, "hatch": hatch, "edgecolor": "#595959", "linewidth": 0.6}

    for y, row in enumerate(rows):
        for x, kind in enumerate(row):
            if kind is not None:
                axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **look(kind)))
    axes.set_xlim(-0.5, n_columns - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(False)
    axes.set_xticks(range(len(x_ticks)), [visible(str(tick)) for tick in x_ticks])
    axes.set_yticks(range(len(y_ticks)), [visible(str(tick)) for tick in y_ticks])
    if max(len(str(tick)) for tick in x_ticks) > 3:
        axes.tick_params(axis="x", rotation=60)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    used = [kind for kind in KINDS if any(kind in row for row in rows)]
    patches = [Patch(label=kind, **look(kind)) for kind in used]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(used), frameon=False, handlelength=1.6)
    finish(figure, axes, title, note, None, False)
    counts = ", ".join(f"{sum(list(row).count(kind) for row in rows)} {kind}" for kind in used)
    return Chart(figure, title, f"{len(rows)} x {n_columns} cells: {counts}")
