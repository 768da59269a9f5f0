"""The folders of one assignment in nbgrader's layout: handed in, graded, and the course's own."""

from __future__ import annotations

import glob
import os
import shutil
from functools import cached_property
from pathlib import Path

from nbgrader.converters import Autograde, NbGraderException
from nbgrader.utils import find_all_files, rmtree

from autograder.grading.handed_in import handed_in_at, may_be_copied
from autograder.whole_file import share

OWN_FILES = {"timestamp.txt", "submission_secret.txt"}  # the second is of nbgrader's exchange, to return feedback


class CourseProblem(NbGraderException):
    """An assignment cannot be graded at all; the message says why."""


class Folders:
    """The folders of a converter's assignment. module: the name of its notebook without .ipynb."""

    def __init__(self, converter: Autograde, module: str):
        self._converter, self._coursedir = converter, converter.coursedir
        self._assignment: str = converter.coursedir.assignment_id
        self._name = f"{module}.ipynb"
        self.root = Path(self._coursedir.root)
        self.source = Path(self._coursedir.format_path(self._coursedir.source_directory, ".", self._assignment))
        self.source_notebook = self.source / self._name
        self.autograded = self.root / self._coursedir.autograded_directory
        self._submitted = self.root / self._coursedir.submitted_directory

    def handed_in(self, student: str) -> Path:
        return self._submitted / student / self._assignment

    def notebook(self, student: str) -> Path:
        """The path of the student's notebook, whether it exists or not."""
        return self.handed_in(student) / self._name

    def graded(self, student: str) -> Path:
        return self.autograded / student / self._assignment

    def is_later(self, student: str) -> bool:
        """Whether it was handed in again, by the timestamps beside the notebooks."""
        handed_in, graded = handed_in_at(self.handed_in(student)), handed_in_at(self.graded(student))
        return handed_in is not None and graded is not None and handed_in > graded

    def write(self, student: str, notebook: str) -> None:
        """Write the graded notebook, with the course's files beside it, in place of an earlier one. Raises OSError."""
        folder = self.graded(student)
        if folder.is_dir():
            rmtree(str(folder))
        folder.mkdir(parents=True)
        handed_in = self.handed_in(student)
        own = [name for name in OWN_FILES.union(self._exclude_overwriting) if may_be_copied(handed_in, name)]
        for name, path in {**self._beside, **{name: handed_in / name for name in own}}.items():
            if os.path.dirname(name):
                (folder / name).parent.mkdir(exist_ok=True, parents=True)
            shutil.copyfile(path, folder / name)  # set_permissions below sets the modes
        (folder / self._name).write_text(notebook, encoding="utf-8")
        self._converter.set_permissions(self._assignment, student)
        if self._coursedir.groupshared:
            share(self.autograded / student)  # nbgrader shares its contents

    def remove(self, student: str) -> None:
        """Remove the graded notebook and its page of feedback. Raises OSError."""
        feedback = self.root / self._coursedir.feedback_directory
        for folder in (self.graded(student), feedback / student / self._assignment):
            if folder.is_dir():
                rmtree(str(folder))

    @property
    def _exclude_overwriting(self) -> list[str]:
        """The course's files that students may change."""
        return self._converter.exclude_overwriting.get(self._assignment, [])

    @cached_property
    def _beside(self) -> dict[str, str]:
        """The course's files that go beside each graded notebook: name to path."""
        found = find_all_files(str(self.source), [*self._coursedir.ignore, "*.ipynb"])
        beside = {os.path.relpath(file, self.source): file for file in found}
        return {name: file for name, file in beside.items() if name not in self._exclude_overwriting}


def folders_of(converter: Autograde) -> list[str]:
    """The folders handed in for the converter's assignment, by all students or those it is restricted to."""
    if glob.has_magic(root := str(converter.coursedir.root)):
        raise CourseProblem(f"nbgrader finds nothing in {root}: it reads *, ? and [ in a path as patterns; rename it.")
    students = getattr(converter, "student_patterns", None) or [converter.coursedir.student_id]
    patterns = [converter._format_source(converter.coursedir.assignment_id, student) for student in students]
    found = {folder for pattern in patterns for folder in glob.glob(pattern) if os.path.isdir(folder)}
    # A folder that this account may not enter may hold a submission, so the assistant has to hear of it
    every = {folder for pattern in patterns for folder in glob.glob(os.path.dirname(pattern)) if os.path.isdir(folder)}
    shut = {os.path.join(f, converter.coursedir.assignment_id) for f in every if not os.access(f, os.X_OK)}
    excluded = converter.coursedir.student_id_exclude.split(",")
    return sorted(folder for folder in found | shut if Path(folder).parent.name not in excluded)
