"""Finds the notebook that is meant, the stage it belongs to, and the course folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from autograder.cli.errors import UserError
from autograder.places import CONFIG
from autograder.stages import GRADED_STAGES, Stage, find_stage

SUFFIXES = (".ipynb", ".py")


@dataclass(frozen=True)
class Work:
    """A file with a student's functions, and the stage they are written for."""

    path: Path
    stage: Stage


def find_work(stage_name: str | None, notebook: Path | None) -> Work:
    """The named file, or else the only notebook in this folder that belongs to the named stage, or to any stage."""
    stage = with_checks(find_stage(stage_name)) if stage_name else None
    if notebook is None:
        return _in_this_folder(stage)
    if notebook.is_dir():
        raise UserError(f"{notebook} is a folder; name the notebook in it.")
    if notebook.suffix not in SUFFIXES:
        raise UserError(
            f"{notebook} is neither a notebook (.ipynb) nor a Python file (.py); a stage is chosen with --stage."
        )
    if not notebook.exists():
        raise UserError(f"{notebook} does not exist; look at the name, or leave it out to use this folder's.")
    stage = stage or stage_of(notebook)
    if stage is None:
        raise UserError(f"{notebook.name} does not say which stage it belongs to; add --stage NAME ({_names()}).")
    return Work(notebook, stage)


def find_all_work() -> list[Work]:
    """The notebook of every stage in a folder that holds several stages, as `make lab` makes it; otherwise none."""
    if any(Path().glob("*.ipynb")):
        return []
    paths = ((Path(stage.assignment) / f"{stage.module}.ipynb", stage) for stage in GRADED_STAGES)
    found = [Work(path, stage) for path, stage in paths if path.is_file()]
    return found if len(found) > 1 else []


def stage_of(path: Path) -> Stage | None:
    """The stage that a file belongs to, by the file's name, its folder's name, or the checks it calls."""
    folder = path.resolve().parent.name
    named = [stage for stage in GRADED_STAGES if stage.named_in(path.stem)]
    named += [stage for stage in GRADED_STAGES if folder == stage.assignment]
    return named[0] if named else _stage_by_checks(path)


def _stage_by_checks(path: Path) -> Stage | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    if "autograder.check" not in text:
        return None
    from autograder.judge.framework import checks_of

    called = set(re.findall(r'autograder\.check\(\\?"([\w-]+)', text))
    return next((s for s in GRADED_STAGES if called & {check.id for check in checks_of(s.name)}), None)


def _in_this_folder(stage: Stage | None) -> Work:
    here = sorted(Path().glob("*.ipynb"))
    if stage and not here:  # the folder of all stages
        here = sorted(Path(stage.assignment).glob("*.ipynb"))
    found = [Work(path, its) for path in here if (its := stage_of(path)) is not None]
    if stage:
        found = [work for work in found if work.stage == stage]
    if len(found) > 1:
        exact = [work for work in found if work.path.stem == work.stage.module]
        found = exact if len(exact) == 1 else found
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(work.path.name for work in found)
        stages = {work.stage.module for work in found}
        remedy = f"rename the one that is meant: {stages.pop()}.ipynb" if len(stages) == 1 else "choose a --stage"
        raise UserError(f"There are several notebooks here ({names}); {remedy}.")
    whose = f"of the stage {stage.name}" if stage else "of the course"
    raise UserError(f"There is no notebook {whose} in this folder; go to its folder, or name it: autograder test PATH.")


def find_course(course: Path | None) -> Path:
    """The course folder: the named one, or else the first of this folder, its course/ and its parents."""
    if course is not None:
        if not (course / CONFIG).is_file():
            raise UserError(f"{course} is not a course folder: it has no {CONFIG}.")
        return course.resolve()
    here = Path.cwd()
    for folder in (here, here / "course", *here.parents):
        if (folder / CONFIG).is_file():
            return folder
    raise UserError(f"There is no {CONFIG} in this folder, in course/ or above; name the course with --course PATH.")


def with_checks(stage: Stage) -> Stage:
    """The stage; raises UserError if nothing in it is graded."""
    if not stage.graded:
        raise UserError(f"Nothing is graded in {stage.name}; the stages with checks are {_names()}.")
    return stage


def _names() -> str:
    return ", ".join(stage.name for stage in GRADED_STAGES)
