"""One run of `nbgrader autograde`: what happens before and after each submission, and what the assistant is told."""

from __future__ import annotations

import glob
import json
import logging
import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.api import MissingEntry
from nbgrader.converters import Autograde, NbGraderException
from nbgrader.utils import rmtree
from sqlalchemy.exc import SQLAlchemyError

from autograder.course_secret import SeedError, course_secret
from autograder.grading.claims import Claims
from autograder.grading.grade import GradingError, Limits
from autograder.grading.gradebook import max_points, reset_scores
from autograder.grading.handed_in import folder_problem, handed_in_at, may_be_copied
from autograder.grading.lookahead import WINDOW, LookAhead
from autograder.grading.marker import HandedIn, Markers, Marking
from autograder.grading.notes import Note
from autograder.grading.outcome import NOT_GRADED_LINE, NOTE, STALE, Line, LogWatcher, Outcome, Watcher
from autograder.grading.patches import one_engine, wrap
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
from autograder.grading.scores import answers, is_check, is_graded
from autograder.grading.seed import student_key
from autograder.grading.stale import why_stale
from autograder.grading.submission import Marked, recorded_name
from autograder.judge.framework import Result, checks_of
from autograder.notebooks.errors import NotebookError
from autograder.notebooks.regions import inside
from autograder.plain_text import one_line, visible
from autograder.sandbox.isolation import Isolation, SandboxMissing, find_isolation
from autograder.stages import GRADED_STAGES, Stage
from autograder.whole_file import share

if TYPE_CHECKING:
    from autograder.grading.cluster import Cluster

SUBMISSION_SECRET = "submission_secret.txt"  # of nbgrader's exchange, which hands feedback back by it


class NotGraded(Exception):
    """A submission, or all of an assignment, cannot be graded; the message is the reason for the assistant."""


class CourseProblem(NbGraderException):
    """Nothing of an assignment can be graded; the message says why."""


class Batch:
    """Wraps the run of one Autograde converter, through the traits and methods that nbgrader calls."""

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
        self._allow_unsandboxed = allow_unsandboxed  # also where root marks
        self._isolation: Isolation  # from the start of the run
        self._display_seconds = display_seconds  # None: no display run
        self.assignment: str = converter.coursedir.assignment_id
        self.stage: Stage | None = next((s for s in GRADED_STAGES if s.assignment == self.assignment), None)
        self.rubrics: dict[str, str] = {}  # of each question that a person marks
        self.points: dict[str, float] = {}  # the most points of each graded cell, as the gradebook has them
        self._secret = b""  # this and the next from the start of the run
        self._markers: Markers | Cluster | None = None
        self._ahead: LookAhead | None = None
        self._claims: Claims | None = None
        self._current: str | None = None  # the student whom nbgrader's loop is at
        self._elsewhere: list[str] = []  # students whom other processes grade at this moment
        self._marked: dict[str, Marked] = {}  # the student who is being stored
        self._finished: dict[str, Record] = {}  # judged, and not yet on disk
        self._answers: dict[str, str] = {}  # what a person has marked of the current student's earlier submission
        self._graded: dict[str, tuple[Note, ...]] = {}
        self._refused: dict[str, str] = {}
        self._why_failed = "nbgrader could not go on with it; see the messages above."
        self._ignore: list[str] = list(converter.coursedir.ignore)
        self._group: bool = converter.coursedir.groupshared  # several accounts grade
        self._started, self._started_at = time.monotonic(), now()
        self._watcher: Watcher = getattr(converter, "watcher", None) or LogWatcher(converter.log)
        self._plain = wrap(
            converter,
            run=self._run,
            begin=self._begin_submission,
            store=self._store,
            handed_in_at=lambda folder: handed_in_at(Path(folder)),
        )

    # The run as a whole

    def _run(self) -> None:
        log, reasons = self.converter.log, _ReasonsNotTracebacks()
        with one_engine():
            try:
                self._markers = self._begin_markers(self._read_course())
                self._claims = self._begin_claims()
            except (NotGraded, SeedError) as error:
                log.error(str(error))
                raise CourseProblem(str(error)) from None
            log.addFilter(reasons)
            try:
                self._take_in_all_folders()
                students = [self._student_of(folder) for folder in sorted(self.converter.assignments)]
                notices = (self._isolation.missing, getattr(self._markers, "notice", ""))
                self._watcher.begins(len(students) + len(self._refused), tuple(filter(None, notices)))
                self._grade_all(students)
                outcome = self._outcome(students)
            finally:
                log.removeFilter(reasons)
                self._claims.close()
        self._watcher.ends(outcome)
        if outcome.not_graded:
            raise NbGraderException("Some submissions could not be graded; see the table above.")

    def _begin_markers(self, marking: Marking) -> Markers | Cluster:
        address = getattr(self.converter, "dask", None)
        if address is None:
            return Markers(marking)
        try:
            from autograder.grading.cluster import Cluster, ClusterProblem
        except ImportError:
            raise NotGraded("A Dask cluster needs the package distributed: pip install distributed") from None
        try:
            return Cluster(marking, address)
        except ClusterProblem as problem:
            raise NotGraded(str(problem)) from None

    def _begin_claims(self) -> Claims:
        try:
            return Claims(self._autograded, self._group)
        except OSError as error:
            raise NotGraded(
                f"{error.filename} cannot be used ({error.strerror}); let this account write to it."
            ) from None

    def _grade_all(self, students: list[str]) -> None:
        jobs = getattr(self.converter, "jobs", None) or self._markers.jobs
        self._ahead = LookAhead(self._mark, students, jobs, self._will_be_asked_for, max(WINDOW, 2 * jobs))
        folders = dict(self.converter.assignments)
        try:
            self._loop()
            while self._elsewhere:  # until the others are done with them, and then only what they left undone
                waited_for = self._wait_for_others()
                self.converter.assignments = {f: n for f, n in folders.items() if self._student_of(f) in waited_for}
                self._loop()
        except BaseException:
            self._markers.stop()
            raise
        finally:
            self.converter.assignments = folders
            self._ahead.close()
            self._markers.close()

    def _mark(self, student: str) -> Marked:
        folder = self._submitted.absolute() / student / self.assignment
        return self._markers.mark(HandedIn(folder, student_key(self._secret, student)))

    def _loop(self) -> None:
        try:
            self._plain.convert()
        except NbGraderException:
            pass  # some failed, or the gradebook did; which, each submission's own end tells
        except KeyboardInterrupt:
            self._why_failed = "the run was interrupted; run it again."
            raise
        finally:
            self._end_submission()

    def _wait_for_others(self) -> set[str]:
        students, self._elsewhere = set(self._elsewhere), []
        while not any(map(self._claims.take, sorted(students))):
            time.sleep(0.2)
        return students

    def _will_be_asked_for(self, student: str) -> bool:
        """Whether nbgrader's loop will certainly ask for the student's marks, who is then ours alone."""
        if not self._claims.take(student):
            return False
        if not self._is_complete(student) or (self.converter.force and not self._was_just_graded(student)):
            return True
        self._claims.release(student)  # nbgrader decides, by the time of the submission
        return False

    def _was_just_graded(self, student: str) -> bool:
        """Whether another process graded the submission since this run began."""
        record = read_record(self._autograded, self.assignment, student)
        return record is not None and record.status == GRADED and record.graded_at > self._started_at

    def _take_in_all_folders(self) -> None:
        """Also the students whose notebook has another name or is missing: nbgrader would pass over them in silence."""
        converter = self.converter
        converter.assignments = {f: n for f, n in converter.assignments.items() if not _is_excluded(converter, f)}
        if self.stage is None or converter.coursedir.notebook_id != "*":
            return
        for folder in sorted(map(Path, folders_of(converter))):
            converter.assignments[str(folder)] = [str(folder / f"{self.stage.module}.ipynb")]
            name = folder.parent.name
            student = self._student_of(str(folder)) if name.isprintable() else recorded_name(name)
            if reason := folder_problem(folder):
                self._give_up(student, reason)
            elif reason := unreadable(self._autograded, self.assignment, student):  # another account's marks stay
                reason += "; let this account read it, and c.CourseDirectory.groupshared = True does from then on."
            if reason:
                del converter.assignments[str(folder)]
                self._refused[student] = reason

    def _student_of(self, folder: str) -> str:
        resources = self.converter.init_single_notebook_resources(str(Path(folder) / "any.ipynb"))
        return resources["nbgrader"]["student"]

    def _outcome(self, students: list[str]) -> Outcome:
        """How each submission stands; what was repaired, not graded, or is out of date."""
        lines: list[Line] = []
        graded = before = not_graded = 0
        for student in sorted({*students, *self._refused}):
            record = read_record(self._autograded, self.assignment, student)
            if student in self._graded:
                graded += 1
                lines += [Line(student, NOTE, note.sentence) for note in self._graded[student]]
            elif student not in self._refused and record is not None and record.status == GRADED:
                before += 1
                if why := self._stale(student, record):
                    lines.append(Line(student, STALE, why))
            else:
                not_graded += 1
                reason = self._refused.get(student) or (record.reason if record else "")
                lines.append(Line(student, NOT_GRADED_LINE, reason or "the run ended before it."))
        report = write_report(self._autograded, self.assignment, self._group) if self._autograded.is_dir() else None
        seconds = time.monotonic() - self._started
        return Outcome(self.assignment, graded, before, not_graded, tuple(lines), seconds, report)

    def _is_there(self, student: str) -> bool:
        return (self._autograded / student / self.assignment).is_dir()

    def _is_complete(self, student: str) -> bool:
        """Whether the submission was graded to its end: the record is written last."""
        record = read_record(self._autograded, self.assignment, student)
        return self._is_there(student) and record is not None and record.status == GRADED

    def _stale(self, student: str, record: Record) -> str | None:
        """Why the marks of a submission that nbgrader passed over do not belong to what is there now."""
        if self.stage is None:
            return None
        return why_stale(record, self._submitted / student / self.assignment, self.stage)

    # One submission

    def _begin_submission(self, assignment_id: str, student_id: str) -> bool:
        """nbgrader's init_destination, the first thing of each submission: whether it is to be graded."""
        self._end_submission()
        self._ahead.reach(student_id)
        if not self._claims.take(student_id):
            self._elsewhere.append(student_id)
            return False
        self._current = student_id
        if self._is_there(student_id) and not self._is_complete(student_id):
            rmtree(str(self._autograded / student_id / self.assignment))  # left by a run that was killed
        wanted = not self._was_just_graded(student_id) and self._plain.init_destination(assignment_id, student_id)
        if wanted:
            self._prepare(student_id)
        else:
            self._current = None
            self._claims.release(student_id)
            self._watcher.settled(student_id)
        return wanted

    def _end_submission(self) -> None:
        """Leave no score of a submission that failed; others may have it now."""
        student, self._current = self._current, None
        if student is None:
            return
        self._finished.pop(student, None)
        if student not in self._graded:
            self._give_up(student, self._refused.setdefault(student, self._why_failed))
        self._ahead.drop(student)
        self._claims.release(student)
        self._watcher.settled(student)

    def _give_up(self, student: str, reason: str) -> None:
        try:
            self._forget(student)
        except SQLAlchemyError as error:
            self.converter.log.error("The gradebook cannot be used: %s", error)
        except OSError as error:
            self.converter.log.error("The files of an earlier grading of %s cannot be removed: %s", student, error)
        try:
            write_record(self._autograded, self._record(student, status=NOT_GRADED, reason=reason), self._group)
        except OSError as error:
            self.converter.log.error("The files about %s cannot be written: %s", student, error)

    def _prepare(self, student: str) -> None:
        """Before anything can fail, old scores go; and only files that the course knows will be copied."""
        folder = self._submitted / student / self.assignment
        before = read_record(self._autograded, self.assignment, student)
        done = self._reset(student)
        self._answers = {name: text for name, text in before.answers.items() if name in done} if before else {}
        try:
            record_path(self._autograded, self.assignment, student).unlink(missing_ok=True)
            known = {p.name for p in self._source.iterdir()} | {"timestamp.txt", SUBMISSION_SECRET}
            others = [glob.escape(p.name) for p in folder.iterdir() if not may_be_copied(p, known)]
        except OSError as error:
            raise self._refusal(student, f"{error.filename} cannot be used ({error.strerror}).") from None
        self.converter.coursedir.ignore = [*self._ignore, *others]

    def _refusal(self, student: str, reason: str) -> NotGraded:
        self._refused[student] = reason
        return NotGraded(reason)

    def marked(self, student: str) -> Marked:
        """The graded submission of a student, computed when it is first asked for."""
        if student not in self._marked:
            self._marked.clear()  # one at a time: memory does not grow with the class
            try:
                self._marked[student] = self._ahead.take(student)
            except (NotebookError, GradingError, SeedError, NotGraded) as error:
                raise self._refusal(student, str(error)) from None
            except Exception as error:
                self._refused[student] = f"the grader failed with {type(error).__name__}: {error}"
                raise
        return self._marked[student]

    def done(self, student: str, results: tuple[Result, ...]) -> None:
        """Keep what was found out, once the scores are on their way to the gradebook."""
        marked = self.marked(student)
        total, most, seconds = sum(r.score for r in results), sum(r.points for r in results), marked.result.seconds
        self.converter.log.info("%s: %g / %g points in %.1f s", student, total, most, seconds)
        self._finished[student] = self._record(
            student,
            status=GRADED,
            file=marked.file,
            digest=marked.digest,
            score=total,
            max_score=most,
            seconds=round(seconds, 2),
            checks=results,
            answers=answers(marked.notebook),
            notes=marked.result.notes,
        )

    def unchanged_answers(self, student: str) -> list[str]:
        """The answers that a person has marked, and that are still what they were then."""
        now_there = self._finished[student].answers
        return [name for name, text in self._answers.items() if now_there.get(name) == text]

    def _store(self, assignment_id: str, student: str) -> None:
        """nbgrader's set_permissions: scores and notebook are stored, so the record may say so."""
        self._plain.set_permissions(assignment_id, student)
        if self._group:
            share(self._autograded / student)  # nbgrader sees to what is in it
        try:
            write_record(self._autograded, self._finished.pop(student), self._group)
        except OSError as error:
            raise self._refusal(student, f"its record cannot be written ({error.strerror or error}).") from None
        self._graded[student] = self._marked[student].result.notes

    def _read_course(self) -> Marking:
        if self.stage is None:
            known = ", ".join(s.assignment for s in GRADED_STAGES)
            raise NotGraded(f"There are no checks for {self.assignment}; the graded assignments are {known}.")
        try:
            self._isolation = find_isolation()
            self._isolation.expect(sandbox=self._require_sandbox, unsandboxed=self._allow_unsandboxed)
        except SandboxMissing as error:
            raise NotGraded(f"Nothing was graded. {error}") from None
        path = self._source / f"{self.stage.module}.ipynb"
        if not path.is_file():
            raise NotGraded(f"{path} is missing; run: autograder build")
        try:
            source = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise NotGraded(f"{path} cannot be read ({error}); run: autograder build") from None
        coursedir = self.converter.coursedir
        try:
            self.points = max_points(coursedir.db_url, coursedir.course_id, self.assignment, self.stage.module)
        except MissingEntry:
            raise NotGraded(f"The gradebook does not know {self.assignment}; run: autograder build") from None
        except SQLAlchemyError as error:
            why = getattr(error, "orig", error)
            raise NotGraded(f"The gradebook cannot be used ({why}); nothing was graded.") from None
        if odd := _out_of_step(source, {check.id for check in checks_of(self.stage.name)}, set(self.points)):
            raise NotGraded(f"Checks, course/source and gradebook differ in {', '.join(odd)}; run: autograder build")
        self.rubrics = {
            cell["metadata"]["nbgrader"]["grade_id"]: inside("".join(cell["source"]))
            for cell in source["cells"]
            if is_graded(cell) and not is_check(cell)
        }
        self._secret = course_secret(Path(coursedir.root))
        given = self._source / "given.py"
        course = Path(self.converter.coursedir.root)
        return Marking(
            course=course,
            stage=self.stage,
            source_notebook=source,
            given=given.absolute() if given.is_file() else None,
            limits=self._limits,
            isolation=self._isolation,
            display_seconds=self._display_seconds or None,
            allow_unsandboxed=self._allow_unsandboxed,
        )

    @property
    def version(self) -> str:
        return str(self.stage.version) if self.stage else ""

    # Places

    @property
    def _source(self) -> Path:
        return Path(
            self.converter.coursedir.format_path(self.converter.coursedir.source_directory, ".", self.assignment)
        )

    @property
    def _submitted(self) -> Path:
        return Path(self.converter.coursedir.root) / self.converter.coursedir.submitted_directory

    @property
    def _autograded(self) -> Path:
        return Path(self.converter.coursedir.root) / self.converter.coursedir.autograded_directory

    def is_submitted(self, filename: str) -> bool:
        """Whether the file is one that was handed in, rather than one that this run made. Links are not followed."""
        return Path(os.path.abspath(self._submitted)) in Path(os.path.abspath(filename)).parents

    def _forget(self, student: str) -> None:
        """Leave nothing of an earlier grading: neither scores, nor the marked notebook, nor its feedback page."""
        self._reset(student)
        feedback = Path(self.converter.coursedir.root) / self.converter.coursedir.feedback_directory
        for folder in (self._autograded, feedback):
            if (folder / student / self.assignment).is_dir():
                rmtree(str(folder / student / self.assignment))

    # Records

    def _reset(self, student: str) -> set[str]:
        coursedir = self.converter.coursedir
        return reset_scores(coursedir.db_url, coursedir.course_id, self.assignment, student)

    def _record(self, student: str, **values: Any) -> Record:
        return Record(
            assignment=self.assignment,
            student=student,
            graded_at=now(),
            checks_version=self.version,
            isolation=self._isolation.missing or self._isolation.mode,
            **values,
        )


def folders_of(converter: Autograde) -> list[str]:
    """The folders that were handed in for the converter's assignment, by the students it is restricted to."""
    if glob.has_magic(root := str(converter.coursedir.root)):
        raise CourseProblem(f"nbgrader finds nothing in {root}: *, ? and [ in a path are patterns to it; rename it.")
    students = getattr(converter, "student_patterns", None) or [converter.coursedir.student_id]
    patterns = [converter._format_source(converter.coursedir.assignment_id, student) for student in students]
    found = {folder for pattern in patterns for folder in glob.glob(pattern) if os.path.isdir(folder)}
    # What a student's folder holds that this account may not enter, nobody knows, and the assistant has to be told
    every = {folder for pattern in patterns for folder in glob.glob(os.path.dirname(pattern)) if os.path.isdir(folder)}
    shut = {os.path.join(f, converter.coursedir.assignment_id) for f in every if not os.access(f, os.X_OK)}
    return sorted(folder for folder in found | shut if not _is_excluded(converter, folder))


def _is_excluded(converter: Autograde, folder: str) -> bool:
    return Path(folder).parent.name in converter.coursedir.student_id_exclude.split(",")


def _out_of_step(source: dict[str, Any], checks: set[str], in_gradebook: set[str]) -> list[str]:
    """The cells with points that are not everywhere where they have to be."""
    graded = {cell["metadata"]["nbgrader"]["grade_id"]: is_check(cell) for cell in source["cells"] if is_graded(cell)}
    return sorted({name for name, check in graded.items() if check} ^ checks | set(graded) ^ in_gradebook)


class _ReasonsNotTracebacks(logging.Filter):
    """nbgrader logs the whole traceback of a failed submission; of a NotGraded the reason is enough.

    A file's name in a message can end no line and tell the terminal nothing.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage().strip()
        if text.startswith("Traceback"):
            if f"{NotGraded.__name__}: " in text.splitlines()[-1]:
                text = text.splitlines()[-1].split(": ", 1)[1]
        else:
            text = one_line(text, 2000)
        record.msg, record.args = visible(text, keep="\n"), ()
        return True


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
