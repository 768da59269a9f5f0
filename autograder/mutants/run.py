"""Grades mutants like submissions, but only in a sandbox, because a mutant may write to any path."""

from __future__ import annotations

import multiprocessing
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from autograder.grading.grade import Limits, SubmissionResult, grade_submission
from autograder.grading.machine import default_jobs
from autograder.judge.cases import forget_passes
from autograder.judge.framework import Check, Result, checks_of
from autograder.mutants.hints import reaches
from autograder.mutants.mutate import changes_of
from autograder.notebooks.given import given_source
from autograder.sandbox.client import Cell, Worker
from autograder.sandbox.isolation import Isolation, find_isolation
from autograder.sandbox.processes import Processes, new_processes
from autograder.stages import Stage
from autograder.stages.samples import setup_cells, solved_cells
from autograder.worker.naming import defined_names

SEED = 20_011  # any seed but the visible one
LIMITS = Limits(cell=5.0, call=4.0, call_after_timeout=1.0)  # a mutant that loops is to cost little
PART = 80  # mutants that are graded in one sandbox, one after the other
SLOWER = 3.0  # times the solution's seconds


def function_of(id: str) -> str:
    """The function, class or method that a mutant changes, such as LayerCache.append; empty outside of any."""
    return id.partition(": ")[0]


@dataclass(frozen=True)
class Mutant:
    """A stage's solution with one change, in one cell."""

    stage: Stage
    cell: str
    id: str
    source: str  # of the whole cell

    @property
    def solved(self) -> dict[str, str]:
        """The solution cells, by mark."""
        return {**solved_cells(self.stage.name), self.cell: self.source}

    @property
    def cells(self) -> list[Cell]:
        return [*setup_cells(self.stage.name), *(Cell(mark, source) for mark, source in self.solved.items())]


@dataclass(frozen=True)
class Verdict:
    """The result of grading a mutant.

    lost: the checks that it failed; only the first unless all were requested.
    names: the key of the bug that a failed check names, by check.
    astray: the hints of failed checks that do not lead to the change, by check.
    broken: a sentence for each check that could not judge what the mutant returned.
    warnings: warnings in the judge's own process.
    slower: its time as a multiple of the solution's; None if that was not remarkable, or not measured.
    """

    stage: str
    cell: str
    id: str
    lost: tuple[str, ...]
    names: dict[str, str]
    astray: dict[str, str]
    broken: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float
    slower: float | None = None

    @property
    def caught(self) -> bool:
        return bool(self.lost)

    @property
    def function(self) -> str:
        return function_of(self.id)


class SolutionFails(Exception):
    """The solution itself fails a check, so its mutants prove nothing."""


def mutants_of(stage: Stage) -> list[Mutant]:
    """Of the graded functions and what they call; a "Going further" exercise has no checks."""
    return [
        Mutant(stage, cell, change.id, change.source)
        for cell, source in graded_cells(solved_cells(stage.name), stage.functions).items()
        for change in changes_of(source)
    ]


def graded_cells(cells: dict[str, str], functions: Iterable[str]) -> dict[str, str]:
    """The cells that define these functions, and those that define what such cells name."""
    defines = {cell: set(defined_names(source)) for cell, source in cells.items()}
    wanted, graded = set(functions), set()
    while found := {cell for cell in cells if cell not in graded and defines[cell] & wanted}:
        graded |= found
        wanted |= {name for cell in found for name in re.findall(r"\w+", cells[cell])}
    return {cell: source for cell, source in cells.items() if cell in graded}


def grade_all(
    mutants: list[Mutant], every_check: bool, on_part: Callable[[list[Verdict]], None] = lambda verdicts: None
) -> list[Verdict]:
    """The verdicts on the mutants, in their order, which is that of the stages.

    every_check also runs the checks after the first that is lost. on_part is called with the verdicts on each part.
    SandboxMissing without a sandbox; SolutionFails.
    """
    isolation = find_isolation()
    isolation.expect(sandbox=True)
    parts = []
    for _, neighbors in groupby(mutants, key=lambda mutant: mutant.stage):
        own = list(neighbors)
        parts += [(own[start : start + PART], every_check, isolation) for start in range(0, len(own), PART)]
    verdicts = []
    with multiprocessing.Pool(min(default_jobs(), len(parts))) as pool:
        for part in pool.imap(_grade_part, parts):
            on_part(part)
            verdicts += part
    return verdicts


def _grade_part(job: tuple[list[Mutant], bool, Isolation]) -> list[Verdict]:
    """Neighbors of one stage, in one sandbox. The check that caught one is the first to be tried on the next."""
    mutants, every_check, isolation = job
    stage = mutants[0].stage
    forget_passes()
    with tempfile.TemporaryDirectory(prefix="autograder-") as folder:
        given = Path(folder, "given.py")
        given.write_text(given_source(stage) or "", encoding="utf-8")
        with closing(new_processes(given, isolation)) as processes:
            grader = _Grader(stage, given, processes)
            usual = grader.seconds_of_solution()
            verdicts = []
            checks = checks_of(stage.name)
            for mutant in mutants:
                verdict = grader.verdict(mutant, checks, every_check)
                if verdict.caught:
                    checks.sort(key=lambda check, first=verdict.lost[0]: check.id != first)
                elif verdict.seconds > SLOWER * usual:  # not by chance, if it is so a second time
                    again = grader.verdict(mutant, checks, every_check).seconds / usual
                    verdict = replace(verdict, slower=again if again > SLOWER else None)
                verdicts.append(verdict)
            return verdicts


class _Grader:
    def __init__(self, stage: Stage, given: Path, processes: Processes):
        self._stage, self._given, self._processes = stage, given, processes

    def seconds_of_solution(self) -> float:
        """What the solution takes in all checks, the second time; SolutionFails when it loses one."""
        cells = setup_cells(self._stage.name) + [Cell(m, s) for m, s in solved_cells(self._stage.name).items()]
        for _ in range(2):
            result = self._grade(cells, checks_of(self._stage.name), lambda result: None)
            for lost in (r for r in result.results if not r.passed):
                raise SolutionFails(f"The solution of {self._stage.name} loses {lost.id}: {lost.message}")
        return result.seconds

    def verdict(self, mutant: Mutant, checks: list[Check], every_check: bool) -> Verdict:
        results: list[Result] = []
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            chosen = checks if every_check else _until_lost(checks, results)
            result = self._grade(mutant.cells, chosen, results.append)
        lost = [r for r in results if not r.passed]
        return Verdict(
            stage=mutant.stage.name,
            cell=mutant.cell,
            id=mutant.id,
            lost=tuple(r.id for r in lost),
            names={r.id: r.bug.key for r in lost if r.bug is not None},
            astray={
                r.id: r.look for r in lost if r.look and not reaches(r.look, function_of(mutant.id), mutant.solved)
            },
            broken=tuple(note.sentence for note in result.notes if note.kind == "check-broke"),
            warnings=tuple(sorted({f"{Path(w.filename).name}, line {w.lineno}: {w.message}" for w in warned})),
            seconds=result.seconds,
        )

    def _grade(
        self, cells: list[Cell], checks: Iterable[Check], on_result: Callable[[Result], None]
    ) -> SubmissionResult:
        return grade_submission(
            cells,
            self._stage,
            SEED,
            self._given,
            limits=LIMITS,
            start_worker=lambda given: Worker(processes=self._processes),
            on_result=on_result,
            checks=checks,
        )


def _until_lost(checks: Iterable[Check], results: list[Result]) -> Iterator[Check]:
    """The checks, as long as those before are passed."""
    for check in checks:
        if results and not results[-1].passed:
            return
        yield check
