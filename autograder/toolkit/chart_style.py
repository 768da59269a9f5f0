"""The style of the notebooks' charts: colors, dashes and hatches, units, labels at the ends of lines, captions.

matplotlib is imported when the first figure is made.
"""

from __future__ import annotations

import io
import textwrap
from itertools import pairwise
from typing import Any

import numpy as np

from autograder.toolkit.timing import Measurement, machine, plain

# Okabe and Ito's colors, the darkest first; a dash and a marker for each
LOOKS = (
    ("#000000", "-", "o"),
    ("#0072B2", (0, (6, 2)), "s"),
    ("#D55E00", (0, (2, 1.5)), "^"),
    ("#009E73", (0, (7, 2, 1.5, 2)), "D"),
    ("#CC79A7", (0, (4, 1.5, 1, 1.5, 1, 1.5)), "v"),
)
GRAY = "#595959"
# What a cell or a token is, the same in all notebooks and labs: its color and its hatch, which also reads in gray
KINDS = {
    "computed": ("#0072B2", ""),
    "visible": ("#A9D3EE", ""),
    "cached": ("#F2C879", "////"),
    "hidden": ("#FFFFFF", "...."),
}
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 11.5,
    "axes.titlepad": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GRAY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "hatch.linewidth": 0.6,
}
DPI = 144  # drawn at twice the size it is shown in, for sharp text
_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


class Chart:
    """A finished chart. Jupyter shows it as a picture; `str` gives its numbers as a table."""

    def __init__(self, figure: Any, title: str, table: str) -> None:
        self.figure = figure
        self.title = title
        self.table = table

    def save(self, path: Any) -> None:
        """Write the chart to a file; the suffix decides the format (.png, .svg, .pdf)."""
        self.figure.savefig(path, dpi=DPI)

    def show(self) -> None:
        """Show the chart now, for a chart that is not the last line of a cell."""
        from IPython.display import display

        display(self)

    def png(self) -> bytes:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DPI)
        return buffer.getvalue()

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.title, self.table)))

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        width, height = (round(side * 72) for side in self.figure.get_size_inches())
        size = {"image/png": {"width": int(width * 1.3), "height": int(height * 1.3)}}
        return {"image/png": self.png(), "text/plain": str(self)}, size


def kind_look(kind: str) -> dict[str, Any]:
    """The matplotlib fill of a patch of this kind; "" is plain white."""
    color, hatch = KINDS[kind] if kind else ("#FFFFFF", "")
    edge = "white" if kind == "computed" else GRAY  # gray would not be seen on it in grayscale
    return {"facecolor": color, "hatch": hatch, "edgecolor": edge, "linewidth": 0.6}


def behind_words(color: str) -> dict[str, Any]:
    """A plain patch of a cell's own color behind its text, so that no hatch or line runs through the letters."""
    return {"facecolor": color, "edgecolor": "none", "pad": 2}


def number(value: Any) -> float:
    return value.median if isinstance(value, Measurement) else float(value)


def scaled_unit(unit: str, values: np.ndarray) -> tuple[float, str]:
    """The factor by which to multiply the values for drawing, and the unit that goes with it."""
    largest = float(np.max(np.abs(values), initial=0))
    for size, name in {"s": _TIME, "B": _BYTES}.get(unit, ()):
        if largest >= size:
            return 1 / size, name
    return 1.0, unit


def exact(value: float) -> str:
    """A whole number with all its digits (a length of 1,024 is not 1,020); any other as plain() writes it."""
    return f"{value:,.0f}" if float(value).is_integer() else plain(value)


def amount(value: float, unit: str) -> str:
    """A value with its unit, as it is written at a bar: 1 token, 21,822 tokens, 3.14 ms, 93.4%."""
    unit = "token" if unit == "tokens" and value == 1 else unit
    return f"{exact(value)}{'' if unit in ('', '%') else ' '}{unit}"


def with_unit(label: str, unit: str) -> str:
    return f"{label} ({unit})" if unit else label


def new_figure(width: float, height: float) -> tuple[Any, Any]:
    """A figure with one pair of axes, made without pyplot, which would show it twice and keep it in memory."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.add_subplot()


def plain_ticks(axes: Any, log: str) -> None:
    """Ticks without exponents; a log axis has its decades, and 2 and 5 between them if there is only one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for key, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        axis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
        if key in log:
            low, high = np.log10(axis.get_view_interval())
            decades = np.floor(high) - np.ceil(low) + 1
            axis.set_major_locator(LogLocator(subs=(1,) if decades > 1 else (1, 2, 5)))
            axis.set_minor_formatter(NullFormatter())


def label_ends(figure: Any, axes: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Write each line's label beside its last point, moved apart where they would overlap."""
    figure.draw_without_rendering()
    box = axes.get_window_extent()
    em = figure.dpi / 72 * 9.5
    wanted = []
    for x, y, label, color in ends:
        text = "\n".join(line for part in label.split("\n") for line in textwrap.wrap(part, 22) or [""])
        _, pixel = axes.transData.transform((x, y))
        height = em * 1.3 * (text.count("\n") + 1)
        wanted.append([float(pixel), height, text, color, (x, y)])
    wanted.sort(key=lambda item: item[0])
    for lower, upper in pairwise(wanted):
        upper[0] = max(upper[0], lower[0] + (lower[1] + upper[1]) / 2)
    overflow = wanted[-1][0] + wanted[-1][1] / 2 - (box.y1 + em)
    for item in wanted if overflow > 0 else ():
        item[0] -= overflow
    for pixel, _, text, color, (x, y) in wanted:
        place = (pixel - box.y0) / box.height
        arrow = {"arrowstyle": "-", "color": color, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 4}
        arrow["relpos"] = (0, 0.5)  # from the label's edge: it runs through no other label
        axes.annotate(text, (x, y), (1.03, place), textcoords="axes fraction", va="center", color=color,
                      fontweight="bold", fontsize=9.5, arrowprops=arrow, annotation_clip=False)  # fmt: skip


def blank_figure(width: float, height: float, x: tuple[float, float], y: tuple[float, float]) -> tuple[Any, Any]:
    """A figure to draw on: its axes have these limits and are not shown."""
    figure, axes = new_figure(width, height)
    axes.set(xlim=x, ylim=y)
    axes.axis("off")
    return figure, axes


def finish(axes: Any, title: str, table: str, note: str = "", model: Any = None, measured: bool = False) -> Chart:
    """The chart, with its title, and its caption: the author's note, the model and, for measurements, the machine."""
    figure = axes.figure
    width = figure.get_size_inches()[0]
    if title:
        axes.set_title("\n".join(textwrap.wrap(title, int(width * 10))), loc="left", fontweight="bold")
    facts = ". ".join(filter(None, (describe(model), machine() if measured else "")))
    lines = [line for part in (note, facts) if part for line in textwrap.wrap(part, int(width * 15))]
    if lines:
        figure.supxlabel("\n".join(lines), x=0.012, ha="left", fontsize=7.8, color=GRAY)
    return Chart(figure, title, table)


def describe(model: Any) -> str:
    """A model in a caption, given as weights, a config or a string."""
    if model is None or isinstance(model, str):
        return model or ""
    config = getattr(model, "config", model)
    parts = ", ".join(f"{n} {name}{'s' * (n > 1)}" for n, name in ((config.n_layer, "block"), (config.n_head, "head")))
    return f"GPT-2 with {parts}, n_embd {config.n_embd}, n_ctx {config.n_ctx}"
