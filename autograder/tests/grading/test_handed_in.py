"""When a submission was handed in, by its timestamp.txt."""

from datetime import datetime

import pytest

from autograder.grading.handed_in import folder_problem, parse_time
from autograder.tests.course import Course
from autograder.tests.grading_class import GRADE, run, scores


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01 12:00:00 UTC",
        "2026-03-01 12:00:00",
        "2026-03-01T12:00:00Z",
        "2026-03-01 14:00:00 +0200",
        "2026-03-01 14:00:00 +02:00",
        "2026-03-01 14:00:00+02:00",
        "2026-03-01 06:30:00 -0530",
        "2026-03-01 13:00:00.000000 CET",
        "2026-03-01 13:00:00 Europe/Berlin",
    ],
)
def test_a_time_in_any_zone_is_the_same_moment(text):
    assert parse_time(text) == datetime(2026, 3, 1, 12)


@pytest.mark.parametrize("text", ["yesterday", "2026-03-01 12:00:00 HERE", "2026-03-01 12:00:00 +2", "2026-13-01"])
def test_a_wrong_timestamp_is_refused_by_name(tmp_path, text):
    (tmp_path / "timestamp.txt").write_text(text, encoding="utf-8")
    assert "does not hold a time such as" in folder_problem(tmp_path)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"))
    course.hand_in("anna", {})
    (course.path("anna").parent / "submission_secret.txt").write_text("a secret of the exchange's", encoding="utf-8")
    (course.path("anna").parent / "notes.txt").write_text("anything", encoding="utf-8")
    (course.path("anna").parent / "timestamp.txt").write_text("2026-03-01 14:00:00 +0200\n", encoding="utf-8")
    return course


def test_the_gradebook_has_the_moment(course):
    assert run(course, GRADE).returncode == 0
    assert scores(course)["anna"]["time"] == datetime(2026, 3, 1, 12)


def test_only_the_file_that_the_exchange_needs_for_feedback_is_kept(course):
    assert course.run("generate_feedback", "04-save-and-reuse", "--force").returncode == 0
    for step in ("autograded", "feedback"):
        names = {path.name for path in course.path("anna", step).parent.iterdir()}
        assert "submission_secret.txt" in names and "notes.txt" not in names
