"""Whether the marks of a submission belong to what is there now."""

from __future__ import annotations

from pathlib import Path

from autograder.grading.records import Record
from autograder.grading.submission import file_digest, submitted_notebook
from autograder.notebooks.errors import NotebookError
from autograder.stages import Stage

_AGAIN = "; nbgrader autograde --force grades it again"


def why_stale(record: Record, folder: Path, stage: Stage, version: str) -> str | None:
    """Why a graded submission's marks are out of date; None when they are not.

    folder: what the student handed in. version: of the checks as they are now.
    """
    if record.checks_version != version:
        return f"graded with other checks ({record.checks_version}){_AGAIN}"
    try:
        path, _ = submitted_notebook(folder, stage)
        if record.digest != file_digest(path):
            return f"the notebook was handed in again, without a newer timestamp.txt{_AGAIN}"
    except (NotebookError, OSError):
        return f"the notebook that was graded is gone{_AGAIN}"
    return None
