"""The released notebooks in a real JupyterLab and a real browser, as a student meets them."""

import json
import re
import shutil
from pathlib import Path

import pytest

from autograder.judge.framework import checks_of
from autograder.places import ROOT
from autograder.stages import find_stage
from autograder.stages.samples import solved_cells
from autograder.tests.browser.jupyter import NotebookPage, jupyter_lab
from autograder.toolkit.costs import Decoding

RELEASE = ROOT / "course" / "release"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A student's copy of the release."""
    return Path(shutil.copytree(RELEASE, tmp_path_factory.mktemp("student") / "course"))


@pytest.fixture(scope="module")
def address(folder, tmp_path_factory):
    with jupyter_lab(folder, tmp_path_factory.mktemp("jupyter")) as address:
        yield address


def wait_for_text(page, selector: str, text: str, seconds: float = 30) -> None:
    page.wait_for_function(
        "([selector, text]) => [...document.querySelectorAll(selector)].some(e => e.innerText.includes(text))",
        arg=[selector, text],
        timeout=1000 * seconds,
    )


def test_a_students_window_has_nothing_that_is_for_assistants(page, address):
    """Validate runs checks that grading does not look at; Create Assignment is for whoever makes a course."""
    NotebookPage(page, address, "02-kv-cache/kv_cache.ipynb")
    page.wait_for_selector(".jp-NotebookPanel-toolbar button")
    assert page.query_selector(".jp-NotebookPanel-toolbar >> text=Validate") is None
    assert page.query_selector("text=Create Assignment") is None


def test_start_here_runs_and_both_labs_answer(page, address, screenshots):
    notebook = NotebookPage(page, address, "00-start-here/start_here.ipynb")
    notebook.run_all()
    errors = page.query_selector_all(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']")
    assert [e.inner_text() for e in errors] == []

    lab = notebook.cell_with("decode_lab")
    lab.scroll_into_view_if_needed()
    assert re.search(r"will cost\s+256\b", lab.inner_text())
    generate = lab.wait_for_selector("button:has-text('Generate')")
    for _ in range(3):
        before = lab.query_selector("[role=status]").inner_text()
        generate.click()
        page.wait_for_function("([e, t]) => !e.innerText.includes(t)", arg=[lab, before], timeout=30_000)
    text = lab.inner_text()
    assert "Step 3 (decode)" in text
    assert re.search(rf"paid so far\s+{Decoding(16, use_cache=True, n_steps=3).paid}\b", text)
    lab.screenshot(path=str(screenshots / "lab-1.png"))
    lab.query_selector("input[type=checkbox]").click()  # the cache off: everything starts again
    wait_for_text(page, ".jp-OutputArea", "nothing computed yet")
    assert "last run, 3 steps after 16 tokens, cache on" in lab.inner_text()
    generate.click()
    wait_for_text(page, ".jp-OutputArea", "Step 1 (prefill)")
    assert "256" in lab.inner_text()
    lab.query_selector("button:has-text('Reset')").click()
    wait_for_text(page, ".jp-OutputArea", "nothing computed yet")

    lab = notebook.cell_with("request_lab")
    lab.scroll_into_view_if_needed()
    lab.wait_for_selector("textarea")
    assert "10,816" in lab.inner_text() and "816" in lab.inner_text()
    lab.screenshot(path=str(screenshots / "lab-2.png"))
    before = lab.query_selector("[role=status]").inner_text()
    lab.query_selector("button:has-text('Change one letter')").click()
    page.wait_for_function("([e, t]) => !e.innerText.includes(t)", arg=[lab, before], timeout=30_000)
    rows = [r.inner_text() for r in lab.query_selector_all("tr") if "reused" in r.inner_text()]
    assert len(rows) == 1 and "816" not in rows[0].split()  # it went cold
    page.screenshot(path=str(screenshots / "start-here.png"))


@pytest.mark.parametrize("name", ["kv-cache", "block-cache"])
def test_a_stage_is_solved_in_the_browser(page, address, folder, screenshots, name):
    stage = find_stage(name)
    notebook = NotebookPage(page, address, f"{stage.assignment}/{stage.module}.ipynb")
    for source in solved_cells(stage.name).values():
        first = next(line for line in source.splitlines() if line.startswith(("def ", "class ")))
        notebook.paste(notebook.cell_with(first.rstrip(":")), source)
    notebook.run_all()
    for check in checks_of(stage.name):
        cell = notebook.cell_with(f'autograder.check("{check.id}")')
        assert f"Passed: {check.title}" in notebook.output_of(cell), check.id
    charts = page.query_selector_all(".jp-NotebookPanel .jp-OutputArea img")
    assert charts
    for number, chart in enumerate(charts):
        chart.scroll_into_view_if_needed()
        assert chart.bounding_box()["width"] > 200
        chart.screenshot(path=str(screenshots / f"{stage.module}-{number}.png"))
    notebook.save()
    saved = json.loads((folder / stage.assignment / f"{stage.module}.ipynb").read_text(encoding="utf-8"))
    assert any(c.get("outputs") for c in saved["cells"] if c["cell_type"] == "code")


def test_a_failed_check_shows_its_message_without_a_traceback(page, address, screenshots):
    stage = find_stage("save-and-reuse")
    notebook = NotebookPage(page, address, f"{stage.assignment}/{stage.module}.ipynb")
    notebook.run_all()
    first = checks_of(stage.name)[0]  # Run All Cells stops at the first cell that fails
    output = notebook.output_of(notebook.cell_with(f'autograder.check("{first.id}")'))
    assert f"Not yet: {first.title} ({first.points} points)" in output
    assert "Traceback" not in output and "framework.py" not in output
    page.screenshot(path=str(screenshots / "failed-check.png"))
