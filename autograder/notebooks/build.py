"""Builds course/source and course/release from solutions/*.py, with the same bytes every time.

The source notebook of a stage is its script with nbgrader's metadata; nbgrader's generate_assignment makes the released
one from it. Everything is made in a temporary folder first, so a build that fails changes no notebook.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from traitlets.config import Config, PyFileConfigLoader

from autograder.course_secret import course_secret
from autograder.notebooks.errors import BuildError
from autograder.notebooks.given import GIVEN, given_hash, given_source
from autograder.notebooks.marks import ScriptCell, read_stage
from autograder.notebooks.sorting import CHARTS, chart_hash
from autograder.places import CONFIG, ROOT, SOLUTIONS
from autograder.stages import STAGES, Stage

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def build(root: Path = ROOT, course: Path | None = None, stages: tuple[Stage, ...] = STAGES) -> list[Path]:
    """Make source/ and release/ in the course folder and register the assignments in its gradebook.

    root holds solutions/; course is root/course unless given. Returns the release folders. A new course folder gets its
    nbgrader_config.py, and every course its secret seed.
    """
    course = (course or root / "course").resolve()
    course.mkdir(parents=True, exist_ok=True)
    if not (course / CONFIG).exists():
        shutil.copyfile(ROOT / "course" / CONFIG, course / CONFIG)
    course_secret(course)
    if course == ROOT / "course":
        for path, text in _known().items():
            path.write_text(text, encoding="utf-8", newline="\n")
    for stage in stages:
        _refuse_others(stage, root / "solutions", course)
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary)
        _make(root / "solutions", made, stages, PyFileConfigLoader(CONFIG, path=str(course)).load_config())
        for step in ("source", "release"):
            for stage in stages:
                _copy(made / step / stage.assignment, course / step / stage.assignment)
    return [course / "release" / stage.assignment for stage in stages]


def check_release_is_current(root: Path = ROOT, stages: tuple[Stage, ...] = STAGES) -> None:
    """Raise BuildError, with the first difference, if course/release differs from what solutions/ builds."""
    release = root / "course" / "release"
    for path, text in _known().items() if root == ROOT else ():
        if not path.is_file() or path.read_bytes() != text.encode():
            raise BuildError(f"{path.relative_to(ROOT)} differs from what solutions/ builds; run: autograder build")
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary)
        _make(root / "solutions", made, stages, None)
        built, committed = _files(made / "release"), _files(release)
        for name in sorted({*built, *committed}):
            if name not in committed:
                problem = "is missing"
            elif name not in built:
                raise BuildError(f"course/release/{name} is there, but is not built from solutions/; delete it")
            elif (difference := _first_difference(committed[name].read_bytes(), built[name].read_bytes())) is not None:
                problem = f"differs from what solutions/ builds, first in line {difference}"
            else:
                continue
            raise BuildError(f"course/release/{name} {problem}; run: autograder build")


def _known() -> dict[Path, str]:
    """The files with which `autograder test` recognizes each given.py, and chart cells that lost their tags."""
    cells = [cell for stage in STAGES for cell in read_stage(stage, SOLUTIONS)]
    charts = sorted({chart_hash(cell.source) for cell in cells if "tags" in cell.metadata})
    given = {stage.module: given_source(stage) for stage in STAGES}
    lines = [f"{module} {given_hash(text)}" for module, text in given.items() if text is not None]
    return {CHARTS: "".join(f"{line}\n" for line in charts), GIVEN: "".join(f"{line}\n" for line in lines)}


def _make(solutions: Path, folder: Path, stages: tuple[Stage, ...], config: Config | None) -> None:
    """Make folder/source and folder/release. With a config, the assignments are registered in its gradebook."""
    for stage in stages:
        target = folder / "source" / stage.assignment
        target.mkdir(parents=True)
        text = source_notebook(stage, read_stage(stage, solutions))
        (target / f"{stage.module}.ipynb").write_text(text, encoding="utf-8", newline="\n")
        given = given_source(stage, solutions)
        if given is not None:
            (target / "given.py").write_text(given, encoding="utf-8", newline="\n")
    for stage in stages:
        _generate(stage, folder, config if stage.graded else None)
    for path in (folder / "release").rglob("*.ipynb"):  # nbgrader writes the system's line ends
        path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))


def source_notebook(stage: Stage, cells: list[ScriptCell]) -> str:
    """The text of a stage's source notebook."""
    notebook = new_notebook(metadata=METADATA)
    taken: set[str] = set()
    for cell in cells:
        make = new_markdown_cell if cell.cell_type == "markdown" else new_code_cell
        source = cell.source.replace("<details>", '<details style="margin-bottom: 1em">')  # adds a gap after the fold
        notebook.cells.append(make(source, metadata=cell.metadata, id=_cell_id(cell, taken)))
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def _cell_id(cell: ScriptCell, taken: set[str]) -> str:
    """The mark's value, or a hash of the text, which does not depend on where the cell is."""
    base = cell.name or f"{cell.kind}-{hashlib.sha256(cell.source.encode()).hexdigest()[:10]}"
    ids = itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2)))
    chosen = next(each for each in ids if each not in taken)
    taken.add(chosen)
    return chosen


def _generate(stage: Stage, folder: Path, config: Config | None) -> None:
    """Run nbgrader's generate_assignment on one stage, in this process."""
    from nbgrader.converters import GenerateAssignment, NbGraderException
    from nbgrader.coursedir import CourseDirectory

    settings = Config()
    settings.CourseDirectory.root = str(folder)
    settings.CourseDirectory.assignment_id = stage.assignment
    settings.CourseDirectory.ignore = ["__pycache__"]
    if config is None:
        settings.GenerateAssignment.no_database = True
        settings.SaveCells.enabled = False
    else:
        settings.CourseDirectory.db_url = config.CourseDirectory.db_url
        if "course_id" in config.CourseDirectory:
            settings.CourseDirectory.course_id = config.CourseDirectory.course_id
    coursedir = CourseDirectory(config=settings)
    converter = GenerateAssignment(coursedir=coursedir, config=settings)
    converter.log = log = _Log()
    try:
        converter.start()
    except NbGraderException:
        raise BuildError(f"nbgrader could not make the assignment {stage.assignment}: {log.reason}") from None


class _Log(logging.Logger):
    """Keeps nbgrader's errors, to report the reason for a failure; a build that works prints nothing."""

    def __init__(self) -> None:
        super().__init__("build")
        self.errors: list[str] = []
        self.addHandler(logging.NullHandler())

    def handle(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.errors.append(record.getMessage())

    @property
    def reason(self) -> str:
        for message in self.errors:
            if message.startswith("Traceback"):
                return message.strip().splitlines()[-1]
        return self.errors[-1] if self.errors else "it gave no reason"


def _files(folder: Path) -> dict[str, Path]:
    """Every file below a folder, by relative path, except hidden files and caches."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(p.startswith(".") or p == "__pycache__" for p in path.relative_to(folder).parts)
    }


def _refuse_others(stage: Stage, solutions: Path, course: Path) -> None:
    """Raise BuildError for a file that the build does not make: releasing or deleting it could be a mistake."""
    own = {f"{stage.module}.ipynb"} | ({"given.py"} if given_source(stage, solutions) is not None else set())
    for folder in (course / "source" / stage.assignment, course / "release" / stage.assignment):
        for name in sorted(_files(folder).keys() - own):
            raise BuildError(f"{folder / name} is not made by the build; move or delete it, and build again")


def _copy(made: Path, target: Path) -> None:
    """Copy the made files to target, except those that are the same already."""
    for name, path in _files(made).items():
        destination = target / name
        data = path.read_bytes()
        if not (destination.is_file() and destination.read_bytes() == data):
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.write_bytes(data)


def _first_difference(a: bytes, b: bytes) -> int | None:
    """The number of the first line that differs; None if none does."""
    pairs = itertools.zip_longest(a.split(b"\n"), b.split(b"\n"))
    return next((i for i, (x, y) in enumerate(pairs, 1) if x != y), None)
