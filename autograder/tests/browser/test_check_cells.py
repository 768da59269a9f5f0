"""What a check cell shows in JupyterLab: what was seen and, in two folds, where to look and the cause."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.stages.samples import solved_cells
from autograder.tests.browser.jupyter import NotebookPage, jupyter_lab

CALL = 'autograder.check("gelu-tanh")'
EXACT = "from math import erf\ndef gelu(x):\n    return 0.5 * x * (1 + np.vectorize(erf, otypes=[float])(x / 2**0.5))"
TAGS = "def gelu(x):\n    raise ValueError('<b id=mine>' + 'very' * 90)"
SOURCES = [
    "import autograder\nimport numpy as np",
    *(solved_cells("forward-pass")["gelu"], CALL),
    *(EXACT, f"try:\n    {CALL}\nexcept Exception:\n    pass"),
    *(TAGS, CALL),
]


@pytest.fixture(params=["JupyterLab Light", "JupyterLab Dark"])
def notebook(request, page, tmp_path):
    cells = [new_code_cell(source) for source in SOURCES]
    nbformat.write(new_notebook(cells=cells), tmp_path / "checks.ipynb")
    private = tmp_path / "private"
    themes = private / "settings" / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
    themes.parent.mkdir(parents=True)
    themes.write_text(json.dumps({"theme": request.param}), encoding="utf-8")
    with jupyter_lab(tmp_path, private) as address:
        yield NotebookPage(page, address, "checks.ipynb"), request.param.rpartition(" ")[2].lower()


def test_a_check_is_told_in_three_levels_and_nothing_of_a_students_is_obeyed(notebook, page, screenshots):
    notebook, theme = notebook
    notebook.run_all()
    passed, named, raised = (notebook.cells()[n] for n in (2, 4, 6))
    assert notebook.output_of(passed).endswith("Passed: gelu is GPT-2's tanh form (1 point)")

    text = notebook.output_of(named)
    assert "Not yet: gelu is GPT-2's tanh form (1 point)" in text.splitlines()[0]
    assert [row.inner_text().split("\t")[0] for row in named.query_selector_all("tr")] == [
        *("result of", "off by up to", "values that differ", "first at", "case")
    ]
    look, cause = named.query_selector_all("details")
    assert "Look in gelu" not in text and "with erf" not in text
    look.query_selector("summary").click()
    assert "Look in gelu" in notebook.output_of(named) and "with erf" not in notebook.output_of(named)
    cause.query_selector("summary").click()
    assert "with erf" in notebook.output_of(named)

    assert page.query_selector("#mine") is None and "<b id=mine>" in notebook.output_of(raised)
    assert "Traceback" not in notebook.output_of(raised)
    box = raised.query_selector(".jp-RenderedHTMLCommon > div")
    assert box.evaluate("e => e.scrollWidth <= e.clientWidth")
    raised.scroll_into_view_if_needed()
    page.screenshot(path=str(screenshots / f"check-{theme}.png"))
