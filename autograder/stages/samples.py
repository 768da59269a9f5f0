"""The sample submissions of every stage: right ones in different styles, wrong ones with one mistake each.

They prove the checks (each stage's test_samples.py) and are the class that `make demo` grades. A wrong submission is
the solution with a piece of text replaced, so it differs in one mistake and follows the solution when that changes. A
right one replaces whole solution cells.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass, field
from types import ModuleType

import jupytext

from autograder.places import SOLUTIONS
from autograder.sandbox.client import Cell
from autograder.stages import Stage, find_stage


@dataclass(frozen=True)
class Right:
    """An honest submission: cells maps the mark of a solution cell to the source that replaces it."""

    name: str
    about: str
    cells: dict[str, str] = field(default_factory=dict)

    def sources(self, stage: Stage) -> dict[str, str]:
        solved = solved_cells(stage.name)
        unknown = set(self.cells) - set(solved)
        assert not unknown, f"{stage.name}/{self.name}: no solution cell {unknown}"
        return {**solved, **self.cells}


@dataclass(frozen=True)
class Wrong:
    """The solution with one mistake.

    changes: (mark of the solution cell, text there, text instead), each text found exactly once.
    loses: the ids of exactly those checks that fail.
    bug: the key of the bug that failed checks name; None where they name none.
    also: checks that it loses too in some runs: its error is about the tolerance, or two objects have one id().
    follows: keys of other bugs, which later checks name for what follows from it.
    """

    name: str
    about: str
    changes: tuple[tuple[str, str, str], ...]
    loses: tuple[str, ...]
    bug: str | None = None
    also: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()

    def sources(self, stage: Stage) -> dict[str, str]:
        cells = dict(solved_cells(stage.name))
        for mark, old, new in self.changes:
            count = cells[mark].count(old)
            assert count == 1, f"{stage.name}/{self.name}: {old!r} stands {count} times in {mark}"
            cells[mark] = cells[mark].replace(old, new)
        return cells


def in_class(stage_name: str) -> tuple[str, ...]:
    """The names of those that are to be in the class of `make demo`, whoever else is in it."""
    return getattr(_module(stage_name), "IN_CLASS", ())


@functools.cache
def solved_cells(stage_name: str) -> dict[str, str]:
    """The solution cells of a stage, by mark, without the BEGIN and END lines."""
    notebook = jupytext.read(SOLUTIONS / f"{find_stage(stage_name).module}.py")
    return {
        cell.metadata["solution"]: "\n".join(
            line for line in cell.source.splitlines() if line.strip() not in ("### BEGIN SOLUTION", "### END SOLUTION")
        )
        for cell in notebook.cells
        if cell.cell_type == "code" and "solution" in cell.metadata
    }


@functools.cache
def setup_cells(stage_name: str) -> list[Cell]:
    """The setup cells of a stage, which run before the solution cells."""
    notebook = jupytext.read(SOLUTIONS / f"{find_stage(stage_name).module}.py")
    return [Cell(c.metadata["setup"], c.source) for c in notebook.cells if "setup" in c.metadata]


def submissions_of(stage_name: str) -> list[Right | Wrong]:
    """The solution itself, then the RIGHT and the WRONG list of submissions/<stage>.py."""
    module = _module(stage_name)
    return [Right("solution", "The solution as it stands."), *module.RIGHT, *module.WRONG]


def _module(stage_name: str) -> ModuleType:
    return importlib.import_module(f"autograder.stages.{find_stage(stage_name).module}.samples")
