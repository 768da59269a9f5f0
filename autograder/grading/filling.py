"""Fills each place of the course's notebook with the student's code or answer, or with the course's own cell."""

from __future__ import annotations

from autograder.grading.notes import Notes
from autograder.grading.placing import Place
from autograder.grading.written import rendered_markdown
from autograder.notebooks.oddities import copies_left_out
from autograder.notebooks.regions import TEXT_STUB
from autograder.notebooks.sorting import MAX_CELL, text_of


def fill(place: Place, notes: Notes, own_charts: bool) -> str:
    """The source of the trusted cell at a place."""
    if place.kind == "solution":
        return _solution(place, notes)
    if place.kind == "written":
        return _answer(place, notes)
    if place.kind == "setup":
        _note_changed_setup(place, notes)
    if place.kind == "chart" and own_charts:
        return _chart(place)
    return place.source


def _solution(place: Place, notes: Notes) -> str:
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


def _answer(place: Place, notes: Notes) -> str:
    """The question with its answer, from one cell or from the several that the student split it into."""
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
    # Only the question is the course's text, so only it stays Markdown
    return (question if any(whole for _, whole in written) else "") + rendered_markdown(text)


def _without_question(source: str, question: str, is_split: bool) -> tuple[str, bool]:
    """The student's part of a cell, and whether the question was above it."""
    if source.startswith(question):
        return source[len(question) :], True
    if is_split and source.strip() and text_of(question).startswith(text_of(source)):
        return "", True  # only the beginning of the cell
    return source, False


def _chart(place: Place) -> str:
    first = place.submitted[0] if place.submitted else None
    fits = first is not None and first.cell.type == "code" and len(first.source) <= MAX_CELL
    return first.source if first and fits else place.source


def _note_changed_setup(place: Place, notes: Notes) -> None:
    changed = [cell for cell in place.submitted if text_of(cell.source) != text_of(place.source)]
    if any(cell.runs for cell in changed):
        where = f" in {len(changed)} cells" if len(changed) > 1 else ""
        sentence = f"The cell {place.call} was changed; it ran{where} after the course's own."
        notes.add("changed-setup", sentence, place.call)
