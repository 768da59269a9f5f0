"""A due date that is changed later: the penalty follows it when a submission is graded again, or cannot be."""

import pytest

from autograder.places import CONFIG
from autograder.tests.course import ALL, STAGE, Course
from autograder.tests.grading_class import AUTOGRADE, GRADE, run, scores


@pytest.fixture
def course(tmp_path):
    course = Course(tmp_path)
    with open(course.folder / CONFIG, "a", encoding="utf-8") as config:
        config.write("c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    for name in ("late", "late-and-broken-later", "in-time"):
        course.hand_in(name)
        day = "01" if name == "in-time" else "20"
        (course.path(name).parent / "timestamp.txt").write_text(f"2026-03-{day} 12:00:00 UTC\n", encoding="utf-8")
    return course


def is_due(course, day):
    with course.gradebook() as gradebook:
        gradebook.update_or_create_assignment(STAGE.assignment, duedate=f"2026-03-{day} 12:00:00 UTC")


def penalties(course):
    return {student: row["late"] for student, row in scores(course).items()}


def test_the_penalty_is_that_of_the_present_due_date(course):
    is_due(course, "10")
    assert run(course, GRADE).returncode == 0
    assert penalties(course) == {"late": [ALL], "late-and-broken-later": [ALL], "in-time": [None]}

    is_due(course, "25")
    course.path("late-and-broken-later").write_text("{", encoding="utf-8")
    run(course, AUTOGRADE, "--force")
    assert penalties(course) == {"late": [None], "late-and-broken-later": [None], "in-time": [None]}
    assert {student: row["score"] for student, row in scores(course).items()} == {
        "late": ALL, "late-and-broken-later": 0, "in-time": ALL
    }  # fmt: skip
