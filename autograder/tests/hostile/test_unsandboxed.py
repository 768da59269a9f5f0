"""Where the command that grades finds no sandbox: nothing hostile is graded, and what it could have done is shown."""

import contextlib
import json

import pytest

from autograder.sandbox.client import Worker
from autograder.tests.canary import Canary
from autograder.tests.course import STAGE, Course
from autograder.tests.hostile.attacks import ATTACKS
from autograder.tests.hostile.attacks.changing import TRIES_THE_SANDBOX
from autograder.tests.hostile.graded import NotSandboxed, earned, first_message, grade
from autograder.tests.modes import ISOLATIONS, ask, filtered, in_bubblewrap

LIMITS = {"AUTOGRADER_SANDBOX": "limits"}
CHANGE, HELD = ("gradebook", "writes"), ("processes", "network", "loops", "exits")
BY_NAME = {attack.name: attack for attack in ATTACKS}
ALLOWED = "--SubmissionExporter.allow_unsandboxed=True"


@pytest.fixture
def canary():
    with contextlib.closing(Canary()) as canary:
        yield canary


def never():
    raise AssertionError("the hostile class was handed in")


def test_without_a_sandbox_the_class_is_not_graded_and_the_reason_is_given(tmp_path, canary):
    with pytest.raises(NotSandboxed, match="AUTOGRADER_SANDBOX asks for limits"):
        grade(Course(tmp_path), canary, never, **LIMITS)
    assert canary.changed() == []


@in_bubblewrap
def test_with_bubblewrap_hidden_from_the_command_it_is_still_sandboxed_or_nothing_is_graded(tmp_path, canary):
    course = Course(tmp_path / "course")
    (tmp_path / "empty").mkdir()
    with contextlib.suppress(NotSandboxed):
        grade(course, canary, lambda: None, PATH=str(tmp_path / "empty"))
        report = json.loads((course.folder / "autograded" / f"report-{STAGE.assignment}.json").read_text())
        assert [r["isolation"] for r in report] in (["bubblewrap"], ["landlock"])
    assert canary.changed() == []


@in_bubblewrap
def test_hiding_bubblewrap_after_it_was_found_does_not_change_the_sandbox(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with Worker(isolation=ISOLATIONS["bubblewrap"]) as worker:
        assert ask(worker, "os.uname().nodename") == "worker"


# Under limits alone the canary is within reach, which shows that the attacks are such and that the canary tells


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Some of the class, graded without a sandbox, and the two canaries that they were told."""
    course = Course(tmp_path_factory.mktemp("unsandboxed"))
    with contextlib.ExitStack() as stack:
        canary, removed, linked = (stack.enter_context(contextlib.closing(Canary())) for _ in range(3))
        for attack in (TRIES_THE_SANDBOX, *(BY_NAME[name] for name in (*CHANGE, *HELD))):
            attack.hand_in(course, canary.folder)
        BY_NAME["removes-everything"].hand_in(course, removed.folder)
        BY_NAME["swaps-its-folder"].hand_in(course, linked.folder)
        temporary = tmp_path_factory.mktemp("temporary")
        environment = {**LIMITS, "TMPDIR": str(temporary)}
        run = course.run("autograde", STAGE.assignment, ALLOWED, "--SubmissionExporter.call_seconds=2", **environment)
        assert run.returncode == 0, run.stderr
        yield course, {"canary": canary.changed(), "removed": removed.changed(), "linked": linked.changed()}, temporary


def test_what_a_sandbox_protects_is_changed_without_one(graded):
    _, changed, _ = graded
    assert {"course/gradebook.db", "home/written", "site-packages/numpy/__init__.py"} <= set(changed["canary"])
    assert {"home/.ssh/id", "course/.autograder-seed"} <= set(changed["removed"])


def test_the_grader_removes_nothing_that_a_submission_points_it_to(graded):
    _, changed, temporary = graded
    assert changed["linked"] == []
    assert [path for path in temporary.iterdir() if not path.is_symlink()] == []


@filtered
def test_the_system_call_filter_and_the_deadlines_hold(graded):
    course, _, _ = graded
    for name in (*HELD, "removes-everything"):
        assert course.scores(name) == earned(BY_NAME[name])
    for name in ("processes", "network"):
        assert "FOUND nothing" in first_message(course, name)
