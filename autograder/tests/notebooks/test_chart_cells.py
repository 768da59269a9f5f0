"""Rules for a stage's script: short chart cells, guesses before results, and folded results."""

import re

import nbformat
import pytest

from autograder.notebooks.marks import read_stage
from autograder.places import ROOT, SOLUTIONS
from autograder.stages import STAGES

MOST_LINES = 10
WIDEST = 116  # characters that a cell shows without scrolling, in a JupyterLab 1,366 pixels wide
CELLS = {stage.name: read_stage(stage, SOLUTIONS) for stage in STAGES}
EACH_STAGE = pytest.mark.parametrize("stage", CELLS)


def chart_cells(stage):
    return [cell.source for cell in CELLS[stage] if "tags" in cell.metadata]


def code_lines(source):
    return [line for line in source.splitlines() if line.strip() and not line.strip().startswith("#")]


@EACH_STAGE
def test_a_chart_cell_has_ten_lines_at_most_and_what_only_draws_is_in_the_package(stage):
    long = {code_lines(source)[0]: len(code_lines(source)) for source in chart_cells(stage)}
    assert {first: n for first, n in long.items() if n > MOST_LINES} == {}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_released_cell_is_as_wide_as_a_laptop_shows(stage):
    notebook = nbformat.read(ROOT / "course" / "release" / stage.assignment / f"{stage.module}.ipynb", as_version=4)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert [line for source in code for line in source.splitlines() if len(line) > WIDEST] == []


@EACH_STAGE
def test_a_stage_asks_for_four_guesses_and_puts_each_beside_its_result(stage):
    cells = chart_cells(stage)
    asked = {
        m[1]: i for i, source in enumerate(cells) for m in re.finditer(r"^(\w+) = autograder\.guess\(", source, re.M)
    }
    beside = {m[1]: i for i, source in enumerate(cells) for m in re.finditer(r"\b(\w+)\.beside\(", source)}
    assert len(asked) >= 4
    assert {name for name, place in asked.items() if not beside.get(name, -1) > place} == set()


@EACH_STAGE
def test_what_you_should_see_is_folded(stage):
    prose = [cell.source for cell in CELLS[stage] if cell.cell_type == "markdown"]
    for text in prose:
        assert text.count("What you should see</summary>") == len(re.findall(r"What you should see(?! is)", text))
