"""Makes a course folder with a sample class: the submissions that prove the checks, as students would hand them in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from autograder.cli.errors import UserError
from autograder.places import CONFIG, ROOT
from autograder.stages import Stage

MARKER = ".sample-class"  # in every folder that was made here, and so may be replaced
UNSOLVED = "unsolved"


def make_course(folder: Path, stages: tuple[Stage, ...]) -> None:
    """Make an nbgrader course with source/, release/ and gradebook, in place of an earlier sample class."""
    from autograder.notebooks.build import build

    refuse_foreign(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARKER).touch()
    build(ROOT, folder, stages)
    allow_unsandboxed(folder)


def allow_unsandboxed(course: Path) -> None:
    """Let root grade the course even without a sandbox: its submissions are the repository's own."""
    with (course / CONFIG).open("a", encoding="utf-8") as config:
        config.write("\nc.SubmissionExporter.allow_unsandboxed = True  # the samples are the repository's own\n")


def refuse_foreign(folder: Path) -> None:
    """Raise UserError for a folder that was not made here."""
    if folder.exists() and not (folder / MARKER).exists():
        raise UserError(f"{folder} holds something else; remove it, or choose another with --folder.")


def hand_in(course: Path, stage: Stage, everything: bool = False) -> list[str]:
    """Put the sample submissions of a stage into submitted/; returns their names, which are also the students'."""
    from autograder.stages.samples import submissions_of

    submissions = submissions_of(stage.name) if everything else a_class_of(stage)
    sources = {submission.name: submission.sources(stage) for submission in submissions}
    sources.setdefault(UNSOLVED, {})
    released = course / "release" / stage.assignment
    for name, cells in sources.items():
        write_submission(released, course / "submitted" / name / stage.assignment, stage, cells)
    return list(sources)


def a_class_of(stage: Stage, n_right: int = 5, n_wrong: int = 12) -> list[Any]:
    """The samples chosen for a class, then right ones, then wrong ones, first those that lose different checks."""
    from autograder.stages.samples import in_class, submissions_of

    submissions, named = submissions_of(stage.name), in_class(stage.name)
    submissions.sort(key=lambda s: s.name not in named)
    right = [s for s in submissions if not hasattr(s, "loses")]
    wrong = [s for s in submissions if hasattr(s, "loses")]
    first_of_its_kind = {s.loses: s for s in reversed(wrong)}.values()
    wrong.sort(key=lambda s: (s.name not in named, s not in first_of_its_kind))
    return [*right[:n_right], *wrong[:n_wrong]]


def write_submission(released: Path, folder: Path, stage: Stage, sources: dict[str, str]) -> Path:
    """Copy a released assignment to a new folder and fill in its solution cells; returns the notebook's path."""
    shutil.copytree(released, folder)
    path = folder / f"{stage.module}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        source = sources.get(cell["metadata"].get("nbgrader", {}).get("grade_id"))
        if source is not None:
            cell["source"] = source
    path.write_text(json.dumps(notebook, indent=1), encoding="utf-8")
    return path
