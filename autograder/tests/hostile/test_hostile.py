"""The hostile class, graded as one batch by the real command line, with honest submissions among it.

For each: the points that were earned and no others, the rest of the class untouched, nothing left running or lying
about, and nothing of a student's that a page of feedback or a terminal would obey.
"""

import json
import os
import re
import sqlite3

import pytest

from autograder.tests.canary import Canary
from autograder.tests.command import autograder
from autograder.tests.course import ALL, CHECKS, NAME, STAGE, Course
from autograder.tests.grading_class import left_over
from autograder.tests.hostile.attacks import ATTACKS, Attack
from autograder.tests.hostile.attacks.taking import SECONDS
from autograder.tests.hostile.graded import REQUIRED, earned, first_message, grade
from autograder.tests.modes import works
from autograder.tests.waiting import wait_until

pytestmark = works("bubblewrap")

HONEST = ("adele", "mohammed", "zoe")  # the first, one in the middle and the last of the batch
BY_NAME = {attack.name: attack for attack in ATTACKS}
PROBES = [a.name for a in ATTACKS if a.looks]
SHORT = [f"--SubmissionExporter.{name}_seconds={n}" for name, n in (("cell", 10), ("call", 2), ("total", 20))]
AGAIN = ("zoe", "script-in-messages", "pipe-forged", "pipe-flood", "exits", "patched-runtime", "file-of-names")
SCRIPTED_NAME = "script<b onmouseover=alert(1)>"
# Names of notebooks that cannot be read: one that a terminal would obey, one with another student's row of the table
FORGED_NAMES = {"named-red": "\x1b[31mforged red.ipynb", "named-line": "x\n  zoe  NOT GRADED  forged.ipynb"}


@pytest.fixture(scope="module")
def canary():
    canary = Canary()
    yield canary
    canary.close()


@pytest.fixture(scope="module")
def course(tmp_path_factory, canary):
    """The class after one run of nbgrader autograde."""
    course = Course(tmp_path_factory.mktemp("hostile"))

    def hand_in():
        for student in (*HONEST, SCRIPTED_NAME):
            course.hand_in(student)
        for attack in ATTACKS:
            attack.hand_in(course, canary.folder)
        _link_to_others(course, canary)
        for student, name in FORGED_NAMES.items():
            course.hand_in(student, name=name)
            course.path(student, name=name).write_text("{", encoding="utf-8")

    course.temporary = tmp_path_factory.mktemp("temporary")
    course.released = released(course)
    course.first = grade(course, canary, hand_in, *SHORT, TMPDIR=str(course.temporary), AUTOGRADER_JOBS="2")
    return course


def _link_to_others(course, canary):
    """Submissions made of links: to another's notebook, another's folder, and the gradebook."""
    for student, target in (
        ("links-notebook", course.path("adele")),
        ("links-gradebook", course.folder / "gradebook.db"),
    ):
        course.path(student).parent.mkdir(parents=True)
        course.path(student).symlink_to(target)
    (course.folder / "submitted" / "links-folder").mkdir()
    course.path("links-folder").parent.symlink_to(course.path("adele").parent, target_is_directory=True)
    Attack("links-beside", "Links beside the notebook.").hand_in(course, canary.folder)
    for name, target in (("secret", course.folder / ".autograder-seed"), ("home", canary.folder / "home"),
                         ("given.py", "/etc/passwd")):  # fmt: skip
        path = course.path("links-beside").parent / name
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    os.mkfifo(course.path("links-beside").parent / "timestamp.txt")


def released(course):
    """Every file that the build made, given.py among them."""
    folders = (course.folder / "source", course.folder / "release")
    return {path: (path.stat().st_mode, path.read_bytes()) for f in folders for path in f.rglob("*") if path.is_file()}


# Scores


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.name)
def test_every_submission_gets_what_it_earned(course, attack):
    assert course.scores(attack.name) == earned(attack)


@pytest.mark.parametrize("student", HONEST)
def test_honest_work_among_them_keeps_every_point(course, student):
    assert course.scores(student) == {i: c.points for i, c in CHECKS.items()}


def test_the_most_points_are_still_those_of_the_course(course):
    with course.gradebook() as gradebook:
        for attack in ATTACKS:
            notebook = gradebook.find_submission_notebook(STAGE.module, STAGE.assignment, attack.name)
            assert {g.name: g.max_score for g in notebook.grades if g.name in CHECKS} == {
                i: c.points for i, c in CHECKS.items()
            }
            assert notebook.score <= ALL
        assert {s.id for s in gradebook.students} >= {*HONEST, *BY_NAME}


def test_a_link_is_not_graded(course):
    for student in ("links-notebook", "links-gradebook", "links-folder"):
        assert not course.path(student, "autograded").parent.exists()
        assert re.search(rf"^ *{student} +NOT GRADED  .*link", course.first.stderr, re.MULTILINE)
    assert not course.path("links-beside", "autograded").parent.exists()  # its timestamp is a pipe


# What was found


@pytest.mark.parametrize("student", PROBES)
def test_attacks_that_look_for_secrets_or_ways_out_find_nothing(course, student):
    if student == "imports-judge":
        assert "FOUND" not in "".join("".join(o[0]["text"]) for o in course.outputs(student).values())
    else:
        assert "raised RuntimeError: FOUND nothing" in first_message(course, student)


def test_no_secret_and_no_file_from_elsewhere_is_in_what_the_run_made(course):
    secret = (course.folder / ".autograder-seed").read_text().strip()
    made = [p for p in (course.folder / "autograded").rglob("*") if p.is_file()]
    assert len(made) > len(ATTACKS)
    assert not any(p.is_symlink() for p in (course.folder / "autograded").rglob("*"))
    for path in made:
        text = path.read_text(encoding="utf-8")
        assert secret not in text and "root:x:0" not in text, path
    assert secret not in course.first.stderr


# What is left


def test_no_process_outlives_the_run(course):
    assert wait_until(lambda: not left_over(course.folder, SECONDS), 5), left_over(course.folder, SECONDS)


def test_no_file_is_left_and_no_mode_is_changed(course, canary):
    assert list(course.temporary.iterdir()) == []
    assert canary.changed() == []
    assert released(course) == course.released


def test_submissions_are_unchanged(course):
    for attack in ATTACKS:
        assert {p.name for p in course.path(attack.name).parent.iterdir()} == {NAME, "given.py", *attack.files}
        for name, content in attack.files.items():
            assert (course.path(attack.name).parent / name).read_text(encoding="utf-8") == content


# What the assistant and the students see


def test_the_run_completes_and_its_table_cannot_be_forged(course):
    assert course.first.returncode == 1, course.first.stderr  # the links and what is no notebook were not graded
    assert "Traceback" not in course.first.stderr
    rows = [line for line in course.first.stderr.splitlines() if "forged" in line]
    assert rows and not any(re.match(r" *zoe ", row) for row in rows)
    for student in FORGED_NAMES:
        assert any(re.match(rf" *{student} +NOT GRADED  .*forged.*\.ipynb is not valid JSON", row) for row in rows)
    assert all(c.isprintable() or c == "\n" for c in course.first.stderr)


def test_no_check_of_ours_broke(course):
    report = json.loads((course.folder / "autograded" / f"report-{STAGE.assignment}.json").read_text())
    notes = [(r["student"], n["sentence"]) for r in report for n in r["notes"] if n["kind"] == "check-broke"]
    assert notes == []
    assert {r["isolation"] for r in report if r["status"] == "graded"} == {"bubblewrap"}


@pytest.fixture(scope="module")
def pages(course):
    run = course.run("generate_feedback", STAGE.assignment, "--student=script*")  # of all of them it takes a minute
    assert run.returncode == 0, run.stderr
    return {p.parent.parent.name: p.read_text(encoding="utf-8") for p in course.folder.glob("feedback/*/*/*.html")}


def test_no_page_of_feedback_runs_loads_or_links_anything_of_a_students(course, pages):
    def active(page):
        found = re.findall(r"""(?i)<[a-z][^<>]*?(?:\son\w+\s*=|javascript:|evil\.example)[^<>]*>""", page)
        found += re.findall(r"(?i)<script[^<>]*>[^<]*alert[^<]*", page)
        return found + re.findall(r"<style>body\{display:none\}", page)

    assert set(pages) == {SCRIPTED_NAME, *(name for name in BY_NAME if name.startswith("script"))}
    assert {student: active(page) for student, page in pages.items() if active(page)} == {}
    assert "alert(" in pages["script-in-notebook"]  # as text
    assert "alert(" in pages["script-in-messages"]


def test_a_name_of_a_student_is_text_on_the_pages(course, pages):
    assert course.scores(SCRIPTED_NAME) == {i: c.points for i, c in CHECKS.items()}
    assert not any("<b onmouseover" in page for page in pages.values())


# The other command


@pytest.fixture(scope="module")
def by_grade(course, pages):
    """A part of the class graded again by `autograder grade`."""
    before = {student: course.scores(student) for student in AGAIN}
    with (course.folder / "nbgrader_config.py").open("a") as config:
        config.writelines(f"c.{option.removeprefix('--')}\n" for option in SHORT)
    options = ("--force", "--require-sandbox", "--course", course.folder, *(f"--student={name}" for name in AGAIN))
    return before, autograder("grade", STAGE.name, *options, TMPDIR=str(course.temporary))


def test_autograder_grade_gives_the_same_scores_and_its_output_cannot_be_forged(course, by_grade):
    before, run = by_grade
    assert run.returncode == 0, run.stderr
    assert {student: course.scores(student) for student in AGAIN} == before
    output = run.stdout + run.stderr
    assert all(c.isprintable() or c == "\n" for c in output)
    rows = [line for line in output.splitlines() if "forged" in line]
    assert rows and not any(re.match(r" *zoe ", row) for row in rows)
    assert re.search(rf"{STAGE.assignment}: {len(AGAIN)} graded", output)
    assert list(course.temporary.iterdir()) == []


# The gradebook


@pytest.fixture(scope="module")
def again(pages, by_grade, course):
    """One hostile submission graded again: the gradebook's rows before and after."""
    before = _rows(course)
    hand_in_again = course.path("patched-runtime")
    hand_in_again.write_text(hand_in_again.read_text().replace("61", "62"))
    command = ("autograde", STAGE.assignment, "--student", "patched-runtime", "--force", REQUIRED, *SHORT)
    run = course.run(*command, TMPDIR=str(course.temporary))
    assert run.returncode == 0, run.stderr
    return before, _rows(course)


def _rows(course):
    """Every row of the gradebook, by table, with the students that it belongs to."""
    base = sqlite3.connect(f"file:{course.folder / 'gradebook.db'}?mode=ro", uri=True)
    assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {}
    for table in tables:
        cursor = base.execute(f'SELECT * FROM "{table}"')
        found[table] = {dict(zip([d[0] for d in cursor.description], row, strict=True)).__repr__() for row in cursor}
    owner = dict(base.execute("SELECT id, student_id FROM submitted_assignment"))
    notebooks = dict(base.execute("SELECT id, assignment_id FROM submitted_notebook"))
    own_assignments = {i for i, student in owner.items() if student == "patched-runtime"}
    own_notebooks = {i for i, assignment in notebooks.items() if assignment in own_assignments}
    base.close()
    return found, own_assignments | own_notebooks


def test_a_submission_changes_only_its_own_rows(again):
    (before, own), (after, _) = again
    assert set(before) == set(after)
    changed = {row for table in before for row in before[table] ^ after[table]}
    assert [row for row in changed if not any(i in row for i in own)] == []
