"""The plugin for `nbgrader export`: writes grades.csv, where a missing score is not a 0."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, SubmittedAssignment
from nbgrader.plugins import ExportPlugin

from autograder.spreadsheet import as_text
from autograder.whole_file import whole_file

COLUMNS = ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
           "raw_score", "late_submission_penalty", "score", "max_score", "status")  # fmt: skip
GRADED, BY_HAND, NOT_GRADED, NOT_HANDED_IN = "graded", "to be graded by hand", "not graded", "not handed in"


class GradesExport(ExportPlugin):
    """nbgrader's columns, and the status. Work not handed in has 0 points; work not yet graded has no score.

    Assignments that nobody handed in are left out.
    """

    def export(self, gradebook: Gradebook) -> None:
        with whole_file(Path(self.to or "grades.csv")) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for row in self._rows(gradebook):
                cells = (row.get(name) for name in COLUMNS)
                writer.writerow([as_text(cell) if isinstance(cell, str) else cell for cell in cells])

    def _rows(self, gradebook: Gradebook) -> Iterator[dict[str, Any]]:
        coursedir = self.parent.coursedir
        submitted = Path(coursedir.root) / coursedir.submitted_directory
        known = {student.id: student for student in gradebook.students}
        for assignment in gradebook.assignments:
            if self.assignment and assignment.name not in map(str, self.assignment):
                continue
            folders = {path.parent.name for path in submitted.glob(f"*/{assignment.name}")}
            scores = {s.student_id: s for s in gradebook.assignment_submissions(assignment.name)}
            if not folders and not scores:
                continue
            for student in sorted({*known, *folders}):
                if self.student and student not in map(str, self.student):
                    continue
                about = known.get(student)
                row = {name: getattr(about, name, "") for name in ("last_name", "first_name", "email")}
                row |= {"assignment": assignment.name, "duedate": assignment.duedate, "student_id": student}
                row |= {"max_score": assignment.max_score}
                yield row | _scores(scores.get(student), student in folders)


def _scores(submission: SubmittedAssignment | None, handed_in: bool) -> dict[str, Any]:
    if submission is None:
        return {"status": NOT_GRADED} if handed_in else _points(0.0, 0.0, NOT_HANDED_IN)
    time = {"timestamp": submission.timestamp}
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    if any(g.cell.cell_type == "code" and g.auto_score is None and g.manual_score is None for g in grades):
        return time | {"status": NOT_GRADED}
    status = BY_HAND if submission.needs_manual_grade else GRADED
    return time | _points(submission.score, submission.late_submission_penalty or 0.0, status)


def _points(raw: float, penalty: float, status: str) -> dict[str, Any]:
    return {
        "raw_score": raw,
        "late_submission_penalty": penalty,
        "score": max(0.0, raw - penalty),
        "status": status,
    }
