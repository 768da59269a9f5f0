"""The outcome of a run over an assignment, and the watchers that are informed of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.plain_text import one_line

NOTE, STALE, NOT_GRADED_LINE = "note", "stale", "NOT GRADED"


@dataclass(frozen=True)
class Line:
    """One line of the assistant's table."""

    student: str
    what: str
    sentence: str


@dataclass(frozen=True)
class Outcome:
    """The state of all submissions of an assignment after a run."""

    assignment: str
    graded: int  # in this run
    before: int  # graded by an earlier run or by one at the same time; those out of date have a line
    not_graded: int
    lines: tuple[Line, ...]
    seconds: float
    report: Path | None

    @property
    def summary(self) -> str:
        others = f" ({self.before} before)" if self.before else ""
        graded = f"{self.graded + self.before} graded{others}"
        return f"{self.assignment}: {graded}, {self.not_graded} not graded, {self.seconds:.0f} s"

    def table(self) -> list[str]:
        """The lines in columns; each stays on one line whatever a student's code put into it."""
        if not self.lines:
            return []
        rows = [(one_line(line.student, 120), line.what, one_line(line.sentence, 2000)) for line in self.lines]
        widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:2]]
        return [f"  {student:{widths[0]}}  {what:{widths[1]}}  {sentence}" for student, what, sentence in rows]


class Watcher:
    """Is informed of a run's progress; subclasses override what they need."""

    def begins(self, students: int, notices: Sequence[str]) -> None:
        """Before the first submission.

        students: the number of submissions, including those already graded. notices: sentences about where the
        students' code will run.
        """

    def settled(self, student: str) -> None:
        """After each submission that is graded, skipped or given up."""

    def ends(self, outcome: Outcome) -> None:
        """After the last submission."""


class LogWatcher(Watcher):
    """Writes to nbgrader's log."""

    def __init__(self, log: logging.Logger):
        self._log = log

    def begins(self, students: int, notices: Sequence[str]) -> None:
        for sentence in notices:
            self._log.warning(sentence)

    def ends(self, outcome: Outcome) -> None:
        text = f"{outcome.graded} submissions of {outcome.assignment} graded in {outcome.seconds:.0f} s."
        if outcome.report:
            text += f" Details: {outcome.report}"
        text = "\n".join([text, *outcome.table()])
        self._log.log(logging.WARNING if outcome.lines else logging.INFO, text)
