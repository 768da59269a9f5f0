"""Makes a trusted notebook out of a submission: the course's own cells, with only the student's sources put in.

Nothing else of the submitted file survives: no metadata, outputs, attachments, tags, ids or cell types. So a notebook
that was damaged is repaired in the same stroke as one that was tampered with. Pure functions on plain JSON values.

The marked notebook has the course's order. The code is run in the student's, as `autograder test` runs it, with the
course's own setup put where the solutions need it.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from autograder.grading.notes import Note, Notes
from autograder.grading.scores import is_graded
from autograder.grading.written import plain_markdown, rendered_markdown
from autograder.notebooks.document import Document, DocumentCell
from autograder.notebooks.oddities import copies_left_out, looks_like
from autograder.notebooks.parity import NotInMarking, not_in_marking
from autograder.notebooks.regions import TEXT_STUB, called, defined_names, released
from autograder.notebooks.sorting import MAX_CELL, TOO_MANY, SortedCell, chart_hash, sort_cells, text_of
from autograder.plain_text import JOINERS, visible
from autograder.sandbox.client import Cell

MAX_SHOWN = 1_000_000  # characters of all cells of the student's own that are shown and not run
MAX_SHOWN_CELLS = 500


@dataclass(frozen=True)
class Rebuilt:
    """The trusted notebook (JSON of nbformat 4.5), what of it is run when grading, and what was done to get it."""

    notebook: dict[str, Any]
    runs: tuple[Cell, ...]
    notes: tuple[Note, ...]
    missing: tuple[NotInMarking, ...]  # names that the submission's own cells define, and marking does not have
    unanswered: frozenset[str] = frozenset()  # the student's cells that are as they were released


@dataclass
class _Place:
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
class _Extra:
    """A submitted cell that is shown beside the course's own. after: the course's cell that it follows, -1 for none."""

    after: int
    cell: DocumentCell
    kind: str  # code, which is run; chart, which is drawn in a display run; or text
    source: str

    @property
    def place(self) -> str:
        return self.cell.place


def rebuild(source_notebook: dict[str, Any], submitted: Document, own_charts: bool = False) -> Rebuilt:
    """The trusted notebook of a submission. source_notebook is the course's own, with its solutions.

    own_charts: with the student's code in the chart cells, where they are drawn; else they show the course's.
    """
    places = [_place(i, cell) for i, cell in enumerate(source_notebook["cells"])]
    notes = _notebook_notes(submitted)
    cells = sort_cells(submitted, {chart_hash(p.source) for p in places if p.kind == "chart"})
    found = _places_of(cells, places, notes)
    extras = _sort_in(cells, found, notes)
    runs = tuple(_in_order(cells, found, places))
    _note_left_out(cells, found, notes)
    missing = tuple(not_in_marking(cells))
    for one in missing:
        notes.add("not-in-marking", one.sentence)
    filled = {place.index: _trusted_cell(place, _fill(place, notes, own_charts)) for place in places}
    if not _note_other_notebook(places, extras, notes):
        _note_restored(places, notes)
        _note_missing_functions(places, extras, notes)
    trusted = _assemble(places, filled, _within_limits(extras, notes))
    metadata = copy.deepcopy(source_notebook["metadata"])
    notebook = {"cells": trusted, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    students = [place for place in places if place.kind in ("solution", "written")]
    unanswered = frozenset(place.call for place in students if filled[place.index]["source"] == place.source)
    return Rebuilt(notebook, runs, tuple(notes), missing, unanswered)


def cells_to_show(trusted: dict[str, Any]) -> list[Cell]:
    """The code of a trusted notebook that a display run runs, by cell id: all but the checks, so the charts as well."""
    return [
        Cell(cell["id"], cell["source"])
        for cell in trusted["cells"]
        if cell["cell_type"] == "code" and cell["source"].strip() and not is_graded(cell)
    ]


# The course's cells


def _place(index: int, cell: dict[str, Any]) -> _Place:
    source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
    nbgrader = cell["metadata"].get("nbgrader", {})
    grade, solution, name = nbgrader.get("grade", False), nbgrader.get("solution", False), nbgrader.get("grade_id")
    if grade and solution:
        return _Place(index, cell, "written", name, released(source, TEXT_STUB))
    if solution:
        return _Place(index, cell, "solution", name, released(source), frozenset(defined_names(source)))
    if grade or nbgrader.get("locked", False):
        return _Place(index, cell, "check" if grade else "setup", name, source)
    is_chart = "chart" in cell["metadata"].get("tags", [])
    return _Place(index, cell, "chart" if is_chart else "prose", None, source)


# Which submitted cell is which

_Found = dict[int, "_Place"]  # the place of a submitted cell, by the cell's index


def _places_of(cells: list[SortedCell], places: list[_Place], notes: Notes) -> _Found:
    """The place of each submitted cell that has one.

    A solution has the place that its name says; else the one that its id says, or its functions. Only one cell is it:
    others are the student's own and run where they stand, as the notebook has it.
    """
    recognize = _recognizer(places)
    found: _Found = {}
    for cell in cells:
        place = recognize(cell)
        if place is not None and place.kind != "solution":
            found[cell.cell.index] = place
    solutions = [p for p in places if p.kind == "solution"]
    taken: set[int] = set()

    def take(cell: SortedCell, place: _Place | None) -> bool:
        if place is None or place.index in taken or cell.cell.index in found or cell.role == "copy":
            return False
        taken.add(place.index)
        found[cell.cell.index] = place
        return True

    by_name = {p.name: p for p in solutions}
    by_id = {p.cell["id"]: p for p in solutions}
    for role in ("solution", "code", "text"):
        for cell in cells:
            if cell.role == role:
                take(cell, by_name.get(cell.cell.grade_id))
    for role in ("solution", "code", "text"):
        for cell in cells:
            if cell.role == role:
                take(cell, by_id.get(cell.cell.cell_id))
    recognized = []
    for cell in cells:
        defines = set(defined_names(cell.source)) if cell.runs and cell.cell.type == "code" else set()
        fitting = [p for p in solutions if p.defines & defines]
        if len(fitting) == 1 and take(cell, fitting[0]):
            recognized.append(f"{fitting[0].call} in {cell.cell.place}")
    if recognized:
        notes.add("recognized", f"Recognized by their functions, without metadata: {', '.join(recognized)}.")
    return found


def _recognizer(places: list[_Place]) -> Callable[[SortedCell], _Place | None]:
    """Finds the place of a cell that says where it belongs: by grade_id, then by cell id, then by what it contains."""
    by_name = {p.name: p for p in places if p.name is not None}
    by_id = {p.cell["id"]: p for p in places}
    by_text = {text_of(p.source): p for p in places if p.kind != "solution" and p.source.strip()}
    checks = {p.name: p for p in places if p.kind == "check"}

    def recognize(cell: SortedCell) -> _Place | None:
        return (
            by_name.get(cell.cell.grade_id)
            or by_id.get(cell.cell.cell_id)
            or by_text.get(text_of(cell.source))
            or (checks.get(cell.cell.check_id) if cell.role == "check" else None)
        )

    return recognize


_FITS = {  # what a place takes; all else that was submitted there is shown below it, and run if it is code
    "setup": ("code", "solution", "text"),
    "check": ("check", "text"),
    "written": ("written", "check", "text"),
    "chart": ("chart",),
    "prose": ("text",),
}


def _sort_in(cells: list[SortedCell], found: _Found, notes: Notes) -> list[_Extra]:
    """Give each submitted cell to its place; return those that are shown beside the course's own."""
    extras: list[_Extra] = []
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
            extras.append(_Extra(after, cell.cell, kind, cell.source))
    if moved:
        names = ", ".join(moved)
        notes.add("reordered", f"Moved back to the course's order: {names}; the code ran in the notebook's own.")
    return extras


def _in_order(cells: list[SortedCell], found: _Found, places: list[_Place]) -> Iterator[Cell]:
    """The code as it is run: the student's in the notebook's order, with the course's setup before or in its place."""
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


def _note_left_out(cells: list[SortedCell], found: _Found, notes: Notes) -> None:
    many = [cell for cell in cells if cell.too_large == TOO_MANY]
    if many:
        notes.add("too-large", f"{len(many)} cells from {many[0].cell.place} on were left out; there are too many.")
    for cell in cells:
        place = found.get(cell.cell.index)
        if cell.too_large and cell not in many and (place is None or place.kind != "solution"):
            sentence = f"{called(cell.cell.place)} was left out: it {cell.too_large}."
            notes.add("too-large", sentence, cell.cell.place)
        if cell.role == "check" and place is None:
            sentence = f"{called(cell.cell.place)} is marked as a check and is none of the course's; it was not run."
            notes.add("unknown-check", sentence, cell.cell.place)


# What goes into each place


def _fill(place: _Place, notes: Notes, own_charts: bool) -> str:
    """The source of the trusted cell of a place."""
    if place.kind == "solution":
        return _solution(place, notes)
    if place.kind == "written":
        return _answer(place, notes)
    if place.kind == "setup":
        _note_changed_setup(place, notes)
    if place.kind == "chart" and own_charts:
        return _chart(place)
    return place.source


def _solution(place: _Place, notes: Notes) -> str:
    if not place.submitted:
        return f"# The cell {place.call} was not in the submitted notebook."
    solved = place.submitted[0]
    if solved.too_large:
        notes.add("too-large", f"The cell {place.call} {solved.too_large}, and was left out.", place.call)
        return f"# The cell {place.call} was too large to be graded."
    copies, choice = solved.copies, solved.choice
    if solved.cell.type != "code":
        notes.add("retyped", f"The cell {place.call} was a {solved.cell.type} cell; run as code.", place.call)
    if choice is not None and (choice.joined or choice.kept):
        parts = ", ".join(copies[i].place for i in (choice.chosen, *choice.joined, *choice.kept))
        notes.add("split", f"The cell {place.call} was split; its parts were put together ({parts}).", place.call)
    if sentence := copies_left_out(solved):
        notes.add("duplicate", sentence, place.call)
    return solved.source


def _answer(place: _Place, notes: Notes) -> str:
    """The question, with what was written in its cell, or in its cells when it was split into several."""
    question = place.source.split(TEXT_STUB)[0]
    is_split = len(place.submitted) > 1
    written = [_without_question(cell.source, question, is_split) for cell in place.submitted]
    empty = ("", text_of(TEXT_STUB))
    parts = list({text_of(part): part for part, _ in written if text_of(part) not in empty}.values())
    if not parts:
        return place.source
    text = "\n\n".join(parts)
    if len(parts) > 1:
        sentence = f"The question {place.call} has {len(parts)} cells with an answer; they were put together."
        notes.add("split", sentence, place.call)
    if len(text) > MAX_CELL:
        notes.add("too-large", f"The answer {place.call} was cut after {MAX_CELL} characters.", place.call)
        text = text[:MAX_CELL]
    # The course's own text may be rendered
    return (question if any(whole for _, whole in written) else "") + rendered_markdown(text)


def _without_question(source: str, question: str, is_split: bool) -> tuple[str, bool]:
    """What of a cell is the student's, and whether the question stood above it."""
    if source.startswith(question):
        return source[len(question) :], True
    if is_split and source.strip() and text_of(question).startswith(text_of(source)):
        return "", True  # the upper half of the cell, or less of it
    return source, False


def _chart(place: _Place) -> str:
    first = place.submitted[0] if place.submitted else None
    fits = first is not None and first.cell.type == "code" and len(first.source) <= MAX_CELL
    return first.source if first and fits else place.source


def _note_changed_setup(place: _Place, notes: Notes) -> None:
    changed = [cell for cell in place.submitted if text_of(cell.source) != text_of(place.source)]
    if any(cell.runs for cell in changed):
        where = f" in {len(changed)} cells" if len(changed) > 1 else ""
        sentence = f"The cell {place.call} was changed; it ran{where} after the course's own."
        notes.add("changed-setup", sentence, place.call)


def _note_other_notebook(places: list[_Place], extras: list[_Extra], notes: Notes) -> bool:
    """One sentence where nothing of the stage is in the notebook, and whether it was said."""
    solutions = [place for place in places if place.kind == "solution"]
    defined = {name for extra in extras if extra.kind == "code" for name in defined_names(extra.source)}
    if any(place.submitted or place.defines & defined for place in solutions) or len(solutions) < 2:
        return False
    notes.add("other-notebook", f"None of the stage's solution cells is in the notebook{looks_like(defined)}.")
    return True


def _note_restored(places: list[_Place], notes: Notes) -> None:
    locked = [p for p in places if p.kind in ("setup", "check")]
    missing = [p.call for p in locked if not p.submitted]
    changed = [p.call for p in locked if p.kind == "check" and not _is_unchanged(p)]
    for kind, names in (("missing", missing), ("changed", changed)):
        if names:
            cells = f"cell{'s' if len(names) > 1 else ''} {', '.join(names)}"
            notes.add("restored", f"Put back the {kind} {cells}.")


def _is_unchanged(place: _Place) -> bool:
    return all(text_of(cell.source) == text_of(place.source) for cell in place.submitted)


def _note_missing_functions(places: list[_Place], extras: list[_Extra], notes: Notes) -> None:
    for place in places:
        if place.kind != "solution" or place.submitted:
            continue
        elsewhere = [e.place for e in extras if e.kind == "code" and place.defines & set(defined_names(e.source))]
        elsewhere += [
            p.call for p in places if p.submitted and place.defines & set(defined_names(p.submitted[0].source))
        ]
        where = f"; its functions are in {', '.join(elsewhere)}" if elsewhere else ""
        notes.add("missing", f"The solution cell {place.call} was not in the notebook{where}.", place.call)


def _notebook_notes(submitted: Document) -> Notes:
    notes = Notes()
    if submitted.language != "python":
        language = re.sub(r"[^\w .+#-]", "", submitted.language)[:40]
        notes.add("kernel", f"The notebook names a kernel for {language}; it was run as Python.")
    if submitted.skipped:
        notes.add("damaged", f"{submitted.skipped} entries of the cell list are not cells.")
    if submitted.cells and not any(c.grade_id for c in submitted.cells):
        notes.add("no-metadata", "The notebook came without nbgrader's metadata.")
    return notes


# The trusted notebook


def _within_limits(extras: list[_Extra], notes: Notes) -> list[_Extra]:
    """Limits to what is only shown; what is run has its own, which hold for whoever runs it."""
    kept: list[_Extra] = []
    shown = [extra for extra in extras if extra.kind != "code"]
    total = number = 0
    for extra in extras:
        if extra.kind == "code":
            kept.append(extra)
            continue
        if number >= MAX_SHOWN_CELLS or total + len(extra.source) > MAX_SHOWN:
            left = len(shown) - shown.index(extra)
            notes.add("too-large", f"{left} cells from {extra.place} on are not shown; there are too many.")
            return kept + [e for e in extras if e.kind == "code" and e not in kept]
        if len(extra.source) > MAX_CELL:
            sentence = f"{called(extra.place)} is not shown: {len(extra.source)} characters, more than {MAX_CELL}."
            notes.add("too-large", sentence, extra.place)
            continue
        kept.append(extra)
        total += len(extra.source)
        number += 1
    return kept


def _assemble(places: list[_Place], cells: dict[int, dict[str, Any]], extras: list[_Extra]) -> list[dict[str, Any]]:
    by_place: defaultdict[int, list[_Extra]] = defaultdict(list)
    for extra in sorted(extras, key=lambda extra: extra.cell.index):
        by_place[extra.after].append(extra)
    taken = {cell["id"] for cell in cells.values()}
    numbers = (n for n in range(1, len(extras) + len(taken) + 2) if f"extra-{n}" not in taken)
    trusted = [_extra_cell(extra, next(numbers)) for extra in by_place[-1]]
    for place in places:
        trusted.append(cells[place.index])
        trusted += [_extra_cell(extra, next(numbers)) for extra in by_place[place.index]]
    return trusted


def _shown(source: str) -> str:
    """A student's source for the pages that show it. What is run is in `Rebuilt.runs`, as it was written."""
    return visible(source, keep="\n\t" + JOINERS)


def _trusted_cell(place: _Place, source: str) -> dict[str, Any]:
    cell = copy.deepcopy(place.cell)
    cell["source"] = _shown(source)
    if cell["cell_type"] == "code":
        cell["outputs"], cell["execution_count"] = [], None
    return cell


def _extra_cell(extra: _Extra, number: int) -> dict[str, Any]:
    is_text = extra.kind == "text"
    cell: dict[str, Any] = {
        "cell_type": "markdown" if is_text else "code",
        "id": f"extra-{number}",
        "metadata": {"autograder": {"cell": extra.place}},
        "source": _shown(plain_markdown(extra.source) if is_text else extra.source),
    }
    if extra.kind == "chart":
        cell["metadata"]["tags"] = ["chart"]
    if not is_text:
        cell["outputs"], cell["execution_count"] = [], None
    return cell
