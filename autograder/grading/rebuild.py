"""Makes a trusted notebook out of a submission: the course's own cells, with only the student's sources put in.

Nothing else of the submitted file survives: no metadata, outputs, attachments, tags, ids or cell types. So a notebook
that was damaged is repaired in the same stroke as one that was tampered with. Pure functions on plain JSON values.
"""

from __future__ import annotations

import copy
import html
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autograder.grading.notes import Note, Notes, called
from autograder.notebooks.copies import choose
from autograder.notebooks.document import Document, DocumentCell
from autograder.notebooks.regions import TEXT_STUB, defined_names, released
from autograder.worker.client import Cell

MAX_CELL = 100_000  # characters of one cell
MAX_EXTRA = 1_000_000  # characters of all cells that the course does not know
MAX_EXTRA_CELLS = 500


@dataclass(frozen=True)
class Rebuilt:
    """The trusted notebook (JSON of nbformat 4.5) and what was done to get it."""

    notebook: dict[str, Any]
    notes: tuple[Note, ...]


@dataclass
class _Place:
    """A cell of the course's notebook, and the submitted cells that belong there."""

    index: int
    cell: dict[str, Any]
    kind: str  # setup, solution, check, written, chart or prose
    name: str | None  # its grade_id
    source: str  # as released: without the solution or the rubric
    defines: frozenset[str] = frozenset()
    submitted: list[DocumentCell] = field(default_factory=list)

    @property
    def call(self) -> str:
        return self.name or self.cell["id"]


@dataclass(frozen=True)
class _Extra:
    """A submitted cell that the course does not know. after: the course's cell that it follows, -1 for none."""

    after: int
    index: int
    code: bool
    source: str

    @property
    def place(self) -> str:
        return f"cell {self.index + 1}"


def rebuild(source_notebook: dict[str, Any], submitted: Document, own_charts: bool = False) -> Rebuilt:
    """The trusted notebook of a submission. source_notebook is the course's own, with its solutions.

    own_charts: with the student's code in the chart cells, where they are drawn; else they show the course's.
    """
    places = [_place(i, cell) for i, cell in enumerate(source_notebook["cells"])]
    notes = _notebook_notes(submitted)
    extras = _sort_in(places, submitted, notes)
    cells: dict[int, dict[str, Any]] = {}
    for place in places:
        cells[place.index], more = _fill(place, notes, own_charts)
        extras += more
    _note_restored(places, notes)
    _note_missing_functions(places, extras, notes)
    trusted = _assemble(places, cells, _within_limits(extras, notes))
    metadata = copy.deepcopy(source_notebook["metadata"])
    return Rebuilt({"cells": trusted, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, tuple(notes))


def cells_to_run(trusted: dict[str, Any]) -> list[Cell]:
    """The code of a trusted notebook that is run when grading: setup, solutions, the student's own extra cells."""
    chosen = []
    for cell in trusted["cells"]:
        metadata = cell["metadata"]
        if cell["cell_type"] == "code" and not _is_graded(cell) and "chart" not in metadata.get("tags", []):
            label = metadata.get("autograder", {}).get("cell") or metadata.get("nbgrader", {}).get("grade_id")
            if cell["source"].strip():
                chosen.append(Cell(label or cell["id"], cell["source"]))
    return chosen


def _is_graded(cell: dict[str, Any]) -> bool:
    return cell["metadata"].get("nbgrader", {}).get("grade", False)


def cells_to_show(trusted: dict[str, Any]) -> list[Cell]:
    """The code of a trusted notebook that a display run runs, by cell id: all but the checks, so the charts as well."""
    return [
        Cell(cell["id"], cell["source"])
        for cell in trusted["cells"]
        if cell["cell_type"] == "code" and cell["source"].strip() and not _is_graded(cell)
    ]


def plain_markdown(text: str) -> str:
    """Markdown that shows the text literally: no HTML, link, image or formula of it is ever rendered."""
    escaped = html.escape(text.strip("\n"), quote=True)
    for character in "$\\`":
        escaped = escaped.replace(character, f"&#{ord(character)};")
    return f'<pre style="white-space: pre-wrap">\n{escaped}\n</pre>'


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


def _sort_in(places: list[_Place], submitted: Document, notes: Notes) -> list[_Extra]:
    """Give each submitted cell to its place; return the cells that have none."""
    recognize = _recognizer(places)
    found = {cell.index: recognize(cell) for cell in submitted.cells}
    _recognize_by_functions(places, submitted, found, notes)
    extras: list[_Extra] = []
    moved: list[str] = []
    after = furthest = -1
    for cell in submitted.cells:
        place = found[cell.index]
        if place is not None:
            if place.submitted:
                after = max(after, place.index)
            else:
                after = place.index
                if after < furthest and place.kind in ("solution", "check", "written"):
                    moved.append(place.call)
                furthest = max(furthest, after)
            place.submitted.append(cell)
        elif cell.source.strip() and "chart" not in cell.tags:
            extras.append(_Extra(after, cell.index, cell.type == "code", cell.source))
    if moved:
        notes.add("reordered", f"Moved back to the course's order: {', '.join(moved)}.")
    return extras


def _recognizer(places: list[_Place]) -> Callable[[DocumentCell], _Place | None]:
    """Finds the place of a cell that says where it belongs: by grade_id, then by cell id, then by what it contains."""
    by_name = {p.name: p for p in places if p.name is not None}
    by_id = {p.cell["id"]: p for p in places}
    by_text = {_text(p.source): p for p in places if p.kind != "solution" and p.source.strip()}
    checks = {p.name: p for p in places if p.kind == "check"}

    def recognize(cell: DocumentCell) -> _Place | None:
        return (
            by_name.get(cell.grade_id)
            or by_id.get(cell.cell_id)
            or by_text.get(_text(cell.source))
            or checks.get(cell.check_id)
        )

    return recognize


def _recognize_by_functions(places, submitted, found, notes) -> None:
    """A code cell without metadata is the solution cell whose functions it defines, if no other cell says to be it."""
    taken = {place.index for place in found.values() if place is not None}
    recognized: list[str] = []
    for cell in submitted.cells:
        if found[cell.index] is not None or cell.type != "code":
            continue
        defines = set(defined_names(cell.source))
        fitting = [p for p in places if p.kind == "solution" and p.defines & defines]
        if len(fitting) == 1 and fitting[0].index not in taken:
            found[cell.index] = fitting[0]
            recognized.append(f"{fitting[0].call} in {cell.place}")
    if recognized:
        notes.add("recognized", f"Recognized by their functions, without metadata: {', '.join(recognized)}.")


def _text(source: str) -> str:
    """What is compared of two cells: the text without what an editor adds or drops at the ends of lines."""
    return "\n".join(line.rstrip() for line in source.strip().split("\n"))


def _same_text(a: str, b: str) -> bool:
    return _text(a) == _text(b)


# What goes into each place


def _fill(place: _Place, notes: Notes, own_charts: bool) -> tuple[dict[str, Any], list[_Extra]]:
    """The trusted cell of a place, and what of the submitted cells runs beside it."""
    more: list[_Extra] = []
    source = place.source
    if place.kind == "solution":
        source, more = _solution(place, notes)
    elif place.kind == "written":
        source = _answer(place, notes)
    elif place.kind == "setup":
        more = _changed_setup(place, notes)
    elif place.kind == "chart" and own_charts:
        source = _chart(place)
    elif place.submitted and place.kind == "prose" and not _is_unchanged(place):
        first = place.submitted[0]  # what a student wrote into the course's text is shown below it
        more = [_Extra(place.index, first.index, False, first.source)]
    return _trusted_cell(place, source), more


def _solution(place: _Place, notes: Notes) -> tuple[str, list[_Extra]]:
    copies = place.submitted
    if not copies:
        return f"# The cell {place.call} was not in the submitted notebook.", []
    choice = choose([c.source for c in copies])
    if copies[choice.chosen].type != "code":
        notes.add("retyped", f"The cell {place.call} was a {copies[choice.chosen].type} cell; run as code.", place.call)
    if choice.joined or choice.kept:
        parts = ", ".join(copies[i].place for i in (choice.chosen, *choice.joined, *choice.kept))
        notes.add("split", f"The cell {place.call} was split; its parts were put together ({parts}).", place.call)
    if choice.dropped:
        left_out = ", ".join(copies[i].place for i in choice.dropped)
        sentence = (
            f"The cell {place.call} was there {len(copies)} times; the first solved copy counts "
            f"({copies[choice.chosen].place}), left out: {left_out}."
        )
        notes.add("duplicate", sentence, place.call)
    if len(choice.source) > MAX_CELL:
        sentence = f"The cell {place.call} has {len(choice.source)} characters, more than {MAX_CELL}, and was left out."
        notes.add("too-large", sentence, place.call)
        return f"# The cell {place.call} was too large to be graded.", []
    kept = [_Extra(place.index, copies[i].index, True, copies[i].source) for i in choice.kept]
    return choice.source, kept


def _answer(place: _Place, notes: Notes) -> str:
    answered = [c for c in place.submitted if c.source.strip() and not _same_text(c.source, place.source)]
    if not answered:
        return place.source
    text = answered[0].source
    if len(answered) > 1:
        notes.add("duplicate", f"The question {place.call} has {len(answered)} answers; the first counts.", place.call)
    if len(text) > MAX_CELL:
        notes.add("too-large", f"The answer {place.call} was cut after {MAX_CELL} characters.", place.call)
        text = text[:MAX_CELL]
    question = place.source.split(TEXT_STUB)[0]
    if text.startswith(question):  # the course's own text may be rendered
        return question + plain_markdown(text[len(question) :])
    return plain_markdown(text)


def _chart(place: _Place) -> str:
    first = place.submitted[0] if place.submitted else None
    fits = first is not None and first.type == "code" and len(first.source) <= MAX_CELL
    return first.source if first and fits else place.source


def _changed_setup(place: _Place, notes: Notes) -> list[_Extra]:
    """A changed setup cell runs after the course's own, so that an import added there is not lost."""
    if not place.submitted or not place.submitted[0].source.strip() or _is_unchanged(place):
        return []
    first = place.submitted[0]
    notes.add("changed-setup", f"The cell {place.call} was changed; it ran after the course's own.", place.call)
    return [_Extra(place.index, first.index, True, first.source)]


def _note_restored(places: list[_Place], notes: Notes) -> None:
    locked = [p for p in places if p.kind in ("setup", "check")]
    missing = [p.call for p in locked if not p.submitted]
    changed = [p.call for p in locked if p.kind == "check" and p.submitted and not _is_unchanged(p)]
    for kind, names in (("missing", missing), ("changed", changed)):
        if names:
            cells = f"cell{'s' if len(names) > 1 else ''} {', '.join(names)}"
            notes.add("restored", f"Put back the {kind} {cells}.")


def _is_unchanged(place: _Place) -> bool:
    return _same_text(place.submitted[0].source, place.source)


def _note_missing_functions(places: list[_Place], extras: list[_Extra], notes: Notes) -> None:
    for place in places:
        if place.kind != "solution" or place.submitted:
            continue
        elsewhere = [e.place for e in extras if e.code and place.defines & set(defined_names(e.source))]
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
    kept: list[_Extra] = []
    total = 0
    for number, extra in enumerate(extras):
        if len(kept) >= MAX_EXTRA_CELLS or total + len(extra.source) > MAX_EXTRA:
            left = len(extras) - number
            notes.add("too-large", f"{left} cells from {extra.place} on were left out; there are too many.")
            break
        if len(extra.source) > MAX_CELL:
            sentence = f"{called(extra.place)} was left out: {len(extra.source)} characters, more than {MAX_CELL}."
            notes.add("too-large", sentence, extra.place)
            continue
        kept.append(extra)
        total += len(extra.source)
    return kept


def _assemble(places: list[_Place], cells: dict[int, dict[str, Any]], extras: list[_Extra]) -> list[dict[str, Any]]:
    by_place: defaultdict[int, list[_Extra]] = defaultdict(list)
    for extra in sorted(extras, key=lambda extra: extra.index):
        by_place[extra.after].append(extra)
    taken = {cell["id"] for cell in cells.values()}
    numbers = (n for n in range(1, len(extras) + len(taken) + 2) if f"extra-{n}" not in taken)
    trusted = [_extra_cell(extra, next(numbers)) for extra in by_place[-1]]
    for place in places:
        trusted.append(cells[place.index])
        trusted += [_extra_cell(extra, next(numbers)) for extra in by_place[place.index]]
    return trusted


def _trusted_cell(place: _Place, source: str) -> dict[str, Any]:
    cell = copy.deepcopy(place.cell)
    cell["source"] = source
    if cell["cell_type"] == "code":
        cell["outputs"], cell["execution_count"] = [], None
    return cell


def _extra_cell(extra: _Extra, number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": "code" if extra.code else "markdown",
        "id": f"extra-{number}",
        "metadata": {"autograder": {"cell": extra.place}},
        "source": extra.source if extra.code else plain_markdown(extra.source),
    }
    if extra.code:
        cell["outputs"], cell["execution_count"] = [], None
    return cell
