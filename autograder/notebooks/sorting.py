"""Decides what each cell of a notebook is and which cells run, for `autograder test` and for grading alike.

It uses only the notebook itself. The setup, the solutions and the student's own code run, in the notebook's order; the
check cells and the cells tagged chart do not.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.notebooks.copies import Choice, choose
from autograder.notebooks.document import CHECK_CALL, Document, DocumentCell

MAX_CELL = 100_000  # characters of one cell
MAX_CODE = 1_000_000  # characters of all cells that run, counted separately for those with a grade_id
MAX_CODE_CELLS = 500

CHARTS = Path(__file__).with_name("charts.txt")  # made by the build: hashes of the course's chart cells, one per line
TOO_MANY = "is one of too many"  # why a cell is not run, as the end of a sentence
_RUN = ("solution", "code")


@dataclass(frozen=True)
class SortedCell:
    """A cell and its role.

    solution: the copy of a solution cell that counts. code: other code that runs, which is setup and the student's own.
    copy: a copy or part of a solution that is joined or left out. check, written and chart do not run. text: the rest.
    """

    cell: DocumentCell
    role: str
    source: str
    label: str  # the cell's name in messages, unique among the cells that run
    copies: tuple[DocumentCell, ...] = ()  # of a solution: all cells with its name
    choice: Choice | None = None
    too_large: str = ""  # why it is not run, as the end of a sentence

    @property
    def runs(self) -> bool:
        return self.role in _RUN and not self.too_large


def sort_cells(document: Document, charts: Collection[str] = ()) -> list[SortedCell]:
    """The cells that are not empty, in order. charts: hashes of chart cells, which may have lost their tags."""
    solutions: dict[str, list[DocumentCell]] = {}
    for cell in document.cells:
        if cell.is_solution and not cell.is_grade and cell.grade_id is not None:
            solutions.setdefault(cell.grade_id, []).append(cell)
    chosen: dict[int, SortedCell] = {}
    copies: set[int] = set()
    parts: set[int] = set()
    for name, cells in solutions.items():
        choice = choose([c.source for c in cells])
        counts = cells[choice.chosen]
        chosen[counts.index] = SortedCell(counts, "solution", choice.source, name, tuple(cells), choice)
        copies |= {cells[i].index for i in (*choice.joined, *choice.dropped)}
        parts |= {cells[i].index for i in choice.kept}
    labels = set(solutions)
    found: list[SortedCell] = []
    for cell in document.cells:
        if cell.index in chosen:
            found.append(chosen[cell.index])
        elif cell.source.strip():
            label = cell.grade_id if cell.grade_id and cell.grade_id not in labels else cell.place
            labels.add(label)
            role = "copy" if cell.index in copies else _role(cell, cell.index in parts, charts)
            found.append(SortedCell(cell, role, cell.source, label))
    return _within_limits(found)


def text_of(source: str) -> str:
    """The text by which cells are compared: without white space at the ends, which editors add or drop."""
    return "\n".join(line.rstrip() for line in source.strip().split("\n"))


def chart_hash(source: str) -> str:
    """The hash by which a chart cell of the course is recognized without its tag and id, which Colab drops."""
    return hashlib.sha256(text_of(source).encode()).hexdigest()[:16]


@functools.cache
def known_charts() -> frozenset[str]:
    """The hashes of the course's chart cells, for use without the source notebook."""
    return frozenset(CHARTS.read_text(encoding="utf-8").split())


def _role(cell: DocumentCell, is_part: bool, charts: Collection[str]) -> str:
    if is_part:
        return "code"  # a part of a split solution, even if its type was changed
    if cell.is_grade:
        return "written" if cell.is_solution else "check"
    if cell.type != "code":
        return "text"
    if cell.grade_id is None and ("chart" in cell.tags or chart_hash(cell.source) in charts):
        return "chart"
    return "check" if _only_checks(cell.source) else "code"


def _only_checks(source: str) -> bool:
    """Whether a cell only calls checks; any other code in it would be the student's own."""
    if not CHECK_CALL.search(source):
        return False
    rest = re.sub(r"^(#.*|import autograder)$", "", CHECK_CALL.sub("", source), flags=re.MULTILINE)
    return not re.sub(r"[\s;]|#.*", "", rest)


def _within_limits(cells: list[SortedCell]) -> list[SortedCell]:
    number: Counter[bool] = Counter()
    characters: Counter[bool] = Counter()
    full: set[bool] = set()
    kept: list[SortedCell] = []
    for cell in cells:
        named, reason = cell.cell.grade_id is not None, ""
        if cell.role in _RUN:
            if len(cell.source) > MAX_CELL:
                reason = f"has {len(cell.source)} characters, more than {MAX_CELL}"
            elif named in full or number[named] == MAX_CODE_CELLS or characters[named] + len(cell.source) > MAX_CODE:
                full.add(named)
                reason = TOO_MANY
            else:
                number[named] += 1
                characters[named] += len(cell.source)
        kept.append(replace(cell, too_large=reason))
    return kept
