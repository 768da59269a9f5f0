"""`autograder test`: runs a stage's checks on a student's file as grading does, but with the visible inputs."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.cli.errors import EXIT_FAILED, UserError
from autograder.cli.find import Work, find_all_work, find_work
from autograder.judge.bugs import NOT_DEFINED, NOT_WRITTEN
from autograder.stages import earlier_stages
from autograder.toolkit.model.config import MODEL_VARIABLE, chosen_model
from autograder.toolkit.threads import use_one_thread

if TYPE_CHECKING:
    from autograder.judge.framework import Result

_INDENT = " " * 15


def run(*, stage: str | None, notebook: Path | None, watch: bool, hint: int, model: str | None) -> int:
    """Run the checks once, or again whenever the file is saved; the exit status is 0 when all pass.

    hint: how much is said about a failure, 1 to 3 (Result.told).
    """
    if model:
        os.environ[MODEL_VARIABLE] = model  # for the checks and the worker
    if chosen_model() == "tiny":
        use_one_thread()
    works = find_all_work() if stage is None and notebook is None and not watch else []
    if works:
        return test_all(works, hint)
    work = find_work(stage, notebook)
    if chosen_model() != "tiny":
        from autograder.toolkit.model import load_model

        load_model()  # raises ModelError if it cannot be loaded
    if watch:
        from autograder.cli.watch import watch_file

        return watch_file(work.path, lambda: test_once(work, hint))
    return test_once(work, hint)


def test_all(works: list[Work], hint: int) -> int:
    """Run the checks of every stage; print a closing line for each, then one for all."""
    complete = sum(test_once(work, hint) == 0 for work in works)
    print(f"\n{complete} / {len(works)} stages complete", flush=True)
    return 0 if complete == len(works) else EXIT_FAILED


def test_once(work: Work, hint: int) -> int:
    """Run the checks, print each as it ends and then the closing lines; returns the exit status.

    The steps run too, so that a failed check names the helper to begin with; a step is printed only if it fails.
    """
    from autograder.grading.grade import GradingError, grade_submission
    from autograder.judge.cases import VISIBLE_SEED
    from autograder.judge.framework import checks_and_steps_of
    from autograder.notebooks.load import cells_to_run, sorted_cells
    from autograder.notebooks.oddities import oddities

    found = sorted_cells(work.path)
    cells = cells_to_run(found)
    print(f"{work.path.name}, stage {work.stage.name}\n", flush=True)
    for sentence in oddities(work.path, found, work.stage):
        print(f"{sentence}\n", flush=True)
    with _given(work) as given:
        try:
            outcome = grade_submission(
                cells,
                work.stage,
                VISIBLE_SEED,
                given,
                trained=chosen_model(),
                hide_inputs=False,
                on_cell_error=lambda sentence: print(f"Before the checks, {sentence[:1].lower()}{sentence[1:]}\n"),
                on_result=lambda result: _print_result(result, hint),
                checks=checks_and_steps_of(work.stage.name),
            )
        except GradingError as error:
            raise UserError(f"The checks could not be run: {error}.") from None
    for note in outcome.notes:
        if note.kind == "check-broke":  # the place in the judge, for the maintainer
            print(note.sentence)
    if any(result.told(hint) != result.told() and result.bug != NOT_WRITTEN for result in outcome.results):
        print("--hint 2 also says where to look, --hint 3 also the cause, where it is known.")
    graded = [result for result in outcome.results if result.points]
    passed, total = sum(result.passed for result in graded), len(graded)
    most = sum(result.points for result in graded)
    print(f"\n{work.stage.name}: {passed} / {total} checks, {outcome.score:g} / {most:g} points", flush=True)
    missing = "; ".join(result.title for result in graded if not result.passed) if passed else "every check"
    print(f"missing: {missing}" if missing else "complete", flush=True)
    return 0 if passed == total else EXIT_FAILED


@contextlib.contextmanager
def _given(work: Work) -> Iterator[Path | None]:
    """The given.py beside the file; for a stage's script in solutions/, a temporary one."""
    beside = work.path.resolve().parent / "given.py"
    if not earlier_stages(work.stage):
        yield beside if beside.exists() else None
        return
    from autograder.notebooks.given import given_source, is_courses_own
    from autograder.places import SOLUTIONS

    if beside.exists():
        try:
            text = beside.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UserError(f"{beside} cannot be read ({error.strerror}); copy the assignment's there again.") from None
        if not is_courses_own(text, work.stage):
            print("given.py is not the course's, which is used for grading: copy the course's here again.\n")
        yield beside
        return
    if not SOLUTIONS.is_dir():
        raise UserError(f"{work.path.name} needs the given.py of its assignment beside it; copy it there.")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "given.py"
        made.write_text(given_source(work.stage) or "", encoding="utf-8")
        yield made


def _print_result(result: Result, hint: int) -> None:
    if not result.points and (result.passed or result.bug in (NOT_WRITTEN, NOT_DEFINED)):
        return
    unwritten = result.bug == NOT_WRITTEN
    word = "to do " if unwritten else _colored("passed", "32") if result.passed else _colored("FAILED", "1;31")
    points = f"{result.score:g} / {result.points:g}" if result.points else "step"
    print(f"{word} {points:>7}  {result.title}", flush=True)
    if not result.passed and not unwritten:  # the messages of stubs would only hide those that matter
        _print_message(result.told(hint), _INDENT)


def _print_message(message: str, indent: str) -> None:
    """Print a message with each line wrapped to the terminal's width, but not in a file or a pipe."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    for line in message.splitlines():
        print(textwrap.fill(line, max(width, 40), initial_indent=indent, subsequent_indent=indent, tabsize=4))
    print()


def _colored(text: str, code: str) -> str:
    wanted = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"\033[{code}m{text}\033[0m" if wanted else text
