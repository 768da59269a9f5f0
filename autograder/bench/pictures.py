"""The pictures and the tables of README.md, made from a benchmark's own results."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console

from autograder.bench import report
from autograder.bench.goals import Goal
from autograder.bench.grading import Grading
from autograder.bench.reuse import Reuse
from autograder.bench.speed import PREFILL, Speed
from autograder.places import ROOT
from autograder.toolkit.charts import Chart, bar_chart, line_chart
from autograder.toolkit.timing import machine

IMAGES = ROOT / "course" / "images"
README = ROOT / "README.md"
STAGE = "save-and-reuse"
_MEASURED = re.compile(r"(<!-- measured: .*? -->\n).*?(<!-- end -->)", re.DOTALL)

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
    grading: Grading,
    speed: Speed,
    goals: Sequence[Goal],
    weights: Any,
) -> None:
    """Write the charts, the marked class and the tables; say what was written."""
    IMAGES.mkdir(exist_ok=True)
    reuse_chart(reuse, weights).save(IMAGES / "reuse.png")
    for name, chart in speed_charts(speed).items():
        chart.save(IMAGES / name)
    (IMAGES / "marked.svg").write_text(marked_class(), encoding="utf-8")
    write_readme_tables(reuse, grading, speed, goals)
    console.print(f"Written: the charts and marked.svg in {IMAGES}, and the tables of README.md", soft_wrap=True)


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


def speed_charts(speed: Speed) -> dict[str, Chart]:
    """Times at the size of GPT-2 small by file name: the solutions, transformers, and the machine's limit."""
    works = {
        "speed-prefill.png": (
            "Prefill, GPT-2 small",
            {f"{n:,} tokens": (("prefill", n), (n, n)) for n in PREFILL},
        ),
        "speed-decode.png": (
            "Decode, one token, GPT-2 small",
            {f"behind {n:,} others": (("decode", n), (1, n + 1)) for n in (64, 512, 1000)},
        ),
    }
    charts = {}
    for name, (title, groups) in works.items():
        bars = {}
        for what, (call, work) in groups.items():
            bars[what] = {"NumPy, as taught": speed.time("solutions", *call)}
            if speed.has_peer:
                bars[what]["transformers"] = speed.time("transformers", *call)
            bars[what]["limit of the machine"] = speed.limit(*work)
        note = f"Random weights. Medians with quartiles, the engines in turn. {date.today().isoformat()}."
        charts[name] = bar_chart(bars, label="time", unit="s", title=title, note=note, n_threads=speed.threads)
    return charts


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


def write_readme_tables(reuse: Sequence[Reuse], grading: Grading, speed: Speed, goals: Sequence[Goal]) -> None:
    """Put the results between the marks in README.md."""
    text = "\n".join(
        [
            f"Measured on {date.today().isoformat()}: {machine()}. {report.LEGEND}",
            "",
            *_markdown(report.HEAD, report.reuse_rows(reuse)),
            "",
            *_markdown(("marking save-and-reuse", ""), report.grading_rows(grading)),
            "",
            *report.speed_notes(speed),
            "",
            *_markdown(report.SPEED_HEAD, report.speed_rows(speed)),
            "",
            *_markdown(report.PARTS_HEAD, report.parts_rows(speed)),
            "",
            report.PARTS_NOTE,
            "",
            "![Prefill at the size of GPT-2 small beside transformers and the machine's limit]"
            "(course/images/speed-prefill.png)",
            "",
            "![The same for decode](course/images/speed-decode.png)",
            "",
            *_markdown(report.GOAL_HEAD, report.goal_rows(goals)),
        ]
    )
    readme = README.read_text(encoding="utf-8")
    written, count = _MEASURED.subn(lambda match: f"{match[1]}{text}\n{match[2]}", readme)
    if count != 1:
        raise RuntimeError("README.md has not exactly one place between '<!-- measured: ... -->' and '<!-- end -->'")
    README.write_text(written, encoding="utf-8")


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table, its first column to the left when it holds texts."""
    first = "--:" if rows[0][0].isdigit() else "---"
    lines = [head, *rows]
    return [f"| {' | '.join(lines[0])} |", f"|{first}|" + "--:|" * (len(head) - 1),
            *(f"| {' | '.join(row)} |" for row in lines[1:])]  # fmt: skip
