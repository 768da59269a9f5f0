"""What is written into a check's cell is what nbgrader reads back."""

import nbformat
import pytest
from nbgrader.utils import determine_grade

from autograder.grading.scores import check_message, on_scale, score_outputs
from autograder.judge.framework import Result


def read_back(outputs, points):
    metadata = {"nbgrader": {"grade": True, "solution": False, "points": points}}
    cell = nbformat.v4.new_code_cell("", outputs=nbformat.from_dict(outputs), metadata=metadata)
    return determine_grade(cell)


def result(passed, points=3, message=""):
    return Result("rows", "Rows are kept", points, points if passed else 0, passed, message)


@pytest.mark.parametrize("score", [0.0, 1.0, 1.5, 3.0, 1 / 3])
def test_nbgrader_reads_the_score_that_was_written(score):
    assert read_back(score_outputs(score, "3\nnan\n99"), 3) == (score, 3)


@pytest.mark.parametrize(
    ("passed", "points", "most", "score"), [(True, 3, 3, 3.0), (False, 3, 3, 0.0), (True, 3, 6, 6.0)]
)
def test_a_score_is_on_the_gradebooks_scale(passed, points, most, score):
    scaled = on_scale(result(passed, points), most)
    assert (scaled.score, scaled.points) == (score, most)
    assert type(scaled.score) is float


@pytest.mark.parametrize("most", [float("nan"), float("inf"), -1.0])
def test_impossible_points_are_refused(most):
    with pytest.raises(ValueError, match="rows has no score that can be stored"):
        on_scale(result(True), most)


def test_the_message_says_what_was_checked_how_it_went_by_which_checks_and_when():
    failed = result(False, message="Rows are kept in order.\nRow 3 differs.")
    assert check_message(failed, "2", "2026-01-31T12:00:00Z").splitlines() == [
        "Not passed: Rows are kept (0 / 3 points)",
        "Rows are kept in order.",
        "Row 3 differs.",
        "[checks 2, graded 2026-01-31T12:00:00Z]",
    ]


def test_a_giant_message_is_cut():
    assert len(score_outputs(0.0, "x" * 10**6)[0]["text"]) < 5000
