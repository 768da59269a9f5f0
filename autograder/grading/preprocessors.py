"""The steps that the course adds to nbgrader's grading. nbgrader_config.py puts them into its lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nbformat
from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades

from autograder.grading.batch import Batch, NotGraded, now
from autograder.grading.patches import one_commit
from autograder.grading.scores import check_message, is_check, on_scale, score_outputs


def _batch(preprocessor: NbGraderPreprocessor) -> Batch:
    batch = getattr(preprocessor.parent, "batch", None)
    if batch is None:
        raise NotGraded("c.Autograde.exporter_class is not the course's; compare nbgrader_config.py with the original.")
    return batch


class RebuildFromSource(NbGraderPreprocessor):
    """Gives the course's own notebook with the student's sources in it, and nothing else of the submission."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        marked = _batch(self).marked(resources["nbgrader"]["student"])
        rebuilt = nbformat.from_dict(marked.notebook)
        for cell in rebuilt.cells:
            if is_check(cell):  # no score yet; to nbgrader a cell without outputs would mean full points
                cell.outputs = nbformat.from_dict(score_outputs(0.0, "Not graded."))
        return rebuilt, resources


class WriteScores(NbGraderPreprocessor):
    """Writes each check's message and score into its cell, and into the others what the display run showed."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        batch = _batch(self)
        student = resources["nbgrader"]["student"]
        marked = batch.marked(student)
        results = {r.id: on_scale(r, batch.points[r.id]) for r in marked.result.results}
        when = now()
        for cell in filter(is_check, nb.cells):
            result = results[cell.metadata.nbgrader.grade_id]
            cell.outputs = nbformat.from_dict(score_outputs(result.score, check_message(result, batch.version, when)))
            cell.metadata["autograder"] = {
                "bug": result.bug.key if result.bug else None,
                "checks_version": batch.version,
                "graded_at": when,
                "passed": result.passed,
            }
        for cell in nb.cells:
            if cell.cell_type == "code" and not is_check(cell):
                cell.outputs = nbformat.from_dict(marked.shown.outputs.get(cell.id, []))
        nb.cells = [each for cell in nb.cells for each in (cell, *_rubric(cell, batch.rubrics))]
        batch.done(student, tuple(results.values()))
        return nb, resources


def _rubric(cell: Any, rubrics: dict[str, str]) -> Iterator[Any]:
    """What points are given for, after an answer: for the assistant alone, so the page of feedback leaves it out."""
    name = cell.metadata.get("nbgrader", {}).get("grade_id")
    if name in rubrics:
        yield new_markdown_cell(rubrics[name], id=f"rubric-{name}"[:64], metadata={"autograder": {"rubric": True}})


class _OneCommit(NbGraderPreprocessor):
    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        with one_commit(self.gradebook):
            result = super().preprocess(nb, resources)
            for name in _batch(self).unchanged_answers(self.student_id):  # nothing there for a person to look at again
                grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
                grade.needs_manual_grade = False
            return result


class SaveScores(SaveAutoGrades, _OneCommit):
    """nbgrader's own way to store the scores, with one commit a notebook in place of one a cell.

    SaveAutoGrades opens the gradebook, and goes over the cells by calling the class after it, which is _OneCommit.
    """
