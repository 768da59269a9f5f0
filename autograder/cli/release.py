"""`autograder release`: makes the files that students get for a stage, with nothing of a later one."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from autograder.cli.errors import UserError
from autograder.cli.find import find_course
from autograder.stages import STAGES, Stage, earlier_stages, find_stage
from autograder.whole_file import whole_file

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # for every file in an archive, so that the same files give the same bytes


def run(stages: Sequence[str], *, course: Path | None, output: Path, zipped: bool) -> int:
    """Put each stage into a folder or a zip file of its own in `output`; an existing folder is kept."""
    chosen = [find_stage(name) for name in dict.fromkeys(stages)] or list(STAGES)
    folder = find_course(course)
    sources = {stage: folder / "release" / stage.assignment for stage in chosen}
    if missing := [str(path) for path in sources.values() if not path.is_dir()]:
        raise UserError(f"{', '.join(missing)} is missing; run: autograder build")
    try:
        output.mkdir(parents=True, exist_ok=True)
        for stage, source in sources.items():
            _hand_out(stage, source, output, zipped)
        if not zipped:
            _write_syllabus(folder, output)
    except OSError as error:
        raise UserError(
            f"{output} cannot be written ({error.strerror or error}); name another with --output."
        ) from None
    return 0


def _hand_out(stage: Stage, source: Path, output: Path, zipped: bool) -> None:
    target = output / (f"{stage.assignment}.zip" if zipped else stage.assignment)
    if target.exists() and not zipped:
        print(f"{target} is kept as it is.")
        return
    if zipped:
        _write_zip(source, target)
    else:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    solved = [earlier.assignment for earlier in earlier_stages(stage)]
    print(f"{target}" + (f"; its given.py holds the solutions of {', '.join(solved)}" if solved else ""))


def _write_zip(source: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(source.rglob("*")):
            inside = path.relative_to(source.parent)
            if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in inside.parts):
                info = zipfile.ZipInfo(inside.as_posix(), _FIRST_DAY)
                info.external_attr = 0o644 << 16
                archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)


def _write_syllabus(course: Path, output: Path) -> None:
    """Write the syllabus beside the stages, with links to the stages in `output` only."""
    syllabus = course / "README.md"
    if not syllabus.is_file():
        return

    def link(match: re.Match[str]) -> str:
        return f"[{match[1]}]({match[2]}/)" if (output / match[2]).is_dir() else match[1]

    text = re.sub(r"\[([^]]+)\]\(release/([^)/]+)/\)", link, syllabus.read_text(encoding="utf-8"))
    with whole_file(output / "README.md") as file:
        file.write(text)
