"""Code that deletes files refuses those that it did not make."""

import re
import shutil
import subprocess

import pytest

from autograder.cli.errors import UserError
from autograder.cli.sample_class import make_course
from autograder.places import ROOT

# Where the package deletes, and what tells that it made what goes
DELETING = {
    "cli/fetch.py": "a file named .part, of an address that was fetched to it",
    "cli/sample_class.py": "a folder with the grader .sample-class",
    "conftest.py": "the folder that it makes for one run of the tests",
    "grading/batch.py": "records",
    "grading/folders.py": "assignments in autograded/ and feedback/, as nbgrader itself does",
    "course_secret.py": "its own temporary file",
    "toolkit/chat/load.py": "its own temporary file",
    "whole_file.py": "its own temporary file",
    "sandbox/processes.py": "what a student's process left in the folder that was made for it",
    "worker/folders.py": "what is in the folder that it is given; no link is followed",
    "worker/fork_server.py": "what has come into the folders of a sandbox since it began",
}

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def make(folder, *arguments):
    for name in ("autograder", "solutions", "data", "course"):
        (folder / name).mkdir(exist_ok=True)
    command = ["make", "-f", str(ROOT / "Makefile"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_places_that_delete_are_known():
    package = ROOT / "autograder"
    own = [p for p in package.rglob("*.py") if not {"tests", "stages"} & {*p.relative_to(package).parts}]
    deletes = re.compile(r"\b(rmtree|unlink|rmdir|os\.remove|removedirs)\(|(?<!np\.)\bempty\(")
    assert {p.relative_to(package).as_posix() for p in own if deletes.search(p.read_text("utf-8"))} == set(DELETING)


@needs_make
def test_clean_keeps_a_folder_of_that_name_that_demo_did_not_make(tmp_path):
    work = tmp_path / "demo-class" / "work.txt"
    work.parent.mkdir()
    work.write_text("mine")
    run = make(tmp_path, "clean")
    assert run.returncode == 0 and "demo-class/ is kept" in run.stdout
    assert work.read_text() == "mine"


@needs_make
def test_clean_removes_the_sample_class_and_caches_and_no_other_file(tmp_path):
    kept = ["dist/work", "build/work", ".ruff_cache/work", "autograder/__pycache__/work", "lab/work"]
    gone = ["demo-class/.sample-class", "demo-class/x", ".pytest_cache/CACHEDIR.TAG", "course/a/__pycache__/b.pyc"]
    for name in (*kept, *gone):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert make(tmp_path, "clean").returncode == 0
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    assert [name for name in gone if (tmp_path / name).parent.exists()] == []


@needs_make
def test_a_folder_that_is_not_an_environment_is_not_made_one(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    work = tmp_path / "mine" / "work.txt"
    work.parent.mkdir()
    work.write_text("mine")
    run = make(tmp_path, "VENV=mine", "mine/.installed")
    assert run.returncode != 0 and "mine is no virtual environment" in run.stderr
    assert work.read_text() == "mine"


@pytest.mark.parametrize("content", ["work.txt", "course/.sample-class"])
def test_no_sample_class_replaces_another_folder(tmp_path, content):
    path = tmp_path / "folder" / content
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(UserError, match="holds something else"):
        make_course(tmp_path / "folder", ())
    assert path.read_text() == "mine"
