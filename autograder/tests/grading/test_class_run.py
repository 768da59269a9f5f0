"""`autograder grade` against `nbgrader autograde`, killed runs, several runs at a time: always the same scores.

One class, built once; each test scores a copy of it.
"""

import json
import os
import re
import shutil
import time

import pytest

from autograder.stages.samples import solved_cells
from autograder.tests.course import CHECKS, STAGE, Course, hand_in_a_class
from autograder.tests.grading_class import (
    AUTOGRADE,
    GRADE,
    assert_same_files,
    copy_of,
    files,
    kill,
    left_over,
    records,
    run,
    scores,
    start,
)

LIMITS = "\nc.SubmissionExporter.call_seconds = 2.0\n"


def loops_when_writing(source):
    loop = "    while True:\n        __import__('time').sleep(9)\n"
    return re.sub(r"(?m)^(def write_prefix_cache\(.*\n)", rf"\1{loop}", source)


@pytest.fixture(scope="module")
def class_(tmp_path_factory):
    """The course with the class in it, not graded."""
    course = Course(tmp_path_factory.mktemp("class") / "course")
    with open(course.folder / "nbgrader_config.py", "a", encoding="utf-8") as config:
        config.write(LIMITS)
    hand_in_a_class(course, n_wrong=2)
    course.hand_in("ben")
    course.hand_in("unsolved", {})
    course.hand_in("looper", {mark: loops_when_writing(source) for mark, source in solved_cells(STAGE.name).items()})
    (course.path("ben").parent / "timestamp.txt").write_text("2026-01-31 12:00:00 UTC")
    return course


@pytest.fixture
def a_copy(class_, tmp_path):
    """Makes another course folder with the same secret and the same class, except the slow submission."""

    def make():
        course = copy_of(class_, tmp_path / "course")
        shutil.rmtree(course.folder / "submitted" / "looper")
        return course

    return make


@pytest.fixture(scope="module")
def by_nbgrader(class_, tmp_path_factory):
    """The class graded by nbgrader's command, undisturbed."""
    course = copy_of(class_, tmp_path_factory.mktemp("by-nbgrader") / "course")
    done = run(course, AUTOGRADE)
    assert done.returncode == 0, done.stderr
    return course


@pytest.fixture(scope="module")
def expected(by_nbgrader):
    found = scores(by_nbgrader)
    assert len(found) == 9 and all(len(one["grades"]) > len(CHECKS) for one in found.values())
    assert found["anna"]["score"] == sum(c.points for c in CHECKS.values()) > found["looper"]["score"] > 0
    return found


def without_looper(found):
    return {name: what for name, what in found.items() if "looper" not in name}


# The two commands


@pytest.fixture(scope="module")
def by_grade(class_, tmp_path_factory):
    course = copy_of(class_, tmp_path_factory.mktemp("by-grade") / "course")
    course.done = run(course, GRADE, "--jobs", "2", "--csv", "scores.csv", "--json", "scores.json")
    assert course.done.returncode == 0, course.done.stdout + course.done.stderr
    return course


def test_both_commands_store_the_same_scores(by_grade, expected):
    assert scores(by_grade) == expected


def test_both_commands_leave_the_same_files(by_grade, by_nbgrader):
    assert_same_files(files(by_grade), files(by_nbgrader))


def test_the_last_line_has_the_counts(by_grade):
    assert re.fullmatch(rf"{STAGE.assignment}: 9 graded, 0 not graded, \d+ s", by_grade.done.stdout.splitlines()[-1])


def test_the_table_says_what_was_repaired(by_grade):
    assert re.search(
        r"^  renamed +note  The notebook was named final \(2\)\.ipynb\.$", by_grade.done.stdout, re.MULTILINE
    )
    assert "Traceback" not in by_grade.done.stderr


def test_the_csv_has_a_row_a_submission_and_a_column_a_check(by_grade, expected):
    head, *rows = [line.split(",") for line in (by_grade.folder / "scores.csv").read_text("utf-8").splitlines()]
    assert head[:5] == ["assignment", "student", "status", "score", "max_score"] and head[-len(CHECKS) :] == list(
        CHECKS
    )
    assert sorted(row[1] for row in rows) == sorted(expected)
    for row in rows:
        assert float(row[3]) == expected[row[1]]["score"] == sum(map(float, row[-len(CHECKS) :]))


def test_the_json_has_every_record(by_grade):
    (stage,) = json.loads((by_grade.folder / "scores.json").read_text("utf-8"))
    assert (stage["assignment"], stage["graded"], stage["not_graded"]) == (STAGE.assignment, 9, 0)
    assert stage["submissions"] == json.loads(
        (by_grade.folder / "autograded" / f"report-{STAGE.assignment}.json").read_text()
    )


def test_graded_submissions_are_skipped_unless_forced(by_grade, expected):
    before = files(by_grade)
    done = run(by_grade, GRADE, "--student", "anna", "--student", "wrong-1")
    last = rf"{STAGE.assignment}: 2 graded \(2 before\), 0 not graded, \d+ s"
    assert done.returncode == 0 and re.fullmatch(last, done.stdout.splitlines()[-1])
    stamp = {r.student: r.graded_at for r in records(by_grade)}
    done = run(by_grade, GRADE, "--student", "anna", "--force")
    assert re.fullmatch(rf"{STAGE.assignment}: 1 graded, 0 not graded, \d+ s", done.stdout.splitlines()[-1])
    assert {r.student for r in records(by_grade) if r.graded_at != stamp[r.student]} == {"anna"}
    assert files(by_grade) == before and scores(by_grade) == expected


# Killed runs


@pytest.mark.skipif(os.name != "posix", reason="kills a process group")
def test_after_a_kill_either_command_resumes_with_the_same_scores(a_copy, expected, by_nbgrader):
    course = a_copy()
    for command, enough in ((GRADE, 1), (AUTOGRADE, 4)):
        process = start(course, command)
        deadline = time.monotonic() + 120
        while len(records(course)) < enough and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        kill(process)
    done = run(course, GRADE)
    assert done.returncode == 0, done.stderr
    assert scores(course) == without_looper(expected)
    assert_same_files(files(course), without_looper(files(by_nbgrader)))
    assert not left_over(course.folder)


# Several at a time


@pytest.mark.skipif(os.name != "posix", reason="kills a process group")
def test_several_runs_on_one_course_share_the_work_even_if_one_is_killed(a_copy, expected, by_nbgrader):
    course = a_copy()
    processes = [start(course, command) for command in (GRADE, AUTOGRADE, [*GRADE, "--force"])]
    while not records(course) and any(p.poll() is None for p in processes):
        time.sleep(0.02)
    kill(processes.pop(0))
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output
        assert "locked" not in output and "Traceback" not in output, output
    assert scores(course) == without_looper(expected)
    assert_same_files(files(course), without_looper(files(by_nbgrader)))
