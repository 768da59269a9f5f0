"""The hostile and the broken class in each sandbox, marked by root and by an ordinary account.

The scores are those of test_hostile.py and test_broken.py, which have bubblewrap and the account that tests. What is
broken about a notebook has little to do with either, so that class is marked with both others at once.
"""

import contextlib
import json
from types import SimpleNamespace

import pytest

from autograder.tests.accounts import account
from autograder.tests.broken.cases import CASES
from autograder.tests.canary import Canary
from autograder.tests.course import CHECKS, STAGE, Course
from autograder.tests.hostile.attacks import ATTACKS
from autograder.tests.hostile.attacks.taking import SECONDS
from autograder.tests.hostile.marked import NotSandboxed, earned, first_message, mark
from autograder.tests.marking import left_over
from autograder.tests.modes import ISOLATIONS
from autograder.tests.waiting import wait_until

SHORT = [f"--SubmissionExporter.{name}_seconds={n}" for name, n in (("cell", 10), ("call", 2), ("total", 20))]
FULL = {check: float(c.points) for check, c in CHECKS.items()}


@pytest.fixture(
    scope="module",
    params=[("bubblewrap", "ordinary"), ("landlock", "this"), ("landlock", "ordinary")],
    ids=lambda param: "-".join(param),
)
def marked(request, tmp_path_factory):
    """The hostile class, and in one case the broken one too, after one run of nbgrader autograde."""
    mode, who = request.param
    cases = CASES if (mode, who) == ("landlock", "ordinary") else []
    if mode not in ISOLATIONS:
        pytest.skip(f"{mode} does not work here")
    with account(who) as marker, contextlib.closing(Canary()) as canary:
        folder = marker.home or tmp_path_factory.mktemp("modes")
        temporary = folder / "temporary"
        temporary.mkdir()
        marker.owns(temporary)
        course = Course(folder / "course", marker)

        def hand_in():
            for submission in ATTACKS:
                submission.hand_in(course, canary.folder)
            for case in cases:
                case.hand_in(course)

        environment = {"TMPDIR": str(temporary), "AUTOGRADER_SANDBOX": mode}
        try:
            run = mark(course, canary, hand_in, *SHORT, **environment)
        except NotSandboxed as reason:
            if who == "this":
                raise
            pytest.skip(f"an ordinary account has no {mode} here: {reason}")
        yield SimpleNamespace(course=course, canary=canary, mode=mode, cases=cases, temporary=temporary, run=run)


def test_every_submission_gets_what_it_earned(marked):
    expected = {attack.name: earned(attack) for attack in ATTACKS}
    expected |= {c.name: FULL | dict.fromkeys(c.loses, 0.0) for c in marked.cases if c.reason is None}
    scores = {name: marked.course.scores(name) for name in expected}
    assert {name: got for name, got in scores.items() if got != expected[name]} == {}


def test_what_cannot_be_graded_is_not(marked):
    there = [c.name for c in marked.cases if c.reason and marked.course.path(c.name, "autograded").parent.exists()]
    assert there == [] and marked.run.returncode == bool(marked.cases) and "Traceback" not in marked.run.stderr


def test_who_looks_for_secrets_or_ways_out_finds_nothing(marked):
    said = {a.name: first_message(marked.course, a.name) for a in ATTACKS if a.looks and a.name != "imports-judge"}
    assert {name: text for name, text in said.items() if "RuntimeError: FOUND nothing" not in text} == {}


def test_nothing_outside_is_changed_or_left(marked):
    assert marked.canary.changed() == []
    assert list(marked.temporary.iterdir()) == []
    assert wait_until(lambda: not left_over(marked.course.folder, SECONDS), 5)


def test_the_report_names_the_sandbox_and_no_check_of_ours_broke(marked):
    path = marked.course.folder / "autograded" / f"report-{STAGE.assignment}.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    assert {r["isolation"] for r in report if r["status"] == "graded"} == {marked.mode}
    assert [r["student"] for r in report for n in r["notes"] if n["kind"] == "check-broke"] == []
