"""The page of feedback: the checks by title, ungraded questions, and rendered answers."""

import json
import re
from html import unescape

import pytest

from autograder.stages.samples import solved_cells, submissions_of
from autograder.tests.course import CHECKS, STAGE, Course

ANSWER = "Because:\n\n- *positions*\n- context in $2^n$ ways\n\n<b onclick='alert(1)'>x</b>"


def text_of(html):
    return " ".join(unescape(re.sub(r"(?s)<style.*?</style>|<script.*?</script>|<[^>]*>", "", html)).split())


def put_answer(notebook):
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "why-positions":
            cell["source"] = ANSWER


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"))
    wrong = next(s for s in submissions_of(STAGE.name) if s.name == "positions-reset")
    course.hand_in("anna", wrong.sources(STAGE), change=put_answer)
    syntax = solved_cells(STAGE.name)["save-prefix-cache"].replace("weights):", "weights)")
    course.hand_in("syntax", {**solved_cells(STAGE.name), "save-prefix-cache": syntax})
    course.hand_in("unsolved", {})
    course.hand_in("empty", change=lambda notebook: notebook["cells"].clear())
    assert course.run("autograde", STAGE.assignment).returncode == 0
    return course


@pytest.fixture(scope="module")
def page(course):
    done = course.run("generate_feedback", STAGE.assignment)
    assert done.returncode == 0, done.stderr
    return course.feedback("anna")


@pytest.fixture(scope="module")
def contents(page):
    """The page's title and the lines of its list of contents."""
    title = re.search(r"(?s)<h4>(.*?)</h4>", page).group(1)
    items = re.search(r'(?s)<ol id="toc">(.*?)</ol>', page).group(1)
    return text_of(title), [text_of(item) for item in re.findall(r"(?s)<li.*?</li>", items)]


def test_a_configuration_with_the_earlier_name_of_a_class_gives_the_same_pages(course, page):
    config = course.folder / "nbgrader_config.py"
    text = config.read_text()
    config.write_text(text.replace("page.ShowScores", "page.ShowMarks"))
    try:
        done = course.run("generate_feedback", STAGE.assignment, "--force", "--student=anna")
    finally:
        config.write_text(text)
    assert done.returncode == 0, done.stderr
    assert text_of(course.feedback("anna")) == text_of(page)


def test_a_formula_in_a_table_stays_on_one_line(page):
    settings = re.findall(r"linebreaks:\s*\{\s*automatic: (\w+)", page)
    assert len(settings) == 2 and settings[-1] == "false"  # nbconvert's, and the one that MathJax reads after it


def test_every_check_is_listed_by_its_title_with_its_points(course, contents):
    scores = course.scores("anna")
    assert set(scores.values()) > {0}
    listed = [f"{check.title}: {scores[name]:g} / {check.points} points" for name, check in CHECKS.items()]
    assert contents[1][: len(CHECKS)] == listed


def test_an_ungraded_question_is_not_shown_with_zero_points(course, contents):
    title, items = contents
    assert items[len(CHECKS)] == "Question 1: not graded yet (2 points)"
    assert items[len(CHECKS) + 1] == "Question 2: 0 / 2 points, with a comment"  # nothing was answered
    score = sum(course.scores("anna").values())
    assert title == f"4. Save and reuse a prefix cache: {score:g} / 18 points, 2 of them not graded yet"


def test_scores_are_not_shown_as_outputs_and_cells_have_no_prompts(page):
    text = text_of(page)
    assert "Out[" not in text and "In [" not in text and "Test cell" not in text
    assert text.count("Not passed:") + text.count("Passed:") == len(CHECKS)


def test_the_rubric_is_below_the_answer_for_the_assistant_and_not_on_the_page(course, page):
    cells = json.loads(course.path("anna", "autograded").read_text(encoding="utf-8"))["cells"]
    answer = next(n for n, cell in enumerate(cells) if cell["id"] == "why-positions")
    assert "".join(cells[answer + 1]["source"]).startswith("**Rubric.** 1 point: position.")
    assert "Rubric" not in page


@pytest.mark.parametrize(
    ("student", "cause", "times"),
    [
        ("anna", "were given positions 0, 1, 2, ... again", 1),
        ("syntax", "The cell with save_prefix_cache raised SyntaxError: expected ':'", 1),
        ("unsolved", "still raises NotImplementedError: write its body", 2),  # the functions that checks ask first
        ("empty", "None of the stage's functions is in the notebook", 1),
    ],
)
def test_each_cause_is_explained_once_and_other_checks_refer_to_it(course, page, student, cause, times):
    text = text_of(course.feedback(student))
    assert text.count(cause) == times
    lost = sum(not score for score in course.scores(student).values())
    assert text.count("This follows from the check") == lost - times > 0


def test_all_levels_of_a_failure_are_on_the_page(page):
    text = text_of(page)
    for level in (
        "generate_with_prefix is off by up to",
        "Look at the positions of the new tokens: in generate_with_prefix and save_prefix_cache",
        "were given positions 0, 1, 2, ... again",
    ):
        assert level in text


def test_an_answer_is_rendered_and_nothing_of_it_is_active(page):
    assert "<em>positions</em>" in page and r"\(2^n\)" in page
    assert "onclick" not in re.sub(r"&lt;b onclick.*?&gt;", "", page)


def test_a_question_that_was_graded_by_hand_has_its_points_and_its_comment(course, page):
    with course.gradebook() as gradebook:
        grade = gradebook.find_grade("why-positions", STAGE.module, STAGE.assignment, "anna")
        grade.manual_score, grade.needs_manual_grade = 1.5, False
        comment = gradebook.find_comment("why-positions", STAGE.module, STAGE.assignment, "anna")
        comment.manual_comment = "Half of the **second** reason."
        gradebook.db.commit()
    assert course.run("generate_feedback", STAGE.assignment, "--force").returncode == 0
    page = course.feedback("anna")
    assert "Question 1: 1.5 / 2 points, with a comment" in text_of(page) and "not graded yet" not in text_of(page)
    assert "Half of the <strong>second</strong> reason." in page
