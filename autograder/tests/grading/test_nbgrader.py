"""The real command line: build, nbgrader autograde, generate_feedback and export, on one small class.

Each command starts once; nbgrader takes seconds to start, so the class is handed in whole. What is broken about a
notebook, and what the table then says, is tests/broken/.
"""

import csv
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.grading.records import read_record
from autograder.stages.samples import Wrong, solved_cells, submissions_of
from autograder.tests.course import ALL, CHECKS, NAME, STAGE, Course

WRONG = next(s for s in submissions_of(STAGE.name) if isinstance(s, Wrong) and 0 < len(s.loses) < len(CHECKS))
RIGHT_STUDENTS = ("right", "renamed", "loud", "extra-files")
GRADED_AGAIN = ("right", "wrong", "unsolved", "loud")


def forge_outputs(notebook):
    for cell in notebook["cells"]:
        if cell["id"] in CHECKS:
            data = {"text/plain": "99", "text/html": "<script>alert('forged')</script>"}
            cell["outputs"] = [{"output_type": "execute_result", "execution_count": 1, "data": data, "metadata": {}}]
            cell["metadata"]["nbgrader"]["points"] = 99
            cell["metadata"]["tags"] = ["skip-execution"]


def write_html(notebook):
    note = "<script>alert('note')</script> [link](javascript:alert(1))"
    notebook["cells"].append({"cell_type": "markdown", "id": "note", "metadata": {}, "source": note})


LOUD = "import sys, warnings\nprint('loud', file=sys.stderr)\nwarnings.warn('loud')\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The class, handed in and graded once: `first` is the run of nbgrader autograde."""
    course = Course(tmp_path_factory.mktemp("course"))
    solved = solved_cells(STAGE.name)
    course.hand_in("right", change=write_html)
    course.hand_in("wrong", WRONG.sources(STAGE))
    course.hand_in("unsolved", {})
    course.hand_in("forger", {}, change=forge_outputs)
    course.hand_in("renamed", name=f"{STAGE.module} (1).ipynb")
    course.hand_in("loud", {mark: LOUD + source for mark, source in solved.items()})
    course.hand_in("leaky", {m: _raising(s) for m, s in solved.items()})
    course.hand_in("extra-files")
    extra = course.path("extra-files").parent
    (extra / "numpy.py").write_text("raise ImportError")
    (extra / "given.py").write_text("raise ImportError")
    (extra / "passwd.txt").symlink_to("/etc/passwd")
    course.hand_in("broken")
    course.path("broken").write_text('{"cells": [\n{"cell_type":')
    course.hand_in("missing", name="notes.txt")
    course.first = course.run("autograde", STAGE.assignment)
    return course


def _raising(source):
    """The same functions, which tell their arguments in an error."""
    defined = re.search(r"^def (\w+)\((.*?)\)", source, re.MULTILINE)
    return f"def {defined[1]}(*args):\n    raise ValueError(f'{{args}} {{list(args)}}')" if defined else source


NOT_GRADED = ("broken", "missing")


# Scores


@pytest.mark.parametrize("student", RIGHT_STUDENTS)
def test_honest_work_gets_every_point(course, student):
    assert course.scores(student) == {i: c.points for i, c in CHECKS.items()}


def test_a_mistake_costs_its_checks_and_no_others(course):
    lost = {i for i, score in course.scores("wrong").items() if score == 0}
    assert lost == set(WRONG.loses)
    assert {i for i, score in course.scores("wrong").items() if score == CHECKS[i].points} == set(CHECKS) - lost


def test_a_question_that_was_left_open_has_no_points_and_waits_for_nobody(course):
    """nbgrader knows it by the released text's checksum, which its OverwriteCells puts into the notebook."""
    with course.gradebook() as gradebook:
        notebook = gradebook.find_submission_notebook(STAGE.module, STAGE.assignment, "unsolved")
        written = [g for g in notebook.grades if g.name not in CHECKS]
        assert written and {(g.auto_score, g.needs_manual_grade) for g in written} == {(0.0, False)}
        assert {c.auto_comment for c in notebook.comments if c.name in {g.name for g in written}} == {"No response."}


@pytest.mark.parametrize("student", ["unsolved", "forger"])
def test_what_is_not_solved_gets_nothing_whatever_the_notebook_says(course, student):
    assert course.scores(student) == dict.fromkeys(CHECKS, 0)


def test_scores_are_written_as_plain_numbers_after_their_message(course):
    for student in (*RIGHT_STUDENTS, "wrong", "unsolved", "forger"):
        for check_id, outputs in course.outputs(student).items():
            message, score = outputs
            assert (message["output_type"], message["name"]) == ("stream", "stdout")
            assert re.fullmatch(r"\d+\.\d+", "".join(score["data"]["text/plain"]))
            assert float("".join(score["data"]["text/plain"])) == course.scores(student)[check_id]


def test_every_score_says_by_which_checks_and_when(course):
    record = read_record(course.folder / "autograded", STAGE.assignment, "right")
    text = "".join(next(iter(course.outputs("right").values()))[0]["text"])
    assert re.search(rf"\[checks {record.checks_version}, graded 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\]", text)


def test_most_points_are_those_of_the_gradebook(course):
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission_notebook(STAGE.module, STAGE.assignment, "forger")
        assert {g.name: g.max_score for g in submission.grades if g.name in CHECKS} == {
            i: c.points for i, c in CHECKS.items()
        }


# What the assistant is told


def test_a_submission_that_cannot_be_graded_has_no_score_and_waits_for_a_person(course):
    for student in ("broken", "missing"):
        assert set(course.scores(student).values()) == {None}
    assert course.first.returncode == 1


def test_the_output_has_reasons_and_no_tracebacks(course):
    assert "Traceback" not in course.first.stderr
    assert "SAWarning" not in course.first.stderr


def test_the_report_holds_the_same_for_programs(course):
    report = json.loads((course.folder / "autograded" / f"report-{STAGE.assignment}.json").read_text())
    by_student = {record["student"]: record for record in report}
    assert {s for s, record in by_student.items() if record["status"] == "not graded"} == set(NOT_GRADED)
    assert [n["kind"] for n in by_student["renamed"]["notes"]] == ["renamed"]
    assert (by_student["right"]["score"], by_student["right"]["max_score"]) == (ALL, ALL)
    assert {c["id"] for c in by_student["wrong"]["checks"] if not c["passed"]} == set(WRONG.loses)


def test_nothing_that_was_handed_in_beside_the_notebook_is_kept(course):
    kept = {p.name for p in course.path("extra-files", "autograded").parent.iterdir()}
    assert kept == {NAME, "given.py"}
    given = course.path("extra-files", "autograded", "given.py").read_text(encoding="utf-8")
    assert given == (course.folder / "source" / STAGE.assignment / "given.py").read_text(encoding="utf-8")


# Feedback and export


@pytest.fixture(scope="module")
def feedback(course):
    run = course.run("generate_feedback", STAGE.assignment)
    assert run.returncode == 0, run.stderr
    return course


def test_the_page_shows_the_message_of_each_check_that_failed(feedback):
    page = feedback.feedback("wrong")
    for check in WRONG.loses:
        assert f"Not passed: {CHECKS[check].title}".replace("'", "&#39;") in page
    assert f": {ALL - sum(CHECKS[c].points for c in WRONG.loses):g} / " in page


def test_the_page_runs_and_links_nothing_of_the_students(feedback):
    assert "alert(" not in feedback.feedback("forger")
    page = feedback.feedback("right")
    assert "&lt;script&gt;alert(" in page
    assert "<script>alert(" not in page and 'href="javascript' not in page


def test_the_page_shows_no_hidden_input(feedback):
    texts = ["".join(outputs[0]["text"]) for outputs in feedback.outputs("leaky").values()]
    raised = [text for text in texts if "raised ValueError" in text]
    assert raised
    for text in raised:
        assert re.search(r"\d+, \d+", text.split("raised ValueError")[1].split("(line")[0]) is None


def test_there_is_no_page_for_what_was_not_graded(feedback):
    assert not any(feedback.path(student, "feedback").parent.exists() for student in NOT_GRADED)


def test_export_writes_the_scores(course):
    run = course.run("export")
    assert run.returncode == 0, run.stderr
    with (course.folder / "grades.csv").open() as file:
        scores = {row["student_id"]: row["score"] for row in csv.DictReader(file)}
    assert float(scores["right"]) == ALL
    assert float(scores["wrong"]) == ALL - sum(CHECKS[c].points for c in WRONG.loses)
    assert scores["broken"] == ""  # not marked, which is another thing than 0


# Grading again


@pytest.fixture(scope="module")
def again(feedback):
    """Some of the class graded a second time, after one has handed in again and a person has given marks."""
    course, check = feedback, next(iter(CHECKS))
    for folder in (course.folder / "submitted").iterdir():
        if folder.name not in GRADED_AGAIN:
            shutil.rmtree(folder)
    before = {student: course.scores(student) for student in GRADED_AGAIN}
    with course.gradebook() as gradebook:
        for student in ("wrong", "loud"):
            grade = gradebook.find_grade(check, STAGE.module, STAGE.assignment, student)
            grade.manual_score, grade.extra_credit = 0.5, 0.25
        gradebook.db.commit()
    course.path("loud").write_text("{")
    written = course.path("right", "autograded").stat().st_mtime_ns
    skipped = course.run("autograde", STAGE.assignment)
    assert skipped.returncode == 0, skipped.stderr
    kept = course.path("right", "autograded").stat().st_mtime_ns == written
    stale = course.scores("loud")
    run = course.run("autograde", STAGE.assignment, "--force")
    return SimpleNamespace(course=course, before=before, skipped=skipped, run=run, kept=kept, stale=stale, check=check)


def test_without_force_what_was_graded_is_left_alone(again):
    assert again.kept
    assert again.stale == again.before["loud"]


def test_a_notebook_handed_in_again_is_told_to_be_stale(again):
    row = next(line for line in again.skipped.stderr.splitlines() if line.strip().startswith("loud "))
    assert "stale" in row and "handed in again, and nbgrader passes it over" in row and "--force" in row


def test_a_second_grading_gives_the_same_marks(again):
    for student, scores in again.before.items():
        if student != "loud":
            assert again.course.scores(student) == scores


def test_marks_given_by_a_person_survive_even_where_grading_fails(again):
    with again.course.gradebook() as gradebook:
        for student in ("wrong", "loud"):
            grade = gradebook.find_grade(again.check, STAGE.module, STAGE.assignment, student)
            assert (grade.manual_score, grade.extra_credit, grade.needs_manual_grade) == (0.5, 0.25, True), student


def test_an_old_score_does_not_survive_a_submission_that_cannot_be_read(again):
    assert set(again.course.scores("loud").values()) == {None}
    assert read_record(again.course.folder / "autograded", STAGE.assignment, "loud").score is None
    assert again.run.returncode == 1
    for step in ("autograded", "feedback"):
        assert not again.course.path("loud", step).parent.exists()


def test_the_secret_is_never_shown(again):
    secret = (again.course.folder / ".autograder-seed").read_text().strip()
    texts = [again.run.stdout, again.run.stderr, again.course.first.stderr]
    for step in ("autograded", "feedback"):
        texts += [p.read_text(encoding="utf-8") for p in Path(again.course.folder / step).rglob("*") if p.is_file()]
    assert not any(secret in text for text in texts)
