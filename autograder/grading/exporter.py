"""The exporter that nbgrader's configuration names; it puts the course's grading in place of nbgrader's loop."""

from __future__ import annotations

from typing import Any

from nbconvert.exporters import NotebookExporter
from nbgrader.converters import Autograde
from traitlets import Bool, Float

from autograder.grading.batch import Batch
from autograder.grading.display import SECONDS
from autograder.grading.folders import CourseProblem, folders_of
from autograder.grading.grade import Limits
from autograder.grading.patches import find_submissions_with, grade_with


class SubmissionExporter(NotebookExporter):
    """Each converter makes one before its first submission; it exports nothing itself."""

    require_sandbox = Bool(False, help="Grade nothing without a sandbox (bubblewrap or Landlock).").tag(config=True)
    allow_unsandboxed = Bool(False, help="Let root grade without a sandbox too.").tag(config=True)
    display_run = Bool(
        False, help="Run the student's cells once more, to show their text and charts in the feedback."
    ).tag(config=True)
    display_seconds = Float(SECONDS, help="The longest that the display run of a notebook may take.").tag(config=True)
    cell_seconds = Float(Limits.cell, help="The longest that one cell may run.").tag(config=True)
    call_seconds = Float(Limits.call, help="The longest that one call of a function may take.").tag(config=True)
    total_seconds = Float(Limits.total, help="The longest that one notebook may take.").tag(config=True)

    def __init__(self, config: Any = None, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        limits = Limits(
            cell=self.cell_seconds,
            call=self.call_seconds,
            call_after_timeout=min(Limits.call_after_timeout, self.call_seconds / 4),
            total=self.total_seconds,
        )
        display_seconds = self.display_seconds if self.display_run else None
        if isinstance(self.parent, Autograde):
            batch = Batch(self.parent, limits, self.require_sandbox, self.allow_unsandboxed, display_seconds)
            grade_with(self.parent, batch.run)


def _take_in_folders(converter: Autograde) -> bool:
    """Take every folder that was handed in; Batch decides which can be graded. False if there is none.

    nbgrader itself stops if no folder holds a notebook, and the scores of earlier submissions would stay.
    """
    ours = issubclass(converter.exporter_class, SubmissionExporter)
    converter.notebooks = []
    try:
        converter.assignments = {folder: [] for folder in folders_of(converter)} if ours else {}
    except CourseProblem as problem:
        converter.log.error(str(problem))  # nbgrader's command ends without a message
        raise
    return bool(converter.assignments)


find_submissions_with(_take_in_folders)
