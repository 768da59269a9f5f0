"""A display run by itself: what cells may show, and what happens to hostile ones."""

import base64

import numpy as np
import pytest

from autograder.grading.display import show
from autograder.sandbox.client import Cell, WorkerGone
from autograder.stages.sample_tests import shared_worker
from autograder.tests.memory import peak_growth
from autograder.worker.outputs import CUT, MAX_CELL

SECONDS = 60


def run(*sources, given=None, start_worker=shared_worker, seconds=SECONDS):
    """The outputs of each cell, and the problem."""
    cells = [Cell(f"cell-{n}", source) for n, source in enumerate(sources)]
    shown = show(cells, given, start_worker, seconds)
    return [shown.outputs.get(cell.label, []) for cell in cells], shown.problem


def text(outputs):
    return "".join(o.get("text") or o["data"].get("text/plain", "") for o in outputs)


def test_text_results_charts_and_errors_are_shown(tmp_path):
    given = tmp_path / "given.py"
    given.write_text("number = 41\n")
    outputs, problem = run(
        "from given import number\nimport numpy as np\nprint('hello', number + 1)",
        "np.arange(3)",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()\nprint('below')",
        "plt.plot([1, 2, 3]);",
        "import autograder\nautograder.charts.bar_chart({'a': 1, 'b': 2}, label='x')",
        "autograder.charts.bar_chart({'a': 1, 'b': 2}, label='x').show()",
        "def half(x):\n    return x / 0\nhalf(1)",
        "this is no Python",
        "autograder.check('any'); input('?')",
        "%time print('after')\n",
        given=given,
    )
    assert problem == ""
    assert text(outputs[0]) == "hello 42\n"
    assert text(outputs[1]) == "array([0, 1, 2])"
    assert text(outputs[2]).endswith("below\n")
    for chart in outputs[2:6]:
        assert chart[0]["data"]["image/png"].startswith("iVBORw0KGgo")
    shown = outputs[4][0]["metadata"]["image/png"]
    width = int.from_bytes(base64.b64decode(outputs[4][0]["data"]["image/png"])[16:20], "big")
    assert set(shown) == {"width", "height"} and shown["width"] <= width < 1.1 * shown["width"]
    assert "return x / 0" in text(outputs[6]) and text(outputs[6]).endswith("ZeroDivisionError: division by zero\n")
    assert "autograder" not in text(outputs[6])  # the traceback begins in the cell
    assert "SyntaxError" in text(outputs[7])
    assert "EOFError" in text(outputs[8])
    assert text(outputs[9]) == "after\n"


PAGES = """
from IPython.display import HTML, SVG, Image, Javascript, Markdown, Latex, IFrame, display
bad = "<script>alert(1)</script><a href='http://evil.example'>x</a>"
for kind in (HTML, Javascript, Markdown, Latex): display(kind(bad))
display({"text/html": bad, "image/svg+xml": "<svg onload='alert(1)'/>", "image/png": bad,
         "application/javascript": bad, "text/markdown": bad}, raw=True)
display(IFrame("http://evil.example", 10, 10))
print(chr(27) + "]8;;http://evil.example" + chr(7) + "link")
"""


def test_only_text_and_pictures_reach_the_page():
    (outputs,), problem = run(PAGES)
    assert problem == ""
    assert {key for o in outputs for key in o.get("data", {})} == {"text/plain"}
    assert "evil" not in text(outputs) and "<script" not in text(outputs)
    assert "<IPython.core.display.HTML object>" in text(outputs)


def test_a_flood_is_cut_as_it_arrives_and_earlier_outputs_stay():
    with peak_growth() as growth:
        outputs, problem = run("print('x' * 20_000_000)", "while True: print('y' * 1000)", "1", seconds=6)
    assert problem == "the 6 s for them are used up"
    assert text(outputs[0]).endswith(CUT) and len(text(outputs[0])) <= MAX_CELL + len(CUT)
    assert outputs[1:] == [[], []]
    assert growth.bytes < 100 * 2**20


def test_a_process_that_ends_is_reported():
    outputs, problem = run("print('before')", "import os; os._exit(3)", "print('never')")
    assert problem == "the process ended while running its cells (exit status 3)"
    assert text(outputs[0]) == "before\n" and outputs[2] == []


class Lying:
    """A worker whose process has replaced the code that answers requests."""

    def __init__(self, *values):
        self.values = list(values)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        pass

    def request(self, message, doing, seconds):
        return {"value": self.values.pop(0)}


def test_the_outputs_that_the_process_sends_are_checked_again():
    data = {"text/html": "<script>", "text/plain": "\x1b[1mtext", "image/png": "<script>"}
    bad = [{"output_type": "display_data", "data": data}, {"output_type": "stream", "name": "<a>", "text": "x" * 10**7}]
    lying = Lying({"outputs": bad, "cut": 1}, {"outputs": [], "cut": True})
    (first, second), problem = run("", "", start_worker=lambda given: lying)
    assert problem == ""
    assert first[0] == {"output_type": "display_data", "data": {"text/plain": "text"}, "metadata": {}}
    assert [o["output_type"] for o in first[1:]] == ["stream", "stream"] and text(first).endswith(CUT)
    assert len(text(first)) <= MAX_CELL + len(CUT)
    assert text(second) == CUT


@pytest.mark.parametrize("value", [None, 7, [], {}, {"outputs": [3]}, {"outputs": [{}]}, {"outputs": np.zeros(2)}])
def test_a_malformed_reply_ends_the_run(value):
    outputs, problem = run("", start_worker=lambda given: Lying(value))
    assert outputs == [[]]
    assert problem.startswith("the process that runs them failed (")


def test_a_sandbox_that_does_not_start_costs_the_charts_alone():
    def start_worker(given):
        raise WorkerGone("no room")

    assert run("1", start_worker=start_worker) == ([[]], "no room")
