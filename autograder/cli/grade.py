"""`autograder grade`: grades a class, with the scores of `nbgrader autograde` and in the same gradebook."""

from __future__ import annotations

import csv
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from autograder.cli.errors import EXIT_FAILED, UserError
from autograder.cli.find import find_course, with_checks
from autograder.places import CONFIG
from autograder.spreadsheet import as_text
from autograder.stages import GRADED_STAGES, Stage, find_stage
from autograder.toolkit.threads import use_one_thread
from autograder.whole_file import whole_file

if TYPE_CHECKING:
    from rich.progress import Progress

    from autograder.grading.class_run import Course
    from autograder.grading.outcome import Outcome
    from autograder.grading.records import Record

_COLUMNS = ("assignment", "student", "status", "score", "max_score", "seconds", "graded_at", "bugs", "reason", "stale")


def run(
    stages: Sequence[str],
    *,
    course: Path | None,
    students: Sequence[str],
    jobs: int | None,
    force: bool,
    csv_path: Path | None,
    json_path: Path | None,
    require_sandbox: bool = False,
    dask: str | None = None,
) -> int:
    """Grade what was handed in and not yet graded; the exit status is 1 if a submission could not be graded."""
    started = time.monotonic()
    chosen = [with_checks(find_stage(name)) for name in dict.fromkeys(stages)] or list(GRADED_STAGES)
    folder = find_course(course)
    outputs = [(path.absolute(), write) for path, write in ((csv_path, write_csv), (json_path, write_json)) if path]
    for path, _ in outputs:
        if os.path.exists(path) and not os.path.isfile(path):
            raise UserError(f"{path} is not an ordinary file and would be replaced; name another.")
        if not os.access(path.parent, os.W_OK):
            raise UserError(f"{path} cannot be written; name a file in a folder that can.")
    use_one_thread()

    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        waiting = progress.add_task("Starting nbgrader", total=None)
        from autograder.grading.class_run import Course, CourseProblem

        try:
            grading = Course(folder, _Unexpected(console), require_sandbox)
            todo = [stage for stage in chosen if grading.handed_in(stage, students)]
            _refuse_when_empty(grading, chosen, todo, students, named=bool(stages))
        except CourseProblem as problem:
            raise UserError(str(problem)) from None
        progress.remove_task(waiting)
        outcomes: list[Outcome] = []
        printed: set[str] = set()
        problems: list[str] = []
        for stage in todo:
            try:
                bar = _bar(progress, stage, printed)
                outcomes.append(grading.grade(stage, bar, students=students, force=force, jobs=jobs, dask=dask))
            except CourseProblem as problem:  # concerns this stage alone; the other stages are still graded
                problems.append(str(problem))
    scores = [(outcome, _records(grading.autograded, outcome, students)) for outcome in outcomes]
    _print_outcomes(scores, time.monotonic() - started)
    for path, write in outputs if outcomes else ():
        try:
            write(path, scores)
        except OSError as error:
            problems.append(f"{path} cannot be written ({error.strerror or error}); the scores are in the gradebook.")
    if problems:
        raise UserError(" ".join(dict.fromkeys(problems)))
    return EXIT_FAILED if any(outcome.not_graded for outcome in outcomes) else 0


def _refuse_when_empty(
    grading: Course, chosen: Sequence[Stage], todo: Sequence[Stage], students: Sequence[str], named: bool
) -> None:
    handed_in = {student for stage in todo for student in grading.handed_in(stage, students)}
    unknown = [student for student in students if student not in handed_in]
    where = ", ".join(stage.assignment for stage in chosen) if named else "any stage"
    if left_out := [student for student in unknown if student in grading.excluded]:
        names = ", ".join(left_out)
        raise UserError(
            f"c.CourseDirectory.student_id_exclude in {CONFIG} leaves out {names}; change it, or --student."
        )
    if unknown:
        raise UserError(f"{', '.join(unknown)} handed in nothing for {where} (in {grading.submitted}/STUDENT/).")
    empty = [stage.assignment for stage in chosen if stage not in todo]
    if empty and (named or not todo):
        which = ", ".join(empty) if named else "any stage"
        raise UserError(f"Nothing was handed in for {which} (in {grading.submitted}/STUDENT/).")


def _bar(progress: Progress, stage: Stage, printed: set[str]):
    from autograder.grading.outcome import Watcher

    class Bar(Watcher):
        def begins(self, students: int, notices: Sequence[str]) -> None:
            for sentence in notices:
                if sentence not in printed:  # by the bar of another stage
                    printed.add(sentence)
                    progress.console.print(sentence, markup=False, highlight=False, soft_wrap=True)
            self.task, self.students = progress.add_task(stage.assignment, total=students), students

        def settled(self, student: str) -> None:
            progress.advance(self.task)

        def ends(self, outcome: Outcome) -> None:
            progress.update(self.task, completed=self.students)

    return Bar()


class _Unexpected(logging.Handler):
    """Shows nbgrader's errors that no submission caused; the others are in the table."""

    def __init__(self, console: Any):
        super().__init__(logging.ERROR)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith(("Traceback", "The gradebook", "The files", "There was an error accessing")):
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _print_outcomes(scores: Scores, seconds: float) -> None:
    outcomes = [outcome for outcome, _ in scores]
    for outcome in outcomes:
        if outcome.lines and len(outcomes) > 1:
            print(f"{outcome.assignment}:")
        for row in outcome.table():
            print(row)
    for outcome, records in scores:
        if totals := [record.score for record in records if record.score is not None]:
            print(f"{outcome.assignment}: {distribution(totals, max(r.max_score or 0 for r in records))}")
    for outcome in outcomes:
        print(outcome.summary)
    if len(outcomes) > 1:
        graded, not_graded = sum(o.graded + o.before for o in outcomes), sum(o.not_graded for o in outcomes)
        print(f"{len(outcomes)} stages: {graded} graded, {not_graded} not graded, {seconds:.0f} s")


def distribution(scores: Sequence[float], most: float) -> str:
    """How many submissions have each number of points from checks, the most points first, and the median."""
    counts = ", ".join(f"{score:g} ({n})" for score, n in sorted(Counter(scores).items(), reverse=True))
    return f"points of {most:g}, and how many have them: {counts}; median {median(scores):g}"


def _records(autograded: Path, outcome: Outcome, students: Sequence[str]) -> list[Record]:
    from autograder.grading.records import read_records

    return [r for r in read_records(autograded, outcome.assignment) if not students or r.student in students]


Scores = list[tuple["Outcome", list["Record"]]]


def write_csv(path: Path, scores: Scores) -> None:
    """Write a row per submission; the last columns are the points of each check, empty for checks of other stages.

    The score is the sum of the checks: points given by hand and late penalties are not in it.
    """
    from autograder.grading.outcome import STALE

    checks = list(dict.fromkeys(check.id for _, records in scores for record in records for check in record.checks))
    with whole_file(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_COLUMNS, *checks])
        for outcome, records in scores:
            stale = {line.student: line.sentence for line in outcome.lines if line.what == STALE}
            for record in records:
                plain = asdict(record) | {"stale": stale.get(record.student, "")}
                plain["bugs"] = "; ".join(record.bugs)
                points = {check.id: check.score for check in record.checks}
                row = [*(plain[name] for name in _COLUMNS), *(points.get(check, "") for check in checks)]
                writer.writerow([as_text(cell) if isinstance(cell, str) else cell for cell in row])


def write_json(path: Path, scores: Scores) -> None:
    """Write a list with an object per stage, which holds the record of each submission."""
    stages = [
        {
            "assignment": outcome.assignment,
            "graded": outcome.graded + outcome.before,
            "graded_in_this_run": outcome.graded,
            "not_graded": outcome.not_graded,
            "seconds": round(outcome.seconds, 2),
            "submissions": [asdict(record) for record in records],
        }
        for outcome, records in scores
    ]
    with whole_file(path) as file:
        json.dump(stages, file, indent=1, ensure_ascii=False)
        file.write("\n")
