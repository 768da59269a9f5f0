"""What one submission, or the course's own configuration, may not do to the scores of the others.

The class is graded by an account that permissions hold for: root goes without the capabilities that set it above them.
"""

import os
import re
import shutil

import pytest

from autograder.grading import batch, class_run
from autograder.grading.gradebook import ClassGradebook
from autograder.grading.outcome import NOT_GRADED_LINE, Watcher
from autograder.grading.records import read_record, write_record
from autograder.grading.scores import ForGradebook
from autograder.tests.course import CHECKS, NAME, STAGE, Course
from autograder.tests.grading_class import AUTOGRADE, GRADE, copy_of, run

pytestmark = pytest.mark.skipif(
    os.name != "posix" or (os.geteuid() == 0 and not shutil.which("setpriv")), reason="needs permissions that hold"
)
ORDINARY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
FULL = {i: float(c.points) for i, c in CHECKS.items()}
LATIN = os.fsdecode(b"caf\xe9.ipynb")
HOOKS = f"""
def failing(name):
    def hook(notebooks, **kwargs):
        with open("hooks.txt", "a") as file:
            print(name, *notebooks, file=file)
        raise RuntimeError("the course's own hook")

    return hook

c.Autograde.pre_convert_hook, c.Autograde.post_convert_hook = failing("before"), failing("after")
c.Autograde.exclude_overwriting = {{"{STAGE.assignment}": ["data/own.csv"]}}
c.CourseDirectory.student_id_exclude = "excluded,excluded-shut"
"""


def row(done, student):
    """The sentence about a student in the table, after what it is."""
    found = re.findall(
        rf"^ *{re.escape(student)} +(note|NOT GRADED|stale)  +(.*)$", done.stdout + done.stderr, re.MULTILINE
    )
    assert len(found) == 1, (student, found, done.stdout + done.stderr)
    return found[0]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("built") / "course")
    for name in ("adele", "zoe"):
        course.hand_in(name)
    return course


@pytest.fixture
def course(built, tmp_path):
    return copy_of(built, tmp_path / "course")


@pytest.fixture(scope="module")
def graded_once(built, tmp_path_factory):
    """The class after one run, with an answer to every question."""
    course = copy_of(built, tmp_path_factory.mktemp("once") / "course")
    for name in ("adele", "zoe"):
        hand_in_again(course, name, "Because.")
    assert run(course, GRADE).returncode == 0
    return course


@pytest.fixture
def graded_before(graded_once, tmp_path):
    return copy_of(graded_once, tmp_path / "course")


@pytest.fixture(scope="module")
def graded(built, tmp_path_factory):
    """The class with everything wrong at once, after one run."""
    course = copy_of(built, tmp_path_factory.mktemp("graded") / "course")
    with open(course.folder / "nbgrader_config.py", "a", encoding="utf-8") as config:
        config.write(HOOKS)
    for name in ("shut-folder", "shut-student", "shut-time", "shut-notebook", "shut-given", "linked", "recorded"):
        course.hand_in(name)
    for name in ("excluded", "excluded-shut"):
        course.hand_in(name)
    course.hand_in("latin", name=LATIN)
    course.hand_in("latin-broken", name=LATIN)
    course.path("latin-broken", name=LATIN).write_text("{")
    course.path("linked").with_name("leak.txt").symlink_to("/etc/hostname")
    own = course.path("adele", name="data/own.csv")
    own.parent.mkdir()
    own.write_text("1,2", encoding="utf-8")
    course.path("linked").with_name("data").symlink_to(own.parent)
    (course.folder / "autograded" / ".records" / STAGE.assignment / "recorded.json").mkdir(parents=True)
    course.path("shut-time").with_name("timestamp.txt").touch()
    shut = [
        course.path("shut-folder").parent,
        course.path("shut-student").parent.parent,
        course.path("shut-time").with_name("timestamp.txt"),
        course.path("shut-notebook"),
        course.path("shut-given").with_name("given.py"),
        course.path("excluded-shut").parent,
    ]
    for path in shut:
        path.chmod(0)
    course.done = run(course, [*ORDINARY, *AUTOGRADE])
    yield course
    for path in shut:
        path.chmod(0o700)


def test_an_unreadable_submission_is_named_and_the_run_continues(graded):
    said = graded.done.stdout + graded.done.stderr
    assert graded.done.returncode == 1
    assert said.count("Traceback") == said.count("RuntimeError: the course's own hook")
    for name in ("shut-folder", "shut-student", "shut-time"):
        what, sentence = row(graded.done, name)
        assert what == "NOT GRADED" and "timestamp.txt cannot be read (Permission denied); let this account" in sentence
    assert (
        row(graded.done, "shut-notebook")[1]
        == f"{NAME} cannot be opened (Permission denied); let this account read it."
    )
    assert "recorded.json cannot be used (Is a directory)" in row(graded.done, "recorded")[1]


def test_the_others_have_every_point(graded):
    for name in ("adele", "zoe", "shut-given", "linked", "latin"):
        assert graded.scores(name) == FULL, name
        assert read_record(graded.folder / "autograded", STAGE.assignment, name).status == "graded"


def test_a_file_name_that_is_not_valid_text_does_no_harm(graded):
    assert row(graded.done, "latin") == ("note", "The notebook was named caf\ufffd.ipynb.")
    assert read_record(graded.folder / "autograded", STAGE.assignment, "latin").file == "caf\ufffd.ipynb"
    assert row(graded.done, "latin-broken")[1].startswith("caf\ufffd.ipynb is not valid JSON")
    assert not list((graded.folder / "autograded").rglob("*.tmp"))


@pytest.mark.parametrize(("hook", "more"), [("before", ["latin-broken", "recorded", "shut-notebook"]), ("after", [])])
def test_a_hook_of_the_course_gets_each_notebook(graded, hook, more):
    told = (graded.folder / "hooks.txt").read_text(encoding="utf-8").splitlines()
    names = ["adele", "latin", "linked", "shut-given", "zoe"]
    expected = sorted(f"{hook} {graded.path(name)}" for name in (*names, *more))
    assert sorted(line for line in told if line.startswith(hook)) == expected


def test_a_file_that_the_course_lets_a_student_change_stays_the_students(graded):
    own = graded.path("adele", "autograded", name="data/own.csv")
    assert own.read_text(encoding="utf-8") == "1,2"


def test_a_failing_hook_of_the_course_lets_no_link_through(graded):
    assert {p.name for p in graded.path("linked", "autograded").parent.iterdir()} == {NAME, "given.py"}


def test_an_excluded_student_is_not_part_of_the_run(graded):
    assert "excluded" not in graded.done.stdout + graded.done.stderr
    assert not list((graded.folder / "autograded").rglob("excluded*"))


def test_no_score_changes_when_the_course_and_its_checks_differ(graded_before):
    course = graded_before
    path = course.folder / "source" / STAGE.assignment / NAME
    source, check = path.read_text(encoding="utf-8"), next(iter(CHECKS))
    path.write_text(source.replace(f'"grade_id": "{check}"', '"grade_id": "other-check"'), encoding="utf-8")
    sentence = f"Checks, course/source and gradebook differ in other-check, {check}; run: autograder build"
    done = run(course, GRADE, "--force")
    assert done.returncode != 0 and sentence in done.stderr and "Traceback" not in done.stdout + done.stderr
    path.write_text("{", encoding="utf-8")
    done = run(course, AUTOGRADE, "--force")
    assert f"{NAME} cannot be read (" in done.stderr and "Traceback" not in done.stdout + done.stderr
    for name in ("adele", "zoe"):
        assert course.scores(name) == FULL and course.path(name, "autograded").exists()


def test_no_old_score_survives_when_nobody_hands_in_a_notebook_any_more(graded_before):
    course = graded_before
    for name in ("adele", "zoe"):
        course.path(name).rename(course.path(name, name="notes.txt"))
    done = run(course, AUTOGRADE, "--force")
    assert done.returncode == 1 and "No notebooks were matched" not in done.stderr
    for name in ("adele", "zoe"):
        assert row(done, name)[1] == f"There is no notebook in the submission; {NAME} is needed (found: notes.txt)."
        assert set(course.scores(name).values()) == {None}
    for name in ("adele", "zoe"):
        shutil.rmtree(course.path(name).parent)
    for command, said in ((AUTOGRADE, "No notebooks were matched"), (GRADE, "Nothing was handed in")):
        done = run(course, command, "--force")
        assert done.returncode != 0 and said in done.stderr


def test_a_graded_answer_needs_no_grading_until_it_changes(graded_before):
    course, written = graded_before, ("why-positions", "when-to-save")
    with course.gradebook() as gradebook:
        for name in ("adele", "zoe"):
            for cell in written:
                grade = gradebook.find_grade(cell, STAGE.module, STAGE.assignment, name)
                assert grade.needs_manual_grade
                grade.manual_score, grade.needs_manual_grade = 1.0, False
        # One score is given, and the person wants to come back to it
        gradebook.find_grade(written[1], STAGE.module, STAGE.assignment, "adele").needs_manual_grade = True
        gradebook.db.commit()
    hand_in_again(course, "zoe", "I have thought again.")
    assert run(course, AUTOGRADE, "--force").returncode == 0
    with course.gradebook() as gradebook:
        found = {
            (name, cell): gradebook.find_grade(cell, STAGE.module, STAGE.assignment, name)
            for name in ("adele", "zoe")
            for cell in written
        }
        assert {grade.manual_score for grade in found.values()} == {1.0}
        assert [where for where, grade in found.items() if not grade.needs_manual_grade] == [("adele", written[0])]


def grade_here(course, monkeypatch):
    """Grade the class in this process, where a part can be made to fail for Adele."""
    monkeypatch.chdir(course.folder)
    outcome = class_run.Course(course.folder).grade(STAGE, Watcher())
    assert (outcome.graded, outcome.not_graded) == (1, 1)
    assert course.scores("zoe") == FULL and set(course.scores("adele").values()) == {None}
    assert read_record(course.folder / "autograded", STAGE.assignment, "zoe").status == "graded"
    (line,) = outcome.lines
    assert (line.student, line.what) == ("adele", NOT_GRADED_LINE)
    return line.sentence


def test_a_record_that_cannot_be_written_is_reported(course, monkeypatch):
    def full(autograded, record, group=False):
        if record.student == "adele":
            raise OSError(28, "No space left on device")
        write_record(autograded, record, group)

    monkeypatch.setattr(batch, "write_record", full)
    assert grade_here(course, monkeypatch) == "its record cannot be written (No space left on device)."


def test_scores_that_cannot_be_stored_affect_no_other_student(course, monkeypatch):
    store = ClassGradebook.store

    def fails(self, student, graded, *values, **options):
        if student == "adele":
            scores = dict(graded.scores) | {next(iter(CHECKS)): "a score that the gradebook does not take"}
            graded = ForGradebook(scores, graded.unanswered)
        store(self, student, graded, *values, **options)

    monkeypatch.setattr(ClassGradebook, "store", fails)
    assert grade_here(course, monkeypatch) == "its scores could not be stored; see the messages above."
    assert read_record(course.folder / "autograded", STAGE.assignment, "adele").status == "not graded"


def hand_in_again(course, student, text):
    """The student's notebook with this answer to every question."""

    def change(notebook):
        for cell in notebook["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("solution") and cell["cell_type"] == "markdown":
                cell["source"] = text

    shutil.rmtree(course.path(student).parent)
    course.hand_in(student, change=change)
