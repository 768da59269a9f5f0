"""Whether the code that decides scores is what it was when the stages got their version numbers.

`make versions` writes versions.txt: for each stage its number and a digest of that code, without comments and
docstrings. A test compares. When scores can come out otherwise, the stage's number in __init__.py is raised first, and
scores with another number are called out of date; when they cannot, `make versions SAME=--same-scores` says so.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder.stages import GRADED_STAGES, Stage

PACKAGE = Path(__file__).resolve().parents[1]
FILE = Path(__file__).with_name("versions.txt")
_SHARED = (
    "judge/*.py",
    "toolkit/model/*.py",
    "toolkit/chat/*.py",
    *(f"worker/{name}.py" for name in ("block_keys", "cells", "counting", "hashing", "holding")),
)
_OTHERS = ("bugs.py", "samples.py", "test_*.py")  # words, proofs


def recorded() -> dict[str, list[str]]:
    """The number and the digest of each stage, as they were written last."""
    lines = FILE.read_text(encoding="utf-8").split("\n") if FILE.exists() else []
    return {name: rest for name, *rest in map(str.split, filter(None, lines))}


def present() -> dict[str, list[str]]:
    """The same of the code as it is now."""
    return {stage.name: [str(stage.version), _digest_of_stage(stage)] for stage in GRADED_STAGES}


def _digest_of_stage(stage: Stage) -> str:
    answering = (f"worker/{name}.py" for name in ("arguments", "runtime", "values"))
    patterns = (*_SHARED, *answering, f"stages/{stage.module}/**/*.py")
    files = sorted({path for pattern in patterns for path in PACKAGE.glob(pattern)})
    deciding = [path for path in files if not any(path.match(other) for other in _OTHERS)]
    return hashlib.sha256("".join(digest(path.read_text("utf-8")) for path in deciding).encode()).hexdigest()[:16]


def digest(source: str) -> str:
    """The same for sources that differ in comments, docstrings and layout alone, under every version of Python."""
    return hashlib.sha256("\n".join(_parts(ast.parse(source))).encode()).hexdigest()


def _parts(node: object) -> Iterator[str]:
    if isinstance(node, ast.AST):
        yield type(node).__name__
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                value = value[ast.get_docstring(node, clean=False) is not None :]
            if value is not None and value != []:  # newer versions have more fields, which are empty
                yield f"{name}:"
                yield from _parts(value)
        yield "end"
    elif isinstance(node, list):
        for value in node:
            yield from _parts(value)
    else:
        yield repr(node)


def main() -> int:
    before, now = recorded(), present()
    same = [name for name in now if name in before and before[name] != now[name] and before[name][0] == now[name][0]]
    if same and "--same-scores" not in sys.argv:
        print(
            f"The code that decides scores has changed for {', '.join(same)}. Where scores can come out otherwise, "
            f"raise the stage's version in {FILE.with_name('__init__.py')}; elsewhere: make versions SAME=--same-scores"
        )
        return 1
    FILE.write_text("".join(f"{name} {' '.join(rest)}\n" for name, rest in now.items()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
