"""A student's file as code: the cells that grading runs, and load_notebook for later stages."""

import json
import sys

import pytest

import autograder
from autograder.notebooks.errors import NotebookError
from autograder.notebooks.load import cells_to_run, sorted_cells

STUB = "def decode_step(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"


def cell(source, name=None, kind="solution", tags=(), cell_type="code"):
    metadata = {"tags": list(tags)} if tags else {}
    if name:
        grade, solution = kind in ("check", "written"), kind in ("solution", "written")
        metadata["nbgrader"] = {"grade_id": name, "grade": grade, "solution": solution}
    return {"cell_type": cell_type, "metadata": metadata, "source": source, "outputs": []}


@pytest.fixture
def notebook(tmp_path):
    """Writes a notebook of these cells and returns its path."""

    def write(*cells, name="prefill_decode.ipynb"):
        path = tmp_path / name
        path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        return path

    return write


def sources(path):
    return [c.source for c in cells_to_run(sorted_cells(path))]


def test_setup_solutions_and_own_cells_are_run_and_nothing_else(notebook):
    path = notebook(
        cell("# A title", cell_type="markdown"),
        cell("import numpy", "imports", "setup"),
        cell("def prefill(): pass", "prefill"),
        cell('autograder.check("prefill-last")', "prefill-last", "check"),
        cell("helper = 1"),
        cell("plot()", tags=["chart"]),
        cell("  \n"),
    )
    assert sources(path) == ["import numpy", "def prefill(): pass", "helper = 1"]


def test_a_check_cell_without_metadata_is_recognized_by_its_call(notebook):
    assert sources(notebook(cell("x = 1"), cell('autograder.check("prefill-last")'))) == ["x = 1"]


def test_cells_are_called_by_their_mark_or_by_their_place(notebook):
    path = notebook(cell("x = 1"), cell("def prefill(): pass", "prefill"))
    assert [c.label for c in cells_to_run(sorted_cells(path))] == ["cell 1", "prefill"]


def test_a_python_file_is_read_in_cells_or_whole(tmp_path):
    plain, percent = tmp_path / "plain.py", tmp_path / "percent.py"
    plain.write_text("def prefill():\n    pass\n")
    percent.write_text('# %% setup="imports"\nx = 1\n# %% tags=["chart"]\nplot()\n# %%\ndef prefill(): pass\n')
    assert sources(plain) == ["def prefill():\n    pass"]
    assert sources(percent) == ["x = 1", "def prefill(): pass"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gone.ipynb", "is not there"), ("gone.py", "is not there"), ("work.txt", "neither a notebook")],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_sentence(tmp_path, name, reason):
    with pytest.raises(NotebookError, match=reason):
        cells_to_run(sorted_cells(tmp_path / name))


# load_notebook


def test_the_functions_of_an_earlier_notebook_come_back(notebook):
    path = notebook(
        cell("import math", "imports", "setup"), cell("def prefill(x):\n    return math.floor(x)", "prefill")
    )
    mine = autograder.load_notebook(path)
    assert mine.prefill(2.5) == 2
    assert repr(mine) == "<the functions of prefill_decode.ipynb: prefill>"


def test_helpers_come_along_and_scratch_work_does_not(notebook, capsys):
    scratch = (
        "import math\nSCALE = 3\nprint('measuring')\nresult = 1 / 0\ndef helper(x):\n    return SCALE * math.floor(x)"
    )
    mine = autograder.load_notebook(notebook(cell(scratch), cell("def prefill(x):\n    return helper(x)", "prefill")))
    assert mine.prefill(2.5) == 6
    assert capsys.readouterr().out == ""


def test_classes_work_as_in_any_module(notebook):
    source = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n\n"
        "@dataclass\nclass Entry:\n    token_ids: list[int]"
    )
    assert autograder.load_notebook(notebook(cell(source, "entry"))).Entry([1]).token_ids == [1]


def test_magics_do_no_harm(notebook):
    path = notebook(
        cell("%matplotlib inline\nx = 1", "imports", "setup"), cell("def prefill():\n    return x", "prefill")
    )
    assert autograder.load_notebook(path).prefill() == 1


def test_a_name_in_an_annotation_must_be_defined_as_in_the_notebook(notebook):
    annotated = cell("def prefill(x: Undefined):\n    return x", "prefill")
    with pytest.raises(NotebookError, match="prefill cannot be run"):
        autograder.load_notebook(notebook(annotated))
    future = cell("from __future__ import annotations")
    assert autograder.load_notebook(notebook(future, annotated)).prefill(1) == 1


def test_given_is_found_beside_the_notebook_and_forgotten_afterwards(notebook, tmp_path, monkeypatch):
    (tmp_path / "given.py").write_text("def attend():\n    return 'theirs'\n")
    ours = type(sys)("given")
    monkeypatch.setitem(sys.modules, "given", ours)
    path = notebook(
        cell("from given import attend", "imports", "setup"), cell("def prefill():\n    return attend()", "prefill")
    )
    assert autograder.load_notebook(path).prefill() == "theirs"
    assert sys.modules["given"] is ours
    assert str(tmp_path) not in sys.path


def test_a_notebook_that_is_not_solved_says_so(notebook):
    with pytest.raises(
        NotebookError, match=r"prefill_decode\.ipynb is not solved yet; solve it first, or use the functions"
    ):
        autograder.load_notebook(notebook(cell(STUB, "decode-step")))


def test_a_function_that_is_not_solved_says_so_when_it_is_asked_for(notebook):
    mine = autograder.load_notebook(
        notebook(cell(STUB, "decode-step"), cell("def prefill():\n    return 1", "prefill"))
    )
    assert mine.prefill() == 1
    with pytest.raises(NotebookError, match="does not solve decode_step yet"):
        _ = mine.decode_step


def test_a_missing_function_is_named_with_those_that_exist(notebook):
    mine = autograder.load_notebook(notebook(cell("def prefill():\n    return 1", "prefill")))
    with pytest.raises(AttributeError, match="does not define attend; it defines prefill"):
        _ = mine.attend


def test_a_notebook_whose_functions_do_not_run_says_where(notebook):
    with pytest.raises(NotebookError, match=r"prefill_decode\.ipynb: prefill cannot be run \(SyntaxError"):
        autograder.load_notebook(notebook(cell("def prefill(:\n    pass", "prefill"), cell("def decode_step(): pass")))


def test_a_missing_notebook_is_named(tmp_path):
    with pytest.raises(NotebookError, match=r"prefill_decode\.ipynb is not there"):
        autograder.load_notebook(tmp_path / "prefill_decode.ipynb")
