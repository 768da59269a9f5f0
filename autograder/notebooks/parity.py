"""Finds names that a solution uses and grading would not have, because grading does not run the cell that defines them.

The check cells in a notebook, `autograder test` and grading all use this.
"""

from __future__ import annotations

import ast
import builtins
import functools
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.notebooks.document import read_document
from autograder.notebooks.errors import NotebookError
from autograder.notebooks.regions import called, without_markers
from autograder.notebooks.sorting import SortedCell, known_charts, sort_cells
from autograder.worker.naming import defined_names

_GIVEN_BY_JUPYTER = {"display", "get_ipython", "__name__", "__file__", "In", "Out", "_", "exit", "quit"}


@dataclass(frozen=True)
class NotInGrading:
    """A name that grading lacks, or that means something else there, and a sentence that says why."""

    name: str
    sentence: str


def not_in_grading(cells: Sequence[SortedCell], folder: Path | None = None) -> list[NotInGrading]:
    """The names that a cell grading runs uses, but only a cell it does not run binds.

    Also the names of a solution that a later cell binds again, so that the notebook's checks see another function than
    grading does; and, with the notebook's folder, the Python files beside it that a cell imports.
    """
    names = {id(cell): found for cell in cells if (found := names_of(without_markers(cell.source))) is not None}
    run = [cell for cell in cells if cell.runs and id(cell) in names]
    others = [cell for cell in cells if cell.role in ("chart", "check", "code") and not cell.runs and id(cell) in names]
    bound = {name for cell in run for name in names[id(cell)].bound} | set(dir(builtins)) | _GIVEN_BY_JUPYTER
    left_out = {id(cell) for cell in others}
    elsewhere = {name: cell for cell in others for name in names[id(cell)].bound}
    found: list[NotInGrading] = []
    for cell in run:
        for name in sorted(names[id(cell)].read - bound):
            if name in elsewhere:
                sentence = (
                    f"{called(cell.label)} uses {name}, which {elsewhere[name].cell.place} defines, a cell that "
                    f"grading does not run. Define {name} in {cell.label}, or in a cell of your own."
                )
                found.append(NotInGrading(name, sentence))
        for module in sorted(_modules(cell.source)) if folder is not None else ():
            if module != "given" and (folder / f"{module}.py").is_file():
                sentence = (
                    f"{called(cell.label)} imports {module}.py, which grading does not have: put it into the notebook."
                )
                found.append(NotInGrading(module, sentence))
    for place, cell in enumerate(cells):
        if cell.role != "solution" or not cell.runs or id(cell) not in names:
            continue
        for name in defined_names(cell.source):
            again = [other for other in cells[place + 1 :] if id(other) in left_out and name in names[id(other)].bound]
            if again:
                sentence = (
                    f"{called(again[-1].cell.place)} binds {name} again, after {cell.label}. Grading takes the one in "
                    f"{cell.label}: give the other another name."
                )
                found.append(NotInGrading(name, sentence))
    return found


def of_notebook(path: Path) -> list[NotInGrading]:
    """The same for a saved notebook; empty if it cannot be read."""
    try:
        document = read_document(path)
    except NotebookError:
        return []
    return not_in_grading(sort_cells(document, known_charts()), path.parent)


@dataclass(frozen=True)
class Names:
    """The names that a cell binds at its top level, and the global names that it reads, also in functions."""

    bound: frozenset[str]
    read: frozenset[str]


@functools.lru_cache(maxsize=64)  # most cells of a class are the course's own
def names_of(source: str) -> Names | None:
    """The cell's names; None if it is not valid Python."""
    try:
        top = symtable.symtable(source, "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    bound = frozenset(s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported())
    return Names(bound, frozenset(_read(top)))


def _read(table: symtable.SymbolTable) -> Iterator[str]:
    at_top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or at_top):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _read(child)


def _modules(source: str) -> set[str]:
    """The top-level names of the modules that a cell imports."""
    try:
        nodes = list(ast.walk(ast.parse(without_markers(source))))
    except (RecursionError, MemoryError):  # the cell is nested too deeply to parse
        return set()
    found = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    found += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.split(".")[0] for name in found}
