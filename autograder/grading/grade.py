"""Grades one submission's code: runs its cells in a worker, and judges every check in this process.

All scores are decided here, for a class and for `autograder test`.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.grading.notes import Note, Notes
from autograder.judge.bugs import NOT_FINISHED
from autograder.judge.framework import Check, Result, checks_of, in_lines, in_places, run_check
from autograder.judge.student import Student, StudentError
from autograder.notebooks.regions import called
from autograder.plain_text import one_line
from autograder.sandbox.client import CALL_SECONDS, Cell, Worker, WorkerGone
from autograder.stages import Stage
from autograder.worker.naming import seen_as

_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)
_NOT_PARSED = ("SyntaxError", "IndentationError", "TabError")


class GradingError(RuntimeError):
    """The grader itself failed. That is not the student's fault, so there is no score."""


@dataclass(frozen=True)
class Limits:
    """Seconds of wall time. They stop code that would not end by itself; no score depends on them otherwise."""

    cell: float = 60.0
    call: float = CALL_SECONDS
    call_after_timeout: float = 2.0  # code that looped will loop again; an honest call takes a tenth of this
    total: float = 150.0


@dataclass(frozen=True)
class SubmissionResult:
    """The result of each check, in the checks' order, and the grader's notes."""

    results: tuple[Result, ...]
    notes: tuple[Note, ...]
    seconds: float

    @property
    def score(self) -> float:
        return sum(r.score for r in self.results)


def grade_submission(
    cells: list[Cell],
    stage: Stage,
    seed: int,
    given_path: Path | None,
    *,
    trained: str | None = None,
    limits: Limits | None = None,
    start_worker: Callable[[Path | None], Worker] = Worker,
    hide_inputs: bool = True,
    on_cell_error: Callable[[str], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
    checks: Iterable[Check] | None = None,
) -> SubmissionResult:
    """Run the cells, then every check of the stage, or those of `checks`.

    seed: of all checks' inputs. A check in which the student's process ends or does not answer in time fails with that
    reason, and the next check gets a new process. Each cause is explained once: a later failure with the same cause
    names the check that explains it. hide_inputs keeps what the student's code says about hidden inputs out of every
    message. on_cell_error is called with a sentence about each cell that fails, on_result after each check.
    """
    session = _Session(cells, stage, given_path, start_worker, limits or Limits(), hide_inputs, on_cell_error)
    results: list[Result] = []
    try:
        for check in checks_of(stage.name) if checks is None else checks:
            result = _run(session, check, seed, trained).following(results)
            results.append(session.beginning_below(result, results))
            if on_result is not None:
                on_result(results[-1])
    finally:
        session.close()
    for reason, ids in session.stopped.items():
        session.notes.add("stopped", f"In the check{'s' if len(ids) > 1 else ''} {', '.join(ids)}: {reason}.")
    seconds = time.monotonic() - session.started
    return SubmissionResult(tuple(results), tuple(session.notes), seconds)


def _run(session: _Session, check: Check, seed: int, trained: str | None) -> Result:
    try:
        session.ensure_worker()
        result = run_check(check, Student(session.perform, session.renew, session.known), seed, trained)
    except WorkerGone as gone:
        session.stopped.setdefault(gone.reason, []).append(check.id)
        message = in_lines(check.property, f"Your code did not finish: {gone.reason}.")
        return check.failed(message, NOT_FINISHED, roots=(gone.reason,))
    if result.broke:
        sentence = f"The check {check.id} was lost to a value that it cannot judge ({result.broke})."
        session.notes.add("check-broke", sentence)
    return result


def _top(place: str) -> str:
    """The top-level function or class of a place."""
    return place.partition(".")[0]


def _missing_name(error: dict[str, Any]) -> str:
    """The name that a NameError says is not defined: a function that a check or the student's code calls."""
    found = re.match(r"name '(\w+)' is not defined", error["message"]) if error["type"] == "NameError" else None
    return found.group(1) if found else ""


class _Session:
    """The student's process, which is replaced when it ends, and the remaining time."""

    def __init__(self, cells, stage: Stage, given_path, start_worker, limits: Limits, hide_inputs: bool, on_cell_error):
        self._all: tuple[Cell, ...] = tuple(cells)
        self._defined = [(cell, set(_DEFINED.findall(cell.source))) for cell in self._all]
        self._seen = {cell.label: seen_as(cell.source, cell.label) for cell in self._all}
        self._none = not any(names & set(stage.functions) for _, names in self._defined)
        self._cells: list[Cell] = list(cells)  # without those that ended the process
        self._on_cell_error = on_cell_error
        self._given_path = given_path
        self._start_worker = start_worker
        self._limits = limits
        self._hide = _Hide(cells) if hide_inputs else None
        self._call_seconds = limits.call
        self._worker: Worker | None = None
        self.notes = Notes()
        self.known: dict[str, Any] = {}  # what came of the questions that several checks ask
        self.stopped: dict[str, list[str]] = {}  # by reason, the checks in which it ended or was too slow
        self.cell_errors: dict[str, str] = {}  # by label, of the cells that failed
        self.not_parsed: set[str] = set()  # the labels of those that are not valid Python
        self.started = time.monotonic()

    def close(self) -> None:
        if self._worker is not None:
            with contextlib.suppress(OSError):
                self._worker.close()

    def _left(self) -> float:
        left = self._limits.total - (time.monotonic() - self.started)
        if left <= 0:
            raise WorkerGone(f"the {self._limits.total:g} s for the whole notebook are used up", timed_out=True)
        return left

    def perform(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request of a Student to the student's process."""
        assert self._worker is not None
        try:
            doing = f"running {request['name']}" if "name" in request else "answering"
            reply = self._worker.request(request, doing=doing, seconds=min(self._call_seconds, self._left()))
        except WorkerGone as gone:
            if gone.timed_out:
                self._call_seconds = min(self._call_seconds, self._limits.call_after_timeout)
            raise
        reply = self._for_student(reply)
        if (error := reply.get("error")) and (name := _missing_name(error)):
            return reply | {"error": error | self._why_missing(name)}
        return reply

    def _for_student(self, reply: dict[str, Any]) -> dict[str, Any]:
        """The reply without hidden inputs; the cell of an error gets the name that the student sees."""
        reply = self._hide(reply) if self._hide else reply
        where = (reply.get("error") or {}).get("where")
        if not where:
            return reply
        where = where | {"cell": self._seen.get(where["cell"], where["cell"])}
        return reply | {"error": reply["error"] | {"where": where}}

    def _why_missing(self, name: str) -> dict[str, Any]:
        """The error of the cell that should have defined the name; an empty sentence if there is none."""
        found = self._defining(name)
        label = next((label for label in reversed(found) if label in self.cell_errors), "")
        because = self.cell_errors.get(label, "")
        if self._none:
            because = "None of the stage's functions is in the notebook."
        return {"because": because, "not_parsed": label in self.not_parsed}

    def beginning_below(self, result: Result, earlier: Iterable[Result]) -> Result:
        """The result; if its cause is unknown and a function that it builds on fails too, with a hint to that."""
        if result.passed or result.roots or not result.places:
            return result
        first = _top(result.places[0])
        used = self._used_by(first) | set(map(_top, result.places)) - {first}
        failed = [other for other in earlier if not other.passed and other.places]
        below = next((other for other in failed if {*map(_top, other.places)} <= used), None)
        if below is None:
            return result
        on = in_places(dict.fromkeys(map(_top, below.places)))
        look = f'Begin with the check "{below.title}": {first} builds on {on}.'
        return replace(result, look=in_lines(look))

    def _used_by(self, function: str) -> set[str]:
        """The names that a student's function uses, directly or through other functions of the notebook."""
        names, left = {function}, self._defined
        while reached := [cell for cell, defined in left if defined & names]:
            left = [(cell, defined) for cell, defined in left if cell not in reached]
            names.update(*(re.findall(r"\b(?!__)\w+", cell.source) for cell in reached))  # each class has __init__
        return names - {function}

    def _defining(self, name: str) -> list[str]:
        """The labels of the cells that define a function or class, even if they are not valid Python."""
        return [cell.label for cell, names in self._defined if name in names]

    def renew(self, other_hashes: bool) -> None:
        """Replace the process; the new one has another date and folder, and with `other_hashes` hashes strings anew."""
        if self._worker is not None and not self._worker.closed:
            self._left()
            with contextlib.suppress(WorkerGone, OSError):  # then it is started as the first was
                self._worker.begin_anew(other_hashes)
                self._worker.request({"op": "go_elsewhere"})
                self._run_cells(self._worker, first=False)
        self.ensure_worker()

    def ensure_worker(self) -> None:
        """Start a process, if there is none, and run all cells except those that end it."""
        while self._worker is None or self._worker.closed:
            self._left()
            self._begin()

    def _begin(self) -> None:
        first = self._worker is None
        try:
            self._worker = self._start_worker(self._given_path)
        except (WorkerGone, OSError):  # the system ended the sandbox, or had no room for it at this moment
            self._worker = self._start_once_more()
        self._run_cells(self._worker, first)

    def _start_once_more(self) -> Worker:
        try:
            return self._start_worker(self._given_path)
        except (WorkerGone, OSError) as error:
            raise GradingError(f"the grader's worker does not start: {error}") from None

    def _run_cells(self, worker: Worker, first: bool) -> None:
        """first: note the errors of cells, which occur in every process, this time only."""
        if worker.given_error:
            raise GradingError(worker.given_error)
        for cell in list(self._cells):
            try:
                error = worker.run_cell(cell, seconds=min(self._limits.cell, self._left()))
            except WorkerGone as gone:
                worker.close()
                self._cells.remove(cell)
                self._note("stopped", cell, f"{called(self._seen[cell.label])} was left out: {gone.reason}.")
                return
            if error is not None and first and cell.label not in self.cell_errors:
                self._note_cell_error(cell, error)

    def _note_cell_error(self, cell: Cell, error: dict[str, Any]) -> None:
        error = self._for_student({"error": error})["error"]
        described = StudentError(called(self._seen[cell.label]), error)
        if described.type in _NOT_PARSED:
            self.not_parsed.add(cell.label)
        self._note(None if described.stub else "cell-failed", cell, described.whole)

    def _note(self, kind: str | None, cell: Cell, sentence: str) -> None:
        self.cell_errors[cell.label] = sentence
        if kind is not None:
            self.notes.add(kind, sentence, cell.label)
        if self._on_cell_error is not None:
            self._on_cell_error(sentence)


class _Hide:
    """Removes from an error of the student's process what could be an input, or is not from its cells."""

    _BRACKETED = re.compile(r"\[[^\[\]]*\d[^\[\]]*\]?|array\(.*", re.DOTALL)
    _NESTED = re.compile(r"\[[\[\].,\s]*\.\.\.[\[\].,\s]*")
    _MANY_NUMBERS = re.compile(r"(?:-?\d[\d.eE+-]*[\s,;]+){4,}-?\d[\d.eE+-]*")

    def __init__(self, cells: list[Cell]):
        self._labels = {cell.label for cell in cells}
        self._lines = {line.strip()[:200] for cell in cells for line in cell.source.splitlines()}

    def __call__(self, reply: dict[str, Any]) -> dict[str, Any]:
        error = reply.get("error")
        if not isinstance(error, dict):
            return reply
        where = error.get("where")
        known = where is not None and where["cell"] in self._labels and where["text"] in self._lines
        hidden = {
            **error,
            "type": re.sub(r"\W", "", error["type"])[:80],
            "message": self.text(error["message"]),
            "where": where if known else None,
        }
        return {**reply, "error": hidden}

    def text(self, message: str) -> str:
        """The message on one line, without lists of numbers."""
        message = self._NESTED.sub("[...]", self._BRACKETED.sub("[...]", one_line(message)))
        return self._MANY_NUMBERS.sub("...", message)
