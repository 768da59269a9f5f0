"""The page's drawings, as SVG with colors from the page's style. Every bar has its number beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from autograder.report.collect import CheckCounts

_WIDTH, _HEIGHT = 720, 190
_TOP, _BOTTOM, _SIDE = 22, 44, 8
_MOST_BINS = 31
_EDGES = tuple(digit * 10**power for power in (-1, 0, 1, 2, 3) for digit in (1, 2, 5))  # seconds

# What marks a part of a bar, in the order in which the parts stand
OUTCOMES = (
    ("named", "failed, bug named"),
    ("unnamed", "failed, no bug named"),
    ("not-judged", "not written, not defined or not finished"),
    ("passed", "passed"),
)


def patterns() -> str:
    """The hatches that the bars use, once per page."""
    return (
        "<svg class='patterns' width='0' height='0' aria-hidden='true' focusable='false'><defs>"
        "<pattern id='hatch' width='6' height='6' patternUnits='userSpaceOnUse' patternTransform='rotate(45)'>"
        "<rect class='paper' width='6' height='6'/><rect class='ink' width='2.4' height='6'/></pattern>"
        "<pattern id='dots' width='5' height='5' patternUnits='userSpaceOnUse'>"
        "<rect class='paper' width='5' height='5'/><circle class='ink' cx='2.5' cy='2.5' r='1.3'/></pattern>"
        "</defs></svg>"
    )


def score_histogram(scores: Sequence[float], most: float) -> str:
    """Students by points; the full score has its own bar if it is a whole number."""
    width = max(1, math.ceil((most + 1) / _MOST_BINS))
    counts = [0] * (math.floor(most / width) + 1)
    for score in scores:
        counts[min(max(int(score // width), 0), len(counts) - 1)] += 1
    firsts = [number * width for number in range(len(counts))]
    labels = [str(f) if width == 1 else f"{f}-{min(f + width - 1, math.floor(most))}" for f in firsts]
    labels = [label.split("-")[0] if label.split("-")[0] == label.split("-")[-1] else label for label in labels]
    return _histogram(counts, labels, f"points, of {most:g}", "points", last_is_full=float(most).is_integer())


def seconds_histogram(seconds: Sequence[float]) -> str:
    """Submissions by grading time, in steps of 1, 2, 5, 10, ..."""
    place = [sum(edge <= value for edge in _EDGES) for value in seconds]
    first, last = min(place), max(place)
    labels = [_between(number) for number in range(first, last + 1)]
    counts = [place.count(number) for number in range(first, last + 1)]
    return _histogram(counts, labels, "seconds for one submission", "seconds")


def _between(number: int) -> str:
    if number == 0:
        return f"under {_EDGES[0]:g}"
    if number == len(_EDGES):
        return f"over {_EDGES[-1]:g}"
    return f"{_EDGES[number - 1]:g} to {_EDGES[number]:g}"


def _histogram(counts, labels, caption: str, unit: str, last_is_full: bool = False) -> str:
    step = min((_WIDTH - 2 * _SIDE) / len(counts), 90)
    room, base = _HEIGHT - _TOP - _BOTTOM, _HEIGHT - _BOTTOM
    most = max(counts) or 1
    words = ", ".join(f"{label} {unit}: {n}" for label, n in zip(labels, counts, strict=True) if n)
    parts = [f"<line class='axis' x1='{_SIDE}' y1='{base}' x2='{_SIDE + step * len(counts):.1f}' y2='{base}'/>"]
    for number, (count, label) in enumerate(zip(counts, labels, strict=True)):
        x, height = _SIDE + number * step, room * count / most
        middle = x + step / 2
        if count:
            full = " full" if last_is_full and number == len(counts) - 1 else ""
            parts.append(f"<rect class='bar{full}' x='{x + step * 0.1:.1f}' y='{base - height:.1f}' "
                         f"width='{step * 0.8:.1f}' height='{height:.1f}'/>")  # fmt: skip
            parts.append(f"<text class='count' x='{middle:.1f}' y='{base - height - 5:.1f}'>{count}</text>")
        parts.append(f"<text class='tick' x='{middle:.1f}' y='{base + 15}'>{escape(label)}</text>")
    parts.append(f"<text class='caption' x='{_SIDE}' y='{_HEIGHT - 7}'>{escape(caption)}</text>")
    return (
        f"<svg class='histogram' viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' "
        f"aria-label='Number of students by {escape(caption, quote=True)}. {escape(words, quote=True)}.'>"
        f"{''.join(parts)}</svg>"
    )


def outcome_bar(check: CheckCounts) -> str:
    """One bar for a check; its numbers are in the table around it."""
    counts = {"named": check.named, "unnamed": check.unnamed, "not-judged": check.not_judged, "passed": check.passed}
    total, x, parts = sum(counts.values()) or 1, 1.0, []
    for kind, _ in OUTCOMES:
        width = 198 * counts[kind] / total
        if width:
            parts.append(f"<rect class='{kind}' x='{x:.1f}' y='1' width='{width:.1f}' height='14'/>")
        x += width
    return (
        f"<svg class='outcome' width='200' height='16' viewBox='0 0 200 16' aria-hidden='true'>{''.join(parts)}</svg>"
    )


def legend() -> str:
    parts = [
        f"<li><svg width='22' height='14' aria-hidden='true'><rect class='{kind}' x='1' y='1' width='20' height='12'/>"
        f"</svg> {escape(name)}</li>"
        for kind, name in OUTCOMES
    ]
    return f"<ul class='legend'>{''.join(parts)}</ul>"
