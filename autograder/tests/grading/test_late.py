"""A due date that is changed later: the penalty follows it when a submission is graded again, or cannot be."""

import pytest

from autograder.places import CONFIG
from autograder.tests.course import ALL, STAGE, Course
from autograder.tests.marking import AUTOGRADE, GRADE, marks, run

COMMANDS = pytest.mark.parametrize("command", [GRADE, AUTOGRADE], ids=["grade", "nbgrader"])


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"))
    with open(course.folder / CONFIG, "a", encoding="utf-8") as config:
        config.write("c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    for name in ("late", "late-and-broken-later", "in-time"):
        course.hand_in(name)
        day = "01" if name == "in-time" else "20"
        (course.path(name).parent / "timestamp.txt").write_text(f"2026-03-{day} 12:00:00 UTC\n", encoding="utf-8")
    return course


def is_due(course, day):
    done = course.run("db", "assignment", "add", STAGE.assignment, f"--duedate=2026-03-{day} 12:00:00 UTC")
    assert done.returncode == 0, done.stderr


def penalties(course):
    return {student: mark["late"] for student, mark in marks(course).items()}


@COMMANDS
def test_the_penalty_is_that_of_the_present_due_date(course, command):
    broken = course.path("late-and-broken-later")
    whole = broken.read_text(encoding="utf-8")
    is_due(course, "10")
    assert run(course, command, "--force").returncode == 0
    assert penalties(course) == {"late": [ALL], "late-and-broken-later": [ALL], "in-time": [None]}

    is_due(course, "25")
    broken.write_text("{", encoding="utf-8")
    try:
        run(course, command, "--force")
        assert penalties(course) == {"late": [None], "late-and-broken-later": [None], "in-time": [None]}
        assert {student: mark["score"] for student, mark in marks(course).items()} == {
            "late": ALL, "late-and-broken-later": 0, "in-time": ALL
        }  # fmt: skip
    finally:
        broken.write_text(whole, encoding="utf-8")
