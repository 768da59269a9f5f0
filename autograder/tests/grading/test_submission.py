"""Which of several files handed in is the notebook to grade; other names for it are in tests/broken/cases.py."""

import json

import pytest

from autograder.grading.submission import submitted_notebook
from autograder.notebooks.errors import NotebookError
from autograder.stages import find_stage

STAGE = find_stage("kv-cache")
SOLVED = {"cells": [{"cell_type": "code", "source": "class LayerCache:\n    pass", "metadata": {}}]}
OTHER = {"cells": [{"cell_type": "code", "source": "x = 1", "metadata": {}}]}


def hand_in(folder, **notebooks):
    for name, content in notebooks.items():
        (folder / f"{name}.ipynb").write_text(json.dumps(content))


def found(folder):
    return submitted_notebook(folder, STAGE)[0].name


def test_of_several_notebooks_the_one_with_the_stages_name_is_graded(tmp_path):
    hand_in(tmp_path, smith_kv_cache=SOLVED, scratch=OTHER)
    assert found(tmp_path) == "smith_kv_cache.ipynb"


def test_of_several_notebooks_the_one_with_the_functions_is_graded(tmp_path):
    hand_in(tmp_path, homework=SOLVED, scratch=OTHER)
    assert found(tmp_path) == "homework.ipynb"


def test_a_notebook_in_a_folder_below_or_in_an_archive_is_named(tmp_path):
    (tmp_path / "homework.zip").write_bytes(b"PK")
    with pytest.raises(NotebookError, match=r"is needed \(found: homework\.zip\)\.$"):
        submitted_notebook(tmp_path, STAGE)
    (tmp_path / "sub").mkdir()
    hand_in(tmp_path / "sub", kv_cache=SOLVED)
    with pytest.raises(NotebookError, match=r"is needed \(found: sub.kv_cache\.ipynb; move it up\)\.$"):
        submitted_notebook(tmp_path, STAGE)


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    hand_in(tmp_path / "elsewhere", kv_cache=SOLVED)
    folder = tmp_path / "alice"
    folder.mkdir()
    (folder / "kv_cache.ipynb").symlink_to(tmp_path / "elsewhere" / "kv_cache.ipynb")
    with pytest.raises(NotebookError, match="only a link to a file elsewhere"):
        submitted_notebook(folder, STAGE)
