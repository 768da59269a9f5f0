"""`autograder grade`: a class marked at once, with the scores of `nbgrader autograde` and into the same gradebook."""

from __future__ import annotations

import contextlib
import csv
import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from autograder.cli.errors import EXIT_FAILED, UserError
from autograder.stages import GRADED_STAGES, Stage, find_stage
from autograder.threads import use_one_thread

if TYPE_CHECKING:
    from rich.progress import Progress

    from autograder.grading.outcome import Outcome
    from autograder.grading.records import Record

CONFIG = "nbgrader_config.py"
_COLUMNS = ("assignment", "student", "status", "score", "max_score", "seconds", "graded_at", "bugs", "reason")


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
) -> int:
    """Mark what was handed in and not yet marked; the exit status is 1 when something could not be graded."""
    started = time.monotonic()
    chosen = [_gradable(name) for name in dict.fromkeys(stages)] or list(GRADED_STAGES)
    folder = find_course(course)
    outputs = [(path.absolute(), write) for path, write in ((csv_path, write_csv), (json_path, write_json)) if path]
    for path, _ in outputs:
        if path.is_dir() or not os.access(path.parent, os.W_OK):
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
            marking = Course(folder, _Unexpected(console), require_sandbox)
            todo = [stage for stage in chosen if marking.handed_in(stage, students)]
            _refuse_when_empty(marking, folder, chosen, todo, students, named=bool(stages))
            progress.remove_task(waiting)
            outcomes = [
                marking.grade(stage, _bar(progress, stage), students=students, force=force, jobs=jobs) for stage in todo
            ]
        except CourseProblem as problem:
            raise UserError(str(problem)) from None
    for path, write in outputs:
        write(path, [(outcome, _records(marking.autograded, outcome, students)) for outcome in outcomes])
    _tell(outcomes, time.monotonic() - started)
    return EXIT_FAILED if any(outcome.not_graded for outcome in outcomes) else 0


def find_course(course: Path | None) -> Path:
    """The course folder: the one that is named, or the nearest of this folder, course/ in it, and those above."""
    if course is not None:
        if not (course / CONFIG).is_file():
            raise UserError(f"{course} is not a course folder: it has no {CONFIG}.")
        return course.resolve()
    here = Path.cwd()
    for folder in (here, here / "course", *here.parents):
        if (folder / CONFIG).is_file():
            return folder
    raise UserError(f"There is no {CONFIG} in this folder, in course/ or above; name the course with --course PATH.")


def _gradable(name: str) -> Stage:
    stage = find_stage(name)
    if not stage.graded:
        names = ", ".join(s.name for s in GRADED_STAGES)
        raise UserError(f"Nothing is graded in {stage.name}; the stages with checks are {names}.")
    return stage


def _refuse_when_empty(marking, folder, chosen, todo, students, named: bool) -> None:
    handed_in = {student for stage in todo for student in marking.handed_in(stage, students)}
    unknown = [student for student in students if student not in handed_in]
    where = ", ".join(stage.assignment for stage in chosen) if named else "any stage"
    if unknown:
        raise UserError(f"{', '.join(unknown)} handed in nothing for {where} (in {folder}/submitted/STUDENT/).")
    empty = [stage.assignment for stage in chosen if stage not in todo]
    if empty and (named or not todo):
        which = ", ".join(empty) if named else "any stage"
        raise UserError(f"Nothing was handed in for {which} (in {folder}/submitted/STUDENT/).")


def _bar(progress: Progress, stage: Stage):
    from autograder.grading.outcome import Watcher

    class Bar(Watcher):
        def begins(self, students: int) -> None:
            self.task, self.students = progress.add_task(stage.assignment, total=students), students

        def settled(self, student: str) -> None:
            progress.advance(self.task)

        def ends(self, outcome: Outcome) -> None:
            progress.update(self.task, completed=self.students)

    return Bar()


class _Unexpected(logging.Handler):
    """Of nbgrader's errors, shows those that are no submission's fault: the table has the others."""

    def __init__(self, console: Any):
        super().__init__(logging.ERROR)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith(("Traceback", "The gradebook", "There was an error accessing")):
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _tell(outcomes: Sequence[Outcome], seconds: float) -> None:
    for outcome in outcomes:
        if outcome.lines and len(outcomes) > 1:
            print(f"{outcome.assignment}:")
        for row in outcome.table():
            print(row)
    for sentence in dict.fromkeys(outcome.not_isolated for outcome in outcomes if outcome.not_isolated):
        print(sentence)
    for outcome in outcomes:
        print(outcome.summary)
    if len(outcomes) > 1:
        graded, not_graded = sum(o.graded + o.before for o in outcomes), sum(o.not_graded for o in outcomes)
        print(f"{len(outcomes)} stages: {graded} graded, {not_graded} not graded, {seconds:.0f} s")


def _records(autograded: Path, outcome: Outcome, students: Sequence[str]) -> list[Record]:
    from autograder.grading.records import read_records

    return [r for r in read_records(autograded, outcome.assignment) if not students or r.student in students]


Marks = list[tuple["Outcome", list["Record"]]]


def write_csv(path: Path, marks: Marks) -> None:
    """A row a submission; the last columns are the points of each check, empty where another stage has it."""
    checks = list(dict.fromkeys(check["id"] for _, records in marks for record in records for check in record.checks))
    with _whole(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_COLUMNS, *checks])
        for _, records in marks:
            for record in records:
                plain = asdict(record)
                plain["bugs"] = "; ".join(dict.fromkeys(c["bug"]["label"] for c in record.checks if c["bug"]))
                scores = {check["id"]: check["score"] for check in record.checks}
                writer.writerow([*(plain[name] for name in _COLUMNS), *(scores.get(check, "") for check in checks)])


def write_json(path: Path, marks: Marks) -> None:
    """A list with an object a stage, and in it everything that was found out about each submission."""
    stages = [
        {
            "assignment": outcome.assignment,
            "graded": outcome.graded + outcome.before,
            "graded_in_this_run": outcome.graded,
            "not_graded": outcome.not_graded,
            "seconds": round(outcome.seconds, 2),
            "submissions": [asdict(record) for record in records],
        }
        for outcome, records in marks
    ]
    with _whole(path) as file:
        json.dump(stages, file, indent=1, ensure_ascii=False)
        file.write("\n")


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[TextIO]:
    """A file that is there whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
