"""Grades a submitted file: a function of its arguments alone, so any process on any machine can compute it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.file_hash import hash_of
from autograder.grading.display import Shown, show
from autograder.grading.grade import Limits, SubmissionResult, grade_submission
from autograder.grading.graded_notebook import graded_notebook, rubrics_of
from autograder.grading.notes import Note
from autograder.grading.rebuild import cells_to_show, rebuild
from autograder.grading.records import GRADED, Record
from autograder.grading.scores import ForGradebook, answers, on_scale
from autograder.grading.seed import code_digest, submission_seed
from autograder.judge.cases import forget_passes
from autograder.judge.framework import Result
from autograder.notebooks.document import Document, read_document
from autograder.notebooks.errors import NotebookError
from autograder.notebooks.parity import NotInGrading
from autograder.plain_text import one_line
from autograder.sandbox.client import Worker
from autograder.sandbox.isolation import Isolation
from autograder.stages import Stage
from autograder.worker.naming import defined_names


@dataclass(frozen=True)
class HandedIn:
    """What one student handed in, and the key that the student's inputs are drawn from."""

    folder: Path
    key: bytes


@dataclass(frozen=True)
class Grading:
    """What the scores of all submissions of a run depend on."""

    course: Path
    stage: Stage
    source_notebook: dict[str, Any]
    points: Mapping[str, float]  # the maximum of each cell in the gradebook
    given: Path | None
    limits: Limits | None
    isolation: Isolation  # found by the command; no grader looks again
    display_seconds: float | None  # None: no display run
    allow_unsandboxed: bool = False  # even if root grades; for machines that find a sandbox of their own


@dataclass(frozen=True)
class Graded:
    """A graded submission. The points are on the gradebook's scale, which is the one that counts."""

    notebook: str  # the JSON of the trusted notebook with its scores
    stored: ForGradebook
    record: Record  # of no student yet


def grade(grading: Grading, handed_in: HandedIn, start_worker: Callable[[Path | None], Worker]) -> Graded:
    """Read, rebuild and grade a submission; NotebookError when what was handed in cannot be read."""
    path, notes = submitted_notebook(handed_in.folder, grading.stage)
    rebuilt = rebuild(grading.source_notebook, read_document(path), own_charts=grading.display_seconds is not None)
    cells = list(rebuilt.runs)
    result = grade_submission(
        cells,
        grading.stage,
        submission_seed(handed_in.key, code_digest(cells)),
        grading.given,
        limits=grading.limits,
        start_worker=start_worker,
    )
    forget_passes()  # no other student has the same inputs
    result = _with_places(result, rebuilt.missing)
    notes = (*notes, *rebuilt.notes, *result.notes)
    shown = Shown()
    if grading.display_seconds is not None:
        shown = show(cells_to_show(rebuilt.notebook), grading.given, start_worker, grading.display_seconds)
    if shown.problem:
        notes += (Note("display", None, f"Charts could not be drawn: {shown.problem}."),)
    results = {r.id: on_scale(r, grading.points[r.id]) for r in result.results}
    version = str(grading.stage.version)
    by_hand = {name: 0.0 if name in rebuilt.unanswered else None for name in grading.points}
    return Graded(
        graded_notebook(rebuilt.notebook, results, version, shown.outputs, rubrics_of(grading.source_notebook)),
        ForGradebook(by_hand | {r.id: r.score for r in results.values()}, rebuilt.unanswered),
        Record(
            grading.stage.assignment,
            student="",
            status=GRADED,
            graded_at="",
            checks_version=version,
            file=_name(path.name),
            digest=file_digest(path),
            score=sum(r.score for r in results.values()),
            max_score=sum(r.points for r in results.values()),
            seconds=round(result.seconds, 2),
            isolation=grading.isolation.missing or grading.isolation.mode,
            checks=tuple(results.values()),
            notes=notes,
            answers=answers(rebuilt.notebook),
        ),
    )


def _with_places(result: SubmissionResult, missing: tuple[NotInGrading, ...]) -> SubmissionResult:
    """The result; a message that mentions a name missing in grading also names the cell that defines it."""

    def located(one: Result) -> Result:
        because = [m.sentence for m in missing if f"'{m.name}'" in one.message or f"{m.name} is" in one.message]
        return replace(one, message="\n".join([one.message, *because])) if because and not one.passed else one

    return replace(result, results=tuple(map(located, result.results)))


def file_digest(path: Path) -> str:
    """A digest of a submitted file; NotebookError when it cannot be read."""
    try:
        return hash_of(path, hashlib.sha256())
    except OSError as error:
        raise _unreadable(path.name, error) from None


def _unreadable(what: str, error: OSError) -> NotebookError:
    return NotebookError(f"{what} cannot be read ({error.strerror or error}); let this account read it.")


def submitted_notebook(folder: Path, stage: Stage) -> tuple[Path, tuple[Note, ...]]:
    """The notebook to grade: the one with the assignment's name, or else the only one that fits the stage."""
    expected = f"{stage.module}.ipynb"
    try:
        found = sorted(p for p in folder.iterdir() if p.suffix.lower() == ".ipynb" and not p.name.startswith("."))
        links = [p.name for p in found if p.is_symlink()]
        found = [p for p in found if p.is_file() and not p.is_symlink()]
    except OSError as error:
        raise _unreadable("The submission", error) from None
    exact = [p for p in found if p.name == expected]
    if exact:
        others = [_name(p.name) for p in found if p.name != expected]
        if not others:
            return exact[0], ()
        sentence = f"{expected} was graded; there was also {', '.join(others)}."
        return exact[0], (Note("other-files", None, sentence),)
    if not found:
        what = "There is only a link to a file elsewhere" if links else "There is no notebook"
        raise NotebookError(f"{what} in the submission; {expected} is needed{_what_is_there(folder)}.")
    meant = found if len(found) == 1 else [p for p in found if stage.named_in(p.stem)]
    meant = meant if len(meant) == 1 else [p for p in found if _looks_like(p, stage)]
    if len(meant) != 1:
        names = ", ".join(_name(p.name) for p in found)
        raise NotebookError(f"None of the notebooks is named {expected} ({names}); rename the one that is meant.")
    return meant[0], (Note("renamed", None, f"The notebook was named {_name(meant[0].name)}."),)


def _what_is_there(folder: Path) -> str:
    """The end of a sentence that names the files: notebooks in subfolders, or else others; empty if there are none."""
    try:
        below = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".") and not path.is_symlink()]
        deeper = [p for path in below if path.is_dir() for p in sorted(path.glob("*.ipynb"))]
        others = [path.name for path in below if path.is_file() and path.name != "given.py"]
        found = [str(path.relative_to(folder)) for path in deeper] or others
    except OSError:
        return ""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    remedy = "; move it up" if deeper else ""
    return f" (found: {', '.join(map(_name, found[:3]))}{more}{remedy})" if found else ""


def _name(name: str) -> str:
    return one_line(name, 120)


def _looks_like(path: Path, stage: Stage) -> bool:
    try:
        document: Document = read_document(path)
    except NotebookError:
        return False
    return any(set(stage.functions) & set(defined_names(cell.source)) for cell in document.cells)


def recorded_name(folder: str) -> str:
    """A student's name in the records: the folder's, with ? for each character that cannot be shown.

    No folder that can be graded has ? in its name.
    """
    return folder if folder.isprintable() else "".join(c if c.isprintable() else "?" for c in folder)[:60]
