"""The folders of one assignment: what was handed in, what is graded, and the course's own, where nbgrader has them."""

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

OWN_FILES = {"timestamp.txt", "submission_secret.txt"}  # the second of nbgrader's exchange, which hands feedback back


class CourseProblem(NbGraderException):
    """Nothing of an assignment can be graded; the message says why."""


class Folders:
    """Those of a converter's assignment. module: the name of its notebook, without the ending."""

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
        """What the student's notebook is called, whether it is there or not."""
        return self.handed_in(student) / self._name

    def graded(self, student: str) -> Path:
        return self.autograded / student / self._assignment

    def is_later(self, student: str) -> bool:
        """Whether it was handed in again, by the times beside the notebooks."""
        handed_in, graded = handed_in_at(self.handed_in(student)), handed_in_at(self.graded(student))
        return handed_in is not None and graded is not None and handed_in > graded

    def write(self, student: str, notebook: str) -> None:
        """The graded notebook, with the course's files beside it, in place of an earlier one. Raises OSError."""
        folder = self.graded(student)
        if folder.is_dir():
            rmtree(str(folder))
        folder.mkdir(parents=True)
        handed_in = self.handed_in(student)
        own = [name for name in OWN_FILES.union(self._exclude_overwriting) if may_be_copied(handed_in, name)]
        for name, path in {**self._beside, **{name: handed_in / name for name in own}}.items():
            if os.path.dirname(name):
                (folder / name).parent.mkdir(exist_ok=True, parents=True)
            shutil.copyfile(path, folder / name)  # all get their mode below
        (folder / self._name).write_text(notebook, encoding="utf-8")
        self._converter.set_permissions(self._assignment, student)
        if self._coursedir.groupshared:
            share(self.autograded / student)  # nbgrader sees to what is in it

    def remove(self, student: str) -> None:
        """The graded notebook and its page of feedback. Raises OSError."""
        feedback = self.root / self._coursedir.feedback_directory
        for folder in (self.graded(student), feedback / student / self._assignment):
            if folder.is_dir():
                rmtree(str(folder))

    @property
    def _exclude_overwriting(self) -> list[str]:
        """Files of the course that the course lets a student change."""
        return self._converter.exclude_overwriting.get(self._assignment, [])

    @cached_property
    def _beside(self) -> dict[str, str]:
        """Files of the course that lie beside each graded notebook, and where they are."""
        found = find_all_files(str(self.source), [*self._coursedir.ignore, "*.ipynb"])
        beside = {os.path.relpath(file, self.source): file for file in found}
        return {name: file for name, file in beside.items() if name not in self._exclude_overwriting}


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
    excluded = converter.coursedir.student_id_exclude.split(",")
    return sorted(folder for folder in found | shut if Path(folder).parent.name not in excluded)
