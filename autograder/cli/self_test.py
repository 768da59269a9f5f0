"""Runs a student's own file in a worker, and the checks of its stage against it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from autograder.cli.find import Work
from autograder.judge.cases import VISIBLE_SEED
from autograder.judge.framework import CheckResult, checks_of, run_check
from autograder.judge.student import StudentError, worker_student
from autograder.notebooks import read_cells
from autograder.worker.client import Worker, WorkerGone


class SelfTest:
    """A file that was run, ready for its checks. A context manager, which ends the worker.

    `problems` says what went wrong while the cells ran; the checks are run all the same.
    """

    def __init__(self, work: Work) -> None:
        self.stage = work.stage
        self.problems: list[str] = []
        self._cells = read_cells(work.path)
        given = work.path.resolve().parent / "given.py"
        self._given: Path | None = given if given.exists() else None
        self._worker: Worker | None = None

    def __enter__(self) -> SelfTest:
        self.problems = self._start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._worker is not None:
            self._worker.close()

    def results(self) -> Iterator[CheckResult]:
        """The result of each check, as it ends. A check that ends the worker fails, and the next has a new one."""
        for check in checks_of(self.stage.name):
            try:
                if self._worker is None or self._worker.closed:
                    self._start()
                assert self._worker is not None
                yield run_check(check, worker_student(self._worker), VISIBLE_SEED, os.environ.get("AUTOGRADER_MODEL"))
            except WorkerGone as gone:
                yield CheckResult(check, False, f"{check.property}\nYour code did not finish: {gone.reason}.")

    def _start(self) -> list[str]:
        """A fresh worker in which all cells have run; what went wrong on the way, one message each."""
        self._worker = worker = Worker(self._given)
        problems = [f"{worker.given_error}."] if worker.given_error else []
        for cell in self._cells:
            error = worker.run_cell(cell)
            if error is not None:
                problems.append(StudentError(cell.label, error).sentence)
        return problems
