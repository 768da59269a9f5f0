"""One run of `nbgrader autograde` or `autograder grade`: what is graded and stored, and what the assistant reads.

Other processes grade the submissions. This one hands out their folders and stores the results.
"""

from __future__ import annotations

import contextlib
import json
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.api import MissingEntry
from nbgrader.converters import Autograde, NbGraderException
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from autograder.course_secret import SeedError, course_secret
from autograder.grading.claims import Claims
from autograder.grading.folders import CourseProblem, Folders
from autograder.grading.grade import GradingError, Limits
from autograder.grading.gradebook import ClassGradebook, UnknownStudent
from autograder.grading.graded_notebook import now
from autograder.grading.graders import Graders
from autograder.grading.handed_in import folder_problem, handed_in_at
from autograder.grading.notes import Note
from autograder.grading.outcome import NOT_GRADED_LINE, NOTE, STALE, Line, LogWatcher, Outcome, Watcher
from autograder.grading.records import (
    GRADED,
    NOT_GRADED,
    Record,
    read_record,
    record_path,
    unreadable,
    write_record,
    write_report,
)
from autograder.grading.scores import is_check, is_graded
from autograder.grading.seed import student_key
from autograder.grading.stale import why_stale
from autograder.grading.submission import Graded, Grading, HandedIn, recorded_name
from autograder.judge.framework import checks_of
from autograder.notebooks.errors import NotebookError
from autograder.plain_text import visible
from autograder.sandbox.isolation import Isolation, SandboxMissing, find_isolation
from autograder.stages import GRADED_STAGES, Stage

if TYPE_CHECKING:
    from autograder.grading.cluster import Cluster


class NotStored(Exception):
    """The scores of a submission cannot be stored; the message tells the assistant why."""


class Batch:
    """The run of one Autograde converter, in place of its loop."""

    def __init__(
        self,
        converter: Autograde,
        limits: Limits | None = None,
        require_sandbox: bool = False,
        allow_unsandboxed: bool = False,
        display_seconds: float | None = None,
    ):
        self.converter = converter
        self._limits = limits
        self._require_sandbox = require_sandbox
        self._allow_unsandboxed = allow_unsandboxed  # even if root grades
        self._isolation: Isolation  # this and the next five are set at the start of the run
        self._secret: bytes
        self._gradebook: ClassGradebook
        self._claims: Claims
        self._graders: Graders | Cluster
        self._folders: Folders
        self._display_seconds = display_seconds  # None: no display run
        self.assignment: str = converter.coursedir.assignment_id
        self.stage: Stage | None = next((s for s in GRADED_STAGES if s.assignment == self.assignment), None)
        self._begun: dict[str, dict[str, str]] = {}  # the students being graded, with the answers graded before
        self._graded: dict[str, tuple[Note, ...]] = {}
        self._refused: dict[str, str] = {}
        self._group: bool = converter.coursedir.groupshared  # whether several accounts grade
        self._started, self._started_at = time.monotonic(), now()
        self._watcher: Watcher = getattr(converter, "watcher", None) or LogWatcher(converter.log)

    # The run as a whole

    def run(self) -> None:
        """Grade what needs grading. Raises CourseProblem, or NbGraderException if a submission was not graded."""
        with contextlib.ExitStack() as self._at_the_end:
            try:
                grading = self._read_course()
                self._claims = self._begin_claims()
                self._graders = self._begin_graders(grading)
            except (CourseProblem, SeedError, SandboxMissing) as error:
                sentence = f"{'Nothing was graded. ' if isinstance(error, SandboxMissing) else ''}{error}"
                self.converter.log.error(sentence)
                raise CourseProblem(sentence) from None
            self._at_the_end.callback(self._graders.close)
            students = self._take_in_all_folders()
            notices = (self._isolation.missing, self._graders.notice)
            self._watcher.begins(len(students) + len(self._refused), tuple(filter(None, notices)))
            self._grade_all(students)
            outcome = self.converter.outcome = self._outcome(students)
        self._watcher.ends(outcome)
        if outcome.not_graded:
            raise NbGraderException("Some submissions could not be graded; see the table above.")

    def _begin_graders(self, grading: Grading) -> Graders | Cluster:
        address = getattr(self.converter, "dask", None)
        if address is None:
            return Graders(grading, getattr(self.converter, "jobs", None))
        try:
            from autograder.grading.cluster import Cluster
        except ImportError:
            raise CourseProblem("A Dask cluster needs the package distributed: pip install distributed") from None
        return Cluster(grading, address)

    def _begin_claims(self) -> Claims:
        try:
            claims = Claims(self._folders.autograded, self._group)
        except OSError as error:
            where = f"{error.filename} cannot be used ({error.strerror})"
            raise CourseProblem(f"{where}; let this account write to it.") from None
        self._at_the_end.callback(claims.close)
        return claims

    def _grade_all(self, students: list[str]) -> None:
        """Grade until no submission is left, including those that another process has claimed for now."""
        waiting, elsewhere = deque(students), []
        try:
            while waiting or self._begun or elsewhere:
                if waiting and len(self._begun) < self._graders.window:
                    student = waiting.popleft()
                    if not self._claims.take(student):
                        elsewhere.append(student)
                    elif not self._begin(student):
                        self._settle(student)
                elif self._begun:
                    student, scores = self._graders.next()
                    self._finish(student, scores)
                    del self._begun[student]
                    self._settle(student)
                else:
                    time.sleep(0.2)
                    waiting.extend(elsewhere)
                    elsewhere.clear()
        except OperationalError as error:  # the gradebook is gone, for every submission
            self._graders.stop()
            self.converter.log.error("The gradebook cannot be used: %s", error)
        except BaseException:
            self._graders.stop()
            raise

    def _settle(self, student: str) -> None:
        self._claims.release(student)
        self._watcher.settled(student)

    def _take_in_all_folders(self) -> list[str]:
        """The students who handed in a folder, even if its notebook is misnamed or missing; others are given up."""
        students = []
        for folder in sorted(map(Path, self.converter.assignments)):
            name = folder.parent.name
            student = name if name.isprintable() else recorded_name(name)
            if reason := folder_problem(folder):
                self._give_up(student, reason, add=False)
            elif reason := unreadable(self._folders.autograded, self.assignment, student):
                # The scores that another account stored stay
                reason += "; let this account read it, or set c.CourseDirectory.groupshared = True for later runs."
            if reason:
                self._refused[student] = reason
            else:
                students.append(student)
        return students

    def _outcome(self, students: list[str]) -> Outcome:
        """The state of each submission, and what was repaired, not graded, or is out of date."""
        lines: list[Line] = []
        graded = before = not_graded = 0
        for student in sorted({*students, *self._refused}):
            record = self._recorded(student)
            if student in self._graded:
                graded += 1
                lines += [Line(student, NOTE, note.sentence) for note in self._graded[student]]
            elif student not in self._refused and record is not None and record.status == GRADED:
                before += 1
                if why := why_stale(record, self._folders.handed_in(student), self.stage):
                    lines.append(Line(student, STALE, why))
            else:
                not_graded += 1
                reason = self._refused.get(student) or (record.reason if record else "")
                lines.append(Line(student, NOT_GRADED_LINE, reason or "the run ended before it was graded."))
        autograded = self._folders.autograded
        report = write_report(autograded, self.assignment, self._group) if autograded.is_dir() else None
        seconds = time.monotonic() - self._started
        return Outcome(self.assignment, graded, before, not_graded, tuple(lines), seconds, report)

    # One submission

    def _begin(self, student: str) -> bool:
        """Start to grade the submission if it needs grading; whether it does. An earlier grading is not touched yet."""
        record = self._recorded(student)
        graded = record is not None and record.status == GRADED
        if graded and record.graded_at > self._started_at:  # by another process, since this run began
            return False
        complete = graded and self._folders.graded(student).is_dir()  # the record is written last
        if complete and not self.converter.force and not self._folders.is_later(student):
            self.converter.log.info("Skipping existing assignment: %s", self._folders.graded(student))
            return False
        folder = self._folders.handed_in(student)
        self._run_hook(self.converter.run_pre_convert_hook, student)
        self._graders.begin(student, HandedIn(folder.absolute(), student_key(self._secret, student)))
        self._begun[student] = record.answers if record else {}
        return True

    def _finish(self, student: str, scores: Callable[[], Graded]) -> None:
        """Store the scores, or record why there are none."""
        try:
            graded = scores()
        except (NotebookError, GradingError, SeedError) as error:
            return self._refuse(student, str(error))
        except Exception as error:
            self.converter.log.error(visible(traceback.format_exc(), keep="\n"))
            return self._refuse(student, f"the grader failed with {type(error).__name__}: {error}")
        try:
            self._store(student, graded)
        except (NotStored, UnknownStudent) as error:
            self._refuse(student, str(error))
        except Exception as error:
            self.converter.log.error(visible(traceback.format_exc(), keep="\n"))
            self._refuse(student, "its scores could not be stored; see the messages above.")
            if isinstance(error, OperationalError):
                raise

    def _refuse(self, student: str, reason: str) -> None:
        self._refused[student] = reason
        self._give_up(student, reason, add=True)

    def _give_up(self, student: str, reason: str, add: bool) -> None:
        """Remove everything of an earlier grading: scores, the graded notebook, and its page of feedback.

        add: whether to add the submission to the gradebook, without scores.
        """
        try:
            at = handed_in_at(self._folders.handed_in(student)) if add else None
            self._gradebook.reset(student, at, add=add, create_student=self.converter.create_student)
        except UnknownStudent:
            pass
        except SQLAlchemyError as error:
            self.converter.log.error("The gradebook cannot be used: %s", error)
        except (OSError, ValueError) as error:
            self.converter.log.error("timestamp.txt of %s can no longer be read: %s", student, error)
        try:
            self._folders.remove(student)
        except OSError as error:
            self.converter.log.error("The files of an earlier grading of %s cannot be removed: %s", student, error)
        try:
            record = Record(self.assignment, student, NOT_GRADED, now(), str(self.stage.version), reason)
            write_record(self._folders.autograded, record, self._group)
        except OSError as error:
            self.converter.log.error("The files about %s cannot be written: %s", student, error)

    def _store(self, student: str, graded: Graded) -> None:
        """Store files, then scores, then the record: a submission without a record is graded again."""
        try:
            record_path(self._folders.autograded, self.assignment, student).unlink(missing_ok=True)
            self._folders.write(student, graded.notebook)
        except OSError as error:
            raise NotStored(f"{error.filename} cannot be used ({error.strerror}).") from None
        self._gradebook.store(
            student,
            graded.stored,
            handed_in_at(self._folders.handed_in(student)),
            unchanged={name for name, _ in self._begun[student].items() & graded.record.answers.items()},
            create_student=self.converter.create_student,
        )
        try:
            record = replace(graded.record, student=student, graded_at=now())
            write_record(self._folders.autograded, record, self._group)
        except OSError as error:
            raise NotStored(f"its record cannot be written ({error.strerror or error}).") from None
        self._graded[student] = record.notes
        self._run_hook(self.converter.run_post_convert_hook, student)

    def _run_hook(self, hook: Callable[[], None], student: str) -> None:
        """Run a hook of the course's with the student's notebook. nbgrader logs what it raises."""
        self.converter.notebooks = [str(self._folders.notebook(student))]
        hook()

    # Reading the course

    def _read_course(self) -> Grading:
        if self.stage is None:
            known = ", ".join(s.assignment for s in GRADED_STAGES)
            raise CourseProblem(f"There are no checks for {self.assignment}; the graded assignments are {known}.")
        if (notebook := self.converter.coursedir.notebook_id) not in ("*", self.stage.module):
            raise CourseProblem(f"{self.assignment} has no notebook {notebook}; it only has {self.stage.module}.")
        self._isolation = find_isolation()
        self._isolation.expect(sandbox=self._require_sandbox, unsandboxed=self._allow_unsandboxed)
        self._folders = Folders(self.converter, self.stage.module)
        path = self._folders.source_notebook
        if not path.is_file():
            raise CourseProblem(f"{path} is missing; run: autograder build")
        try:
            source = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CourseProblem(f"{path} cannot be read ({error}); run: autograder build") from None
        coursedir = self.converter.coursedir
        self._secret = course_secret(self._folders.root)
        try:
            self._gradebook = ClassGradebook(
                coursedir.db_url, coursedir.course_id, self.assignment, self.stage.module, parent=self.converter
            )
            self._at_the_end.callback(self._gradebook.close)
            points = self._gradebook.points
            if odd := _out_of_step(source, {check.id for check in checks_of(self.stage.name)}, set(points)):
                raise CourseProblem(
                    f"Checks, course/source and gradebook differ in {', '.join(odd)}; run: autograder build"
                )
            source = self._gradebook.overwrite(source)
        except MissingEntry:
            raise CourseProblem(f"The gradebook does not know {self.assignment}; run: autograder build") from None
        except SQLAlchemyError as error:
            why = getattr(error, "orig", error)
            raise CourseProblem(f"The gradebook cannot be used ({why}); nothing was graded.") from None
        given = self._folders.source / "given.py"
        return Grading(
            course=self._folders.root,
            stage=self.stage,
            source_notebook=source,
            points=points,
            given=given.absolute() if given.is_file() else None,
            limits=self._limits,
            isolation=self._isolation,
            display_seconds=self._display_seconds or None,
            allow_unsandboxed=self._allow_unsandboxed,
        )

    def _recorded(self, student: str) -> Record | None:
        return read_record(self._folders.autograded, self.assignment, student)


def _out_of_step(source: dict[str, Any], checks: set[str], in_gradebook: set[str]) -> list[str]:
    """The cells with points that are missing from the checks, the source notebook or the gradebook."""
    graded = {cell["metadata"]["nbgrader"]["grade_id"]: is_check(cell) for cell in source["cells"] if is_graded(cell)}
    return sorted({name for name, check in graded.items() if check} ^ checks | set(graded) ^ in_gradebook)
