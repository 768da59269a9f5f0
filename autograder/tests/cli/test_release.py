"""`autograder release`: the files that students get for a stage, with nothing of a later one."""

import zipfile

import pytest

from autograder.cli.errors import UserError
from autograder.cli.release import run
from autograder.notebooks.regions import BEGIN
from autograder.places import ROOT
from autograder.stages import STAGES, UnknownStage, find_stage

COURSE = ROOT / "course"
SECOND = find_stage("kv-cache")


def release(output, *stages, zipped=False, course=COURSE):
    return run(stages, course=course, output=output, zipped=zipped)


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_stage_is_its_folder_as_it_was_built_and_the_syllabus(tmp_path, capsys):
    assert release(tmp_path, "kv-cache") == 0
    expected = files(COURSE / "release" / SECOND.assignment)
    found = files(tmp_path)
    assert {name for name in found if "/" not in name} == {"README.md"}
    assert {f"{SECOND.assignment}/{name}": data for name, data in expected.items()} == {
        name: data for name, data in found.items() if "/" in name
    }
    assert (
        capsys.readouterr().out
        == f"{tmp_path / SECOND.assignment}; its given.py holds the solutions of 01-forward-pass\n"
    )


def test_it_holds_no_solution_of_its_own(tmp_path):
    release(tmp_path, "kv-cache")
    for name, data in files(tmp_path).items():
        assert BEGIN.encode() not in data, name
    given = (tmp_path / SECOND.assignment / "given.py").read_text(encoding="utf-8")
    assert "def forward(" in given and not any(f"{name}(" in given for name in SECOND.functions)


def test_the_syllabus_links_only_released_stages(tmp_path):
    release(tmp_path, "start-here", "forward-pass")
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "[1. The forward pass](01-forward-pass/)" in text
    assert "| 2. The KV cache |" in text and "(02-kv-cache/)" not in text and "(release/" not in text
    release(tmp_path, "kv-cache")
    assert "[2. The KV cache](02-kv-cache/)" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_all_stages_without_a_name(tmp_path):
    release(tmp_path)
    assert {p.name for p in tmp_path.iterdir() if p.is_dir()} == {stage.assignment for stage in STAGES}


def test_existing_work_is_kept(tmp_path, capsys):
    release(tmp_path, "kv-cache")
    notebook = tmp_path / SECOND.assignment / "kv_cache.ipynb"
    notebook.write_text("my work", encoding="utf-8")
    capsys.readouterr()
    assert release(tmp_path, "forward-pass", "kv-cache") == 0
    assert notebook.read_text(encoding="utf-8") == "my work"
    assert capsys.readouterr().out.splitlines()[-1] == f"{tmp_path / SECOND.assignment} is kept as it is."


def test_an_archive_for_each_stage_is_the_same_whenever_it_is_made(tmp_path):
    for folder in ("a", "b"):
        release(tmp_path / folder, "forward-pass", "kv-cache", zipped=True)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert set(files(tmp_path / "a")) == {"01-forward-pass.zip", "02-kv-cache.zip"}
    with zipfile.ZipFile(tmp_path / "a" / "02-kv-cache.zip") as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["02-kv-cache/given.py", "02-kv-cache/kv_cache.ipynb"]


def test_what_cannot_be_released_is_reported_before_anything_is_written(tmp_path):
    course = tmp_path / "course"
    course.mkdir()
    (course / "nbgrader_config.py").touch()
    with pytest.raises(UserError, match=r"02-kv-cache is missing; run: autograder build$"):
        release(tmp_path / "out", "kv-cache", course=course)
    with pytest.raises(UnknownStage):
        release(tmp_path / "out", "no-stage")
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot be written .* name another with --output"):
        release(tmp_path / "file" / "out", "kv-cache")
