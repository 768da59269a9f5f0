"""Reads a submission for `nbgrader autograde` in place of nbformat, which gives up on damaged files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat.v4 import new_notebook
from nbgrader.converters import Autograde

from autograder.grading.batch import Batch


class SubmissionExporter(NotebookExporter):
    """The exporter of one batch. Made once by the converter, before its first submission."""

    def __init__(self, config: Any = None, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        self.batch: Batch | None = Batch(self.parent) if isinstance(self.parent, Autograde) else None

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        """A submitted file is not parsed here: RebuildFromSource puts the trusted notebook in its place."""
        if self.batch is None or not self.batch.is_submitted(filename):
            return super().from_filename(filename, resources=resources, **kwargs)
        resources = resources or ResourcesDict()
        path = Path(filename)
        resources["metadata"] = ResourcesDict(name=path.stem, path=str(path.parent))
        return self.from_notebook_node(new_notebook(), resources=resources, **kwargs)
