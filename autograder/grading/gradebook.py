"""What the grader reads and resets in nbgrader's gradebook. Scores are stored by nbgrader's own preprocessor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from sqlalchemy.orm import scoped_session, sessionmaker


@contextlib.contextmanager
def one_engine() -> Iterator[None]:
    """Within it, every Gradebook of a database is a new session of one SQLAlchemy engine.

    nbgrader opens the gradebook ten times a submission, and each time makes an engine, looks at all tables and
    compiles its queries anew, which costs as much as marking. Sessions stay as short as nbgrader makes them.
    """
    engines: dict[tuple[str, str], Any] = {}
    open_anew, close = Gradebook.__init__, Gradebook.close

    def open_again(self: Gradebook, db_url: str, course_id: str = "default_course", authenticator: Any = None) -> None:
        engine = engines.get((db_url, course_id))
        if engine is None:
            open_anew(self, db_url, course_id, authenticator)
            engines[db_url, course_id] = self.engine
        else:
            self.engine, self.course_id, self.authenticator = engine, course_id, authenticator
            self.db = scoped_session(sessionmaker(autoflush=True, bind=engine, future=True))

    def close_session(self: Gradebook) -> None:
        self.db.remove()

    Gradebook.__init__, Gradebook.close = open_again, close_session
    try:
        yield
    finally:
        Gradebook.__init__, Gradebook.close = open_anew, close
        for engine in engines.values():
            engine.dispose()


@contextlib.contextmanager
def one_commit(gradebook: Gradebook) -> Iterator[None]:
    """Within it, commits are put off to its end: all is stored, or nothing. At each, SQLite waits for the disk."""
    session = gradebook.db()
    commit = session.commit
    session.commit = session.flush
    try:
        yield
    except BaseException:
        session.rollback()
        raise
    else:
        commit()
    finally:
        del session.commit


def reset_scores(db_url: str, course_id: str, assignment: str, student: str) -> set[str]:
    """Take back what an earlier grading found, so that no old score survives a grading that fails.

    What a person gave stays: manual scores, extra credit, comments. Returns the cells that a person was done with.
    """
    done: set[str] = set()
    with Gradebook(db_url, course_id) as gradebook:
        try:
            submission = gradebook.find_submission(assignment, student)
        except MissingEntry:
            return done
        for notebook in submission.notebooks:
            notebook.late_submission_penalty = None
            for grade in notebook.grades:
                if grade.manual_score is not None and not grade.needs_manual_grade:
                    done.add(grade.name)
                grade.auto_score = None
                grade.needs_manual_grade = True  # until nbgrader stores a new score, a person has to look at it
            for comment in notebook.comments:
                comment.auto_comment = None
        gradebook.db.commit()
    return done


def max_points(db_url: str, course_id: str, assignment: str, notebook: str) -> dict[str, float]:
    """The points of each graded cell, as registered when the assignment was built."""
    with Gradebook(db_url, course_id) as gradebook:
        return {cell.name: float(cell.max_score) for cell in gradebook.find_notebook(notebook, assignment).grade_cells}
