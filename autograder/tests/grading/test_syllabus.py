"""The syllabus' table of cells: each of its rows is a notebook that is graded, with the outcome that the row says."""

import json
import re

import pytest

from autograder.cli.sample_class import write_submission
from autograder.grading.submission import Grading, HandedIn, grade
from autograder.notebooks.build import source_notebook
from autograder.notebooks.load import sorted_cells
from autograder.notebooks.marks import read_stage
from autograder.notebooks.oddities import oddities
from autograder.places import ROOT
from autograder.sandbox.client import Worker
from autograder.sandbox.isolation import LIMITS, Isolation
from autograder.stages import find_stage

STAGE = find_stage("kv-cache")
SOURCE = json.loads(source_notebook(STAGE, read_stage(STAGE, ROOT / "solutions")))
MARKS = [cell["metadata"]["nbgrader"] for cell in SOURCE["cells"] if "nbgrader" in cell["metadata"]]
POINTS = {mark["grade_id"]: mark["points"] for mark in MARKS if mark["grade"]}
RELEASE = ROOT / "course" / "release" / STAGE.assignment
SOLUTION = (
    "def kv_cache_bytes(config, n_seq, n_bytes=4, factor={factor}):\n"
    "    return factor * config.n_layer * n_seq * config.n_embd * n_bytes"
)
TWO = "TWO = 2"


class Notebook:
    """The released notebook with kv_cache_bytes solved, whose factor comes from another cell unless it is 2."""

    def __init__(self, folder, factor="TWO"):
        self.path = write_submission(RELEASE, folder, STAGE, {"kv-cache-bytes": SOLUTION.format(factor=factor)})
        self.content = json.loads(self.path.read_text(encoding="utf-8"))
        self.cells = self.content["cells"]

    def place(self, begins):
        """The place of the cell that begins so."""
        return next(n for n, cell in enumerate(self.cells) if "".join(cell["source"]).startswith(begins))

    def add(self, place, source):
        self.cells.insert(place, {"cell_type": "code", "id": "own", "metadata": {}, "source": source})

    def prepend(self, cell, source):
        cell["source"] = f"{source}\n{''.join(cell['source'])}"

    def passes(self):
        """Whether kv_cache_bytes has its points when the folder is graded."""
        self.path.write_text(json.dumps(self.content), encoding="utf-8")
        given = RELEASE / "given.py"
        run = Grading(RELEASE.parent, STAGE, SOURCE, POINTS, given, None, Isolation(LIMITS), None)
        graded = grade(run, HandedIn(self.path.parent, b"key"), Worker)
        results = {r.id: r for r in graded.record.checks}
        return results["memory-bytes"].passed

    @property
    def told(self):
        """What `autograder test` says first."""
        return " ".join(oddities(self.path, sorted_cells(self.path), STAGE))


def a_solution(folder):
    assert Notebook(folder / "right", factor=2).passes()
    assert not Notebook(folder / "wrong", factor=1).passes()


def an_added_cell(folder):
    for name, below, passes in (("before", 0, True), ("after", 1, False)):
        notebook = Notebook(folder / name)
        notebook.add(notebook.place("def kv_cache_bytes") + below, TWO)
        assert notebook.passes() == passes


def a_setup(folder):
    for name, source in (("changed", "raise ValueError"), ("emptied", "")):
        notebook = Notebook(folder / name, factor="np.int64(2)")
        notebook.cells[notebook.place("import numpy")]["source"] = source
        assert notebook.passes()
    notebook = Notebook(folder / "deleted", factor="np.int64(2)")
    del notebook.cells[notebook.place("import numpy")]
    assert notebook.passes()


def a_check(folder):
    notebook = Notebook(folder / "helper")
    notebook.prepend(notebook.cells[notebook.place('autograder.check("layer-cache-rows")')], TWO)
    assert not notebook.passes()
    assert "uses TWO, which cell" in notebook.told
    notebook = Notebook(folder / "other", factor=1)
    notebook.cells[notebook.place('autograder.check("memory-bytes")')]["source"] = "print('Passed')"
    assert not notebook.passes()


def a_chart(folder):
    notebook = Notebook(folder / "changed")
    chart = next(cell for cell in notebook.cells if "chart" in cell["metadata"].get("tags", ()))
    notebook.prepend(chart, TWO)
    assert not notebook.passes()
    assert "uses TWO, which cell" in notebook.told
    notebook = Notebook(folder / "as it is", factor=2)
    notebook.prepend(chart, "raise SystemExit")
    assert notebook.passes()


def a_file_beside(folder):
    notebook = Notebook(folder, factor="__import__('mine').TWO")
    notebook.add(0, "import mine")
    (folder / "mine.py").write_text(TWO, encoding="utf-8")
    assert not notebook.passes()
    assert "imports mine.py, which grading does not have" in notebook.told


def the_given_file(folder):
    notebook = Notebook(folder, factor="2 * (layer_norm.__module__ != '')")
    notebook.add(0, "from given import layer_norm")
    (folder / "given.py").write_text("raise ValueError", encoding="utf-8")
    assert notebook.passes()


ROWS = {
    ("a solution cell (`# YOUR CODE HERE`)", "yours is run"): a_solution,
    ("a code cell that you added", "run, in its place"): an_added_cell,
    ("setup (imports, given helpers), locked", "the course's is run, whatever yours contains"): a_setup,
    ("a check, locked", "the course's; code that you put into it is lost"): a_check,
    ("a chart or experiment of the course, changed or not", "not run"): a_chart,
    ("a Python file beside the notebook, other than `given.py`", "not there"): a_file_beside,
    ("`given.py`", "the course's"): the_given_file,
}


def test_the_table_has_these_rows():
    text = (ROOT / "course" / "README.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| cell | in grading |\n")
    rows = re.findall(r"^  \| (.*?) \| (.*?) \|$", table.partition("\n\n")[0], re.MULTILINE)
    assert [tuple(row) for row in rows if row[0] != "---"] == list(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_says_what_grading_does(row, tmp_path):
    ROWS[row](tmp_path / "work")
