"""The rows that a class leaves in the gradebook are those that nbgrader's own steps write for the same notebooks."""

import pytest
from nbformat.v4 import reads
from nbgrader.api import Comment, Grade, Student, SubmittedAssignment, SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades
from sqlalchemy import select
from traitlets.config import Config

from autograder.grading.gradebook import ClassGradebook, UnknownStudent
from autograder.grading.scores import ForGradebook
from autograder.tests.course import CHECKS, NAME, STAGE, Course
from autograder.tests.grading.test_one_bad_submission import hand_in_again
from autograder.tests.grading_class import GRADE, copy_of, run

LATE = "c.LateSubmissionPlugin.penalty_method = 'zero'\n"
CHECK = next(iter(CHECKS))


def rows(course):
    """Every column of all rows about submissions; whose they are in place of ids that are made up."""
    with course.gradebook() as gradebook:
        whose = {s.id: s.student_id for s in gradebook.db.scalars(select(SubmittedAssignment))}
        whose |= {n.id: whose[n.assignment_id] for n in gradebook.db.scalars(select(SubmittedNotebook))}
        return {
            table.__tablename__: sorted(
                repr([whose.get(value, value) for c in table.__table__.c for value in [getattr(row, c.name)]
                      if table is Student or c.name != "id"])
                for row in gradebook.db.scalars(select(table))
            )
            for table in (Student, SubmittedAssignment, SubmittedNotebook, Grade, Comment)
        }  # fmt: skip


def store_by_nbgrader(course):
    """Store the graded notebooks that lie in the course, by nbgrader's API and its own steps."""
    late = AssignLatePenalties(config=Config({"LateSubmissionPlugin": {"penalty_method": "zero"}}))
    for path in sorted((course.folder / "autograded").glob(f"*/{STAGE.assignment}/{NAME}")):
        student, stamp = path.parent.parent.name, path.with_name("timestamp.txt")
        with course.gradebook() as gradebook:
            gradebook.update_or_create_student(student)
            at = {"timestamp": stamp.read_text(encoding="utf-8")} if stamp.exists() else {}
            gradebook.update_or_create_submission(STAGE.assignment, student, **at)
        about = {"student": student, "assignment": STAGE.assignment, "notebook": STAGE.module}
        about["db_url"] = f"sqlite:///{course.folder / 'gradebook.db'}"
        for step in (SaveAutoGrades(), late):
            step.preprocess(reads(path.read_text(encoding="utf-8")), {"nbgrader": about})


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A class: with and without answers, unsolved, and late."""
    course = Course(tmp_path_factory.mktemp("course") / "course")
    with open(course.folder / "nbgrader_config.py", "a", encoding="utf-8") as config:
        config.write(LATE)
    for name in ("anna", "answers", "late"):
        course.hand_in(name)
    course.hand_in("unsolved", {})
    hand_in_again(course, "answers", "Because.")
    course.path("late").with_name("timestamp.txt").write_text("2026-03-20 12:00:00 UTC", encoding="utf-8")
    assert course.run("db", "assignment", "add", STAGE.assignment, "--duedate=2026-03-10 12:00:00 UTC").returncode == 0
    return course


def give_points(course):
    """A person's, for a check."""
    with course.gradebook() as gradebook:
        for name in ("anna", "late"):
            grade = gradebook.find_grade(CHECK, STAGE.module, STAGE.assignment, name)
            grade.manual_score, grade.extra_credit = 0.5, 0.25
        gradebook.db.commit()


def test_the_rows_are_those_of_nbgraders_own_steps(course, tmp_path):
    by_nbgrader = copy_of(course, tmp_path / "by-nbgrader")
    for options in ((), ("--force",)):
        assert run(course, GRADE, *options).returncode == 0
        copied = copy_of(course, tmp_path / f"graded{len(options)}")  # its notebooks, and the other gradebook
        (by_nbgrader.folder / "gradebook.db").replace(copied.folder / "gradebook.db")
        by_nbgrader = copied
        store_by_nbgrader(by_nbgrader)
        assert rows(course) == rows(by_nbgrader)
        for each in (course, by_nbgrader):
            give_points(each)
    assert any("'late'" in row and "12.75" in row for row in rows(course)["submitted_notebook"])  # all but a person's


def gradebook_of(course):
    url = f"sqlite:///{course.folder / 'gradebook.db'}"
    return ClassGradebook(url, "prefix-cache", STAGE.assignment, STAGE.module)


def test_an_unknown_student_is_added_only_if_the_course_allows_it(course):
    gradebook = gradebook_of(course)
    scores = ForGradebook(dict.fromkeys(gradebook.points, 0.0))
    with pytest.raises(UnknownStudent, match="The gradebook has no student stranger; nbgrader db student add adds one"):
        gradebook.store("stranger", scores, create_student=False)
    gradebook.reset("stranger", add=False, create_student=True)
    assert "stranger" not in str(rows(course))
    gradebook.store("stranger", scores)
    gradebook.close()
    assert "stranger" in str(rows(course)["student"])


def test_a_submission_is_stored_whole_or_not_at_all(course):
    gradebook = gradebook_of(course)
    before = rows(course)
    scores = dict.fromkeys(gradebook.points, 0.0)
    with pytest.raises(Exception, match="no score"):
        gradebook.store("half", ForGradebook(scores | {CHECK: "no score"}))
    gradebook.close()
    assert rows(course) == before


@pytest.mark.parametrize("write", ["store", "reset"])
def test_a_submission_that_another_process_adds_at_the_same_moment_is_still_stored(course, monkeypatch, write):
    gradebook, other = gradebook_of(course), gradebook_of(course)
    scores = ForGradebook(dict.fromkeys(gradebook.points, 0.0))
    add = gradebook._add_submission

    def add_second(connection, student, *more, **options):
        monkeypatch.undo()
        other.store(student, scores)
        return add(connection, student, *more, **options)

    monkeypatch.setattr(gradebook, "_add_submission", add_second)
    if write == "store":
        gradebook.store("both", ForGradebook(dict.fromkeys(gradebook.points, 1.0)))
    else:
        gradebook.reset("both-again", add=True, create_student=True)
    for each in (gradebook, other):
        each.close()
    expected = {"both": 1.0} if write == "store" else {"both-again": None}
    assert {student: course.scores(student)[CHECK] for student in expected} == expected
