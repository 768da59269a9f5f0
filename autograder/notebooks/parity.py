"""Names that a solution uses and that marking would not have, because of the cell they come from.

One answer for the check cells in a notebook, for `autograder test` and for marking.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.notebooks.regions import called, defined_names, without_markers
from autograder.notebooks.sorting import SortedCell, known_charts, sort_cells

_GIVEN_BY_JUPYTER = {"display", "get_ipython", "__name__", "__file__", "In", "Out", "_", "exit", "quit"}


@dataclass(frozen=True)
class NotInMarking:
    """A name of which marking has nothing, or another thing than the notebook, and a sentence that says why."""

    name: str
    sentence: str


def not_in_marking(cells: Sequence[SortedCell], folder: Path | None = None) -> list[NotInMarking]:
    """Each name that a cell which is run uses and only a cell which is not run binds.

    Also for a name of a solution that a later cell binds again, so that the notebook's checks look at another function
    than marking does; and, with the notebook's folder, for a Python file beside it that a cell imports.
    """
    trees = {id(cell): tree for cell in cells if (tree := _parsed(cell.source)) is not None}
    run = [cell for cell in cells if cell.runs and id(cell) in trees]
    others = [cell for cell in cells if cell.role in ("chart", "check", "code") and not cell.runs and id(cell) in trees]
    bound = {name for cell in run for name in _bound(trees[id(cell)])} | set(dir(builtins)) | _GIVEN_BY_JUPYTER
    elsewhere = {name: cell for cell in others for name in _bound(trees[id(cell)])}
    found: list[NotInMarking] = []
    for cell in run:
        for name in sorted(_read(without_markers(cell.source)) - bound):
            if name in elsewhere:
                sentence = (
                    f"{called(cell.label)} uses {name}, which {elsewhere[name].cell.place} defines, a cell that "
                    f"marking does not run. Define {name} in {cell.label}, or in a cell of your own."
                )
                found.append(NotInMarking(name, sentence))
        for module in sorted(_modules(trees[id(cell)])) if folder is not None else ():
            if module != "given" and (folder / f"{module}.py").is_file():
                sentence = (
                    f"{called(cell.label)} imports {module}.py, which marking does not have: put it into the notebook."
                )
                found.append(NotInMarking(module, sentence))
    places = {id(cell): i for i, cell in enumerate(cells)}
    for cell in run:
        if cell.role != "solution":
            continue
        for name in defined_names(cell.source):
            again = [other for other in others
                     if places[id(other)] > places[id(cell)] and name in _bound(trees[id(other)])]  # fmt: skip
            if again:
                sentence = (
                    f"{called(again[-1].cell.place)} binds {name} again, after {cell.label}. Marking takes the one in "
                    f"{cell.label}: give the other another name."
                )
                found.append(NotInMarking(name, sentence))
    return found


def of_notebook(path: Path) -> list[NotInMarking]:
    """The same for a saved notebook; nothing where it cannot be read."""
    from autograder.notebooks.document import read_document
    from autograder.notebooks.errors import NotebookError

    try:
        document = read_document(path)
    except (NotebookError, OSError):
        return []
    return not_in_marking(sort_cells(document, known_charts()), path.parent)


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(without_markers(source))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _bound(tree: ast.Module) -> set[str]:
    """The names that a cell binds at its top level."""
    return {symbol.get_name() for symbol in _table(ast.unparse(tree)).get_symbols()
            if symbol.is_assigned() or symbol.is_imported()}  # fmt: skip


def _modules(tree: ast.Module) -> set[str]:
    found = {a.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    return found | {
        node.module.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }


def _read(source: str) -> set[str]:
    """The global names that a cell reads, at its top level or in its functions."""
    found: set[str] = set()

    def walk(table: symtable.SymbolTable) -> None:
        for symbol in table.get_symbols():
            at_top = table.get_type() == "module"
            if symbol.is_referenced() and (symbol.is_global() or at_top):
                found.add(symbol.get_name())
        for child in table.get_children():
            walk(child)

    walk(_table(source))
    return found


def _table(source: str) -> symtable.SymbolTable:
    return symtable.symtable(source, "<cell>", "exec")
