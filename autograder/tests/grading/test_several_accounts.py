"""Assistants with accounts of their own share a course: a group, c.CourseDirectory.groupshared, the seed for the group.

The first account's files are given to another owner; then root grades, without what sets it above permissions, as a
member of the group.
"""

import os
import re
import shutil

import pytest

from autograder.tests.course import CHECKS, STAGE, Course
from autograder.tests.grading_class import AUTOGRADE, GRADE, copy_of, records, run

pytestmark = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0 or not shutil.which("setpriv"), reason="has to be root, and gives that up"
)
GROUP = OTHER = 54321  # nobody's
MEMBER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner,-chown", f"--groups={GROUP}"]
SEED = ".autograder-seed"
FULL = {i: float(c.points) for i, c in CHECKS.items()}


def belongs_to_another(course):
    for path in (course.folder, *course.folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o7777)
            os.chown(path, OTHER, GROUP)


def member(course, command, *options):
    return run(course, [*MEMBER, *command], *options)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The class graded by the first account, under the umask that most have."""
    course = Course(tmp_path_factory.mktemp("first") / "course")
    with open(course.folder / "nbgrader_config.py", "a", encoding="utf-8") as config:
        config.write("\nc.CourseDirectory.groupshared = True\n")
    for name in ("adele", "zoe"):
        course.hand_in(name)
    before = os.umask(0o022)
    try:
        assert run(course, GRADE).returncode == 0
    finally:
        os.umask(before)
    return course


@pytest.fixture
def course(graded, tmp_path):
    """What the README asks for, and the first account's run before."""
    course = copy_of(graded, tmp_path / "course")
    for path in (course.folder, course.folder / "gradebook.db"):
        path.chmod(path.stat().st_mode | 0o020)
    (course.folder / SEED).chmod(0o640)
    belongs_to_another(course)
    return course


def test_another_account_resumes_and_grades_again(course):
    course.hand_in("ben")
    done = member(course, GRADE)
    assert done.returncode == 0, done.stdout + done.stderr
    before = {r.student: r.graded_at for r in records(course)}
    assert set(before) == {"adele", "ben", "zoe"} and course.scores("ben") == FULL
    done = member(course, AUTOGRADE, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(r.graded_at > before[r.student] and r.status == "graded" for r in records(course))
    for name in before:
        assert course.scores(name) == FULL


def test_a_seed_for_its_owner_alone_is_one_sentence_and_no_score_is_touched(course):
    (course.folder / SEED).chmod(0o600)
    done = member(course, AUTOGRADE, "--force")
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "Traceback" not in said
    assert (
        f"{SEED} cannot be used (Permission denied); its owner has to permit it: chgrp GROUP and chmod 640 on it"
        in said
    )
    assert {r.status for r in records(course)} == {"graded"} and course.scores("zoe") == FULL


def test_scores_whose_record_this_account_cannot_read_are_kept(course):
    """As records were that an earlier version made."""
    (course.folder / "autograded" / ".records" / STAGE.assignment / "zoe.json").chmod(0o600)
    done = member(course, AUTOGRADE, "--force")
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in said
    assert re.search(
        r"^ *zoe +NOT GRADED  \S+zoe\.json cannot be read \(Permission denied\); let this account", said, re.M
    )
    assert {r.student: r.status for r in records(course)} == {"adele": "graded", "zoe": "graded"}
    assert course.scores("zoe") == FULL and course.path("zoe", "autograded").exists()
    page = member(course, [*GRADE[:3], "report", STAGE.name])
    assert "1 of 2 submissions graded" in page.stdout
    html = (course.folder / "autograded" / f"report-{STAGE.assignment}.html").read_text(encoding="utf-8")
    assert "zoe.json cannot be read (Permission denied)" in html


def test_a_folder_that_the_group_cannot_use_is_reported_in_one_sentence(course):
    (course.folder / "autograded" / ".records" / ".claims").chmod(0o644)
    done = member(course, GRADE)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert ".claims cannot be used (Permission denied); let this account write to it." in done.stderr
