"""The solution regions of a cell, which are between ### BEGIN SOLUTION and ### END SOLUTION."""

from __future__ import annotations

import re
import textwrap

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
CODE_STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
TEXT_STUB = "YOUR ANSWER HERE"

_REGION = re.compile(rf"^([ \t]*){BEGIN}[ \t]*\n(.*?)^[ \t]*{END}[ \t]*$", re.MULTILINE | re.DOTALL)
_UNSOLVED = re.compile(r"^[ \t]*# YOUR CODE HERE[ \t]*\n+[ \t]*raise NotImplementedError\b", re.MULTILINE)


def region_problem(source: str) -> str | None:
    """What is wrong with the cell's markers, as the end of a sentence; None if they are right."""
    open_at = None
    regions = 0
    for number, line in enumerate(source.splitlines(), 1):
        if "BEGIN SOLUTION" in line or "END SOLUTION" in line:
            if line.strip() not in (BEGIN, END):
                return f"has a marker in line {number} that is not exactly {BEGIN} or {END}"
            if (line.strip() == BEGIN) != (open_at is None):
                return f"has an unexpected {line.strip()} in line {number}"
            regions += open_at is None
            open_at = number if open_at is None else None
    if open_at is not None:
        return f"has a {BEGIN} in line {open_at} without an {END}"
    return None if regions else f"has no {BEGIN} and {END}"


def without_markers(source: str) -> str:
    """The solved cell, without the marker lines."""
    return "\n".join(line for line in source.split("\n") if line.strip() not in (BEGIN, END))


def released(source: str, stub: str = CODE_STUB) -> str:
    """The cell as students get it, with each region replaced by the stub, as nbgrader's ClearSolutions does."""
    return _REGION.sub(lambda region: textwrap.indent(stub, region[1]), source)


def inside(source: str) -> str:
    """The text inside the regions: a solution, or a rubric."""
    return "\n".join(region[2].removesuffix("\n") for region in _REGION.finditer(source))


def is_unsolved(source: str) -> bool:
    """Whether a code cell is empty or still holds the stub with which it was released."""
    return not source.strip() or _UNSOLVED.search(source) is not None


def called(label: str) -> str:
    """A cell's name at the start of a sentence: "Cell 4", or "The cell generate-with-prefix"."""
    return f"{label[:1].upper()}{label[1:]}" if re.match("(the )?cell ", label) else f"The cell {label}"
