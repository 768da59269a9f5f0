"""One run of `nbgrader autograde`: what happens before and after each submission, and what the assistant is told."""

from __future__ import annotations

import glob
import json
import logging
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nbgrader.api import MissingEntry
from nbgrader.converters import Autograde, NbGraderException
from nbgrader.utils import rmtree

from autograder.grading.grade import GradingError, without_functions
from autograder.grading.gradebook import max_points, reset_scores
from autograder.grading.lookahead import LookAhead, default_jobs
from autograder.grading.notes import Note
from autograder.grading.records import (
    GRADED,
    NOT_GRADED,
    Record,
    read_record,
    record_path,
    write_record,
    write_report,
)
from autograder.grading.seed import SeedError, course_secret
from autograder.grading.submission import Job, Marked, file_digest, mark, printable, submitted_notebook
from autograder.judge.framework import checks_version
from autograder.notebooks.errors import NotebookError
from autograder.stages import GRADED_STAGES, Stage

_LARGEST_COPIED = 2**20  # bytes of a file that is copied along with a submission


class NotGraded(Exception):
    """A submission, or all of an assignment, cannot be graded; the message is the reason for the assistant."""


class Batch:
    """Wraps the run of one Autograde converter, through the traits and methods that nbgrader calls."""

    def __init__(self, converter: Autograde):
        self.converter = converter
        self.assignment: str = converter.coursedir.assignment_id
        self.stage: Stage | None = next((s for s in GRADED_STAGES if s.assignment == self.assignment), None)
        self._marked: dict[str, Marked] = {}  # the student who is being stored
        self._ahead: LookAhead | None = None
        self._finished: dict[str, Record] = {}  # judged, and not yet on disk
        self._graded: dict[str, tuple[Note, ...]] = {}
        self._refused: dict[str, str] = {}
        self._ignore: list[str] = list(converter.coursedir.ignore)
        self._course_hook = converter.pre_convert_hook
        self._course_post_hook = converter.post_convert_hook
        self._convert = converter.convert_notebooks
        self._started = time.monotonic()
        self._common: dict[str, Any] = {}  # what all jobs of the run share
        self.points: dict[str, float] = {}  # the most points of each graded cell, as the gradebook has them
        converter.pre_convert_hook = self._before_submission
        converter.post_convert_hook = self._after_submission
        converter.convert_notebooks = self._run  # nothing else of nbgrader's is called once after a whole batch

    # The run as a whole

    def _run(self) -> None:
        log, reasons = self.converter.log, _ReasonsNotTracebacks()
        try:
            self._common = self._read_course()
        except (NotGraded, SeedError) as error:
            log.error(str(error))
            raise NbGraderException(str(error)) from None
        log.addFilter(reasons)
        try:
            self._take_in_all_folders()
            self._drop_unfinished()
            self._ahead = LookAhead(self._mark, self._to_be_graded(), default_jobs())
            failed = False
            try:
                self._convert()
            except NbGraderException:
                failed = True
            finally:
                self._ahead.close()
            self._finish()
            if failed or self._refused:
                raise NbGraderException("Some submissions could not be graded; see the table above.")
        finally:
            log.removeFilter(reasons)

    def _take_in_all_folders(self) -> None:
        """Also the students whose notebook has another name or is missing: nbgrader would pass over them in silence."""
        converter = self.converter
        if self.stage is None or converter.coursedir.notebook_id != "*":
            return
        pattern = converter._format_source(self.assignment, converter.coursedir.student_id)
        for folder in sorted(glob.glob(pattern)):
            if not Path(folder).is_dir():
                continue
            converter.assignments[folder] = [str(Path(folder) / f"{self.stage.module}.ipynb")]
            reason = _folder_problem(Path(folder))
            if reason:
                del converter.assignments[folder]
                self._refuse(self._student_of(folder), reason)

    def _drop_unfinished(self) -> None:
        """Remove marked folders without a record, left by a run that was killed: nbgrader would take them for done."""
        for student in map(self._student_of, self.converter.assignments):
            if self._is_there(student) and read_record(self._autograded, self.assignment, student) is None:
                rmtree(str(self._autograded / student / self.assignment))

    def _to_be_graded(self) -> list[str]:
        """The students whom nbgrader's loop will certainly ask for, in its order. The others are marked when asked."""
        students = [self._student_of(folder) for folder in sorted(self.converter.assignments)]
        excluded = self.converter.coursedir.student_id_exclude.split(",")
        return [s for s in students if s not in excluded and (self.converter.force or not self._is_there(s))]

    def _student_of(self, folder: str) -> str:
        resources = self.converter.init_single_notebook_resources(str(Path(folder) / "any.ipynb"))
        return resources["nbgrader"]["student"]

    def _refuse(self, student: str, reason: str) -> None:
        self._forget(student)
        self._refused[student] = reason
        self._record_failure(student, reason)

    def _finish(self) -> None:
        """Leave no score of a submission that failed; tell what was repaired, not graded, or is out of date."""
        lines: list[tuple[str, str, str]] = []
        for student in sorted({*map(self._student_of, self.converter.assignments), *self._refused}):
            record = read_record(self._autograded, self.assignment, student)
            if student in self._graded and self._is_there(student):
                lines += [(student, "note", note.sentence) for note in self._graded[student]]
            elif student in self._refused or not self._is_there(student):
                self._forget(student)
                reason = self._refused.get(student) or (record.reason if record else "")
                if not reason:
                    reason = "nbgrader could not go on with it; see the messages above."
                    self._record_failure(student, reason)
                lines.append((student, "NOT GRADED", reason))
            elif record is not None and (why := self._stale(student, record)):
                lines.append((student, "stale", why))
        path = write_report(self._autograded, self.assignment) if self._autograded.is_dir() else None
        self._tell(lines, path)

    def _tell(self, lines: list[tuple[str, str, str]], path: Path | None) -> None:
        text = (
            f"{len(self._graded)} submissions of {self.assignment} graded in {time.monotonic() - self._started:.0f} s."
        )
        if path:
            text += f" Details: {path}"
        if lines:
            widths = [max(len(printable(line[i])) for line in lines) for i in (0, 1)]
            rows = [f"  {printable(s):{widths[0]}}  {what:{widths[1]}}  {sentence}" for s, what, sentence in lines]
            text = "\n".join([text, *rows])
        self.converter.log.log(logging.WARNING if lines else logging.INFO, text)

    def _is_there(self, student: str) -> bool:
        return (self._autograded / student / self.assignment).is_dir()

    def _stale(self, student: str, record: Record) -> str | None:
        """Why the marks of a submission that nbgrader passed over do not belong to what is there now."""
        again = "; nbgrader autograde --force grades it again"
        if self.stage is None:
            return None
        if record.checks_version != checks_version(self.stage.name):
            return f"graded with other checks ({record.checks_version}){again}"
        try:
            path, _ = submitted_notebook(self._submitted / student / self.assignment, self.stage)
            if record.digest != file_digest(path):
                return f"the notebook was handed in again, without a newer timestamp.txt{again}"
        except (NotebookError, OSError):
            return f"the notebook that was graded is gone{again}"
        return None

    # One submission

    def _before_submission(self, assignment: str, student: str, notebooks: list[str]) -> None:
        """nbgrader's pre_convert_hook: old scores go before anything can fail, and only known files are copied."""
        if self._course_hook:
            self._course_hook(assignment=assignment, student=student, notebooks=notebooks)
        folder = Path(notebooks[0]).parent
        self._reset(self._student_of(str(folder)))
        record_path(self._autograded, self.assignment, self._student_of(str(folder))).unlink(missing_ok=True)
        known = {p.name for p in self._source.iterdir()} | {"timestamp.txt"}
        others = [glob.escape(p.name) for p in folder.iterdir() if not _may_be_copied(p, known)]
        self.converter.coursedir.ignore = [*self._ignore, *others]

    def marked(self, student: str) -> Marked:
        """The graded submission of a student, computed when it is first asked for."""
        if student not in self._marked:
            self._marked.clear()  # one at a time: memory does not grow with the class
            try:
                self._marked[student] = self._ahead.take(student) if self._ahead else self._mark(student)
            except (NotebookError, GradingError, SeedError, NotGraded) as error:
                self._record_failure(student, str(error))
                raise NotGraded(str(error)) from None
            except Exception as error:
                self._record_failure(student, f"the grader failed with {type(error).__name__}: {error}")
                raise
        return self._marked[student]

    def _mark(self, student: str) -> Marked:
        return mark(self._job(student))

    def done(self, student: str, scores: dict[str, float]) -> None:
        """Keep what was found out, once the scores are on their way to the gradebook."""
        points = self.points
        marked = self.marked(student)
        self._graded[student] = marked.result.notes
        total, most = sum(scores.values()), sum(points[i] for i in scores)
        self.converter.log.info("%s: %g / %g points in %.1f s", student, total, most, marked.result.seconds)
        checks = without_functions(marked.result)
        for check in checks:
            check["score"], check["points"] = scores[check["id"]], points[check["id"]]
        self._finished[student] = self._record(
            student,
            status=GRADED,
            file=marked.file,
            digest=marked.digest,
            score=total,
            max_score=most,
            seconds=round(marked.result.seconds, 2),
            checks=checks,
            notes=[_plain_note(n) for n in marked.result.notes],
        )

    def _after_submission(self, assignment: str, student: str, notebooks: list[str]) -> None:
        """nbgrader's post_convert_hook: scores and notebook are stored, so the record may say so."""
        for finished in list(self._finished):
            write_record(self._autograded, self._finished.pop(finished))
        if self._course_post_hook:
            self._course_post_hook(assignment=assignment, student=student, notebooks=notebooks)

    def _job(self, student: str) -> Job:
        return Job(student=student, folder=self._submitted / student / self.assignment, **self._common)

    def _read_course(self) -> dict[str, Any]:
        if self.stage is None:
            known = ", ".join(s.assignment for s in GRADED_STAGES)
            raise NotGraded(f"There are no checks for {self.assignment}; the graded assignments are {known}.")
        path = self._source / f"{self.stage.module}.ipynb"
        if not path.is_file():
            raise NotGraded(f"{path} is missing; run: autograder build")
        coursedir = self.converter.coursedir
        try:
            self.points = max_points(coursedir.db_url, coursedir.course_id, self.assignment, self.stage.module)
        except MissingEntry:
            raise NotGraded(f"The gradebook does not know {self.assignment}; run: autograder build") from None
        given = self._source / "given.py"
        return {
            "stage": self.stage,
            "source_notebook": json.loads(path.read_text(encoding="utf-8")),
            "given": given if given.is_file() else None,
            "secret": course_secret(Path(self.converter.coursedir.root)),
        }

    @property
    def version(self) -> str:
        return checks_version(self.stage.name) if self.stage else ""

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
        """Whether the file is one that was handed in, rather than one that this run made."""
        return self._submitted.resolve() in Path(filename).resolve().parents

    def _forget(self, student: str) -> None:
        """Leave nothing of an earlier grading: neither scores, nor the marked notebook, nor its feedback page."""
        self._reset(student)
        feedback = Path(self.converter.coursedir.root) / self.converter.coursedir.feedback_directory
        for folder in (self._autograded, feedback):
            if (folder / student / self.assignment).is_dir():
                rmtree(str(folder / student / self.assignment))

    # Records

    def _reset(self, student: str) -> None:
        reset_scores(self.converter.coursedir.db_url, self.converter.coursedir.course_id, self.assignment, student)

    def _record_failure(self, student: str, reason: str) -> None:
        write_record(self._autograded, self._record(student, status=NOT_GRADED, reason=reason))

    def _record(self, student: str, **values: Any) -> Record:
        return Record(
            assignment=self.assignment, student=student, graded_at=now(), checks_version=self.version, **values
        )


class _ReasonsNotTracebacks(logging.Filter):
    """nbgrader logs the whole traceback of a failed submission; of a NotGraded the reason is enough."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if text.startswith("Traceback") and f"{NotGraded.__name__}: " in text.strip().splitlines()[-1]:
            record.msg, record.args = text.strip().splitlines()[-1].split(": ", 1)[1], ()
        return True


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _plain_note(note: Note) -> dict[str, Any]:
    return {"kind": note.kind, "cell": note.cell, "sentence": note.sentence}


def _may_be_copied(path: Path, known: set[str]) -> bool:
    if path.name not in known or path.is_symlink() or not path.is_file():
        return False
    return path.stat().st_size <= _LARGEST_COPIED


def _folder_problem(folder: Path) -> str | None:
    """Why a submission's folder cannot even be handed to nbgrader."""
    from nbgrader.utils import parse_utc

    if glob.has_magic(str(folder)):
        return "the folder's name holds one of * ? [ ]; rename it"
    stamp = folder / "timestamp.txt"
    if stamp.is_symlink() or (stamp.exists() and not stamp.is_file()):
        return "timestamp.txt is not a file; remove it"
    if stamp.exists():
        try:
            text = stamp.read_text(encoding="utf-8").strip() if stamp.stat().st_size < 1000 else "?"
            if text:
                parse_utc(text)
        except (ValueError, OverflowError, OSError):
            return "timestamp.txt does not hold a time such as 2026-01-31 12:00:00 UTC; correct or remove it"
    return None
