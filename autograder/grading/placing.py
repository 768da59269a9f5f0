"""Finds the place of each submitted cell in the course's notebook, and the order in which the code runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from autograder.grading.notes import Notes
from autograder.notebooks.document import DocumentCell
from autograder.notebooks.regions import TEXT_STUB, released
from autograder.notebooks.sorting import SortedCell, text_of
from autograder.sandbox.client import Cell
from autograder.worker.naming import defined_names


@dataclass
class Place:
    """A cell of the course's notebook, and the submitted cells that belong there."""

    index: int
    cell: dict[str, Any]
    kind: str  # setup, solution, check, written, chart or prose
    name: str | None  # its grade_id
    source: str  # as released: without the solution or the rubric
    defines: frozenset[str] = frozenset()
    submitted: list[SortedCell] = field(default_factory=list)

    @property
    def call(self) -> str:
        return self.name or self.cell["id"]


@dataclass(frozen=True)
class Extra:
    """A submitted cell shown beside the course's own. after: the index of the course's cell before it, or -1."""

    after: int
    cell: DocumentCell
    kind: str  # code, which is run; chart, which is drawn in a display run; or text
    source: str

    @property
    def place(self) -> str:
        return self.cell.place


def place_of(index: int, cell: dict[str, Any]) -> Place:
    """The place of a cell of the course's notebook."""
    source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
    nbgrader = cell["metadata"].get("nbgrader", {})
    grade, solution, name = nbgrader.get("grade", False), nbgrader.get("solution", False), nbgrader.get("grade_id")
    if grade and solution:
        return Place(index, cell, "written", name, released(source, TEXT_STUB))
    if solution:
        return Place(index, cell, "solution", name, released(source), frozenset(defined_names(source)))
    if grade or nbgrader.get("locked", False):
        return Place(index, cell, "check" if grade else "setup", name, source)
    is_chart = "chart" in cell["metadata"].get("tags", [])
    return Place(index, cell, "chart" if is_chart else "prose", None, source)


# Which submitted cell is which

Found = dict[int, Place]  # the place of a submitted cell, by the cell's index


def places_of(cells: list[SortedCell], places: list[Place], notes: Notes) -> Found:
    """The place of each submitted cell that has one.

    The place of a solution is found by its name, else by its id, else by its functions. Only one cell takes a place:
    others are the student's own and run where they are in the notebook.
    """
    recognize = _recognizer(places)
    found: Found = {}
    for cell in cells:
        place = recognize(cell)
        if place is not None and place.kind != "solution":
            found[cell.cell.index] = place
    solutions = [p for p in places if p.kind == "solution"]
    taken: set[int] = set()

    def take(cell: SortedCell, place: Place | None) -> bool:
        if place is None or place.index in taken or cell.cell.index in found or cell.role == "copy":
            return False
        taken.add(place.index)
        found[cell.cell.index] = place
        return True

    by_name = {p.name: p for p in solutions}
    by_id = {p.cell["id"]: p for p in solutions}
    for known, key in ((by_name, "grade_id"), (by_id, "cell_id")):
        for role in ("solution", "code", "text"):
            for cell in cells:
                if cell.role == role:
                    take(cell, known.get(getattr(cell.cell, key)))
    recognized = []
    for cell in cells:
        defines = set(defined_names(cell.source)) if cell.runs and cell.cell.type == "code" else set()
        fitting = [p for p in solutions if p.defines & defines]
        if len(fitting) == 1 and take(cell, fitting[0]):
            recognized.append(f"{fitting[0].call} in {cell.cell.place}")
    if recognized:
        notes.add("recognized", f"Recognized by their functions, without metadata: {', '.join(recognized)}.")
    return found


def _recognizer(places: list[Place]) -> Callable[[SortedCell], Place | None]:
    """Returns a function that finds the place of a cell by grade_id, then by cell id, then by what it contains."""
    by_name = {p.name: p for p in places if p.name is not None}
    by_id = {p.cell["id"]: p for p in places}
    by_text = {text_of(p.source): p for p in places if p.kind != "solution" and p.source.strip()}
    checks = {p.name: p for p in places if p.kind == "check"}

    def recognize(cell: SortedCell) -> Place | None:
        return (
            by_name.get(cell.cell.grade_id)
            or by_id.get(cell.cell.cell_id)
            or by_text.get(text_of(cell.source))
            or (checks.get(cell.cell.check_id) if cell.role == "check" else None)
        )

    return recognize


_FITS = {  # the roles that a place takes; anything else submitted there is shown below it, and run if it is code
    "setup": ("code", "solution", "text"),
    "check": ("check", "text"),
    "written": ("written", "check", "text"),
    "chart": ("chart",),
    "prose": ("text",),
}


def sort_in(cells: list[SortedCell], found: Found, notes: Notes) -> list[Extra]:
    """Put each submitted cell into its place; return those that are shown beside the course's own."""
    extras: list[Extra] = []
    moved: list[str] = []
    after = furthest = -1
    for cell in cells:
        place = found.get(cell.cell.index)
        if place is not None:
            if place.submitted:
                after = max(after, place.index)
            else:
                after = place.index
                if after < furthest and place.kind in ("solution", "check", "written"):
                    moved.append(place.call)
                furthest = max(furthest, after)
        if cell.role == "copy":
            continue
        if place is not None and (place.kind == "solution" or cell.role in _FITS[place.kind]):
            again = bool(place.submitted)
            place.submitted.append(cell)
            changed = text_of(cell.source) != text_of(place.source)
            shown = (  # below the course's own
                changed if place.kind == "prose" else place.kind == "setup" and (changed or (again and cell.runs))
            )
        else:
            shown = cell.role != "check" or place is None
        if shown and not cell.too_large:
            kind = "code" if cell.runs else "chart" if cell.role == "chart" else "text"
            extras.append(Extra(after, cell.cell, kind, cell.source))
    if moved:
        names = ", ".join(moved)
        notes.add("reordered", f"Moved back to the course's order: {names}; the code ran in the notebook's own.")
    return extras


def in_order(cells: list[SortedCell], found: Found, places: list[Place]) -> Iterator[Cell]:
    """The code in running order: the student's as in the notebook, the course's setup in or before its place."""
    waiting = [p for p in places if p.kind == "setup"]
    for cell in cells:
        place = found.get(cell.cell.index)
        if place is not None:  # a setup that was deleted, or moved down below a solution that needs it
            needs = place.kind == "solution"
            before = [p for p in waiting if p.index < place.index and (needs or not p.submitted)]
            own = place.kind == "setup" and place in waiting and cell.runs
            for setup in [*before, place] if own else before:
                waiting.remove(setup)
                yield Cell(setup.call, setup.source)
            if own and text_of(cell.source) == text_of(place.source):
                continue
        if place is not None and place.kind == "solution":
            if not cell.too_large:
                yield Cell(place.call, cell.source)
        elif cell.runs:
            yield Cell(cell.cell.place, cell.source)
    for setup in waiting:
        yield Cell(setup.call, setup.source)
