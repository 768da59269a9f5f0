"""Runs the commands `autograder` and `nbgrader`."""

import multiprocessing
import os
import subprocess
import sys
import tempfile

from nbgrader.apps.nbgraderapp import main as nbgrader

from autograder import cli
from autograder.sandbox.isolation import find_isolation

COMMAND = [sys.executable, "-m", "autograder"]
SECONDS = 900


def autograder(*arguments, cwd=None, **variables):
    """Run the command in a folder, with these environment variables too; the completed process, with its text."""
    result = run_command(cli.main, COMMAND, arguments, cwd, os.environ | variables)
    assert "Traceback" not in result.stdout + result.stderr
    return result


def run_command(main, command, arguments, cwd, environment):
    """Run a command whose program is `main`; on Linux, in a fork of this process, which has the imports already."""
    arguments = list(map(str, arguments))
    if sys.platform != "linux":
        return subprocess.run(
            [*command, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:

        def begin():
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(cwd or ".")
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.stdout, sys.stderr = out, err
            sys.argv = [command[-1], *arguments]
            find_isolation.cache_clear()  # the environment may ask for another
            main()

        process = multiprocessing.get_context("fork").Process(target=begin)
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(arguments, SECONDS)
        texts = (file.seek(0) or file.read() for file in (out, err))
        return subprocess.CompletedProcess(arguments, process.exitcode, *texts)


def run_nbgrader(arguments, cwd, environment):
    return run_command(nbgrader, [sys.executable, "-m", "nbgrader"], arguments, cwd, environment)
