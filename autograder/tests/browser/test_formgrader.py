"""nbgrader's formgrader inside JupyterLab, on a graded course: what a teaching assistant sees there, and does."""

import re

import pytest

from autograder.judge.bugs import POSITIONS_RESET
from autograder.stages.samples import submissions_of
from autograder.tests.browser.jupyter import TOKEN, grade_by_hand, jupyter_lab
from autograder.tests.course import ALL, CHECKS, STAGE, Course

WRITTEN = "why-positions"
ANSWER = "Position 3 is <script>document.title = 'taken'</script> <img src=x onerror=\"document.title = 'taken'\">"
WRONG = next(s for s in submissions_of(STAGE.name) if s.name == "positions-reset")
LOST = next(check for check in CHECKS if check in WRONG.loses)
KEPT = next(check for check in CHECKS if check not in WRONG.loses)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"))
    course.hand_in("right")
    course.hand_in("wrong", {**WRONG.sources(STAGE), WRITTEN: ANSWER})
    course.hand_in("unsolved", {})
    grade(course)
    return course


def grade(course, *options):
    run = course.run("autograde", STAGE.assignment, *options)
    assert run.returncode == 0, run.stderr


@pytest.fixture(scope="module")
def address(course, tmp_path_factory):
    with jupyter_lab(course.folder, tmp_path_factory.mktemp("jupyter")) as address:
        yield address


@pytest.fixture
def formgrader(page, address):
    """The formgrader, opened from JupyterLab's menu."""
    page.goto(f"{address}/lab?token={TOKEN}&reset")
    page.click(".lm-MenuBar-item:has-text('Nbgrader')", timeout=90_000)
    page.click(".lm-Menu-itemLabel:text-is('Formgrader')")
    frame = page.frame_locator("iframe[src*=formgrader]")
    frame.locator("text=Manual Grading").first.wait_for(timeout=60_000)
    return frame


def open_submissions(formgrader):
    """Manual Grading > the assignment > its notebook: the list of submissions."""
    formgrader.get_by_role("link", name="Manual Grading").click()
    formgrader.get_by_role("link", name=STAGE.assignment).click()
    formgrader.get_by_role("link", name=STAGE.module).click()
    formgrader.locator("tbody tr:has-text('Submission #')").first.wait_for()


def open_submission(formgrader, course, student):
    """One submission's page. The list hides the students' names, so its link is found by its id."""
    open_submissions(formgrader)
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission_notebook(STAGE.module, STAGE.assignment, student).id
    formgrader.locator(f"tbody a[href*='{submission}']").first.click()
    formgrader.locator(f"input#{LOST}[placeholder]").wait_for()


def panel(formgrader, name):
    """The cell of a grade, and its score box."""
    box = formgrader.locator(f"input#{name}")
    return formgrader.locator(".cell", has=box).last, box


def test_a_score_given_in_the_formgrader_survives_a_second_grading(page, formgrader, course, screenshots):
    open_submission(formgrader, course, "wrong")
    check_scores_and_messages(formgrader)
    cell, box = panel(formgrader, WRITTEN)
    assert "needs_manual_grade" in box.get_attribute("class")
    assert "<script>" in cell.inner_text()  # as text
    grade_by_hand(page, formgrader, WRITTEN)
    box.scroll_into_view_if_needed()
    page.screenshot(path=str(screenshots / "formgrader-score.png"))
    _, box = panel(formgrader, LOST)
    box.scroll_into_view_if_needed()
    page.screenshot(path=str(screenshots / "formgrader-check.png"))
    before = course.scores("wrong")

    grade(course, "--force")

    assert course.scores("wrong") == before
    with course.gradebook() as gradebook:
        stored = gradebook.find_grade(WRITTEN, STAGE.module, STAGE.assignment, "wrong")
        assert (stored.manual_score, stored.score) == (1.5, 1.5)
    open_submission(formgrader, course, "wrong")
    check_scores_and_messages(formgrader)
    assert panel(formgrader, WRITTEN)[1].input_value() == "1.5"
    assert formgrader.locator(f"#{WRITTEN}-comment").input_value() == "Say what wpe does with it."
    page.screenshot(path=str(screenshots / "formgrader-again.png"))


def check_scores_and_messages(formgrader):
    for check, score in ((LOST, 0), (KEPT, CHECKS[KEPT].points)):
        cell, box = panel(formgrader, check)
        assert float(box.get_attribute("placeholder")) == score
        assert f"/ {float(CHECKS[check].points)}" in cell.inner_text()
    said = formgrader.locator("#notebook").first.inner_text()
    assert f"Not passed: {CHECKS[LOST].title} (0 / {CHECKS[LOST].points} points)" in said
    assert " ".join(POSITIONS_RESET.sentence.split()) in " ".join(said.split())
    assert f"Passed: {CHECKS[KEPT].title}" in said


def test_the_list_of_submissions_has_the_scores_of_the_checks(formgrader, course, screenshots, page):
    open_submissions(formgrader)
    page.screenshot(path=str(screenshots / "formgrader-list.png"))
    rows = formgrader.locator("tbody tr").all_inner_texts()
    assert len(rows) == 3
    wrong = sum(course.scores("wrong").values())
    for total in (ALL, wrong, 0):
        assert any(re.search(rf"\b{total:g}(\.0)? /", row) for row in rows), (total, rows)


def test_a_submission_is_graded_again_from_the_formgrader(page, formgrader, course):
    """The lightning bolt of Manage Submissions: the same converter, in the server's process."""
    before = course.scores("right")
    path = course.path("right", "autograded")
    written = path.stat().st_mtime_ns
    formgrader.get_by_role("link", name="Manage Assignments").first.click()
    row = formgrader.locator(f"tr:has-text('{STAGE.assignment}')")
    row.locator("td.num-submissions a").click()
    with page.expect_response(lambda r: r.url.endswith("/autograde"), timeout=120_000) as answered:
        formgrader.locator("tr:has-text('right')").locator(".autograde a").click(timeout=90_000)
    assert answered.value.json()["success"], answered.value.json()
    assert path.stat().st_mtime_ns > written
    assert course.scores("right") == before
