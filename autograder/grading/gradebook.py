"""Reads from nbgrader's gradebook and stores in it the same rows that nbgrader's own steps write.

nbgrader stores a submission cell by cell, with hundreds of queries. Here one engine serves a class, and each submission
is one transaction of a few statements, so it is stored whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from datetime import datetime
from typing import Any

from nbformat.v4 import reads
from nbgrader.api import Comment, Grade, Gradebook, Student, SubmittedAssignment, SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties, OverwriteCells, OverwriteKernelspec
from sqlalchemy import Table, bindparam, insert, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError
from traitlets.config import Configurable

from autograder.grading.scores import ForGradebook


class UnknownStudent(Exception):
    """The gradebook does not know this student, and the course does not let students be added."""


class ClassGradebook:
    """The gradebook of one course, for one notebook of one assignment. Raises MissingEntry if it does not know that.

    parent: its configuration sets the penalty of late submissions.
    """

    def __init__(self, db_url: str, course_id: str, assignment: str, notebook: str, parent: Configurable | None = None):
        self._about = {"assignment": assignment, "notebook": notebook, "db_url": db_url}
        self._late = AssignLatePenalties(parent=parent)
        self._late.init_plugin()
        self._gradebook = Gradebook(db_url, course_id)
        try:
            found = self._gradebook.find_notebook(notebook, assignment)
            self._notebook, self._assignment, self._due = found.id, found.assignment.id, found.assignment.duedate
            self.points = {cell.name: float(cell.max_score) for cell in found.grade_cells}  # the maximum of each cell
            self._graded = {cell.name: cell.id for cell in found.grade_cells}
            self._commented = {cell.name: cell.id for cell in found.solution_cells}
            self._gradebook.db.remove()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._gradebook.close()

    def overwrite(self, source_notebook: dict[str, Any]) -> dict[str, Any]:
        """The course's notebook with the points, checksums and locks that the gradebook has."""
        notebook, resources = reads(json.dumps(source_notebook)), {"nbgrader": self._about}
        for step in (OverwriteKernelspec(), OverwriteCells()):
            notebook, resources = step.preprocess(notebook, resources)
        return json.loads(json.dumps(notebook))

    def store(
        self,
        student: str,
        graded: ForGradebook,
        handed_in_at: datetime | None = None,
        unchanged: Container[str] = (),
        create_student: bool = True,
    ) -> None:
        """Store the scores of a submission, in place of those of an earlier one.

        Points given by hand stay, and need to be reviewed. unchanged: answers that are the same as when a person graded
        them, and need no review. Raises UnknownStudent.
        """
        if self._store(student, graded, handed_in_at, unchanged, create_student):
            self._penalize(student)

    def _store(self, *submission: Any) -> bool:
        """Whether the submission may be late."""
        try:
            return self._store_at_once(*submission)
        except IntegrityError:  # another process has just added the same student, for another assignment
            return self._store_at_once(*submission)

    def _store_at_once(self, student, new, handed_in_at, unchanged, create_student) -> bool:
        comments = {cell: "No response." if name in new.unanswered else None for name, cell in self._commented.items()}
        with self._gradebook.engine.begin() as connection:
            before = self._find(connection, student)
            notebook = before and before.notebook
            if notebook is None:
                if before is None and not create_student:
                    raise UnknownStudent(f"The gradebook has no student {student}; nbgrader db student add adds one.")
                notebook = self._add_submission(connection, student, handed_in_at, new=before is None)
                graded, commented = {}, set()
            else:
                if handed_in_at is not None:
                    connection.execute(_SET_TIME, {"which": before.submission, "at": handed_in_at})
                graded = {
                    row.cell_id: row for row in connection.execute(_FIND_GRADES, self._all(notebook, self._graded))
                }
                found = connection.execute(_FIND_COMMENTS, self._all(notebook, self._commented))
                commented = {row.cell_id for row in found}
                connection.execute(_SET_PENALTY, {"which": notebook})
            rows: list[dict[str, Any]] = []
            for name, cell in self._graded.items():
                score, row = new.scores[name], graded.get(cell)
                to_do = score is None
                if row is not None and row.manual_score is not None:
                    to_do = row.needs_manual_grade or name not in unchanged
                rows.append({"notebook": notebook, "cell": cell, "score": score, "to_do": to_do})
            _execute(connection, _ADD_GRADE, [row for row in rows if row["cell"] not in graded])
            _execute(connection, _SET_GRADE, [row for row in rows if row["cell"] in graded])
            rows = [{"notebook": notebook, "cell": cell, "text": text} for cell, text in comments.items()]
            _execute(connection, _ADD_COMMENT, [row for row in rows if row["cell"] not in commented])
            _execute(connection, _SET_COMMENT, [row for row in rows if row["cell"] in commented])
        at = handed_in_at or (before and before.timestamp)
        return at is not None and self._due is not None and at > self._due

    def _add_submission(self, connection: Connection, student: str, handed_in_at: datetime | None, new: bool) -> str:
        """Add a submission; returns the id of its notebook. new: whether to add the student too."""
        if new:
            connection.execute(_ADD_STUDENT, {"id": student})
        values = {"assignment_id": self._assignment, "student_id": student, "timestamp": handed_in_at}
        (submission,) = connection.execute(_ADD_SUBMISSION, values).inserted_primary_key
        values = {"assignment_id": submission, "notebook_id": self._notebook}
        (notebook,) = connection.execute(_ADD_NOTEBOOK, values).inserted_primary_key
        return notebook

    def _penalize(self, student: str) -> None:
        """Set the late penalty as nbgrader's AssignLatePenalties does, but without opening the gradebook again."""
        assignment = self._about["assignment"]
        try:
            late = self._gradebook.find_submission(assignment, student).total_seconds_late
            notebook = self._gradebook.find_submission_notebook(self._about["notebook"], assignment, student)
            penalty = None
            if late > 0:  # an extension may make it 0
                penalty = self._late.plugin_inst.late_submission_penalty(student, notebook.score, late)
            if penalty is not None:
                notebook.late_submission_penalty = min(max(0, penalty), notebook.score)
                self._gradebook.db.commit()
        finally:
            self._gradebook.db.remove()

    def reset(self, student: str, handed_in_at: datetime | None = None, *, add: bool, create_student: bool) -> None:
        """Remove the scores of an earlier grading, so that no old score survives a grading that fails.

        What a person entered stays: manual scores, extra credit, comments. It needs review until there is a new score.
        add: whether to add a submission that the gradebook does not have yet.
        """
        with self._gradebook.engine.connect() as connection:
            found = self._find(connection, student)
        if add or (found and found.notebook):
            self._store(student, ForGradebook(dict.fromkeys(self.points)), handed_in_at, (), create_student)

    def _find(self, connection: Connection, student: str) -> Any:
        """The ids of a student's submission and its notebook, and the time; each is None if there is none.

        Returns None if the gradebook does not know the student.
        """
        values = {"student": student, "assignment": self._assignment, "of": self._notebook}
        return connection.execute(_FIND, values).first()

    @staticmethod
    def _all(notebook: str, cells: Mapping[str, str]) -> dict[str, Any]:
        return {"notebook": notebook, "cells": list(cells.values())}


def _execute(connection: Connection, statement: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(statement, rows)


# Each statement is one object for the life of the process, so that SQLAlchemy compiles it once. The indexes of both
# tables begin with the cell's id, so every query names it.
_STUDENT, _SUBMISSION, _NOTEBOOK = (c.__table__ for c in (Student, SubmittedAssignment, SubmittedNotebook))
_GRADE, _COMMENT = Grade.__table__, Comment.__table__


def _in_cells(table: Table) -> tuple[Any, Any]:
    return table.c.notebook_id == bindparam("notebook"), table.c.cell_id.in_(bindparam("cells", expanding=True))


def _in_cell(table: Table) -> tuple[Any, Any]:
    return table.c.notebook_id == bindparam("notebook"), table.c.cell_id == bindparam("cell")


_FOR_STUDENT = (_SUBMISSION.c.student_id == _STUDENT.c.id) & (_SUBMISSION.c.assignment_id == bindparam("assignment"))
_OF_SUBMISSION = (_NOTEBOOK.c.assignment_id == _SUBMISSION.c.id) & (_NOTEBOOK.c.notebook_id == bindparam("of"))
_FIND = (
    select(_SUBMISSION.c.id.label("submission"), _SUBMISSION.c.timestamp, _NOTEBOOK.c.id.label("notebook"))
    .select_from(_STUDENT.outerjoin(_SUBMISSION, _FOR_STUDENT).outerjoin(_NOTEBOOK, _OF_SUBMISSION))
    .where(_STUDENT.c.id == bindparam("student"))
)
_FIND_GRADES = select(_GRADE.c.cell_id, _GRADE.c.manual_score, _GRADE.c.needs_manual_grade).where(*_in_cells(_GRADE))
_FIND_COMMENTS = select(_COMMENT.c.cell_id).where(*_in_cells(_COMMENT))

_PLACE = {"notebook_id": bindparam("notebook"), "cell_id": bindparam("cell")}
_SCORE = {"auto_score": bindparam("score"), "needs_manual_grade": bindparam("to_do")}
_TEXT = {"auto_comment": bindparam("text")}
_ADD_STUDENT, _ADD_SUBMISSION, _ADD_NOTEBOOK = insert(_STUDENT), insert(_SUBMISSION), insert(_NOTEBOOK)
_ADD_GRADE, _ADD_COMMENT = insert(_GRADE).values({**_PLACE, **_SCORE}), insert(_COMMENT).values({**_PLACE, **_TEXT})
_SET_GRADE = update(_GRADE).where(*_in_cell(_GRADE)).values(_SCORE)
_SET_COMMENT = update(_COMMENT).where(*_in_cell(_COMMENT)).values(_TEXT)
_SET_TIME = update(_SUBMISSION).where(_SUBMISSION.c.id == bindparam("which")).values(timestamp=bindparam("at"))
_SET_PENALTY = update(_NOTEBOOK).where(_NOTEBOOK.c.id == bindparam("which")).values(late_submission_penalty=None)
