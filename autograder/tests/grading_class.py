"""Runs the two commands that grade a class, as a person would, and looks at all that they leave."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from nbgrader.api import Gradebook

from autograder import cli
from autograder.grading.records import read_records
from autograder.tests.command import run_command, run_nbgrader
from autograder.tests.course import NBGRADER, STAGE, Course

ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
GRADE = [sys.executable, "-m", "autograder", "grade", STAGE.name]
AUTOGRADE = [sys.executable, "-c", NBGRADER, "autograde", STAGE.assignment]


def copy_of(course, folder):
    copied = object.__new__(Course)
    copied.folder = Path(shutil.copytree(course.folder, folder))
    copied.account = course.account
    return copied


def run(course, command, *options):
    if command is GRADE:
        return run_command(cli.main, GRADE[:3], [*GRADE[3:], *options], course.folder, ENVIRONMENT)
    if command is AUTOGRADE:
        return run_nbgrader([*AUTOGRADE[3:], *options], course.folder, ENVIRONMENT)
    return subprocess.run(
        [*command, *options],
        cwd=course.folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def start(course, command, *options):
    return subprocess.Popen(
        [*command, *options],
        cwd=course.folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def kill(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def scores(course, url=None):
    """All that the gradebook says of every submission."""
    with Gradebook(url or f"sqlite:///{course.folder / 'gradebook.db'}") as gradebook:
        return {
            submission.student.id: {
                "time": submission.timestamp,
                "grades": sorted(
                    (g.name, g.auto_score, g.manual_score, g.extra_credit, g.max_score, g.needs_manual_grade)
                    for notebook in submission.notebooks
                    for g in notebook.grades
                ),
                "comments": sorted(
                    (c.name, c.auto_comment, c.manual_comment) for n in submission.notebooks for c in n.comments
                ),
                "late": [n.late_submission_penalty for n in submission.notebooks],
                "score": submission.score,
            }
            for submission in gradebook.assignment_submissions(STAGE.assignment)
        }


def files(course):
    """Every graded file and every record, without the times of grading."""
    folder = course.folder / "autograded"
    found = {}
    for path in sorted(folder.glob("*/*/*")):
        text = re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", path.read_text(encoding="utf-8"))
        text = re.sub(r'"seconds": [\d.]+', "SECONDS", text)
        found[str(path.relative_to(folder))] = (path.stat().st_mode, text)
    return found


def assert_same_files(found, expected):
    assert found.keys() == expected.keys()
    for name, (mode, text) in expected.items():
        assert found[name][1].splitlines() == text.splitlines(), name
        assert found[name][0] == mode, name


def records(course):
    return read_records(course.folder / "autograded", STAGE.assignment)


def left_over(folder, *strings):
    """Command lines of processes that still work in the course's folder, or have it or one of the strings in theirs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            works_there = (process / "cwd").resolve().is_relative_to(folder)
            if works_there or any(string in command for string in (str(folder), *strings)):
                found.append(command)
    return found
