"""`nbgrader export` with the course's plugin: the points of each student, and missing ones."""

import csv

import pytest

from autograder.notebooks.build import build
from autograder.places import ROOT
from autograder.stages import STAGES
from autograder.tests.course import ALL, STAGE, Course


def answer(notebook):
    """Something for a person to grade."""
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        if about.get("grade") and about.get("solution"):
            cell["source"] = "Because."


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"))
    build(ROOT, course.folder, stages=(STAGE, STAGES[1]))
    for name in ("anna", "ben", "=1+1"):
        course.hand_in(name, change=answer)
    course.hand_in("unsolved", {})
    course.hand_in("broken")
    course.path("broken").write_text("{", encoding="utf-8")
    course.run("autograde", STAGE.assignment)
    course.hand_in("since-then")
    course.run("db", "student", "add", "absent", "--last-name=Away")
    with course.gradebook() as gradebook:
        for grade in gradebook.find_submission_notebook(STAGE.module, STAGE.assignment, "ben").grades:
            if grade.auto_score is None:
                grade.manual_score = 1.0
            grade.needs_manual_grade = False
        gradebook.db.commit()
    return course


def exported(course, *options):
    done = course.run("export", *options)
    assert done.returncode == 0, done.stderr
    with (course.folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_missing_score_is_not_a_zero_and_a_stage_that_nobody_handed_in_has_no_rows(course):
    rows = exported(course)
    assert {row["assignment"] for row in rows} == {STAGE.assignment}
    assert {row["student_id"]: (row["score"], row["status"]) for row in rows} == {
        "anna": (str(float(ALL)), "to be graded by hand"),
        "'=1+1": (str(float(ALL)), "to be graded by hand"),
        "ben": (str(ALL + 2.0), "graded"),
        "unsolved": ("0.0", "graded"),
        "broken": ("", "not graded"),
        "since-then": ("", "not graded"),
        "absent": ("0.0", "not handed in"),
    }


def test_nbgraders_columns_and_options_are_unchanged(course):
    rows = exported(course, "--student=['absent', 'ben']")
    assert [(row["student_id"], row["last_name"], row["max_score"]) for row in rows] == [
        ("absent", "Away", "18.0"),
        ("ben", "", "18.0"),
    ]
    assert exported(course, f"--assignment=['{STAGES[1].assignment}']") == []
