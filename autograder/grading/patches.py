"""What of nbgrader's is replaced, because neither a subclass nor a hook reaches it; everything else is extended.

Its command makes an Autograde converter by itself, so a subclass is never asked, and it passes over the errors of what
it calls hooks. As of nbgrader 0.9.6:

| nbgrader's | why | breaks when that changes (tests/grading/) |
|---|---|---|
| `BaseConverter.init_notebooks` | it stops where no folder holds a notebook | `test_one_bad_submission.py::test_no_old_score_survives_when_nobody_hands_in_a_notebook_any_more` |
| `BaseConverter.convert_notebooks` | nothing else is called once for a class | `test_class_run.py::test_both_commands_store_the_same_marks` |
| `BaseConverter.init_destination` | it is the first thing of a submission | `test_nbgrader.py::test_an_old_score_does_not_survive_a_submission_that_cannot_be_read` |
| `BaseConverter.set_permissions` | it is the last thing of a submission | `test_one_bad_submission.py::test_a_record_that_cannot_be_written_is_told_of` |
| `CourseDirectory.get_existing_timestamp` | it fails at a damaged time, with the whole class | `test_late.py` |
| `Gradebook.__init__`, `Gradebook.close` | each opening makes an engine anew, which costs as much as marking | `test_class_run.py::test_several_runs_on_one_course_share_the_work_though_one_is_killed` |
| a session's `commit` | one a cell waits for the disk, and leaves half of a notebook | `test_one_bad_submission.py::test_scores_that_cannot_be_stored_are_no_other_students_loss` |
"""  # noqa: E501 - a table

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from sqlalchemy.orm import scoped_session, sessionmaker


@dataclass(frozen=True)
class Plain:
    """nbgrader's own methods of a converter."""

    convert: Callable[[], None]
    init_destination: Callable[[str, str], bool]
    set_permissions: Callable[[str, str], None]


def wrap(
    converter: Autograde,
    *,
    run: Callable[[], None],
    begin: Callable[[str, str], bool],
    store: Callable[[str, str], None],
    handed_in_at: Callable[[str], datetime | None],
) -> Plain:
    """Have the converter call `run` for the class, and `begin` and `store` for each submission; gives its own."""
    plain = Plain(converter.convert_notebooks, converter.init_destination, converter.set_permissions)
    converter.convert_notebooks, converter.init_destination, converter.set_permissions = run, begin, store
    converter.coursedir.get_existing_timestamp = handed_in_at
    return plain


def find_submissions_with(find: Callable[[Autograde], bool]) -> None:
    """Have every converter look for submissions by `find`, and itself where that gives False.

    The class's method, as a converter calls it before it makes its exporter.
    """
    find_notebooks = Autograde.init_notebooks

    def init_notebooks(converter: Autograde) -> None:
        if not find(converter):
            find_notebooks(converter)

    Autograde.init_notebooks = init_notebooks


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
