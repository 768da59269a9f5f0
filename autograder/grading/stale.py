"""Whether the scores of a submission are up to date."""

from __future__ import annotations

from pathlib import Path

from autograder.grading.records import Record
from autograder.grading.submission import file_digest, submitted_notebook
from autograder.notebooks.errors import NotebookError
from autograder.stages import Stage


def why_stale(record: Record, folder: Path, stage: Stage) -> str | None:
    """Why a graded submission's scores are out of date; None if they are not.

    folder: of the submission.
    """
    again = f"; autograder grade {stage.name} --force --student {record.student} grades it again"
    if record.checks_version != str(stage.version):
        return f"graded with other checks ({record.checks_version}){again}"
    try:
        path, _ = submitted_notebook(folder, stage)
        if record.digest != file_digest(path):
            return f"the notebook was handed in again, and nbgrader skips it{again}"
    except (NotebookError, OSError):
        return f"the notebook that was graded is gone{again}"
    return None
