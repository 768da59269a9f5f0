"""The course's changes to nbgrader's page of feedback. nbgrader_config.py names both classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbgrader
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbgrader.preprocessors import GetGrades
from traitlets.config import Config

from autograder.grading.scores import is_check, is_graded
from autograder.judge.framework import find_check
from autograder.stages import STAGES

_NBGRADERS = Path(nbgrader.__file__).resolve().parent / "server_extensions" / "formgrader"


class FeedbackExporter(HTMLExporter):
    """Exports with the template course-feedback/, which extends nbgrader's own."""

    def __init__(self, config: Any = None, **kwargs: Any):
        own = Config()
        own.FeedbackExporter.template_name = "course-feedback"
        own.FeedbackExporter.extra_template_basedirs = [str(Path(__file__).resolve().parent)]
        own.FeedbackExporter.extra_template_paths = [
            str(_NBGRADERS / "templates"),
            # Bootstrap's styles, in nbgrader 0.9.6 and in 0.9.5, the last for Python 3.10
            str(_NBGRADERS / "static" / "node_modules" / "bootstrap" / "dist" / "css"),
            str(_NBGRADERS / "static" / "components" / "bootstrap" / "css"),
        ]
        merged = Config(config or {})
        merged.merge(own)
        super().__init__(config=merged, **kwargs)


class ShowScores(GetGrades):
    """Adds "graded" to the metadata of each graded cell, for the template."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        self._questions = 0
        nb.cells = [cell for cell in nb.cells if not cell.metadata.get("autograder", {}).get("rubric")]
        nb, resources = super().preprocess(nb, resources)
        cells = [cell.metadata.graded for cell in nb.cells if "graded" in cell.metadata]
        about = resources["nbgrader"]
        stage = next((s for s in STAGES if s.assignment == about["assignment"]), None)
        about["title"] = f"{stage.number}. {stage.title}" if stage else about["notebook"]
        about["ungraded"] = sum(cell.points for cell in cells if cell.ungraded)
        return nb, resources

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if not is_graded(cell):
            return cell, resources
        name = cell.metadata.nbgrader.grade_id
        if is_check(cell):
            title = find_check(name).title
            # Without the score, which the heading has
            cell.outputs = [output for output in cell.outputs if output.output_type == "stream"]
        else:
            self._questions += 1
            title = f"Question {self._questions}"
        grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
        cell.metadata.graded = NotebookNode(title=title, points=grade.max_score, ungraded=grade.needs_manual_grade)
        return cell, resources


ShowMarks = ShowScores  # its name in the nbgrader_config.py of courses built earlier, which the build leaves alone
