"""The scores of a class as a table: a row per student, a column per check, and the named bugs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from autograder.grading.records import GRADED, Record
from autograder.judge.framework import checks_of
from autograder.plain_text import one_line
from autograder.stages import Stage

Scores = dict[str, dict[str, float]]  # student -> check id -> points


def gradebook_scores(course: Path, stage: Stage) -> Scores:
    """The points of every check in nbgrader's gradebook, without those given by hand."""
    from nbgrader.api import Gradebook

    checks = {check.id for check in checks_of(stage.name)}
    with Gradebook(f"sqlite:///{course.resolve() / 'gradebook.db'}") as gradebook:
        return {
            submission.student.id: {
                grade.name: grade.score
                for notebook in submission.notebooks
                for grade in notebook.grades
                if grade.name in checks
            }
            for submission in gradebook.assignment_submissions(stage.assignment)
        }


def scores_table(
    stage: Stage, records: Sequence[Record], scores: Scores, pages: Mapping[str, Path] | None = None
) -> Table:
    """Best scores first. Checks are numbered, and the caption names them; a student's name links to a page."""
    pages = pages or {}
    checks = checks_of(stage.name)
    most = sum(check.points for check in checks)
    caption = "\n".join(f"{number:>2}  {check.title}" for number, check in enumerate(checks, 1))
    table = Table(title=f"{stage.number}. {stage.title}", title_justify="left", title_style="bold",
                  caption=caption, caption_justify="left", caption_style="", header_style="bold",
                  box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))  # fmt: skip
    table.add_column("student", no_wrap=True)
    for number in range(1, len(checks) + 1):
        table.add_column(str(number), justify="right", no_wrap=True, min_width=1)
    table.add_column(f"of {most:g}", justify="right", no_wrap=True)
    table.add_column("named bug")
    for record in sorted(records, key=lambda r: (-sum(scores.get(r.student, {}).values()), r.student)):
        given = scores.get(record.student, {})
        points = [_score(given.get(check.id), check.points) for check in checks]
        link = f"link {pages[record.student].resolve().as_uri()}" if record.student in pages else ""
        table.add_row(Text(record.student, style=link), *points, f"{sum(given.values()):g}", _named(record))
    return table


def _score(score: float | None, points: float) -> Text:
    if score is None:
        return Text("-", style="red")
    return Text(f"{score:g}", style="green" if score == points else "bold red")


def _named(record: Record) -> Text:
    if record.status != GRADED:
        return Text(one_line(f"not graded: {record.reason}", 2000), style="red")
    return Text(", ".join(record.bugs))
