"""What passes in the notebook passes in grading: names that grading would not have are reported with their cell."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import autograder
from autograder.notebooks.check_cell import CheckFailed
from autograder.notebooks.parity import of_notebook
from autograder.places import ROOT
from autograder.stages import STAGES

SOLUTION = {"nbgrader": {"grade": False, "grade_id": "bytes", "locked": False, "schema_version": 3, "solution": True}}
CHECK = {"nbgrader": {"grade": True, "grade_id": "memory-bytes", "locked": True, "points": 1, "schema_version": 3,
                      "solution": False}}  # fmt: skip
CHART = {"tags": ["chart"]}
CALL = 'autograder.check("memory-bytes")'


def saved(folder, *cells):
    """A notebook of cells given as (source, metadata)."""
    path = folder / "kv_cache.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(source, metadata=metadata) for source, metadata in cells]), path)
    return path


def told(path):
    return [one.sentence for one in of_notebook(path)]


def test_a_helper_from_a_chart_cell_is_reported_with_both_cells(tmp_path):
    path = saved(tmp_path, ("def helper(n):\n    return n", CHART), ("def kv(n):\n    return helper(n)", SOLUTION))
    assert told(path) == [
        "The cell bytes uses helper, which cell 1 defines, a cell that grading does not run. Define helper in bytes, "
        "or in a cell of your own."
    ]


def test_a_helper_in_a_check_cell_is_reported(tmp_path):
    path = saved(tmp_path, (f"def helper(n):\n    return n\n{CALL}", CHECK), ("kv = lambda n: helper(n)", SOLUTION))
    assert len(told(path)) == 1


def test_a_file_beside_the_notebook_is_reported(tmp_path):
    (tmp_path / "mine.py").write_text("x = 1\n")
    (tmp_path / "given.py").write_text("y = 1\n")
    path = saved(tmp_path, ("import mine, json\nfrom given import y\ndef kv(n):\n    return mine.x", SOLUTION))
    assert told(path) == ["The cell bytes imports mine.py, which grading does not have: put it into the notebook."]


def test_a_function_that_is_bound_again_later_is_reported(tmp_path):
    path = saved(tmp_path, ("def kv(n):\n    return 0", SOLUTION), ("def kv(n):\n    return n", CHART))
    assert told(path) == [
        "Cell 2 binds kv again, after bytes. Grading takes the one in bytes: give the other another name."
    ]


@pytest.mark.parametrize(
    "cells",
    [
        [("import numpy as np\nn_bytes = 4", {}), ("def kv(n):\n    return np.int64(n) * n_bytes", SOLUTION)],
        [("def helper(n):\n    return n", {}), ("def kv(n):\n    return helper(n)", SOLUTION)],
        [("total = 3", CHART), ("def kv(total):\n    return total", SOLUTION)],
        [("x = 1", CHART), ("def kv(n):\n    x = n\n    return [x for x in range(x)]", SOLUTION)],
        [("%time x = 1", CHART), ("def kv(n):\n    return len(str(n))", SOLUTION)],
        [("def helper(n, n): pass", {}), ("def kv(n):\n    return n", SOLUTION)],  # parsed, but cannot be compiled
        [("def kv(n):\n    n = 1\n    global n", SOLUTION)],
        [("def kv(n):\n    return n", SOLUTION), ("kv = print", {})],  # grading runs it, too
        [
            ("def kv(n):\n    return n", SOLUTION),
            ("def kv(n):\n    return 0", SOLUTION),
        ],  # a copy, of which others tell
    ],
)
def test_what_grading_has_is_not_reported(tmp_path, cells):
    assert told(saved(tmp_path, *cells)) == []


@pytest.mark.parametrize("stage", [s for s in STAGES if s.graded], ids=lambda s: s.name)
def test_nothing_is_reported_about_the_courses_own_notebooks(stage):
    assert told(ROOT / "course" / "release" / stage.assignment / f"{stage.module}.ipynb") == []


def test_a_check_in_the_notebook_reports_it_before_it_passes(tmp_path, monkeypatch):
    """In JupyterLab, which gives the kernel the path of its notebook."""
    path = saved(
        tmp_path,
        ("def helper(c, n, b):\n    return 2 * c.n_layer * n * c.n_embd * b", CHART),
        ("def kv_cache_bytes(config, n_seq, n_bytes=4):\n    return helper(config, n_seq, n_bytes)", SOLUTION),
    )
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    namespace = {"autograder": autograder}
    for cell in nbformat.read(path, as_version=4).cells:
        exec(cell.source, namespace)
    with pytest.raises(CheckFailed) as failed:
        exec(CALL, namespace)
    first, second = str(failed.value).splitlines()
    assert first.startswith("Passed here, and would fail in grading: ")
    assert "uses helper, which cell 1 defines" in second
