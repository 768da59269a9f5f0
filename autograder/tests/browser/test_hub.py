"""A round of a term on a real JupyterHub: release, fetch, solve, check, submit, collect, grade by hand, feedback."""

import importlib.util
import shutil

import pytest

from autograder.stages.samples import solved_cells, submissions_of
from autograder.tests.browser.hub import TEACHER, Hub, log_in
from autograder.tests.browser.jupyter import NotebookPage, grade_by_hand
from autograder.tests.course import ALL, CHECKS, NAME, STAGE, Course

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("jupyterhub") is None, reason="jupyterhub is not installed"),
    pytest.mark.skipif(
        shutil.which("configurable-http-proxy") is None,
        reason="the proxy is not installed (`make test-browser` does it where there is npm)",
    ),
]
WRONG = next(s for s in submissions_of(STAGE.name) if s.name == "positions-reset")
WRITTEN = "why-positions"
WRONG_ONES = {"bob"}
STUDENTS = {"ann": solved_cells(STAGE.name), "bob": WRONG.sources(STAGE)}


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    hub = Hub(tmp_path_factory.mktemp("hub"))
    hub.add_course(Course(tmp_path_factory.mktemp("course") / "course").folder)
    for name in STUDENTS:
        hub.add_student(name)
    with hub.runs():
        yield hub


@pytest.fixture
def log_in_as(chromium, hub):
    """Opens a separate browser for a user, logged in."""
    contexts = []

    def log_in_there(name):
        contexts.append(chromium.new_context(viewport={"width": 1280, "height": 1000}))
        page = contexts[-1].new_page()
        page.set_default_timeout(120_000)
        log_in(page, hub, name)
        return page

    yield log_in_there
    for context in contexts:
        context.close()


def assignment_list(page):
    page.click(".lm-MenuBar-item:has-text('Nbgrader')")
    page.click(".lm-Menu-itemLabel:text-is('Assignment List')")
    page.wait_for_selector(f"#released_assignments_list:has-text('{STAGE.assignment}'),"
                           f"#fetched_assignments_list:has-text('{STAGE.assignment}')")  # fmt: skip


def press(page, where, button):
    """A button in the row of the assignment, and what the server answers."""
    with page.expect_response(lambda r: "/assignments/" in r.url and r.request.method == "POST") as got:
        page.click(f"#{where}_assignments_list button:text-is('{button}')")
    answer = got.value.json()
    assert answer["success"], answer


def manage_assignments(page):
    page.click(".lm-MenuBar-item:has-text('Nbgrader')")
    page.click(".lm-Menu-itemLabel:text-is('Formgrader')")
    frame = page.frame_locator("iframe[src*=formgrader]")
    frame.locator(f"tr:has-text('{STAGE.assignment}')").first.wait_for()
    return frame


def click_and_wait(page, link, end):
    with page.expect_response(lambda r: r.url.endswith(end) and r.request.method == "POST", timeout=240_000) as got:
        link.click()
    assert got.value.json()["success"], got.value.json()
    dialog = page.frame_locator("iframe[src*=formgrader]").locator(".modal.in")
    dialog.locator("button").first.click()
    dialog.wait_for(state="detached")


def row_of_the_stage(formgrader):
    return formgrader.locator(f"tr:has-text('{STAGE.assignment}')").first


def test_a_stage_from_its_release_to_the_feedback_that_a_student_reads(hub, log_in_as, screenshots):
    teacher = log_in_as(TEACHER)
    formgrader = manage_assignments(teacher)
    warnings = formgrader.locator(".alert-warning")
    assert [text for text in warnings.all_inner_texts() if text.strip()] == []
    teacher.screenshot(path=str(screenshots / "hub-formgrader.png"))
    click_and_wait(teacher, row_of_the_stage(formgrader).locator(".release a"), f"{STAGE.assignment}/release")

    for name, sources in STUDENTS.items():
        page = log_in_as(name)
        assignment_list(page)
        press(page, "released", "Fetch")
        solve(page, hub, name, sources)
        page.goto(f"{hub.address}/user/{name}/lab?reset")
        assignment_list(page)
        press(page, "fetched", "Submit")
        page.screenshot(path=str(screenshots / f"hub-submitted-{name}.png"))

    click_and_wait(teacher, row_of_the_stage(formgrader).locator(".collect a"), f"{STAGE.assignment}/collect")
    assert {p.parent.parent.name for p in hub.course.glob(f"submitted/*/{STAGE.assignment}/{NAME}")} == set(STUDENTS)
    grade_all(teacher, formgrader)
    grade_a_question(teacher, formgrader, hub, "bob")
    teacher.goto(f"{hub.address}/user/{TEACHER}/lab?reset")
    formgrader = manage_assignments(teacher)
    for step in ("generate", "release"):
        link = row_of_the_stage(formgrader).locator(f".{step}-feedback a")
        click_and_wait(teacher, link, f"{STAGE.assignment}/{step}_feedback")

    page = log_in_as("bob")
    assignment_list(page)
    press(page, "submitted", "Fetch Feedback")
    (found,) = (hub.homes / "bob" / STAGE.assignment / "feedback").glob("*/*.html")
    page.goto(f"{hub.address}/user/bob/files/{found.relative_to(hub.homes / 'bob')}")
    text = page.locator("body").inner_text()
    lost = next(check for check in CHECKS if check in WRONG.loses)
    assert f"Not passed: {CHECKS[lost].title}" in text
    assert "1.5 / 2 points" in text and "Say what wpe does with it." in text
    page.screenshot(path=str(screenshots / "hub-feedback.png"))


def solve(page, hub, name, sources):
    """Paste the solutions, answer a question, and look at the course's own checks."""
    notebook = NotebookPage(page, f"{hub.address}/user/{name}", f"{STAGE.assignment}/{NAME}", token="")
    for source in sources.values():
        first = next(line for line in source.splitlines() if line.startswith(("def ", "class ")))
        notebook.paste(notebook.cell_with(first.partition("(")[0]), source)
    cell = page.locator(".jp-MarkdownCell:has-text('Question 1.')").first
    cell.scroll_into_view_if_needed()
    cell.dblclick()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\n\nBecause *positions* continue.")
    page.keyboard.press("Control+Enter")
    if name not in WRONG_ONES:
        notebook.run_all(600)
        for check in CHECKS:
            said = notebook.output_of(notebook.cell_with(f'autograder.check("{check}")'))
            assert f"Passed: {CHECKS[check].title}" in said, said
    notebook.save()


def grade_all(page, formgrader):
    row_of_the_stage(formgrader).locator("td.num-submissions a").click()
    for name in STUDENTS:
        link = formgrader.locator(f"tr:has-text('{name}')").locator(".autograde a")
        click_and_wait(page, link, f"{STAGE.assignment}/{name}/autograde")


def grade_a_question(page, formgrader, hub, student):
    """Manual Grading > the assignment > the notebook > the submission: points and a comment for the first question."""
    course = object.__new__(Course)
    course.folder = hub.course
    assert sum(course.scores("ann").values()) == ALL > sum(course.scores(student).values()) > 0
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission_notebook(STAGE.module, STAGE.assignment, student).id
    formgrader.get_by_role("link", name="Manual Grading").first.click()
    formgrader.get_by_role("link", name=STAGE.assignment).first.click()
    formgrader.get_by_role("link", name=STAGE.module).first.click()
    formgrader.locator("tbody tr:has-text('Submission #')").first.wait_for()
    formgrader.locator(f"tbody a[href*='{submission}']").first.click()
    formgrader.locator(f"input#{next(iter(CHECKS))}[placeholder]").wait_for()  # the page knows the scores
    grade_by_hand(page, formgrader, WRITTEN)
