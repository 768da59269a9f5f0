"""Grades hostile submissions, and does so only where a first one has failed to get out."""

from autograder.tests.course import CHECKS, STAGE
from autograder.tests.hostile.attacks import EVERYTHING
from autograder.tests.hostile.attacks.changing import TRIES_THE_SANDBOX

REQUIRED = "--SubmissionExporter.require_sandbox=True"
REFUSED = "Nothing was graded. "


class NotSandboxed(Exception):
    """The command that would grade the hostile class has no sandbox; the class was not handed in."""


def grade(course, canary, hand_in, *options, **environment):
    """One run of nbgrader autograde over what `hand_in` hands in, after the same command has graded the probe."""
    TRIES_THE_SANDBOX.hand_in(course, canary.folder)
    command = ("autograde", STAGE.assignment, REQUIRED, *options)
    tried = course.run(*command, **environment)
    assert canary.changed() == []
    if tried.returncode != 0:
        raise NotSandboxed(f"The hostile class was not graded. {tried.stderr.partition(REFUSED)[2] or tried.stderr}")
    assert "FOUND nothing" in first_message(course, TRIES_THE_SANDBOX.name)
    hand_in()
    return course.run(*command, **environment)


def first_message(course, student):
    return "".join(next(iter(course.outputs(student).values()))[0]["text"]).replace("\n", " ")


def earned(attack):
    """The scores that an attack must come to."""
    full = {i: float(c.points) for i, c in CHECKS.items()}
    expected = full if attack.earns == EVERYTHING else dict.fromkeys(CHECKS, 0.0)
    return {**expected, **dict.fromkeys(attack.loses, 0.0)}
