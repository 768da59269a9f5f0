"""Describes what is odd about a notebook, for the student who runs the checks and the assistant who grades."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from autograder.notebooks.parity import not_in_grading
from autograder.notebooks.sorting import SortedCell
from autograder.stages import GRADED_STAGES, Stage
from autograder.worker.naming import defined_names


def oddities(path: Path, cells: list[SortedCell], stage: Stage) -> Iterator[str]:
    """Sentences about what is odd in a student's file."""
    if path.suffix == ".ipynb" and path.stem != stage.module:
        yield f"The notebook is named {path.name}; hand it in as {stage.module}.ipynb."
    yield from _beside(path, stage)
    defined = {name for cell in cells if cell.runs for name in defined_names(cell.source)}
    if not defined & set(stage.functions):
        yield f"None of the stage's functions is in the notebook{looks_like(defined)}."
    yield from (one.sentence for one in not_in_grading(cells, path.resolve().parent))
    for cell in cells:
        if sentence := copies_left_out(cell):
            yield sentence


def _beside(path: Path, stage: Stage) -> Iterator[str]:
    """Sentences about the folder: it belongs to another stage, or has a second notebook."""
    folder = path.resolve().parent
    named = path.name == f"{stage.module}.ipynb"
    if named and folder.name != stage.assignment and folder.name in {other.assignment for other in GRADED_STAGES}:
        yield f"This is the notebook of {stage.assignment}, in the folder of {folder.name}; do not hand it in there."
    others = [p.name for p in sorted(folder.glob("*.ipynb")) if p.name != path.name and not p.name.startswith(".")]
    if named and others:
        yield f"{path.name} is the one that is graded; there is also {', '.join(others)}."


def copies_left_out(cell: SortedCell) -> str | None:
    """A sentence on which of several copies of a solution cell counts; None if none is left out."""
    if cell.choice is None or not cell.choice.dropped:
        return None
    left_out = ", ".join(cell.copies[i].place for i in cell.choice.dropped)
    return (
        f"The cell {cell.label} was there {len(cell.copies)} times; the first solved copy counts "
        f"({cell.cell.place}), left out: {left_out}."
    )


def looks_like(defined: Collection[str]) -> str:
    """The end of a sentence that names the stage with most of these functions; empty if no stage has any."""
    found = {stage.assignment: len(set(defined) & set(stage.functions)) for stage in GRADED_STAGES}
    likely = max(found, key=lambda name: found[name])
    return f"; it looks like that of {likely}" if found[likely] else ""
