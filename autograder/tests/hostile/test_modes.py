"""What reaches for the machine, in each sandbox and graded by root and by an ordinary account.

The whole hostile class is graded in test_hostile.py, with bubblewrap and the account that tests. Of what tries nothing
that depends on either, one of each kind is graded here.
"""

import contextlib
import json
from types import SimpleNamespace

import pytest

from autograder.tests.accounts import account
from autograder.tests.canary import Canary
from autograder.tests.course import STAGE, Course
from autograder.tests.grading_class import left_over
from autograder.tests.hostile.attacks import ATTACKS, CHANGING, LOOKING, TAKING
from autograder.tests.hostile.attacks.taking import SECONDS
from autograder.tests.hostile.graded import NotSandboxed, earned, first_message, grade
from autograder.tests.modes import ISOLATIONS
from autograder.tests.waiting import wait_until

SHORT = [f"--SubmissionExporter.{name}_seconds={n}" for name, n in (("cell", 10), ("call", 2), ("total", 20))]
OF_OTHER_KINDS = ("imports-judge", "exits", "goes-on", "pipe-flood", "script-in-notebook")
HERE = [*LOOKING, *CHANGING, *TAKING, *(a for a in ATTACKS if a.name in OF_OTHER_KINDS)]


@pytest.fixture(
    scope="module",
    params=[("bubblewrap", "ordinary"), ("landlock", "this"), ("landlock", "ordinary")],
    ids=lambda param: "-".join(param),
)
def graded(request, tmp_path_factory):
    """The class after one run of nbgrader autograde."""
    mode, who = request.param
    if mode not in ISOLATIONS:
        pytest.skip(f"{mode} does not work here")
    with account(who) as grader, contextlib.closing(Canary()) as canary:
        folder = grader.home or tmp_path_factory.mktemp("modes")
        temporary = folder / "temporary"
        temporary.mkdir()
        grader.owns(temporary)
        course = Course(folder / "course", grader)

        def hand_in():
            for attack in HERE:
                attack.hand_in(course, canary.folder)

        environment = {"TMPDIR": str(temporary), "AUTOGRADER_SANDBOX": mode}
        try:
            run = grade(course, canary, hand_in, *SHORT, **environment)
        except NotSandboxed as reason:
            if who == "this":
                raise
            pytest.skip(f"an ordinary account has no {mode} here: {reason}")
        yield SimpleNamespace(course=course, canary=canary, mode=mode, temporary=temporary, run=run)


def test_every_submission_gets_what_it_earned(graded):
    assert graded.run.returncode == 0 and "Traceback" not in graded.run.stderr
    scores = {attack.name: graded.course.scores(attack.name) for attack in HERE}
    assert scores == {attack.name: earned(attack) for attack in HERE}


def test_attacks_that_look_for_secrets_or_ways_out_find_nothing(graded):
    said = {a.name: first_message(graded.course, a.name) for a in HERE if a.looks and a.name != "imports-judge"}
    assert {name: text for name, text in said.items() if "RuntimeError: FOUND nothing" not in text} == {}


def test_nothing_outside_is_changed_or_left(graded):
    assert graded.canary.changed() == []
    assert list(graded.temporary.iterdir()) == []
    assert wait_until(lambda: not left_over(graded.course.folder, SECONDS), 5)


def test_the_report_names_the_sandbox_and_no_check_of_ours_broke(graded):
    path = graded.course.folder / "autograded" / f"report-{STAGE.assignment}.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    assert {r["isolation"] for r in report} == {graded.mode}
    assert [r["student"] for r in report for n in r["notes"] if n["kind"] == "check-broke"] == []
