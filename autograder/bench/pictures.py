"""The pictures of README.md and the tables of course/MEASURED.md, made from a benchmark's own results."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console

from autograder.bench import report
from autograder.bench.goals import Goal
from autograder.bench.reuse import Reuse
from autograder.bench.serving import Served
from autograder.bench.speed import Speed
from autograder.places import ROOT
from autograder.toolkit.charts import Chart, line_chart
from autograder.toolkit.timing import machine

IMAGES = ROOT / "course" / "images"
MEASURED = ROOT / "course" / "MEASURED.md"
STAGE = "save-and-reuse"

# A plain terminal window: rich's own has a font from elsewhere and a title bar.
_SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
line-height: {line_height}px; }}
{styles}
</style>
<rect width="100%" height="100%" rx="8" fill="#ffffff"/>
<defs>{lines}</defs>
<g transform="translate(12, 12)"><g class="{unique_id}-matrix">{backgrounds}{matrix}</g></g>
</svg>
"""


def write_all(
    console: Console,
    reuse: Sequence[Reuse],
    speed: Speed,
    serving: Sequence[Served],
    goals: Sequence[Goal],
    weights: Any,
) -> None:
    """Write the chart, the marked class and the page of tables; say what was written."""
    IMAGES.mkdir(exist_ok=True)
    reuse_chart(reuse, weights).save(IMAGES / "reuse.png")
    (IMAGES / "marked.svg").write_text(marked_class(), encoding="utf-8")
    MEASURED.write_text(measured_page(reuse, speed, serving, goals), encoding="utf-8")
    console.print(f"Written: reuse.png and marked.svg in {IMAGES}, and {MEASURED}", soft_wrap=True)


def reuse_chart(results: Sequence[Reuse], weights: Any) -> Chart:
    """Time per request against the prefix's length."""
    lengths = [r.prefix for r in results]
    return line_chart(
        {
            "cold": (lengths, [r.cold for r in results]),
            "cold, another prefix (control)": (lengths, [r.control for r in results]),
            "saved prefix reused": (lengths, [r.reused for r in results]),
        },
        x_label="length of the prefix",
        x_unit="tokens",
        y_label="time per request",
        title="A saved prefix makes its length nearly free",
        note=f"Suffix of {results[0].suffix} tokens; medians of {len(results[0].cold.samples)} runs, with quartiles. "
        f"{date.today().isoformat()}.",
        model=weights,
    )


def marked_class() -> str:
    """The table at the end of `make demo`, for one stage, as an SVG."""
    from autograder.cli.demo import run
    from autograder.cli.marks_table import gradebook_scores, marks_table
    from autograder.grading.records import read_records
    from autograder.stages import find_stage

    stage = find_stage(STAGE)
    with tempfile.TemporaryDirectory() as temporary:
        course = Path(temporary) / "class"
        run(STAGE, course, console=Console(quiet=True))
        table = marks_table(
            stage, read_records(course / "autograded", stage.assignment), gradebook_scores(course, stage)
        )
    console = Console(record=True, width=92, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(table)
    from rich.terminal_theme import DEFAULT_TERMINAL_THEME

    return console.export_svg(title=STAGE, theme=DEFAULT_TERMINAL_THEME, code_format=_SVG, unique_id="marked")


def measured_page(reuse: Sequence[Reuse], speed: Speed, serving: Sequence[Served], goals: Sequence[Goal]) -> str:
    """The page of tables."""
    return "\n".join(
        [
            "# What was measured",
            "",
            f"By `make bench-figures`, on {date.today().isoformat()}: {machine()}.",
            "",
            "## A reused prefix, on the course's model",
            "",
            report.LEGEND,
            "",
            *_markdown(report.HEAD, report.reuse_rows(reuse)),
            "",
            "## At the size of GPT-2 small",
            "",
            *report.speed_notes(speed),
            "",
            *_markdown(report.SPEED_HEAD, report.speed_rows(speed)),
            "",
            "## Goals",
            "",
            "A decode step and a reuse are bounded by one read of the weights, not by the tokens that they compute.",
            "",
            *_markdown(report.SERVING_HEAD, report.serving_rows(serving)),
            "",
            report.SERVING_NOTE,
            "",
            *_markdown(report.GOAL_HEAD, report.goal_rows(goals)),
            "",
        ]
    )


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table, its first column to the left when it holds texts."""
    first = "--:" if rows[0][0].isdigit() else "---"
    lines = [head, *rows]
    return [f"| {' | '.join(lines[0])} |", f"|{first}|" + "--:|" * (len(head) - 1),
            *(f"| {' | '.join(row)} |" for row in lines[1:])]  # fmt: skip
