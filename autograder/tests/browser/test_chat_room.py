"""The chat widget in a real JupyterLab and a real browser: type, watch the answer come, turn the reuse off."""

import nbformat
import pytest

from autograder.notebooks.given import given_source
from autograder.stages import find_stage
from autograder.stages.sample_tests import setup_cells
from autograder.stages.samples import solved_cells
from autograder.tests.browser.jupyter import NotebookPage, jupyter_lab
from autograder.tests.browser.test_notebooks import wait_for_text

STAGE = find_stage("chat-model")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A notebook of the solved stage that ends with a chat room on the small random model."""
    folder = tmp_path_factory.mktemp("student")
    sources = [*(c.source for c in setup_cells(STAGE.name)), *solved_cells(STAGE.name).values()]
    sources.append("chat_lab.ChatRoom(Chat, weights, tokenizer, n_new=60)")
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "chat.ipynb")
    (folder / "given.py").write_text(given_source(STAGE) or "", encoding="utf-8")
    with jupyter_lab(folder, tmp_path_factory.mktemp("jupyter")) as address:
        yield address


def test_a_conversation_in_the_widget(page, address, screenshots):
    notebook = NotebookPage(page, address, "chat.ipynb")
    notebook.run_all()
    room = notebook.cell_with("ChatRoom")
    room.scroll_into_view_if_needed()
    text = room.wait_for_selector("input[type=text]")
    send = room.query_selector("button:has-text('Send')")
    text.fill("Who?")
    send.click()
    wait_for_text(page, ".jp-OutputArea", "reused 0 of")
    wait_for_text(page, ".jp-OutputArea", "s cold)")
    assert text.input_value() == ""
    text.fill("And <b>then</b>?")
    page.keyboard.press("Enter")
    wait_for_text(page, ".jp-OutputArea", "And <b>then</b>?")  # shown as it was typed
    page.wait_for_function("() => document.body.innerText.split('s cold)').length === 3", timeout=60_000)
    assert room.inner_text().count("reused 0 of") == 1
    room.query_selector("input[type=checkbox]").click()
    text.fill("Why?")
    send.click()
    page.wait_for_function("() => document.body.innerText.split('s cold)').length === 4", timeout=60_000)
    assert room.inner_text().count("reused 0 of") == 2
    conversation = room.query_selector(".widget-html-content > div").bounding_box()
    last = room.query_selector_all("small")[-1].bounding_box()
    assert conversation["height"] < 400 and last["y"] < conversation["y"] + conversation["height"]  # its end is shown
    room.screenshot(path=str(screenshots / "chat-room.png"))
