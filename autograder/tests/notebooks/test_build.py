"""The build: the same bytes every time, nothing of a solution in the release, assignments ready to be graded."""

import ast
import contextlib
import json
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.cli import build as command
from autograder.judge.framework import checks_of
from autograder.notebooks.build import build, check_release_is_current
from autograder.notebooks.errors import BuildError
from autograder.notebooks.regions import BEGIN, END
from autograder.notebooks.sorting import chart_hash, known_charts
from autograder.places import ROOT
from autograder.stages import GRADED_STAGES, STAGES
from autograder.tests.course import built

EACH_STAGE = pytest.mark.parametrize("stage", STAGES, ids=lambda s: s.name)
EACH_GRADED_STAGE = pytest.mark.parametrize("stage", GRADED_STAGES, ids=lambda s: s.name)


FEW = STAGES[:2]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A separate course folder, built from the repository's solutions."""
    return shutil.copytree(built(*STAGES), tmp_path_factory.mktemp("courses") / "course")


@pytest.fixture(autouse=True)
def known_version(course, monkeypatch):
    """The version that nbgrader writes into a new gradebook; it starts alembic for it, which takes seconds."""
    with contextlib.closing(sqlite3.connect(course / "gradebook.db")) as gradebook:
        (version,) = gradebook.execute("SELECT version_num FROM alembic_version").fetchone()
    monkeypatch.setattr("nbgrader.api.get_alembic_version", lambda: version)


def text_of(folder, step, stage):
    """All files of a stage in a step, as one string."""
    return "\n".join(p.read_text(encoding="utf-8") for p in sorted((folder / step / stage.assignment).iterdir()))


def notebook(folder, step, stage):
    path = folder / step / stage.assignment / f"{stage.module}.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))


def files_of(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def solution_lines(stage):
    """The lines of a stage's solutions and rubrics that stand nowhere else and are long enough to be recognized."""
    inside, within, outside = False, [], set()
    for line in (ROOT / "solutions" / f"{stage.module}.py").read_text(encoding="utf-8").splitlines():
        plain = line.lstrip("# ").strip()
        if plain in (BEGIN.lstrip("# "), END.lstrip("# ")):
            inside = plain == BEGIN.lstrip("# ")
        elif inside and len(plain) > 25:
            within.append(plain)
        else:
            outside.add(plain)
    return [line for line in within if line not in outside]


# The same every time


def test_a_second_build_and_one_on_windows_make_the_same_bytes(course, tmp_path, monkeypatch):
    """On Windows, text files have other line ends by default."""

    def write_text(path, text, encoding=None, errors=None, newline=None):
        return path.write_bytes(text.replace("\n", newline or "\r\n").encode(encoding))

    def open_text(path, mode="r", **options):
        return open(path, mode, **options | ({} if "b" in mode else {"newline": "\r\n"}))

    monkeypatch.setattr(Path, "write_text", write_text)
    monkeypatch.setattr("nbconvert.writers.files.open", open_text, raising=False)
    build(ROOT, tmp_path, stages=FEW)
    for stage in FEW:
        for step in ("source", "release"):
            assert files_of(tmp_path / step / stage.assignment) == files_of(course / step / stage.assignment)


def test_what_is_committed_is_what_the_solutions_build():
    check_release_is_current()


@pytest.mark.parametrize("stage", GRADED_STAGES, ids=lambda s: s.name)
def test_the_charts_are_recognized_without_the_source(course, stage):
    """`autograder test` has only the notebook, which may have lost its tags."""
    charts = [c for c in notebook(course, "release", stage)["cells"] if "chart" in c["metadata"].get("tags", [])]
    assert charts and {chart_hash("".join(c["source"])) for c in charts} <= known_charts()


def test_a_build_does_not_rewrite_unchanged_files(course):
    before = {p: p.stat().st_mtime_ns for p in (course / "release").rglob("*") if p.is_file()}
    build(ROOT, course, FEW)
    assert {p: p.stat().st_mtime_ns for p in (course / "release").rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("step", ["source", "release"])
def test_a_build_refuses_what_it_does_not_make_and_changes_nothing(course, step):
    stray = course / step / GRADED_STAGES[0].assignment / "notes.txt"
    stray.write_text("mine")
    before = files_of(course)
    try:
        with pytest.raises(BuildError, match=r"notes\.txt is not made by the build; move or delete it"):
            build(ROOT, course)
        assert files_of(course) == before
    finally:
        stray.unlink()


# What students get


@EACH_GRADED_STAGE
def test_no_solution_and_no_rubric_is_released(course, stage):
    released = notebook(course, "release", stage)
    text = "\n".join("".join(cell["source"]) for cell in released["cells"])
    lines = {line.lstrip("# ").strip() for line in text.splitlines()}
    leaked = [line for line in solution_lines(stage) if line in lines]
    assert solution_lines(stage), "the stage has solutions to look for"
    assert leaked == []
    assert "SOLUTION" not in text


@EACH_STAGE
def test_released_metadata_is_nbgraders_and_nothing_else(course, stage):
    released = notebook(course, "release", stage)
    assert released["metadata"] == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert {key for cell in released["cells"] for key in cell["metadata"]} <= {
        "nbgrader",
        "tags",
        "deletable",
        "editable",
    }
    assert all(cell.get("outputs", []) == [] and cell.get("execution_count") is None for cell in released["cells"])


@EACH_STAGE
def test_every_released_cell_has_its_own_lasting_id(course, stage):
    cells = notebook(course, "release", stage)["cells"]
    assert [c["id"] for c in cells] == [c["id"] for c in notebook(course, "source", stage)["cells"]]
    assert len({c["id"] for c in cells}) == len(cells)
    named = [c for c in cells if "nbgrader" in c["metadata"]]
    assert [c["id"] for c in named] == [c["metadata"]["nbgrader"]["grade_id"] for c in named]


@EACH_STAGE
def test_the_release_names_no_file_of_the_machine_it_was_built_on(course, stage):
    text = text_of(course, "release", stage)
    assert str(ROOT) not in text and str(course) not in text and str(Path.home()) not in text


@EACH_GRADED_STAGE
def test_every_stub_stands_in_a_function_so_that_an_unsolved_class_can_be_defined(course, stage):
    for cell in notebook(course, "release", stage)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "raise NotImplementedError()" in source:
            functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
            inside = {
                node.lineno for function in functions for node in ast.walk(function) if isinstance(node, ast.Raise)
            }
            lines = source.splitlines()
            stubs = {i for i, line in enumerate(lines, 1) if line.strip() == "raise NotImplementedError()"}
            assert stubs <= inside


# Ready to be graded


@EACH_GRADED_STAGE
def test_the_gradebook_knows_each_check_and_its_points(course, stage):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        cells = gradebook.find_notebook(stage.module, stage.assignment).grade_cells
        registered = {c.name: c.max_score for c in cells if c.cell_type == "code"}
    assert registered == {c.id: c.points for c in checks_of(stage.name)}


def test_the_stage_without_scores_is_released_but_not_in_the_gradebook(course):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        assert [a.name for a in gradebook.assignments] == [s.assignment for s in GRADED_STAGES]
    assert (course / "release" / "00-start-here" / "start_here.ipynb").is_file()


def test_the_secret_is_for_its_owner_alone_and_stays(course):
    path = course / ".autograder-seed"
    before = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    build(ROOT, course, FEW)
    assert path.read_text() == before


# What is refused


@pytest.fixture
def checkout(tmp_path, course):
    """A copy of the files that check_release_is_current reads."""
    shutil.copytree(ROOT / "solutions", tmp_path / "solutions")
    shutil.copytree(course / "release", tmp_path / "course" / "release")
    return tmp_path


def test_an_outdated_release_is_reported_with_the_first_difference(checkout):
    stage = STAGES[0]
    path = checkout / "course" / "release" / stage.assignment / f"{stage.module}.ipynb"
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[9] += " "
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(BuildError) as refused:
        check_release_is_current(checkout, stages=(stage,))
    assert str(refused.value) == (
        "course/release/00-start-here/start_here.ipynb differs from what solutions/ builds, first in line 10; "
        "run: autograder build"
    )


@pytest.mark.parametrize(("damage", "reason"), [("remove", "is missing"), ("add", "is there, but is not built")])
def test_a_missing_or_left_over_file_is_reported(checkout, damage, reason):
    folder = checkout / "course" / "release" / STAGES[0].assignment
    if damage == "remove":
        (folder / f"{STAGES[0].module}.ipynb").unlink()
    else:
        (folder / "old_name.py").write_text("")
    with pytest.raises(BuildError, match=reason):
        check_release_is_current(checkout, stages=STAGES[:1])


def test_a_build_that_fails_changes_nothing(course, tmp_path):
    shutil.copytree(ROOT / "solutions", tmp_path / "solutions")
    script = tmp_path / "solutions" / f"{GRADED_STAGES[0].module}.py"
    script.write_text(script.read_text(encoding="utf-8") + "\n# %%\nx = 1\n", encoding="utf-8")
    before = files_of(course)
    with pytest.raises(BuildError, match="has no mark"):
        build(tmp_path, course)
    assert files_of(course) == before


def test_cells_cannot_be_added_or_removed_after_the_first_submission(tmp_path):
    stage = GRADED_STAGES[0]
    shutil.copytree(ROOT / "solutions", tmp_path / "solutions")
    build(tmp_path, stages=(stage,))
    with Gradebook(f"sqlite:///{tmp_path / 'course' / 'gradebook.db'}") as gradebook:
        gradebook.add_student("alice")
        gradebook.add_submission(stage.assignment, "alice")
    script = tmp_path / "solutions" / f"{stage.module}.py"
    question = '\n# %% [markdown] written="more" points=1\n# More?\n# ### BEGIN SOLUTION\n# Yes.\n# ### END SOLUTION\n'
    script.write_text(script.read_text(encoding="utf-8") + question, encoding="utf-8")
    with pytest.raises(BuildError) as refused:
        build(tmp_path, stages=(stage,))
    assert stage.assignment in str(refused.value) and "submissions associated with it" in str(refused.value)


def test_the_command_names_the_other_files_that_it_made_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr("autograder.notebooks.build.build", lambda root: build(root, stages=FEW))
    assert command.run(check=False) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        "Made course/gradebook.db (the gradebook) and course/.autograder-seed (the secret that hidden inputs are drawn "
        "from). Back up both together; share neither."
    )
    assert command.run(check=False) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"course/release/{FEW[-1].assignment}"
