"""The command line: help, errors, doctor, and how fast it answers."""

import os
import shutil
import subprocess
import sys

import pytest

from autograder.tests.command import autograder
from autograder.toolkit.model.load import model_folder


def modules_after(statement):
    code = f"{statement}; import sys; print(' '.join(sys.modules))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_the_help_names_every_command():
    shown = autograder("--help").stdout
    assert all(name in shown for name in ("test", "doctor", "build", "demo", "fetch", "grade", "report"))


HEAVY = {"numpy", "matplotlib", "nbgrader", "nbformat", "jupytext", "tokenizers", "IPython", "huggingface_hub"}


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("autograder", HEAVY),
        ("autograder.cli.app", HEAVY),
        ("autograder.toolkit.model", {"numpy", "tokenizers", "safetensors"}),
        ("autograder.notebooks.load", {"nbformat", "jupytext", "nbgrader"}),  # a check has two seconds in all
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(module, heavy):
    assert heavy & set(modules_after(f"import {module}")) == set()


def test_everything_the_package_promises_is_there():
    import autograder as package

    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing
    assert package.__version__ == autograder("--version").stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["test"], "There is no notebook of the course in this folder; go to its folder, or name it"),
        (["test", "--stage", "kv-cache"], "There is no notebook of the stage kv-cache in this folder"),
        (["test", "--stage", "kv"], "There is no stage 'kv'; the stages are start-here, forward-pass,"),
        (["test", "--stage", "start-here"], "Nothing is graded in start-here"),
        (
            ["test", "kv-cache"],
            "kv-cache is neither a notebook (.ipynb) nor a Python file (.py); a stage is chosen with --stage",
        ),
        (["test", "none.ipynb"], "none.ipynb does not exist"),
        (["test", "."], "is a folder"),
        (["test", "notes.txt"], "notes.txt is neither a notebook (.ipynb) nor a Python file (.py)"),
        (["test", "mine.py"], "mine.py does not say which stage it belongs to; add --stage"),
        (["test", "kv_cache_half.ipynb"], "kv_cache_half.ipynb is not valid JSON"),
        (["test", "kv_cache_list.ipynb"], "kv_cache_list.ipynb is not a notebook"),
        (["demo", "--stage", "start-here"], "Nothing is graded in start-here; the stages with checks are forward-pass"),
        (["demo", "--folder", "."], "holds something else; remove it, or choose another with --folder"),
        (["fetch", "gpt4"], "'gpt4' is not a published model"),
    ],
)
def test_an_impossible_request_is_answered_in_one_sentence(arguments, sentence, tmp_path):
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "mine.py").write_text("x = 1\n")
    (tmp_path / "kv_cache_half.ipynb").write_text('{"cells": [')
    (tmp_path / "kv_cache_list.ipynb").write_text("[]")
    if arguments == ["test"] or arguments[:2] == ["test", "--stage"]:
        (tmp_path / "kv_cache_half.ipynb").unlink()
        (tmp_path / "kv_cache_list.ipynb").unlink()
    result = autograder(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_with_two_notebooks_of_a_stage_none_is_chosen(tmp_path):
    for name in ("kv_cache (1).ipynb", "smith_kv_cache.ipynb"):
        (tmp_path / name).write_text("{}")
    result = autograder("test", cwd=tmp_path)
    assert result.returncode == 2
    several = "several notebooks here (kv_cache (1).ipynb, smith_kv_cache.ipynb)"
    assert f"{several}; rename the one that is meant: kv_cache.ipynb" in result.stderr


def test_doctor_finds_everything_here(tmp_path):
    result = autograder("doctor", cwd=tmp_path, PATH="/usr/bin:/bin")  # the environment is not activated
    assert result.returncode == 0, result.stdout
    assert result.stdout.strip().endswith("Nothing is missing.")
    for what in ("Python", "packages", "alembic", "model tiny", "thread"):
        assert what in result.stdout


def test_doctor_says_how_to_fix_what_is_missing(tmp_path):
    """A package that is not installed, and one that is too old: made by hiding the first and faking the second."""
    code = """if True:
        import importlib.metadata, sys
        real = importlib.metadata.version
        def version(name):
            if name == "watchfiles":
                raise importlib.metadata.PackageNotFoundError(name)
            return "1.0" if name == "numpy" else real(name)
        importlib.metadata.version = version
        sys.argv = ["autograder", "doctor"]
        from autograder.cli import main
        main()
    """
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "pip install 'watchfiles>=0.21'" in result.stdout
    assert "pip install 'numpy>=1.25'" in result.stdout
    assert "2 to fix." in result.stdout


def test_doctor_reports_a_package_that_is_found_but_not_installed(tmp_path):
    code = """if True:
        import importlib.metadata, sys
        def missing(name):
            raise importlib.metadata.PackageNotFoundError(name)
        importlib.metadata.version = importlib.metadata.requires = missing
        sys.argv = ["autograder", "doctor"]
        from autograder.cli import main
        main()
    """
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (1, "")
    assert "not installed, only found in" in result.stdout
    assert "pip install " in result.stdout


def test_doctor_says_that_no_cell_can_be_run_where_the_package_is_seen_through_pythonpath(tmp_path):
    """The same for --user: the process that runs the cells sees neither."""
    path = os.pathsep.join(p for p in sys.path if p and os.path.isdir(p) and not p.startswith(sys.base_prefix))
    code = "from autograder.cli import main; main()"
    result = subprocess.run(
        [os.path.realpath(sys.executable), "-c", code, "doctor"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 1, result.stdout + result.stderr
    assert "the process that runs a notebook's cells does not start" in result.stdout
    assert "install the package in a virtual environment" in result.stdout


def test_doctor_reports_that_the_chosen_model_is_missing(tmp_path):
    result = autograder("doctor", cwd=tmp_path, AUTOGRADER_MODEL="nowhere")
    assert result.returncode == 1
    assert "nowhere is neither a folder nor the name of a model" in result.stdout
    assert "1 to fix." in result.stdout


def test_doctor_says_that_the_chosen_model_is_damaged(tmp_path):
    damaged = shutil.copytree(model_folder("tiny"), tmp_path / "damaged") / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1000])
    result = autograder("doctor", cwd=tmp_path, AUTOGRADER_MODEL=str(damaged.parent))
    assert result.returncode == 1
    assert "model.safetensors: " in result.stdout and "1 to fix." in result.stdout


def test_doctor_notes_that_nothing_is_sandboxed(tmp_path):
    result = autograder("doctor", cwd=tmp_path, AUTOGRADER_SANDBOX="limits")
    assert result.returncode == 0
    assert "Not sandboxed" in result.stdout
    assert "before grading other people's code" in result.stdout
