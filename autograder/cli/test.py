"""`autograder test`: a stage's checks on a student's file, as they run when it is marked, with the visible inputs."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.cli.errors import EXIT_FAILED
from autograder.cli.find import Work, find_work

if TYPE_CHECKING:
    from autograder.judge.framework import CheckResult

_INDENT = " " * 15


def run(*, stage: str | None, notebook: Path | None, watch: bool, model: str | None) -> int:
    """Run the checks once, or again whenever the file is saved; the exit status is 0 when all pass."""
    work = find_work(stage, notebook)
    if model:
        os.environ["AUTOGRADER_MODEL"] = model  # for the checks, and for the worker that they talk to
    if watch:
        from autograder.cli.watch import watch_file

        return watch_file(work.path, lambda: test_once(work))
    return test_once(work)


def test_once(work: Work) -> int:
    """Run the checks, print each as it ends and then the closing line; the exit status."""
    from autograder.cli.self_test import SelfTest

    with SelfTest(work) as self_test:
        print(f"{work.path.name}, stage {work.stage.name}\n")
        for problem in self_test.problems:
            _print_message(problem, indent="")
        results = []
        for result in self_test.results():
            _print_result(result)
            results.append(result)
    passed = sum(result.passed for result in results)
    points, most = sum(result.score for result in results), sum(result.check.points for result in results)
    print(f"\n{work.stage.name}: {passed} / {len(results)} checks, {points:g} / {most:g} points", flush=True)
    return 0 if passed == len(results) else EXIT_FAILED


def _print_result(result: CheckResult) -> None:
    word = _colored("passed", "32") if result.passed else _colored("FAILED", "1;31")
    points = f"{result.score:g} / {result.check.points:g}"
    print(f"{word} {points:>7}  {result.check.title}", flush=True)
    if not result.passed:
        _print_message(result.message, _INDENT)


def _print_message(message: str, indent: str) -> None:
    """A message, each of its lines wrapped to the terminal's width; left alone where it goes into a file or a pipe."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    for line in message.splitlines():
        print(textwrap.fill(line, max(width, 40), initial_indent=indent, subsequent_indent=indent, tabsize=4))
    print()


def _colored(text: str, code: str) -> str:
    wanted = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"\033[{code}m{text}\033[0m" if wanted else text
