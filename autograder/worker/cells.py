"""Compiles a notebook cell outside a notebook. IPython's magics are accepted, and do nothing in grading."""

from __future__ import annotations
import __future__

import ast
import contextlib
import re
import time
from types import SimpleNamespace
from typing import Any

_FEATURES = {getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}
_IN_EFFECT = "__future_features__"  # in the namespace: what cells have imported from __future__
_RUN_THEIR_BODY = {"time", "timeit", "capture", "prun"}
_RUN_THEIR_LINE = {"time", "timeit", "prun"}
_OPTIONS = {  # that may precede the statement: those with a value, and those without
    "time": re.compile(r"\s*--no-raise-error(?:\s+|$)"),
    "timeit": re.compile(r"\s*-(?:[nrpv]\s*[^\s-]\S*|[tcqo]+)(?:\s+|$)"),
    "prun": re.compile(r"\s*-(?:[DlsT]\s*[^\s-]\S*|[rq]+)(?:\s+|$)"),
}


class NoShell:
    """Replaces IPython's shell: grading runs no magics and shell commands, but runs the code in them."""

    def __init__(self, namespace: dict[str, Any]):
        self._namespace = namespace

    def run_line_magic(self, name: str, line: str, _stack_depth: int = 1) -> Any:
        """Run the statement of a %time or %timeit once; an exception, as in a quick test, does not end the cell."""
        begin, value = time.perf_counter(), None
        if name in _RUN_THEIR_LINE:
            with contextlib.suppress(Exception):
                value = self._run(_statement(name, line))
        return _Timed(time.perf_counter() - begin) if name == "timeit" else value

    def run_cell_magic(self, name: str, line: str, cell: str) -> Any:
        if name == "capture":
            for output in [word for word in line.split() if word.isidentifier()][-1:]:
                self._namespace[output] = Captured()
        if name in ("timeit", "prun"):  # their line is code too
            self._run(_statement(name, line))
        return self._run(cell) if name in _RUN_THEIR_BODY else None

    def _run(self, source: str) -> Any:
        """Run the source; returns the value if it is an expression."""
        try:
            expression = compile_code(source.strip(), "<magic>", self._namespace, "eval")
        except SyntaxError:
            exec(compile_cell(source, "<magic>", self._namespace), self._namespace)
            return None
        return eval(expression, self._namespace)

    def system(self, command: str) -> None:
        pass

    def getoutput(self, command: str) -> list[str]:
        return []

    def __getattr__(self, name: str):
        return lambda *args, **kwargs: None


class Captured:
    """What %%capture binds to a name. Nothing is shown in grading, so it is empty."""

    stdout = stderr = ""
    outputs: tuple[()] = ()

    def show(self) -> None:
        pass

    __call__ = show

    def __str__(self) -> str:
        return ""


class _Timed(SimpleNamespace):
    """The result of %timeit -o, with one run."""

    def __init__(self, seconds: float):
        super().__init__(
            average=seconds, best=seconds, worst=seconds, stdev=0.0, timings=[seconds], all_runs=[seconds],
            loops=1, repeat=1, compile_time=0.0,
        )  # fmt: skip


def _statement(name: str, line: str) -> str:
    """The line of a magic without the magic's options."""
    while name in _OPTIONS and (option := _OPTIONS[name].match(line)):
        line = line[option.end() :]
    return line.strip()


def compile_code(source: Any, filename: str, namespace: dict[str, Any], mode: str = "exec"):
    """The code object, with the __future__ imports of earlier cells and none of this file's."""
    flags = namespace.get(_IN_EFFECT, 0)
    code = compile(source, filename, mode, flags, dont_inherit=True)
    namespace[_IN_EFFECT] = flags | sum(feature for feature in _FEATURES if code.co_flags & feature)
    return code


def compile_cell(source: str, filename: str, namespace: dict[str, Any]):
    """The cell's code object."""
    try:
        return compile_code(source, filename, namespace)
    except SyntaxError:
        return compile_code(in_python(source, filename, namespace), filename, namespace)


def in_python(source: str, filename: str, namespace: dict[str, Any]) -> str:
    """The cell's source; if it is not plain Python, IPython's transformations are applied."""
    try:
        compile_code(source, filename, namespace)
        return source
    except SyntaxError as original:
        try:
            from IPython.core.inputtransformer2 import TransformerManager

            transformed = TransformerManager().transform_cell(source)
            ast.parse(transformed)
        except SyntaxError:
            raise original from None
        except ImportError:
            raise original from None
        namespace.setdefault("get_ipython", lambda: NoShell(namespace))
        return transformed
