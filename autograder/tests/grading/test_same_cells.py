"""What `autograder test` runs of a notebook is what is run when it is graded, however the notebook was edited."""

import json
import random

import pytest

from autograder.cli.sample_class import write_submission
from autograder.grading.rebuild import rebuild
from autograder.notebooks.build import source_notebook
from autograder.notebooks.document import read_document
from autograder.notebooks.load import cells_to_run, sorted_cells
from autograder.notebooks.marks import read_stage
from autograder.notebooks.sorting import text_of
from autograder.places import ROOT
from autograder.stages import GRADED_STAGES
from autograder.stages.samples import solved_cells

OWN = "value = {}\n\n\ndef helper_{}():\n    return value"


def _text(cell):
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


class Editor:
    """Somebody who means well, edits a notebook for a while, and saves it with whatever there is."""

    def __init__(self, notebook, random):
        self.cells, self.random, self.number = notebook["cells"], random, 0

    def edit(self):
        edits = [e for name, e in vars(Editor).items() if name.startswith("do_")]
        for edit in self.random.choices(edits, k=self.random.randint(1, 12)):
            edit(self, self.random.randrange(len(self.cells)))

    def own(self):
        self.number += 1
        return OWN.format(self.number, self.number)

    def do_write_a_cell(self, at):
        self.cells.insert(at, {"cell_type": "code", "id": f"own-{self.number}", "metadata": {}, "source": self.own()})

    def do_write_a_chart(self, at):
        self.do_write_a_cell(at)
        self.cells[at]["metadata"]["tags"] = ["chart"]

    def do_add_to_a_cell(self, at):
        self.cells[at]["source"] = _text(self.cells[at]) + "\n" + self.own()

    def do_check_in_a_cell(self, at):
        self.cells[at]["source"] = _text(self.cells[at]) + '\nautograder.check("position-continues")'

    def do_replace_a_cell(self, at):
        self.cells[at]["source"] = self.own()

    def do_redefine(self, at):
        stage = self.random.choice(GRADED_STAGES)
        self.do_write_a_cell(at)
        self.cells[at]["source"] = f"def {self.random.choice(stage.functions)}(*args):\n    return {self.number}"

    def do_make_code(self, at):
        self.cells[at].update(cell_type="code")

    def do_make_markdown(self, at):
        if "nbgrader" in self.cells[at]["metadata"] or self.cells[at]["cell_type"] == "code":
            self.cells[at].update(cell_type="markdown")

    def do_delete(self, at):
        if len(self.cells) > 3:
            del self.cells[at]

    def do_move(self, at):
        self.cells.insert(self.random.randrange(len(self.cells)), self.cells.pop(at))

    def do_paste(self, at):
        copy = json.loads(json.dumps(self.cells[at]))
        if self.random.random() < 0.7:
            copy["id"] = f"pasted-{len(self.cells)}"
        self.cells.insert(self.random.randrange(len(self.cells)), copy)

    def do_split(self, at):
        lines = _text(self.cells[at]).split("\n")
        where = self.random.randint(0, len(lines))
        second = json.loads(json.dumps(self.cells[at])) | {"id": f"half-{len(self.cells)}"}
        self.cells[at]["source"], second["source"] = "\n".join(lines[:where]), "\n".join(lines[where:])
        self.cells.insert(at + 1, second)

    def do_merge(self, at):
        if at + 1 < len(self.cells):
            below = self.cells.pop(at + 1)
            self.cells[at]["source"] = _text(self.cells[at]) + "\n" + _text(below)

    def do_lose_tags(self, at):
        self.cells[at]["metadata"].pop("tags", None)

    def do_lose_metadata(self, at):
        if self.cells[at]["cell_type"] == "code":  # a solution in Markdown is known by its id when graded, and run
            self.cells[at]["metadata"] = {}

    def do_lose_all_metadata(self, at):
        if self.random.random() < 0.3:
            for cell in self.cells:
                cell["metadata"] = {}
                cell.pop("id", None)

    def do_tag(self, at):
        self.cells[at]["metadata"]["tags"] = ["chart"]


@pytest.mark.parametrize("stage", GRADED_STAGES, ids=lambda stage: stage.name)
def test_the_same_code_runs_in_the_same_order_however_a_notebook_was_edited(stage, tmp_path):
    source = json.loads(source_notebook(stage, read_stage(stage, ROOT / "solutions")))
    release = ROOT / "course" / "release" / stage.assignment
    path = write_submission(release, tmp_path / "work", stage, solved_cells(stage.name))
    handed_out = path.read_text(encoding="utf-8")
    flags = [c["metadata"].get("nbgrader", {}) for c in source["cells"]]
    locked = [c for c, f in zip(source["cells"], flags, strict=True) if f.get("locked") and not f["grade"]]
    setups = [text_of(_text(c)) for c in locked]

    for seed in range(25):
        notebook = json.loads(handed_out)
        Editor(notebook, random.Random(f"{stage.name} {seed}")).edit()
        path.write_text(json.dumps(notebook), encoding="utf-8")
        tested = [text_of(c.source) for c in cells_to_run(sorted_cells(path))]
        graded = [text_of(c.source) for c in rebuild(source, read_document(path)).runs]
        assert [s for s in graded if s not in setups] == [s for s in tested if s not in setups], seed
        rest = iter(graded)
        assert all(s in rest for s in tested), seed  # the setup runs where it stands, and besides where it belongs
        assert set(setups) <= set(graded), seed
