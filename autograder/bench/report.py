"""The benchmarks' results as tables for a terminal and for README.md."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from autograder.bench.grading import Grading
from autograder.bench.reuse import Reuse
from autograder.timing import Measurement, plain, time_unit


def goal(what: str, value: float, most: float) -> str:
    """Whether a goal is met, and by how much it is missed."""
    verdict = "met" if value <= most else f"missed by {value / most - 1:.0%}"
    return f"goal: {what} at most {most:g}; measured {plain(value)}: {verdict}"


def short(measurement: Measurement | float) -> str:
    """A time with its unit."""
    seconds = measurement.median if isinstance(measurement, Measurement) else measurement
    scale, unit = time_unit(seconds)
    return f"{plain(seconds * scale)} {unit}"


HEAD = ("P", "S", "tokens", "cold", "control", "reused", "faster", "ideal", "of ideal")
LEGEND = (
    "P and S: tokens of prefix and suffix. Tokens: through the model, cold and reused. Times: medians in ms. "
    "Control: a cold request with another prefix of the same length. Ideal: (P + S) / S. "
    "Of ideal: ideal / faster; at 1 every token would cost the same."
)


def reuse_rows(results: Sequence[Reuse]) -> list[tuple[str, ...]]:
    """The rows under HEAD."""
    return [
        (
            str(r.prefix),
            str(r.suffix),
            f"{r.prefix + r.suffix} / {r.suffix}",
            *(plain(m.median * 1e3) for m in (r.cold, r.control, r.reused)),
            f"{r.speedup:.1f}x",
            f"{r.ideal:.1f}x",
            f"{r.short_of_ideal:.2f}",
        )
        for r in results
    ]


def reuse_table(results: Sequence[Reuse], model: str) -> Table:
    table = Table(title=f"A cold request against one that reuses a saved prefix, model {model}", title_justify="left",
                  title_style="bold", box=SIMPLE_HEAD, pad_edge=False,
                  caption=LEGEND, caption_justify="left")  # fmt: skip
    for column in HEAD:
        table.add_column(column, justify="right", no_wrap=True)
    for row in reuse_rows(results):
        table.add_row(*row)
    return table


def grading_rows(grading: Grading) -> list[tuple[str, str]]:
    return [
        (f"{grading.checks} checks in a worker that has started", short(grading.all_checks)),
        ("checks per second", f"{grading.checks_per_second:.0f}"),
        ("`autograder test`, from the command to its last line", short(grading.command)),
        ("`nbgrader autograde`, each submission", short(grading.autograde_each)),
        (
            f"`nbgrader autograde`, start of a run (from runs with 1 and {grading.submissions})",
            short(grading.autograde_start),
        ),
    ]


def grading_table(grading: Grading) -> Table:
    table = Table(title="Marking save-and-reuse", title_justify="left", title_style="bold", box=SIMPLE_HEAD,
                  pad_edge=False, show_header=False)  # fmt: skip
    table.add_column("what")
    table.add_column("time", justify="right")
    for row in grading_rows(grading):
        table.add_row(*row)
    return table
