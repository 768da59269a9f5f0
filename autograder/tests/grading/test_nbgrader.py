"""The real command line: nbgrader autograde and generate_feedback, and both again after some have handed in again.

Each command starts once; nbgrader takes seconds to start, so the class is handed in whole. What grading makes of right
and wrong work is tests/cli/test_demo.py; of broken notebooks tests/broken/; of hostile ones tests/hostile/.
"""

import re
import shutil
from datetime import datetime
from types import SimpleNamespace

import pytest

from autograder.grading.records import read_record
from autograder.stages.samples import solved_cells, submissions_of
from autograder.tests.course import CHECKS, NAME, STAGE, Course
from autograder.tests.grading_class import scores

WRONG = next(s for s in submissions_of(STAGE.name) if s.name == "positions-reset")
GRADED_AGAIN = ("right", "wrong", "unsolved", "noisy")
NOISY = "import sys, warnings\nprint('noise', file=sys.stderr)\nwarnings.warn('noise')\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The class, handed in and graded once, with feedback: `first` is the run of nbgrader autograde."""
    course = Course(tmp_path_factory.mktemp("course"))
    course.hand_in("right")
    course.hand_in("wrong", WRONG.sources(STAGE))
    course.hand_in("unsolved", {})
    course.hand_in("noisy", {mark: NOISY + source for mark, source in solved_cells(STAGE.name).items()})
    course.hand_in("extra-files")
    extra = course.path("extra-files").parent
    (extra / "numpy.py").write_text("raise ImportError")
    (extra / "given.py").write_text("raise ImportError")
    (extra / "passwd.txt").symlink_to("/etc/passwd")
    (extra / "submission_secret.txt").write_text("a secret of the exchange's")
    (extra / "timestamp.txt").write_text("2026-03-01 14:00:00 +0200\n")
    course.hand_in("broken")
    course.path("broken").write_text('{"cells": [\n{"cell_type":')
    course.hand_in("missing", name="notes.txt")
    course.first = course.run("autograde", STAGE.assignment)
    feedback = course.run("generate_feedback", STAGE.assignment)
    assert (course.first.returncode, feedback.returncode) == (1, 0), course.first.stderr + feedback.stderr
    return course


def test_every_score_says_by_which_checks_and_when(course):
    record = read_record(course.folder / "autograded", STAGE.assignment, "right")
    text = "".join(next(iter(course.outputs("right").values()))[0]["text"])
    assert re.search(rf"\[checks {record.checks_version}, graded 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\]", text)


def test_the_output_has_no_traceback_and_no_warning_of_a_library(course):
    assert "Traceback" not in course.first.stderr and "SAWarning" not in course.first.stderr


def test_a_score_is_a_plain_number_after_its_message(course):
    for check, (message, score) in course.outputs("wrong").items():
        text = "".join(score["data"]["text/plain"])
        assert message["name"] == "stdout" and re.fullmatch(r"\d+\.\d+", text)
        assert float(text) == course.scores("wrong")[check]


def test_an_unanswered_question_has_zero_points_and_needs_no_grading(course):
    with course.gradebook() as gradebook:
        notebook = gradebook.find_submission_notebook(STAGE.module, STAGE.assignment, "unsolved")
        left = [grade for grade in notebook.grades if grade.name not in CHECKS]
        assert left and not any(grade.needs_manual_grade for grade in left)
        names = {grade.name for grade in left}
        assert {c.auto_comment for c in notebook.comments if c.name in names} == {"No response."}


def test_the_gradebook_has_the_moment_of_handing_in(course):
    assert scores(course)["extra-files"]["time"] == datetime(2026, 3, 1, 12)


def test_of_the_files_beside_the_notebook_only_those_are_kept_that_nbgrader_needs(course):
    kept = course.path("extra-files", "autograded").parent
    of_the_exchange = {"submission_secret.txt", "timestamp.txt"}
    assert {p.name for p in kept.iterdir()} == {NAME, "given.py", *of_the_exchange}
    beside_the_page = {p.name for p in course.path("extra-files", "feedback").parent.iterdir()}
    assert "submission_secret.txt" in beside_the_page and not beside_the_page & {"numpy.py", "passwd.txt"}
    source = course.folder / "source" / STAGE.assignment / "given.py"
    assert (kept / "given.py").read_text(encoding="utf-8") == source.read_text(encoding="utf-8")


def test_a_submission_that_was_not_graded_has_no_page(course):
    pages = {path.parent.parent.name for path in course.folder.glob("feedback/*/*/*.html")}
    assert pages == {*GRADED_AGAIN, "extra-files"}


# Grading again


@pytest.fixture(scope="module")
def again(course):
    """Some of the class graded a second time, after one has handed in again and a person has given scores."""
    check = next(iter(CHECKS))
    for folder in (course.folder / "submitted").iterdir():
        if folder.name not in GRADED_AGAIN:
            shutil.rmtree(folder)
    before = {student: course.scores(student) for student in GRADED_AGAIN}
    with course.gradebook() as gradebook:
        for student in ("wrong", "noisy"):
            grade = gradebook.find_grade(check, STAGE.module, STAGE.assignment, student)
            grade.manual_score, grade.extra_credit = 0.5, 0.25
        gradebook.db.commit()
    course.path("noisy").write_text("{")
    written = course.path("right", "autograded").stat().st_mtime_ns
    skipped = course.run("autograde", STAGE.assignment)
    assert skipped.returncode == 0, skipped.stderr
    kept = course.path("right", "autograded").stat().st_mtime_ns == written
    stale = course.scores("noisy")
    run = course.run("autograde", STAGE.assignment, "--force")
    return SimpleNamespace(course=course, before=before, skipped=skipped, run=run, kept=kept, stale=stale, check=check)


def test_without_force_graded_submissions_are_skipped(again):
    assert again.kept
    assert again.stale == again.before["noisy"]


def test_a_notebook_handed_in_again_is_reported_as_stale(again):
    row = next(line for line in again.skipped.stderr.splitlines() if line.strip().startswith("noisy "))
    assert "stale" in row and "handed in again, and nbgrader skips it" in row and "--force" in row


def test_a_second_grading_gives_the_same_scores(again):
    for student, before in again.before.items():
        if student != "noisy":
            assert again.course.scores(student) == before


def test_scores_given_by_hand_survive_even_if_grading_fails(again):
    with again.course.gradebook() as gradebook:
        for student in ("wrong", "noisy"):
            grade = gradebook.find_grade(again.check, STAGE.module, STAGE.assignment, student)
            assert (grade.manual_score, grade.extra_credit, grade.needs_manual_grade) == (0.5, 0.25, True), student


def test_an_old_score_does_not_survive_a_submission_that_cannot_be_read(again):
    assert set(again.course.scores("noisy").values()) == {None}
    assert read_record(again.course.folder / "autograded", STAGE.assignment, "noisy").score is None
    assert again.run.returncode == 1
    for step in ("autograded", "feedback"):
        assert not again.course.path("noisy", step).parent.exists()


def test_the_secret_is_never_shown(again):
    secret = (again.course.folder / ".autograder-seed").read_text().strip()
    texts = [again.run.stdout, again.run.stderr, again.course.first.stderr]
    for step in ("autograded", "feedback"):
        texts += [p.read_text(encoding="utf-8") for p in (again.course.folder / step).rglob("*") if p.is_file()]
    assert not any(secret in text for text in texts)
