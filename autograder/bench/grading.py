"""How fast checks run and submissions are marked, on copies of the course's own solution."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from autograder.cli.sample_class import make_course, write_submission
from autograder.grading.grade import grade_submission
from autograder.judge.framework import checks_of
from autograder.notebooks import read_cells
from autograder.stages import Stage
from autograder.toolkit.timing import Measurement, measure


@dataclass(frozen=True)
class Grading:
    """What grading costs, in seconds."""

    checks: int
    all_checks: Measurement  # every check of the stage, in a worker that has started
    command: Measurement  # `autograder test`, from the command to its end
    autograde_start: float  # `nbgrader autograde`: what one run costs whatever the class's size
    autograde_each: float  # and each submission more
    submissions: int

    @property
    def checks_per_second(self) -> float:
        return self.checks / self.all_checks.median


def measure_grading(stage: Stage, submissions: int = 8, repeats: int = 5) -> Grading:
    """Measure on a course made in a temporary folder."""
    from autograder.stages.samples import submissions_of

    solution = submissions_of(stage.name)[0].sources(stage)
    with tempfile.TemporaryDirectory() as temporary:
        course = Path(temporary) / "course"
        make_course(course, (stage,))
        released = course / "release" / stage.assignment
        for number in range(submissions):
            folder = course / "submitted" / f"student-{number:02d}" / stage.assignment
            notebook = write_submission(released, folder, stage, solution)
        one, every = (_autograde(course, stage, pattern) for pattern in ("student-00", "*"))
        each = (every - one) / (submissions - 1)
        command = [sys.executable, "-m", "autograder", "test", "--notebook", str(notebook)]
        return Grading(
            checks=len(checks_of(stage.name)),
            all_checks=_all_checks(notebook, stage, repeats),
            command=measure(lambda: subprocess.run(command, check=True, capture_output=True), repeats=repeats),
            autograde_start=one - each,
            autograde_each=each,
            submissions=submissions,
        )


def _autograde(course: Path, stage: Stage, students: str) -> float:
    """The seconds of one `nbgrader autograde --force` over the students that match."""
    command = [sys.executable, "-m", "nbgrader", "autograde", stage.assignment, "--force", f"--student={students}"]
    start = time.perf_counter()
    subprocess.run(command, cwd=course, check=True, capture_output=True)
    return time.perf_counter() - start


def _all_checks(notebook: Path, stage: Stage, repeats: int) -> Measurement:
    cells, given = read_cells(notebook), notebook.parent / "given.py"
    seeds = iter(range(1, 1_000_000))  # another seed each time, as for another student: nothing is remembered
    samples = []
    for number in range(repeats + 1):
        seed = next(seeds)
        moments: list[float] = []
        outcome = grade_submission(
            cells,
            stage,
            lambda _, seed=seed: seed,
            given,
            on_result=lambda _, moments=moments: moments.append(time.perf_counter()),
        )
        if outcome.score != sum(check.points for check in checks_of(stage.name)):
            raise RuntimeError("the course's own solution does not pass its checks")
        if number:  # the first one is the warm-up
            samples.append((moments[-1] - moments[0]) * len(moments) / (len(moments) - 1))
    return Measurement(tuple(samples))
