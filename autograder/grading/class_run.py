"""Grades a class in this process with nbgrader's converter, without the start-up work of nbgrader's command."""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from autograder.grading.environment import import_nbgrader

import_nbgrader()

from nbgrader.apps.autogradeapp import AutogradeApp  # noqa: E402 - import_nbgrader makes this import quick
from nbgrader.converters import Autograde, NbGraderException  # noqa: E402

from autograder.grading.exporter import SubmissionExporter  # noqa: E402
from autograder.grading.folders import CourseProblem, folders_of  # noqa: E402
from autograder.grading.outcome import Outcome, Watcher  # noqa: E402
from autograder.places import CONFIG  # noqa: E402
from autograder.stages import Stage  # noqa: E402

__all__ = ["Course", "CourseProblem"]


class Course:
    """A course folder with its configuration, read as the nbgrader command reads it. Changes the working directory."""

    def __init__(self, folder: Path, log: logging.Handler | None = None, require_sandbox: bool = False):
        """log receives nbgrader's errors; by default they are dropped.

        require_sandbox: overrides the option of that name in the configuration.
        """
        os.chdir(folder)
        self._app = AutogradeApp()
        self._app.raise_config_file_errors = True
        try:
            required = ["--SubmissionExporter.require_sandbox=True"] if require_sandbox else []
            self._app.initialize([f"--course-dir={folder}", "--log-level=ERROR", *required])
        except (Exception, SystemExit) as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise CourseProblem(f"{folder / CONFIG} cannot be used ({what}).") from None
        self._app.log.handlers[:] = [log or logging.NullHandler()]

    @property
    def autograded(self) -> Path:
        return Path(self._app.coursedir.root) / self._app.coursedir.autograded_directory

    @property
    def submitted(self) -> Path:
        return Path(self._app.coursedir.root) / self._app.coursedir.submitted_directory

    @property
    def excluded(self) -> list[str]:
        """The students whom the configuration leaves out."""
        return self._app.coursedir.student_id_exclude.split(",")

    def handed_in(self, stage: Stage, students: Sequence[str] = ()) -> list[str]:
        """The students, all or of those named, who handed something in for the stage."""
        return [Path(folder).parent.name for folder in folders_of(self._converter(stage, students))]

    def grade(
        self,
        stage: Stage,
        watcher: Watcher,
        *,
        students: Sequence[str] = (),
        force: bool = False,
        jobs: int | None = None,
        dask: str | None = None,
    ) -> Outcome:
        """Grade the submissions of a stage that are not yet graded, or all with `force`. Raises CourseProblem.

        dask: the address of a scheduler whose workers grade.
        """
        converter = self._converter(stage, students)
        converter.watcher, converter.jobs, converter.dask = watcher, jobs, dask
        converter.force = converter.force or force
        if not issubclass(converter.exporter_class, SubmissionExporter):
            raise CourseProblem(f"{CONFIG} does not set c.Autograde.exporter_class; compare it with the course's own.")
        try:
            converter.start()
        except CourseProblem:
            raise
        except NbGraderException as error:
            if converter.outcome is None:
                raise CourseProblem(str(error)) from None
        return converter.outcome

    def _converter(self, stage: Stage, students: Sequence[str]) -> _Converter:
        coursedir = self._app.coursedir
        coursedir.assignment_id = stage.assignment
        converter = _Converter(coursedir=coursedir, parent=self._app)
        converter.student_patterns = [glob.escape(student) for student in students]
        return converter


class _Converter(Autograde):
    """nbgrader's converter, for a whole class or for several named students."""

    watcher: Watcher
    jobs: int | None = None
    dask: str | None = None
    student_patterns: Sequence[str] = ()
    outcome: Outcome | None = None  # set at the end of the run
