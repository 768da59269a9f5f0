"""Makes a trusted notebook from a submission: the course's own cells, with only the student's sources put in.

Nothing else of the submitted file survives: no metadata, outputs, attachments, tags, ids or cell types. This repairs a
damaged notebook and a tampered one alike. All functions are pure and work on plain JSON values.

The graded notebook has the course's order. The code runs in the student's order, as in `autograder test`, with the
course's own setup put where the solutions need it.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from autograder.grading.filling import fill
from autograder.grading.notes import Note, Notes
from autograder.grading.placing import Extra, Found, Place, in_order, place_of, places_of, sort_in
from autograder.grading.scores import is_graded
from autograder.grading.written import plain_markdown
from autograder.notebooks.document import Document
from autograder.notebooks.oddities import looks_like
from autograder.notebooks.parity import NotInGrading, not_in_grading
from autograder.notebooks.regions import called
from autograder.notebooks.sorting import MAX_CELL, TOO_MANY, SortedCell, chart_hash, sort_cells, text_of
from autograder.plain_text import JOINERS, visible
from autograder.sandbox.client import Cell
from autograder.worker.naming import defined_names

MAX_SHOWN = 1_000_000  # characters of all cells of the student's own that are shown and not run
MAX_SHOWN_CELLS = 500


@dataclass(frozen=True)
class Rebuilt:
    """The trusted notebook (JSON of nbformat 4.5), its cells that run in grading, and notes on what was repaired."""

    notebook: dict[str, Any]
    runs: tuple[Cell, ...]
    notes: tuple[Note, ...]
    missing: tuple[NotInGrading, ...]  # names that cells which grading does not run define
    unanswered: frozenset[str] = frozenset()  # solution and answer cells that are still as released


def rebuild(source_notebook: dict[str, Any], submitted: Document, own_charts: bool = False) -> Rebuilt:
    """The trusted notebook of a submission. source_notebook is the course's own, with its solutions.

    own_charts: put the student's code into the chart cells, for a display run; otherwise they hold the course's.
    """
    places = [place_of(i, cell) for i, cell in enumerate(source_notebook["cells"])]
    notes = _notebook_notes(submitted)
    cells = sort_cells(submitted, {chart_hash(p.source) for p in places if p.kind == "chart"})
    found = places_of(cells, places, notes)
    extras = sort_in(cells, found, notes)
    runs = tuple(in_order(cells, found, places))
    _note_left_out(cells, found, notes)
    missing = tuple(not_in_grading(cells))
    for one in missing:
        notes.add("not-in-grading", one.sentence)
    filled = {place.index: _trusted_cell(place, fill(place, notes, own_charts)) for place in places}
    if not _note_other_notebook(places, extras, notes):
        _note_unknown_checks(cells, found, notes)
        _note_restored(places, notes)
        _note_missing_functions(places, extras, notes)
    trusted = _assemble(places, filled, _within_limits(extras, notes))
    metadata = copy.deepcopy(source_notebook["metadata"])
    notebook = {"cells": trusted, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    students = [place for place in places if place.kind in ("solution", "written")]
    unanswered = frozenset(place.call for place in students if filled[place.index]["source"] == place.source)
    return Rebuilt(notebook, runs, tuple(notes), missing, unanswered)


def cells_to_show(trusted: dict[str, Any]) -> list[Cell]:
    """The cells of a trusted notebook that a display run runs, labeled by id: all code but the checks."""
    return [
        Cell(cell["id"], cell["source"])
        for cell in trusted["cells"]
        if cell["cell_type"] == "code" and cell["source"].strip() and not is_graded(cell)
    ]


def _note_left_out(cells: list[SortedCell], found: Found, notes: Notes) -> None:
    many = [cell for cell in cells if cell.too_large == TOO_MANY]
    if many:
        notes.add("too-large", f"{len(many)} cells from {many[0].cell.place} on were left out; there are too many.")
    for cell in cells:
        place = found.get(cell.cell.index)
        if cell.too_large and cell not in many and (place is None or place.kind != "solution"):
            sentence = f"{called(cell.cell.place)} was left out: it {cell.too_large}."
            notes.add("too-large", sentence, cell.cell.place)


def _note_unknown_checks(cells: list[SortedCell], found: Found, notes: Notes) -> None:
    for cell in cells:
        if cell.role == "check" and cell.cell.index not in found:
            sentence = f"{called(cell.cell.place)} is tagged as a check and is none of the course's; it was not run."
            notes.add("unknown-check", sentence, cell.cell.place)


def _note_other_notebook(places: list[Place], extras: list[Extra], notes: Notes) -> bool:
    """Note if nothing of the stage is in the notebook; returns whether that is so."""
    solutions = [place for place in places if place.kind == "solution"]
    defined = {name for extra in extras if extra.kind == "code" for name in defined_names(extra.source)}
    if any(place.submitted or place.defines & defined for place in solutions) or len(solutions) < 2:
        return False
    notes.add("other-notebook", f"None of the stage's solution cells is in the notebook{looks_like(defined)}.")
    return True


def _note_restored(places: list[Place], notes: Notes) -> None:
    locked = [p for p in places if p.kind in ("setup", "check")]
    missing = [p.call for p in locked if not p.submitted]
    changed = [p.call for p in locked if p.kind == "check" and not _is_unchanged(p)]
    for kind, names in (("missing", missing), ("changed", changed)):
        if names:
            cells = f"cell{'s' if len(names) > 1 else ''} {', '.join(names)}"
            notes.add("restored", f"Put back the {kind} {cells}.")


def _is_unchanged(place: Place) -> bool:
    return all(text_of(cell.source) == text_of(place.source) for cell in place.submitted)


def _note_missing_functions(places: list[Place], extras: list[Extra], notes: Notes) -> None:
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


def _within_limits(extras: list[Extra], notes: Notes) -> list[Extra]:
    """Drop cells beyond the limits for what is only shown; code that runs has its own limits (sorting.py)."""
    kept: list[Extra] = []
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


def _assemble(places: list[Place], cells: dict[int, dict[str, Any]], extras: list[Extra]) -> list[dict[str, Any]]:
    by_place: defaultdict[int, list[Extra]] = defaultdict(list)
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
    """A student's source for display. The code that runs is in `Rebuilt.runs`, unchanged."""
    return visible(source, keep="\n\t" + JOINERS)


def _trusted_cell(place: Place, source: str) -> dict[str, Any]:
    cell = copy.deepcopy(place.cell)
    cell["source"] = _shown(source)
    if cell["cell_type"] == "code":
        cell["outputs"], cell["execution_count"] = [], None
    return cell


def _extra_cell(extra: Extra, number: int) -> dict[str, Any]:
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
