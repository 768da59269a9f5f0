"""A command that is terminated, and one that works in another folder than the caller's."""

import os
import shutil
import signal
import subprocess
import time

import pytest

from autograder.tests.command import COMMAND, autograder
from autograder.tests.course import STAGE, Course, own_cell
from autograder.tests.waiting import wait_until
from autograder.toolkit.model.load import model_folder

LOOP = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return Course(tmp_path_factory.mktemp("course"))


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGTERM that a process could answer")
@pytest.mark.parametrize("command", [["test", "NOTEBOOK"], ["grade", STAGE.name]], ids=["test", "grade"])
def test_a_terminated_command_leaves_nothing(course, tmp_path, command):
    """`timeout`, systemd and batch schedulers send SIGTERM."""
    course.hand_in("looping", change=own_cell(LOOP))
    arguments = [str(course.path("looping")) if part == "NOTEBOOK" else part for part in command]
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=course.folder, env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert wait_until(lambda: list(tmp_path.glob("autograder-*")), 60)
    time.sleep(1)  # in the loop, or on the way
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=90)
    shutil.rmtree(course.path("looping").parent.parent)
    assert process.returncode == 130 and "Traceback" not in said and said.endswith("\nStopped.\n"), said
    assert list(tmp_path.glob("autograder-*")) == []


def test_a_class_is_graded_with_a_model_given_by_a_relative_path(course, tmp_path):
    """nbgrader works in the course's folder."""
    course.hand_in("anna")
    shutil.copytree(model_folder("tiny"), tmp_path / "mymodel")
    arguments = ["grade", STAGE.name, "--course", str(course.folder), "--student", "anna"]
    result = autograder(*arguments, cwd=tmp_path, AUTOGRADER_MODEL="mymodel")
    assert result.returncode == 0, result.stdout + result.stderr
    assert all(score for score in course.scores("anna").values())
