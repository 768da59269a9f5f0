"""Runs cells as a notebook does, and keeps their outputs: text, values, figures."""

from __future__ import annotations

import ast
import base64
import builtins
import contextlib
import functools
import io
import os
import sys
import traceback
from typing import Any

from autograder.worker.cells import compile_code, in_python
from autograder.worker.outputs import Kept

_kept = Kept()  # of the cell that runs


def show_cell(source: str, filename: str, namespace: dict[str, Any]) -> Kept:
    """Run a cell; an exception is one of its outputs."""
    global _kept
    _kept = Kept()
    _prepare()
    with contextlib.redirect_stdout(_Stream("stdout")), contextlib.redirect_stderr(_Stream("stderr")):
        try:
            tree = ast.parse(in_python(source, filename, namespace))
            shows = tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";")
            last = [tree.body.pop()] if shows else []
            exec(compile_code(tree, filename, namespace), namespace)
            exec(compile_code(ast.Interactive(last), filename, namespace, "single"), namespace)
        except BaseException as error:
            sys.stderr.write(_told(error, namespace))
        if "matplotlib.pyplot" in sys.modules:
            from autograder.worker import figures

            figures.show()
    return _kept


def display(*values: Any, raw: bool = False, metadata: Any = None, **options: Any) -> None:
    """IPython's display, for outputs that can be kept."""
    for value in values:
        data, about = (value, metadata) if raw else _formatter().format(value)
        picture = data.get("image/png")
        if isinstance(picture, bytes):
            data = {**data, "image/png": base64.b64encode(picture).decode("ascii")}
        _kept.add("display_data", {"data": data, "metadata": about})


class _Stream(io.TextIOBase):
    def __init__(self, name: str):
        self._name = name

    def write(self, text: str) -> int:
        _kept.add("stream", {"name": self._name, "text": text})
        return len(text)


@functools.cache
def _prepare() -> None:
    """Once for all cells: route display and figures here, and draw charts at the size at which they are shown."""
    import IPython.core.display_functions
    import IPython.display

    from autograder.toolkit import chart_style

    builtins.display = IPython.display.display = IPython.core.display_functions.display = display
    sys.displayhook = lambda value: None if value is None else display(value)
    os.environ["MPLBACKEND"] = "module://autograder.worker.figures"
    chart_style.DPI = 96  # at twice the size, one of a notebook's charts has nearly 100 kB


@functools.cache
def _formatter() -> Any:
    from IPython.core.formatters import DisplayFormatter

    formatter = DisplayFormatter(active_types=["text/plain", "image/png"])
    formatter.formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", _png)
    return formatter


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=96, bbox_inches="tight")
    return buffer.getvalue()


def _told(error: BaseException, namespace: dict[str, Any]) -> str:
    """The error with its traceback, starting at the cell."""
    begin = error.__traceback__
    while begin is not None and begin.tb_frame.f_globals is not namespace:
        begin = begin.tb_next
    return "".join(traceback.format_exception(type(error), error, begin))
