"""Loads the code of a student's notebook or Python file: the cells that grading runs, and its functions."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.notebooks.document import CHECK_CALL, Document, decode_text, read_document
from autograder.notebooks.errors import NotebookError
from autograder.notebooks.percent import parse_python
from autograder.notebooks.regions import is_unsolved, without_markers
from autograder.notebooks.sorting import SortedCell, known_charts, sort_cells
from autograder.stages import GRADED_STAGES
from autograder.worker.naming import defined_names

if TYPE_CHECKING:
    from autograder.sandbox.client import Cell

_STAGE_NAMES = frozenset(name for stage in GRADED_STAGES for name in stage.functions)


def read_any(path: str | Path) -> Document:
    """The document in an .ipynb or .py file; raises NotebookError if it cannot be read."""
    path = Path(path)
    if path.suffix == ".py":
        if not path.is_file():
            raise NotebookError(f"{path} is not there; name the notebook or Python file that holds your functions.")
        return parse_python(decode_text(path.read_bytes(), path.name))
    if path.suffix != ".ipynb":
        raise NotebookError(f"{path.name} is neither a notebook (.ipynb) nor a Python file (.py).")
    return read_document(path)


def sorted_cells(path: str | Path) -> list[SortedCell]:
    """The cells of a notebook or Python file, and what each is."""
    return sort_cells(read_any(path), known_charts())


def cells_to_run(cells: list[SortedCell]) -> list[Cell]:
    """The cells that grading runs, in order (sorting.py). A cell that is too large is replaced by one that says so."""
    from autograder.sandbox.client import Cell

    return [
        Cell(cell.label, f'raise ValueError("{_too_large(cell)}")' if cell.too_large else without_markers(cell.source))
        for cell in cells
        if cell.runs or cell.too_large
    ]


def _too_large(cell: SortedCell) -> str:
    return f"this cell {cell.too_large}, and is not run when the notebook is graded"


class StudentFunctions:
    """The functions of one of your own notebooks: mine.prefill(...)."""

    def __init__(self, name: str, namespace: dict[str, Any], names: list[str], unsolved: set[str]):
        self._name = name
        self._namespace = namespace
        self._names = names
        self._unsolved = unsolved

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._unsolved:
            raise NotebookError(f"{self._name} does not solve {name} yet; solve it there, or use the one in given.py.")
        if name not in self._namespace:
            raise AttributeError(f"{self._name} does not define {name}; it defines {', '.join(self._names)}.")
        return self._namespace[name]

    def __dir__(self) -> list[str]:
        return list(self._names)

    def __repr__(self) -> str:
        return f"<the functions of {self._name}: {', '.join(self._names)}>"


def load_notebook(path: str | Path) -> StudentFunctions:
    """Run the function cells of an earlier notebook of yours and return its functions: mine.prefill, mine.decode_step.

    This runs the setup and solution cells, and the imports and definitions in your own cells; it runs no check, no
    chart, and no code that only prints or measures.
    """
    from autograder.worker.cells import compile_cell, compile_code

    path = Path(path)
    cells = [(cell, _without_checks(cell.source)) for cell in sorted_cells(path) if cell.runs]
    unsolved = {n for _, source in cells if is_unsolved(source) for n in defined_names(source)}
    names = [n for _, source in cells for n in defined_names(source) if n not in unsolved]
    if not names:
        why = "is not solved yet" if unsolved else "defines no functions"
        raise NotebookError(f"{path.name} {why}; solve it first, or use the functions in given.py.")
    module = types.ModuleType(f"notebook_{path.stem}")
    sys.modules[module.__name__] = module  # where dataclasses and pickle look for the notebook's classes
    namespace = module.__dict__
    with _beside(path), contextlib.redirect_stdout(io.StringIO()):
        for cell, source in cells:
            whole = cell.cell.grade_id is not None or bool(_STAGE_NAMES & set(defined_names(source)))
            filename = f"<{path.name}, {cell.label}>"
            try:
                code = compile_cell(source, filename, namespace)
                if not whole:
                    code = compile_code(_definitions(source), filename, namespace)
                exec(code, namespace)
            except Exception as error:
                if not whole or is_unsolved(source):
                    continue  # a name that the functions need is reported when they are called
                message = f"{cell.label} cannot be run ({type(error).__name__}: {error}); fix it there first."
                raise NotebookError(f"{path.name}: {message}") from error
    return StudentFunctions(path.name, namespace, list(dict.fromkeys(names)), unsolved)


def _without_checks(source: str) -> str:
    """The cell without its checks, which would run on the notebook that loads it."""
    return CHECK_CALL.sub("", without_markers(source))


def _definitions(source: str) -> ast.Module:
    """The cell's imports, definitions and constants."""
    kept: list[ast.stmt] = []
    for node in ast.parse(source).body:
        defines = isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if defines or (isinstance(node, ast.Assign) and _is_constant(node.value)):
            kept.append(node)
    return ast.Module(kept, type_ignores=[])


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[None]:
    """While the notebook's cells run, `from given import ...` finds the given.py beside the notebook."""
    folder = str(path.resolve().parent)
    previous = sys.modules.pop("given", None)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        sys.modules.pop("given", None)
        if previous is not None:
            sys.modules["given"] = previous
