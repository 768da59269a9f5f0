"""Reads a submission for `nbgrader autograde` in place of nbformat, which gives up on damaged files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat.v4 import new_notebook, reads
from nbgrader.converters import Autograde

from autograder.grading.batch import Batch


class SubmissionExporter(NotebookExporter):
    """The exporter of one batch. Made once by the converter, before its first submission."""

    def __init__(self, config: Any = None, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        self.batch: Batch | None = Batch(self.parent) if isinstance(self.parent, Autograde) else None

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        """A submitted file is not parsed here: RebuildFromSource puts the trusted notebook in its place."""
        if self.batch is None:
            return super().from_filename(filename, resources=resources, **kwargs)
        resources = resources or ResourcesDict()
        path = Path(filename)
        resources["metadata"] = ResourcesDict(name=path.stem, path=str(path.parent))
        # Not a submitted one: what RebuildFromSource gave, as it was written a moment ago. It needs no validation.
        submitted = self.batch.is_submitted(filename)
        notebook = new_notebook() if submitted else reads(path.read_text(encoding="utf-8"))
        return self.from_notebook_node(notebook, resources=resources, **kwargs)

    def _validate_preprocessor(self, nbc: Any, preprocessor: Any) -> None:
        """Nothing after each step: the notebook is made of the course's own cells, and is validated when written."""
