"""The charts of a saved prefix: one request by the prefix's length, and many requests with their break-even."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.toolkit.chart_style import Chart, number
from autograder.toolkit.charts import line_chart
from autograder.toolkit.timing import Comparison


def request_chart(times: Mapping[int, Comparison], n_suffix: int, model: Any) -> Chart:
    """One request by the length of its prefix, each way that `times` holds for it, beside the ideal.

    times: for each length of the prefix, what timing.compare gave; the first way is the one with nothing saved.
    The ideal is its time times n_suffix / (prefix + n_suffix).
    """
    lengths = list(times)
    ways = list(times[lengths[0]])
    ideal = [times[n][ways[0]].median * n_suffix / (n + n_suffix) for n in lengths]
    return line_chart(
        {way: (lengths, [times[n][way] for n in lengths]) for way in ways},
        reference={"ideal": (lengths, ideal)},
        x_label="prefix length",
        x_unit="tokens",
        y_label="time of a request",
        title=f"One request with a suffix of {n_suffix} tokens",
        model=model,
    )


def crossing(counts: Sequence[float], rising: Sequence[Any], flat: Sequence[Any]) -> float:
    """Where two straight lines meet, each through its first and last point. The points are numbers or Measurements."""
    (rising_0, rising_1), (flat_0, flat_1) = ((number(ys[0]), number(ys[-1])) for ys in (rising, flat))
    slope = (rising_1 - rising_0 - flat_1 + flat_0) / (counts[-1] - counts[0])
    return counts[0] + (flat_0 - rising_0) / slope


def break_even_chart(
    counts: Sequence[int],
    in_all: Mapping[str, Sequence[Any]],
    *,
    y_label: str,
    y_unit: str = "",
    title: str,
    model: Any,
) -> Chart:
    """The total cost of each of two ways, for so many requests; a mark shows where the two lines meet."""
    break_even = crossing(counts, *in_all.values())
    return line_chart(
        {way: (counts, costs) for way, costs in in_all.items()},
        x_label="requests with the same prefix",
        y_label=y_label,
        y_unit=y_unit,
        marks={f"break-even: {break_even:.2f} requests": break_even},
        title=title,
        model=model,
    )
