"""The broken class, graded as one batch by the real command line: the right points for each, and one table that says
what was repaired, what could not be graded, and why."""

import json
import os
import re

import pytest

from autograder.tests.broken.cases import CASES
from autograder.tests.course import CHECKS, NAME, STAGE, Course

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the class has names that Windows does not allow")

SHORT = [f"--SubmissionExporter.{name}_seconds={n}" for name, n in (("cell", 4), ("call", 2), ("total", 30))]
GRADED = [case for case in CASES if case.reason is None]
NOT_GRADED = [case for case in CASES if case.reason is not None]
ODD_FOLDERS = {b"caf\xe9": "caf?", b"two\nlines": "two?lines"}  # names, and how they are shown
FULL = {i: float(c.points) for i, c in CHECKS.items()}


def by_name(case):
    return case.name


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The class after one run of nbgrader autograde."""
    course = Course(tmp_path_factory.mktemp("broken"))
    for case in CASES:
        case.hand_in(course)
    for name in ODD_FOLDERS:
        course.hand_in("odd")
        submitted = os.fsencode(course.folder / "submitted")
        os.rename(os.path.join(submitted, b"odd"), os.path.join(submitted, name))
    course.first = course.run("autograde", STAGE.assignment, *SHORT)
    return course


def table(run, student):
    """The rows of the table about a student: what it is, and the sentence."""
    found = [
        re.fullmatch(rf" *{re.escape(student)} +(note|NOT GRADED|stale)  (.*)", r) for r in run.stderr.splitlines()
    ]
    return [match.groups() for match in found if match]


@pytest.mark.parametrize("case", GRADED, ids=by_name)
def test_a_repaired_submission_gets_its_points(course, case):
    assert course.scores(case.name) == FULL | dict.fromkeys(case.loses, 0.0)


@pytest.mark.parametrize("case", GRADED, ids=by_name)
def test_the_table_says_what_was_repaired(course, case):
    rows = table(course.first, case.name)
    assert all(what == "note" for what, _ in rows)
    if case.note is None:
        assert rows == []
    else:
        assert [sentence for _, sentence in rows if case.note in sentence], rows


@pytest.mark.parametrize("case", GRADED, ids=by_name)
def test_nothing_of_a_graded_submission_waits_for_a_person_but_the_written_answers(course, case):
    with course.gradebook() as gradebook:
        notebook = gradebook.find_submission_notebook(STAGE.module, STAGE.assignment, case.name)
        assert [g.name for g in notebook.grades if g.name in CHECKS and g.needs_manual_grade] == []


@pytest.mark.parametrize("case", NOT_GRADED, ids=by_name)
def test_what_cannot_be_graded_is_listed_with_its_reason_and_has_no_score(course, case):
    ((what, sentence),) = table(course.first, case.name)
    assert what == "NOT GRADED" and case.reason in sentence
    assert not course.path(case.name, "autograded").parent.exists()
    try:
        assert set(course.scores(case.name).values()) == {None}
    except Exception as missing:  # nbgrader never heard of it
        assert "No such" in str(missing)


def test_a_folder_whose_name_cannot_be_shown_is_listed_too(course):
    for shown in ODD_FOLDERS.values():
        ((what, sentence),) = table(course.first, shown)
        assert what == "NOT GRADED" and "characters that cannot be shown" in sentence


def test_the_run_is_told_to_have_failed_and_shows_no_traceback(course):
    assert course.first.returncode == 1
    assert "Traceback" not in course.first.stderr


def test_the_report_says_the_same_to_programs(course):
    report = json.loads((course.folder / "autograded" / f"report-{STAGE.assignment}.json").read_text(encoding="utf-8"))
    assert {r["student"]: r["status"] for r in report} == {
        case.name: "graded" if case.reason is None else "not graded" for case in CASES
    } | dict.fromkeys(ODD_FOLDERS.values(), "not graded")
    assert all(bool(r["isolation"]) == (r["status"] == "graded") for r in report)  # in which sandbox it was graded


def test_the_graded_notebooks_are_the_courses_cells_in_their_order(course):
    """Whatever came in, nbgrader's feedback, formgrader and export find what the course released."""
    source = json.loads((course.folder / "source" / STAGE.assignment / NAME).read_text(encoding="utf-8"))
    ids = [cell["id"] for cell in source["cells"]]
    for case in GRADED:
        graded = json.loads(course.path(case.name, "autograded").read_text(encoding="utf-8"))
        assert [cell["id"] for cell in graded["cells"] if not cell["id"].startswith(("extra-", "rubric-"))] == ids, (
            case.name
        )
        assert (graded["nbformat"], graded["metadata"]["kernelspec"]) == (4, source["metadata"]["kernelspec"])
