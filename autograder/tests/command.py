"""Runs the command `autograder`, as a person would."""

import os
import subprocess
import sys

COMMAND = [sys.executable, "-m", "autograder"]


def autograder(*arguments, cwd=None, **variables):
    """Run the command in a folder, with these environment variables too; the completed process, with its text."""
    command = [*COMMAND, *map(str, arguments)]
    result = subprocess.run(command, cwd=cwd, env=os.environ | variables, capture_output=True, text=True, timeout=900)
    assert "Traceback" not in result.stdout + result.stderr
    return result
