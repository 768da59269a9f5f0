"""Whether the scores of a submission belong to what is there now."""

from __future__ import annotations

from pathlib import Path

from autograder.grading.records import Record
from autograder.grading.submission import file_digest, submitted_notebook
from autograder.notebooks.errors import NotebookError
from autograder.stages import Stage


def why_stale(record: Record, folder: Path, stage: Stage) -> str | None:
    """Why a graded submission's scores are out of date; None when they are not.

    folder: what the student handed in.
    """
    again = f"; autograder grade {stage.name} --force --student {record.student} grades it again"
    if record.checks_version != str(stage.version):
        return f"graded with other checks ({record.checks_version}){again}"
    try:
        path, _ = submitted_notebook(folder, stage)
        if record.digest != file_digest(path):
            return f"the notebook was handed in again, and nbgrader passes it over{again}"
    except (NotebookError, OSError):
        return f"the notebook that was graded is gone{again}"
    return None
