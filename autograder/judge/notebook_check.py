"""The check cells of a notebook: `autograder.check("position-continues")`, run in the student's own kernel."""

from __future__ import annotations

import os
import sys
import tempfile

from autograder.judge.cases import VISIBLE_SEED
from autograder.judge.framework import find_check, run_check
from autograder.judge.student import local_student


class CheckFailed(Exception):
    """A check cell failed. Jupyter shows the message alone, without a traceback through the grader."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def check(check_id: str) -> None:
    """Run one check on the functions defined in the calling notebook; prints the outcome or raises CheckFailed."""
    namespace = sys._getframe(1).f_globals
    chosen = find_check(check_id)
    folder = os.getcwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:  # on Windows an open file stays
        os.chdir(temporary)  # checks write files by relative names
        try:
            result = run_check(chosen, local_student(namespace), VISIBLE_SEED)
        finally:
            os.chdir(folder)
    points = f"{chosen.points} point{'s' if chosen.points != 1 else ''}"
    if not result.passed:
        raise CheckFailed(f"Not yet: {chosen.title} ({points})\n{result.message}")
    print(f"Passed: {chosen.title} ({points})")
