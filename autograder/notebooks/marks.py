"""Reads the marks in the cell headers of a stage's script, and makes nbgrader's metadata from them.

autograder/README.md describes the marks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.judge.framework import checks_and_steps_of, find_check
from autograder.notebooks.errors import BuildError
from autograder.notebooks.regions import region_problem
from autograder.stages import Stage

_MARKS = ("setup", "solution", "check", "written")
_JUPYTEXT_KEYS = {"lines_to_next_cell", "lines_to_end_of_cell_marker"}
_MARK_VALUE = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what nbformat allows in a cell id
_CHART = "chart"


@dataclass(frozen=True)
class ScriptCell:
    """One cell of a stage's script. kind is "prose", "chart", or the name of its mark."""

    kind: str
    source: str
    name: str | None = None  # the mark's value, which becomes grade_id and cell id
    points: float | None = None

    @property
    def cell_type(self) -> str:
        return "markdown" if self.kind in ("prose", "written") else "code"

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the source notebook's cell."""
        if self.kind == "prose":
            return {}
        if self.kind == "chart" or (self.kind == "check" and self.points == 0):  # a step, which is not graded
            return {"tags": [_CHART]}
        nbgrader: dict[str, Any] = {
            "grade": self.kind in ("check", "written"),
            "grade_id": self.name,
            "locked": self.kind in ("setup", "check"),
            "schema_version": 3,
            "solution": self.kind in ("solution", "written"),
            "task": False,
        }
        if self.points is not None:
            nbgrader["points"] = self.points
        return {"nbgrader": nbgrader}


def read_script(path: Path) -> list[ScriptCell]:
    """The cells of a script; raises BuildError for a wrong header or marker."""
    import jupytext

    if not path.is_file():
        raise BuildError(f"{path} is missing; every stage has a script of its name.")
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    return [_script_cell(path.name, i, cell) for i, cell in enumerate(notebook.cells, 1)]


def _script_cell(script: str, number: int, cell: Any) -> ScriptCell:
    metadata = {k: v for k, v in cell.metadata.items() if k not in _JUPYTEXT_KEYS}
    marks = [m for m in _MARKS if m in metadata]
    place = f"{script}, cell {number}" + (f" ({marks[0]}={metadata[marks[0]]!r})" if marks else "")
    if len(marks) > 1:
        raise BuildError(f"{place} has two marks, {' and '.join(marks)}; a cell has one.")
    kind = marks[0] if marks else _unmarked_kind(cell, metadata, place)
    allowed = {kind, "points"} if kind == "written" else {"tags"} if kind == "chart" else {kind}
    unknown = sorted(set(metadata) - allowed)
    if unknown:
        raise BuildError(f"{place} has {', '.join(unknown)} in its header, which has no meaning there.")
    if (cell.cell_type == "markdown") != (kind in ("prose", "written")):
        raise BuildError(f"{place} is a {cell.cell_type} cell, which cannot have this mark.")
    name = metadata.get(kind) if marks else None
    if marks and not (isinstance(name, str) and _MARK_VALUE.fullmatch(name)):
        raise BuildError(f"{place}: a mark's value consists of at most 64 letters, digits, - and _.")
    problem = region_problem(cell.source)
    if kind in ("solution", "written"):
        if problem:
            raise BuildError(f"{place} {problem}.")
    elif "BEGIN SOLUTION" in cell.source or "END SOLUTION" in cell.source:
        raise BuildError(f"{place} holds a solution region, so it needs the mark solution or written.")
    points = metadata.get("points")
    if kind == "written" and not (isinstance(points, (int, float)) and not isinstance(points, bool) and points > 0):
        raise BuildError(f"{place} needs its points in the header, such as points=2.")
    return ScriptCell(kind, cell.source, name, points)


def _unmarked_kind(cell: Any, metadata: dict[str, Any], place: str) -> str:
    if cell.cell_type == "markdown":
        return "prose"
    if metadata.get("tags") == [_CHART]:
        return "chart"
    raise BuildError(f"{place} has no mark; a code cell is setup, solution or check, or has tags=[{_CHART!r}].")


def read_stage(stage: Stage, solutions: Path) -> list[ScriptCell]:
    """The cells of a stage with each check's points; raises BuildError if script and checks do not match."""
    path = solutions / f"{stage.module}.py"
    cells = read_script(path)
    _refuse_duplicates(path.name, cells)
    checks = {check.id: check for check in checks_and_steps_of(stage.name)}
    ready: list[ScriptCell] = []
    for cell in cells:
        if cell.kind == "check":
            _refuse_wrong_check(path.name, cell, checks, stage)
            cell = ScriptCell(cell.kind, cell.source, cell.name, checks[cell.name].points)
        ready.append(cell)
    unused = [i for i in checks if i not in {c.name for c in ready if c.kind == "check"}]
    if unused:
        raise BuildError(f"{path.name} has no cell for the check{'s' if unused[1:] else ''} {', '.join(unused)}.")
    if not stage.graded and any(c.kind in ("solution", "check", "written") for c in ready):
        raise BuildError(
            f"{path.name} has graded cells, but {stage.name} has no functions in autograder/stages/__init__.py."
        )
    return ready


def _refuse_duplicates(script: str, cells: list[ScriptCell]) -> None:
    seen: set[str] = set()
    for cell in cells:
        if cell.name in seen:
            raise BuildError(f"{script} has two cells marked {cell.name!r}; every mark's value is used once.")
        if cell.name is not None:
            seen.add(cell.name)


def _refuse_wrong_check(script: str, cell: ScriptCell, checks: dict[str, Any], stage: Stage) -> None:
    if cell.name not in checks:
        try:
            other = find_check(cell.name)
        except ValueError:
            raise BuildError(f"{script} has a cell for the check {cell.name!r}, which does not exist.") from None
        raise BuildError(f"{script} has a cell for the check {cell.name!r}, which belongs to {other.stage}.")
    if cell.source.strip() != f'autograder.check("{cell.name}")':
        raise BuildError(f'{script}: the cell check="{cell.name}" holds one line, autograder.check("{cell.name}").')
