"""Which of the files handed in is the notebook to grade."""

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
    path, notes = submitted_notebook(folder, STAGE)
    return path.name, [note.sentence for note in notes]


def test_the_notebook_of_the_assignments_name(tmp_path):
    hand_in(tmp_path, kv_cache=SOLVED)
    assert found(tmp_path) == ("kv_cache.ipynb", [])


def test_a_second_notebook_beside_it_is_mentioned(tmp_path):
    hand_in(tmp_path, kv_cache=SOLVED, scratch=OTHER)
    assert found(tmp_path) == ("kv_cache.ipynb", ["kv_cache.ipynb was graded; there was also scratch.ipynb."])


@pytest.mark.parametrize("name", ["kv_cache (1)", "smith_kv_cache", "KV-Cache-final", "homework"])
def test_a_renamed_notebook_is_the_one_when_it_is_alone(tmp_path, name):
    hand_in(tmp_path, **{name: SOLVED})
    assert found(tmp_path) == (f"{name}.ipynb", [f"The notebook was named {name}.ipynb."])


def test_of_several_the_one_with_the_name_in_its_name(tmp_path):
    hand_in(tmp_path, smith_kv_cache=SOLVED, scratch=OTHER)
    assert found(tmp_path)[0] == "smith_kv_cache.ipynb"


def test_of_several_the_one_with_the_functions(tmp_path):
    hand_in(tmp_path, homework=SOLVED, scratch=OTHER)
    assert found(tmp_path)[0] == "homework.ipynb"


def test_when_two_can_be_meant_a_person_has_to_choose(tmp_path):
    hand_in(tmp_path, a=SOLVED, b=SOLVED)
    with pytest.raises(NotebookError, match=r"named kv_cache\.ipynb \(a\.ipynb, b\.ipynb\); rename the one"):
        submitted_notebook(tmp_path, STAGE)


def test_a_notebook_in_a_folder_below_or_in_an_archive_is_named(tmp_path):
    (tmp_path / "homework.zip").write_bytes(b"PK")
    with pytest.raises(NotebookError, match=r"is needed \(found: homework\.zip\)\.$"):
        submitted_notebook(tmp_path, STAGE)
    (tmp_path / "sub").mkdir()
    hand_in(tmp_path / "sub", kv_cache=SOLVED)
    with pytest.raises(NotebookError, match=r"is needed \(found: sub.kv_cache\.ipynb; move it up\)\.$"):
        submitted_notebook(tmp_path, STAGE)


def test_no_notebook_at_all(tmp_path):
    with pytest.raises(NotebookError, match=r"There is no notebook in the submission; kv_cache\.ipynb is needed\.$"):
        submitted_notebook(tmp_path, STAGE)
    (tmp_path / "kv_cache.py").write_text("x = 1")
    with pytest.raises(
        NotebookError,
        match=r"There is no notebook in the submission; kv_cache\.ipynb is needed \(found: kv_cache\.py\)\.$",
    ):
        submitted_notebook(tmp_path, STAGE)


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    hand_in(tmp_path / "elsewhere", kv_cache=SOLVED)
    folder = tmp_path / "alice"
    folder.mkdir()
    (folder / "kv_cache.ipynb").symlink_to(tmp_path / "elsewhere" / "kv_cache.ipynb")
    with pytest.raises(NotebookError, match="only a link to a file elsewhere"):
        submitted_notebook(folder, STAGE)
