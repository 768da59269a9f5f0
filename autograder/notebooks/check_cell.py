"""The check cells of a notebook: `autograder.check("position-continues")`, run in the student's own kernel."""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from autograder.judge.cases import VISIBLE_SEED
from autograder.judge.framework import Result, find_check, run_check
from autograder.judge.student import local_student
from autograder.notebooks.parity import NotInGrading, of_notebook


class CheckFailed(Exception):
    """A check cell failed. Jupyter, which already shows the message, adds one line instead of a traceback."""

    def _render_traceback_(self) -> list[str]:
        return ["Run All Cells stops at a check that does not pass."] if _in_jupyter() else str(self).splitlines()


def check(check_id: str) -> None:
    """Run one check on the functions defined in the calling notebook; shows the outcome or raises CheckFailed."""
    namespace = sys._getframe(1).f_globals
    chosen = find_check(check_id)
    with _in_another_folder(), _nobody_at_the_keyboard():
        result = run_check(chosen, local_student(namespace), VISIBLE_SEED)
    points = f"{chosen.points} point{'s' if chosen.points != 1 else ''}" if chosen.graded else "a step"
    missing = _not_in_grading(namespace) if result.passed else []
    if missing:
        result = chosen.failed(missing[0].sentence)
    words = "Passed" if result.passed else "Passed here, and would fail in grading" if missing else "Not yet"
    heading = f"{words}: {chosen.title} ({points})"
    text = "\n".join([heading, *result.told().splitlines()])
    if _in_jupyter():
        from IPython.display import display

        display({"text/plain": text, "text/html": _as_html(heading, result)}, raw=True)
    elif result.passed:
        print(text)
    if not result.passed:
        raise CheckFailed(text)


def _in_jupyter() -> bool:
    """Whether this is a notebook's kernel, which can show HTML."""
    return "ipykernel" in sys.modules and sys.modules["IPython"].get_ipython() is not None


def _as_html(heading: str, result: Result) -> str:
    """The outcome as HTML, in which a student's text is escaped. Figures are in the table only."""
    sentences = result.message.splitlines()
    return (
        Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)
        .get_template("check_cell.html")
        .render(
            passed=result.passed,
            heading=heading,
            sentences=sentences[:1] if result.figures else sentences,
            figures=result.figures,
            look=result.look,
            cause=result.cause,
        )
    )


def _not_in_grading(namespace: dict[str, Any]) -> list[NotInGrading]:
    """The names that the notebook, as last saved, uses and grading would not have; empty if its file is unknown."""
    path = os.environ.get("JPY_SESSION_NAME") or namespace.get("__vsc_ipynb_file__")  # JupyterLab's, VS Code's
    return of_notebook(Path(path)) if path and Path(path).suffix == ".ipynb" and Path(path).is_file() else []


@contextlib.contextmanager
def _in_another_folder() -> Iterator[None]:
    """Run in a temporary folder, because checks write files by relative names."""
    folder = os.getcwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:  # on Windows an open file stays
        os.chdir(temporary)
        try:
            yield
        finally:
            os.chdir(folder)


@contextlib.contextmanager
def _nobody_at_the_keyboard() -> Iterator[None]:
    """As in grading, input() and breakpoint() do not wait for anyone."""

    def no_input(prompt: Any = "", /) -> str:
        raise EOFError("EOF when reading a line")

    plain_input, plain_hook = builtins.input, sys.breakpointhook
    builtins.input, sys.breakpointhook = no_input, lambda *args, **kwargs: None
    try:
        yield
    finally:
        builtins.input, sys.breakpointhook = plain_input, plain_hook
