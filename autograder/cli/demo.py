"""`autograder demo`: a sample class, graded by nbgrader as a teaching assistant would grade it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from autograder.cli.build import require_checkout
from autograder.cli.errors import UserError
from autograder.cli.find import with_checks
from autograder.cli.sample_class import hand_in, make_course, refuse_foreign
from autograder.cli.scores_table import gradebook_scores, scores_table
from autograder.grading.environment import put_own_programs_on_path
from autograder.grading.records import read_records
from autograder.stages import GRADED_STAGES, Stage, find_stage
from autograder.toolkit.threads import use_one_thread

# nbgrader logs one of these for each submission
_ENDS = ("Setting destination file permissions", "Removing failed assignment")


def run(stage: str | None, folder: Path, everything: bool = False, console: Console | None = None) -> int:
    """Build the course in `folder`, hand in the sample class (or every sample), grade it, show the scores."""
    require_checkout("autograder demo")
    stages = (with_checks(find_stage(stage)),) if stage else GRADED_STAGES
    refuse_foreign(folder)
    console = console or Console()
    put_own_programs_on_path()
    use_one_thread()
    started = time.monotonic()
    console.print(f"Building the course in {folder}/, with {', '.join(s.assignment for s in stages)}")
    make_course(folder, stages)
    names = {each: hand_in(folder, each, everything) for each in stages}
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                  console=console) as progress:  # fmt: skip
        for each in stages:
            for command in ("autograde", "generate_feedback"):
                _nbgrader(command, each, folder, len(names[each]), progress)
    for each in stages:
        records = read_records(folder / "autograded", each.assignment)
        console.print()
        pages = {name: _feedback(folder, each, name) for name in names[each]}
        console.print(scores_table(each, records, gradebook_scores(folder, each), pages))
        console.print(f"Feedback pages: {_feedback(folder, each, 'STUDENT')}", soft_wrap=True)
    console.print()
    total = sum(len(each) for each in names.values())
    console.print(
        f"{total} submissions graded in {time.monotonic() - started:.0f} s. They are in the course {folder}/;"
    )
    console.print("`nbgrader export` there writes all scores to a file, as for a class of your own.")
    return 0


def _nbgrader(command: str, stage: Stage, folder: Path, count: int, progress: Progress) -> None:
    """Run nbgrader's own command in the course folder and show its progress; its output goes to a log file."""
    log_path = folder.resolve() / "nbgrader.log"
    task = progress.add_task(f"nbgrader {command} {stage.assignment}", total=count)
    with open(log_path, "a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "nbgrader", command, stage.assignment],
            cwd=folder,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            if any(end in line for end in _ENDS):
                progress.advance(task)
    if process.wait() != 0:
        raise UserError(f"nbgrader {command} {stage.assignment} failed; its output is in {log_path}.")


def _feedback(folder: Path, stage: Stage, student: str) -> Path:
    return folder / "feedback" / student / stage.assignment / f"{stage.module}.html"
