"""The pictures of README.md and the page course/MEASURED.md, made from a benchmark's results."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console

from autograder.bench.reuse import Reuse
from autograder.bench.tables import Table
from autograder.places import ROOT
from autograder.toolkit.charts import Chart, line_chart

IMAGES = ROOT / "course" / "images"
MEASURED = ROOT / "course" / "MEASURED.md"
STAGE = "save-and-reuse"
SECTIONS = {  # of the page of tables, by the part that measures them
    "reuse": "A reused prefix, on the course's model",
    "speed": "At the size of GPT-2 small",
    "serving": "A store of blocks beside whole entries",
    "chat": "A chat model",
}

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


def write_pictures(reuse: Sequence[Reuse], weights: Any) -> None:
    IMAGES.mkdir(exist_ok=True)
    reuse_chart(reuse, weights).save(IMAGES / "reuse.png")
    (IMAGES / "graded.svg").write_text(graded_class(), encoding="utf-8")


def reuse_chart(results: Sequence[Reuse], weights: Any) -> Chart:
    """Time per request against the prefix's length."""
    lengths = [r.prefix for r in results]
    names = {"cold": "cold", "control": "cold, another prefix (control)", "reused": "saved prefix reused"}
    repeats = len(results[0].times["cold"].samples)
    return line_chart(
        {name: (lengths, [r.times[way] for r in results]) for way, name in names.items()},
        x_label="length of the prefix",
        x_unit="tokens",
        y_label="time per request",
        title="A saved prefix makes its length nearly free",
        note=f"Suffix of {results[0].suffix} tokens; medians of {repeats} runs, with quartiles. "
        f"{date.today().isoformat()}.",
        model=weights,
    )


def graded_class() -> str:
    """The table at the end of `make demo`, for one stage, as an SVG."""
    from autograder.cli.demo import run
    from autograder.cli.scores_table import gradebook_scores, scores_table
    from autograder.grading.records import read_records
    from autograder.stages import find_stage

    stage = find_stage(STAGE)
    with tempfile.TemporaryDirectory() as temporary:
        course = Path(temporary) / "class"
        run(STAGE, course, console=Console(quiet=True))
        table = scores_table(
            stage, read_records(course / "autograded", stage.assignment), gradebook_scores(course, stage)
        )
    console = Console(record=True, width=92, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(table)
    from rich.terminal_theme import DEFAULT_TERMINAL_THEME

    return console.export_svg(title=STAGE, theme=DEFAULT_TERMINAL_THEME, code_format=_SVG, unique_id="graded")


def page_with(page: str, title: str, where: str, tables: Sequence[Table]) -> str:
    """The page of tables, with the section of this title added or replaced.

    where: the machine. The sections are in the order of SECTIONS; others are dropped.
    """
    sections = dict(section.split("\n", 1) for section in page.split("\n## ")[1:])
    lines = [f"On {date.today().isoformat()}: {where}."]
    for table in tables:
        lines += ["", *table.markdown()]
    sections[title] = "\n" + "\n".join(lines) + "\n"
    return "# What was measured\n\nBy `make bench-figures`.\n" + "".join(
        f"\n## {title}\n{sections[title].rstrip()}\n" for title in SECTIONS.values() if title in sections
    )
