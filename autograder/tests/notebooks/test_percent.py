"""Python files are read as cells, as jupytext reads them."""

import jupytext
import pytest

from autograder.notebooks.percent import parse_python
from autograder.places import SOLUTIONS

SCRIPTS = sorted(SOLUTIONS.glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_stage_script_has_the_cells_that_jupytext_finds(path):
    text = path.read_text(encoding="utf-8")
    expected = [
        (c.cell_type, c.source, tuple(c.metadata.get("tags", ()))) for c in jupytext.reads(text, fmt="py:percent").cells
    ]
    assert [(c.type, c.source, c.tags) for c in parse_python(text).cells] == expected


def test_the_marks_of_a_header_are_kept():
    setup, solution, check = parse_python(
        '# %% setup="imports"\nx = 1\n# %% solution="prefill"\ny = 2\n# %% check="prefill-last"\nz = 3\n'
    ).cells
    assert (setup.grade_id, solution.grade_id, check.grade_id) == ("imports", "prefill", "prefill-last")
    assert (solution.is_solution, check.is_grade, setup.is_grade) == (True, True, False)


def test_a_plain_file_is_one_cell():
    (cell,) = parse_python("import numpy as np\n\n\ndef gelu(x):\n    return x\n").cells
    assert (cell.type, cell.source) == ("code", "import numpy as np\n\n\ndef gelu(x):\n    return x")


def test_code_before_the_first_header_is_a_cell_too():
    assert [c.source for c in parse_python("import numpy\n# %%\nx = 1\n").cells] == ["import numpy", "x = 1"]
