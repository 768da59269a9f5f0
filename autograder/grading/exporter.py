"""Reads a submission for `nbgrader autograde` in place of nbformat, which gives up on damaged files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import ValidationError, validate
from nbformat.v4 import new_notebook, reads
from nbgrader.converters import Autograde
from traitlets import Bool, Float

from autograder.grading.batch import Batch, CourseProblem, folders_of
from autograder.grading.display import SECONDS
from autograder.grading.grade import Limits
from autograder.grading.patches import find_submissions_with


class SubmissionExporter(NotebookExporter):
    """The exporter of one batch. Made once by the converter, before its first submission."""

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
        grading = isinstance(self.parent, Autograde)
        display_seconds = self.display_seconds if self.display_run else None
        self.batch: Batch | None = None
        if grading:
            self.batch = Batch(self.parent, limits, self.require_sandbox, self.allow_unsandboxed, display_seconds)

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        """A submitted file is not parsed here: RebuildFromSource puts the trusted notebook in its place."""
        if self.batch is None:
            return super().from_filename(filename, resources=resources, **kwargs)
        resources = resources or ResourcesDict()
        path = Path(filename)
        resources["metadata"] = ResourcesDict(name=path.stem, path=str(path.parent))
        # Not a submitted one: what RebuildFromSource gave, as it was written a moment ago, and validated then.
        submitted = self.batch.is_submitted(filename)
        notebook = new_notebook() if submitted else reads(path.read_text(encoding="utf-8"))
        return self.from_notebook_node(notebook, resources=resources, **kwargs)

    def from_notebook_node(self, nb: Any, resources: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        """Without nbconvert's copies, and on one line: with an indent, Python writes JSON ten times as slowly."""
        if self.batch is None:
            return super().from_notebook_node(nb, resources, **kwargs)
        resources = self._init_resources(resources)
        for preprocessor in self._preprocessors:
            nb, resources = preprocessor(nb, resources)
        try:
            validate(nb)
        except ValidationError as error:  # of the course's own notebook; nbformat writes such a one, too
            self.log.error("The notebook is not valid (%s).", error)
        return json.dumps(nb, ensure_ascii=False, sort_keys=True) + "\n", resources


def _take_in_folders(converter: Autograde) -> bool:
    """Every folder that was handed in; which of them can be graded, Batch says. False when there is none.

    nbgrader stops where no folder holds a notebook, and the scores of what was handed in earlier would stay.
    """
    ours = issubclass(converter.exporter_class, SubmissionExporter) and converter.coursedir.notebook_id == "*"
    converter.notebooks = []
    try:
        converter.assignments = {folder: [] for folder in folders_of(converter)} if ours else {}
    except CourseProblem as problem:
        converter.log.error(str(problem))  # nbgrader's command ends without a word
        raise
    return bool(converter.assignments)


find_submissions_with(_take_in_folders)
