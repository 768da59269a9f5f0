"""The charts of the notebooks, in one style.

    chart = line_chart(
        {"cold": (lengths, cold), "reused": (lengths, reused)},     # numbers or timing.Measurement
        x_label="prefix length", x_unit="tokens", y_label="time per request", y_unit="s",
        title="A reused prefix costs nothing", model=weights,
    )
    chart              # as the last line of a cell, or chart.show(), or chart.save("reuse.png")

Every series has its own dash and marker besides its color and is labeled where it ends, so a chart reads
in grayscale too. Measurements are drawn as medians with their quartiles, and the caption then names the machine.
Units are scaled to fit: seconds given as "s" may be drawn in ms, bytes given as "B" in MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from autograder.toolkit.cell_charts import convention as convention
from autograder.toolkit.cell_charts import kinds as kinds
from autograder.toolkit.chart_style import (
    GRAY,
    LOOKS,
    Chart,
    amount,
    behind_words,
    blank_figure,
    exact,
    finish,
    kind_look,
    label_ends,
    new_figure,
    number,
    plain_ticks,
    scaled_unit,
    with_unit,
)
from autograder.toolkit.cost_drawings import steps_picture as steps_picture
from autograder.toolkit.timing import Measurement, plain
from autograder.toolkit.visible import visible

Series = Mapping[str, tuple[Sequence[float], Sequence[Any]]]
Box = tuple[str, "int | None", bool]  # of a token strip: the token's text, its position, whether it is shared
PAGE = 76  # letters of a token strip that have room on a laptop's page


def line_chart(
    series: Series,
    *,
    x_label: str,
    y_label: str,
    x_unit: str = "",
    y_unit: str = "",
    title: str = "",
    log: str = "",
    slopes: bool = False,
    reference: Series | None = None,
    marks: Mapping[str, float] | None = None,
    model: Any = None,
    note: str = "",
) -> Chart:
    """Lines, each `label: (xs, ys)`; a y may be a number or a Measurement (median, with its quartiles as a bar).

    `log` is "", "x", "y" or "xy". `slopes=True` adds the fitted log-log slope to each label (see `fit_slope`);
    of Measurements the fastest runs count, because what else a machine does can only add to a time.
    `reference` takes lines to compare with, such as an ideal: drawn thin, gray and without markers.
    `marks` puts labeled vertical lines at some x, such as {"break-even": 2}. `model` is the weights, or a string.
    """
    drawn = {label: _points(xs, ys) for label, (xs, ys) in series.items()}
    ideal = {label: _points(xs, ys) for label, (xs, ys) in (reference or {}).items()}
    measured = any(points["measured"] for points in drawn.values())
    y_unit = y_unit or ("s" if measured else "")
    factor, y_unit = scaled_unit(y_unit, np.concatenate([p["y"] for p in drawn.values()]))
    figure, axes = new_figure(7.2, 4.3)
    ends = []
    for (label, points), (color, dash, marker) in zip(drawn.items(), cycle(LOOKS), strict=False):
        y, low, high = (points[key] * factor for key in ("y", "low", "high"))
        if points["measured"]:
            axes.errorbar(points["x"], y, (y - low, high - y), fmt="none", ecolor=color, elinewidth=1.2, capsize=2.5)
        axes.plot(points["x"], y, color=color, linestyle=dash, marker=marker, markerfacecolor="white", zorder=3)
        if slopes:
            label = f"{label}\nslope {fit_slope(points['x'], points['best']):.2f}"
        ends.append((points["x"][-1], y[-1], label, color))
    for label, points in ideal.items():
        axes.plot(points["x"], points["y"] * factor, color=GRAY, linewidth=1, linestyle=(0, (1, 1)), zorder=2)
        ends.append((points["x"][-1], points["y"][-1] * factor, label, GRAY))
    axes.set_xscale("log" if "x" in log else "linear")
    axes.set_yscale("log" if "y" in log else "linear")
    if "y" not in log:
        lowest = min(float(points["low"].min()) for points in drawn.values())
        axes.set_ylim(bottom=0 if lowest >= 0 else None)
    plain_ticks(axes, log)
    axes.set_xlabel(with_unit(x_label, x_unit))
    axes.set_ylabel(with_unit(y_label, y_unit))
    for label, x in (marks or {}).items():
        axes.axvline(x, color=GRAY, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
        axes.annotate(label, (x, 1), (4, -2), xycoords=("data", "axes fraction"), textcoords="offset points",
                      va="top", color=GRAY, fontsize=9)  # fmt: skip
    rows = [f"{label}: " + ", ".join(f"{exact(x)} -> {plain(y * factor)}" for x, y in zip(p["x"], p["y"], strict=True))
            for label, p in {**drawn, **ideal}.items()]  # fmt: skip
    table = "\n".join([f"{with_unit(x_label, x_unit)} -> {with_unit(y_label, y_unit)}", *rows])
    chart = finish(axes, title, table, note, model, measured)
    label_ends(figure, axes, ends)
    return chart


def bar_chart(
    values: Mapping[str, Any],
    *,
    label: str,
    unit: str = "",
    title: str = "",
    model: Any = None,
    note: str = "",
) -> Chart:
    """Horizontal bars with their values at the end; `label` and `unit` describe the values.

    A value is a number or a Measurement. For groups of bars give a mapping of mappings,
    `{"64 tokens": {"cold": ..., "reused": ...}, "400 tokens": {...}}`.
    """
    groups = values if all(isinstance(v, Mapping) for v in values.values()) else {"": values}
    every = [value for group in groups.values() for value in group.values()]
    measured = any(isinstance(value, Measurement) for value in every)
    factor, unit = scaled_unit(unit or ("s" if measured else ""), np.array([number(value) for value in every]))
    bars = dict.fromkeys(name for group in groups.values() for name in group)
    # Colors show which bars of the groups belong together. A hatch would be taken for one of KINDS.
    paired = len(groups) > 1 and len(bars) <= len(LOOKS)
    colors = dict(zip(bars, (color for color, *_ in LOOKS), strict=False)) if paired else dict.fromkeys(bars, GRAY)
    place, ticks, names, rows = 0.0, [], [], []
    _, axes = new_figure(7.2, 0.95 + 0.36 * len(every) + 0.42 * len(groups) * bool(list(groups) != [""]))
    widest = max(number(value) for value in every) * factor
    for heading, group in groups.items():
        if heading:
            axes.text(0, place, heading, fontweight="bold", va="center", transform=axes.get_yaxis_transform())
            place += 1
        for name, value in group.items():
            size = number(value) * factor
            axes.barh(place, size, height=0.72, color=colors[name])
            end = size
            if isinstance(value, Measurement):
                low, high = (quartile * factor for quartile in value.spread)
                for color, width in (("white", 4), ("black", 2)):  # on the bar, and beyond its end
                    axes.plot((low, high), (place, place), color=color, linewidth=width)
                end = max(end, high)
            text = amount(size, unit)
            axes.text(end + widest * 0.012, place, text, va="center", fontsize=9)
            rows.append(f"{heading} {name}: {text}".strip())
            ticks.append(place)
            names.append(name)
            place += 1
        place += 0.35
    axes.set_yticks(ticks, names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(place - 0.75, -0.6)
    axes.set_xlim(0, axes.get_xlim()[1] * 1.08)
    axes.xaxis.set_major_formatter(lambda tick, _: exact(tick))
    axes.set_xlabel(with_unit(label, unit))
    return finish(axes, title, "\n".join(rows), note, model, measured)


def heatmap(
    values: Any,
    *,
    x_label: str,
    y_label: str,
    value_label: str,
    x_ticks: Sequence[Any] | None = None,
    y_ticks: Sequence[Any] | None = None,
    title: str = "",
    annotate: bool | None = None,
    log: bool = False,
    missing: str = "hidden",
    model: Any = None,
    note: str = "",
) -> Chart:
    """A matrix as shades from dark (low) to light (high); row 0 is at the top.

    NaN is a cell without a value, drawn as the kind `missing` ("" is plain white; see chart_style.KINDS).
    Values are written into the cells when they are few, or as `annotate` says.
    """
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.ticker import FuncFormatter, NullFormatter

    values = np.asarray(values, dtype=float)
    n_rows, n_columns = values.shape
    annotate = max(n_rows, n_columns) <= 12 if annotate is None else annotate
    side = float(np.clip(6.0 / max(n_rows, n_columns), 0.02, 0.5))
    figure, axes = new_figure(2.6 + max(3.0, side * n_columns), 1.7 + max(1.2, side * n_rows))
    known = values[np.isfinite(values)]
    norm = (LogNorm if log else Normalize)(known.min(), known.max())
    axes.patch.set(**kind_look(missing))
    image = axes.imshow(values, cmap="cividis", norm=norm, aspect="auto", interpolation="nearest")
    axes.grid(False)
    if annotate:
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                color = "white" if norm(value) < 0.55 else "black"
                axes.text(
                    column, row, plain(float(f"{value:.2g}")), ha="center", va="center", color=color, fontsize=7.5
                )
    for axis, ticks in ((axes.xaxis, x_ticks), (axes.yaxis, y_ticks)):
        if ticks is not None:
            step = max(1, len(ticks) // 24)
            axis.set_ticks(range(0, len(ticks), step), [visible(str(tick)) for tick in ticks][::step])
    if x_ticks is not None and max(len(str(tick)) for tick in x_ticks) > 3:
        axes.tick_params(axis="x", rotation=60)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.03, format=FuncFormatter(lambda value, _: exact(value)))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.set_label(value_label)
    bar.outline.set_visible(False)
    table = f"{value_label}: {n_rows} x {n_columns}, {plain(known.min())} to {plain(known.max())}"
    return finish(axes, title, table, note, model)


def token_strip(
    rows: Mapping[str, Sequence[str]],
    *,
    shared: int | None = None,
    positions: bool | Mapping[str, Sequence[int]] = False,
    title: str = "",
    note: str = "",
    shared_label: str = "shared prefix",
) -> Chart:
    """Rows of tokens as boxes, the shared prefix drawn as cached and bracketed; each row is `label: token texts`.

    `shared` is the number of tokens the rows share; counted when not given. `positions=True` writes each
    token's position under it; a mapping gives a row positions of its own, to show a wrong choice.
    A long shared prefix is shortened in the middle, and a row that is too wide for a page is wrapped.
    """
    from matplotlib.patches import Rectangle

    if shared is None:
        columns = zip(*rows.values(), strict=False)
        shared = next((i for i, column in enumerate(columns) if len(set(column)) > 1), min(map(len, rows.values())))
    given = positions if isinstance(positions, Mapping) else {}
    strips = {
        label: _shortened([visible(t) for t in tokens], list(given.get(label, range(len(tokens)))), shared)
        for label, tokens in rows.items()
    }
    lines = [(label if not i else "", line) for label, strip in strips.items() for i, line in enumerate(_lines(strip))]
    pitch = 1.75 if positions else 1.3
    widest = max(sum(_box_width(text) for text, _, _ in line) for _, line in lines)
    height = (len(lines) - 1) * pitch + (0.95 if positions else 0.5)
    size = max(6.0, widest * 0.1 + 1.9), 1.15 + 0.38 * pitch * len(lines)
    _, axes = blank_figure(*size, (-0.3, widest + 0.3), (height, -1.5 if shared else -0.6))
    bracket_end = 0.0
    for row, (label, line) in enumerate(lines):
        x, y = 0.0, row * pitch
        axes.text(-1, y, label, ha="right", va="center", fontweight="bold")
        for text, position, is_shared in line:
            width, look = _box_width(text), kind_look("cached" if is_shared else "")
            axes.add_patch(Rectangle((x, y - 0.42), width, 0.84, **look))
            axes.text(x + width / 2, y, text, ha="center", va="center_baseline", family="DejaVu Sans Mono",
                      fontsize=8.5, bbox=behind_words(look["facecolor"]) if is_shared else None)  # fmt: skip
            if positions and position is not None:
                axes.text(x + width / 2, y + 0.5, str(position), ha="center", va="top", fontsize=7, color=GRAY)
            x += width
            bracket_end = max(bracket_end, x if is_shared else 0)
    if shared:
        count = f"{shared_label}, {shared} token{'' if shared == 1 else 's'}"
        axes.annotate("", (0, -0.62), (bracket_end, -0.62), arrowprops={"arrowstyle": "|-|,widthA=.3,widthB=.3"})
        axes.text(0, -0.82, count, va="bottom", fontsize=9)
    table = "\n".join(f"{label}: {'|'.join(text for text, _, _ in strip)}" for label, strip in strips.items())
    return finish(axes, title, table, note)


def fit_slope(xs: Iterable[float], ys: Iterable[Any]) -> float:
    """The slope of the straight line through log(x), log(y): 1 where y grows as x, 2 where as x squared."""
    x = np.log(np.array([float(value) for value in xs]))
    y = np.log(np.array([number(value) for value in ys]))
    if len(x) < 2:
        raise ValueError("A slope needs at least two points.")
    return float(np.polyfit(x, y, 1)[0])


def _box_width(text: str) -> float:
    return len(text) + 1.2


def _lines(strip: list[Box]) -> list[list[Box]]:
    """The boxes, broken into lines that fit on a page."""
    lines: list[list[Box]] = [[]]
    room = PAGE
    for box in strip:
        room -= _box_width(box[0])
        if room < 0 and lines[-1]:
            lines.append([])
            room = PAGE - _box_width(box[0])
        lines[-1].append(box)
    return lines


def _shortened(tokens: list[str], positions: list[int], shared: int) -> list[Box]:
    """Boxes as (text, position, is shared); a long shared prefix keeps its beginning and its end."""
    boxes = [(text, position, i < shared) for i, (text, position) in enumerate(zip(tokens, positions, strict=True))]
    if shared <= 12:
        return boxes
    left_out = (f"… {shared - 8} more …", None, True)
    return [*boxes[:4], left_out, *boxes[shared - 4 :]]


def _points(xs: Sequence[float], ys: Sequence[Any]) -> dict[str, Any]:
    if len(xs) != len(ys) or not len(xs):
        raise ValueError(f"A line needs as many y as x, and at least one; there are {len(xs)} x and {len(ys)} y.")
    spreads = [y.spread if isinstance(y, Measurement) else (float(y), float(y)) for y in ys]
    return {
        "x": np.array([float(x) for x in xs]),
        "y": np.array([number(y) for y in ys]),
        "best": np.array([y.best if isinstance(y, Measurement) else float(y) for y in ys]),
        "low": np.array([low for low, _ in spreads]),
        "high": np.array([high for _, high in spreads]),
        "measured": any(isinstance(y, Measurement) for y in ys),
    }
