"""A course folder with a sample class in it: the submissions that prove the checks, as students would hand them in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from autograder.cli.errors import UserError
from autograder.places import CONFIG, ROOT
from autograder.stages import Stage

MARKER = ".sample-class"  # in a folder that was made here, and may be made anew
UNSOLVED = "unsolved"


def make_course(folder: Path, stages: tuple[Stage, ...]) -> None:
    """An nbgrader course with source/, release/ and gradebook for these stages; a sample class there is replaced."""
    from autograder.notebooks.build import build

    refuse_foreign(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARKER).touch()
    build(ROOT, folder, stages)
    allow_unsandboxed(folder)


def allow_unsandboxed(course: Path) -> None:
    """Let root grade the course without a sandbox too: what is handed in there is the repository's own."""
    with (course / CONFIG).open("a", encoding="utf-8") as config:
        config.write("\nc.SubmissionExporter.allow_unsandboxed = True  # submissions of samples, no strangers'\n")


def refuse_foreign(folder: Path) -> None:
    """Keep clear of a folder that was not made here."""
    if folder.exists() and not (folder / MARKER).exists():
        raise UserError(f"{folder} holds something else; remove it, or choose another with --folder.")


def hand_in(course: Path, stage: Stage, everything: bool = False) -> list[str]:
    """Put the sample submissions of a stage into submitted/; their names, which are the students' too."""
    from autograder.stages.samples import submissions_of

    submissions = submissions_of(stage.name) if everything else a_class_of(stage)
    sources = {submission.name: submission.sources(stage) for submission in submissions}
    sources.setdefault(UNSOLVED, {})
    released = course / "release" / stage.assignment
    for name, cells in sources.items():
        write_submission(released, course / "submitted" / name / stage.assignment, stage, cells)
    return list(sources)


def a_class_of(stage: Stage, n_right: int = 5, n_wrong: int = 12) -> list[Any]:
    """Those that are to be in it; then right ones, and wrong ones that lose other checks as far as there are such."""
    from autograder.stages.samples import in_class, submissions_of

    submissions, named = submissions_of(stage.name), in_class(stage.name)
    submissions.sort(key=lambda s: s.name not in named)
    right = [s for s in submissions if not hasattr(s, "loses")]
    wrong = [s for s in submissions if hasattr(s, "loses")]
    first_of_its_kind = {s.loses: s for s in reversed(wrong)}.values()
    wrong.sort(key=lambda s: (s.name not in named, s not in first_of_its_kind))
    return [*right[:n_right], *wrong[:n_wrong]]


def write_submission(released: Path, folder: Path, stage: Stage, sources: dict[str, str]) -> Path:
    """Copy a released assignment to a new folder, with these sources in its solution cells; the notebook's path."""
    shutil.copytree(released, folder)
    path = folder / f"{stage.module}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        source = sources.get(cell["metadata"].get("nbgrader", {}).get("grade_id"))
        if source is not None:
            cell["source"] = source
    path.write_text(json.dumps(notebook, indent=1), encoding="utf-8")
    return path
