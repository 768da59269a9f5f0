"""Charts of cells of a few kinds: which tokens see which, what is computed and what is read from the cache.

The kinds' colors and hatches are those of chart_style.KINDS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograder.toolkit.chart_style import KINDS, Chart, blank_figure, finish, kind_look, new_figure
from autograder.toolkit.visible import visible


def kinds(
    rows: Sequence[Sequence[str | None]],
    *,
    x_label: str,
    y_label: str,
    x_ticks: Sequence[Any],
    y_ticks: Sequence[Any],
    title: str,
) -> Chart:
    """A table of cells, each of a kind in KINDS, or None for an empty place; row 0 is at the top."""
    from matplotlib.patches import Patch, Rectangle

    unknown = sorted({kind for row in rows for kind in row if kind is not None} - KINDS.keys())
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a kind of cell; there are {', '.join(KINDS)}")
    n_columns = max(map(len, rows))
    side = min(0.5, 6.0 / max(len(rows), n_columns))
    figure, axes = new_figure(2.8 + side * n_columns, 1.9 + side * len(rows))
    for y, row in enumerate(rows):
        for x, kind in enumerate(row):
            if kind is not None:
                axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **kind_look(kind)))
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
    patches = [Patch(label=kind, **kind_look(kind)) for kind in used]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(used), frameon=False, handlelength=1.6)
    counts = ", ".join(f"{sum(list(row).count(kind) for row in rows)} {kind}" for kind in used)
    return finish(axes, title, f"{len(rows)} x {n_columns} cells: {counts}")


def convention() -> Chart:
    """The meaning of each color and hatch, in words."""
    from matplotlib.patches import Rectangle

    meanings = {
        "computed": "computed in this step",
        "cached": "read from a cache: computed before, by an earlier step or request",
        "visible": "a key that a query may see",
        "hidden": "a key that comes later, which the query may not see",
    }
    _, axes = blank_figure(7.2, 0.6 + 0.32 * len(meanings), (0, 7.2), (len(meanings), 0))
    for y, (kind, meaning) in enumerate(meanings.items()):
        axes.add_patch(Rectangle((0.1, y + 0.12), 0.5, 0.76, **kind_look(kind)))
        axes.text(0.75, y + 0.5, kind, va="center", fontweight="bold")
        axes.text(1.75, y + 0.5, meaning, va="center")
    table = "\n".join(f"{kind}: {meaning}" for kind, meaning in meanings.items())
    return finish(axes, "What colors and hatches mean", table)
