"""Grades a class on a Dask cluster of this machine, then a large class of which grading is only simulated.

    python -m autograder.bench.cluster [--n 40] [--workers 1 2 4] [--simulated 10000]

Measures the throughput for each number of worker processes, and the processor time that each submission costs the one
process that hands out jobs and stores scores.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from autograder.bench.local_cluster import exit_on_sigterm, local_cluster
from autograder.bench.memory import resident_mb
from autograder.cli.sample_class import make_course, write_submission
from autograder.grading.environment import import_nbgrader
from autograder.notebooks.build import build
from autograder.places import ROOT
from autograder.stages import Stage, find_stage
from autograder.toolkit.threads import use_one_thread

import_nbgrader()

from autograder.grading.class_run import Course  # noqa: E402
from autograder.grading.outcome import Outcome, Watcher  # noqa: E402

_LINKS = 1000  # hard links to one file at most; file systems have a limit


@dataclass(frozen=True)
class Sample:
    """The progress of a run. cpu: processor seconds of this process; mb: its memory."""

    settled: int
    time: float
    cpu: float
    mb: float


@dataclass(frozen=True)
class Run:
    """One run over a class, or a part of it."""

    workers: int
    submissions: int
    seconds: float
    cpu: float

    @property
    def throughput(self) -> float:
        return self.submissions / self.seconds

    @property
    def parent(self) -> float:
        return self.cpu / self.submissions

    def __str__(self) -> str:
        return (
            f"{self.workers:3} workers: {self.submissions} submissions, {self.throughput:.2f} a second, "
            f"{1000 * self.parent:.1f} ms of the parent's processor each"
        )


class Meter(Watcher):
    """Measures this process, at most a thousand times in a run."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._settled, self._every = 0, 1

    def begins(self, students: int, notices: Sequence[str]) -> None:
        self._every = max(1, students // 1000)

    def settled(self, student: str) -> None:
        self._settled += 1
        if self._settled % self._every == 0:
            memory = resident_mb(psutil.Process())
            self.samples.append(Sample(self._settled, time.perf_counter(), time.process_time(), memory))

    def run(self, workers: int, before: int = 0) -> Run:
        """The run without the submissions graded before it and without the first tenth, while workers start."""
        samples = [sample for sample in self.samples if sample.settled > before]
        first, last = samples[len(samples) // 10], samples[-1]
        return Run(workers, last.settled - first.settled, last.time - first.time, last.cpu - first.cpu)


# The class


def hand_in(course: Path, stage: Stage, number: int) -> None:
    """Hand in this many copies of the course's own solution; up to _LINKS of them are hard links to one file."""
    from autograder.stages.samples import solved_cells

    first = None
    for n in range(number):
        folder = course / "submitted" / f"s{n:06d}" / stage.assignment
        if n % _LINKS == 0 or first is None:
            first = write_submission(course / "release" / stage.assignment, folder, stage, solved_cells(stage.name))
            continue
        folder.mkdir(parents=True)
        os.link(first, folder / first.name)


def make_class(folder: Path, stage: Stage, number: int, db: str | None = None) -> Path:
    make_course(folder, (stage,))
    if db:
        with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
            config.write(f"\nc.CourseDirectory.db_url = {db!r}\n")
        build(ROOT, folder, (stage,))  # the assignment, in that gradebook
    hand_in(folder, stage, number)
    return folder


def grade(course: Path, stage: Stage, address: str, watcher: Watcher) -> Outcome:
    here = Path.cwd()
    try:
        return Course(course).grade(stage, watcher, dask=address)
    finally:
        os.chdir(here)


def measure(folder: Path, stage: Stage, workers: int, number: int) -> Run:
    """Grade a class on local workers."""
    course, private = folder / f"course-{workers}", folder / f"cluster-{workers}"
    make_class(course, stage, number)
    private.mkdir()
    with local_cluster(private, workers) as dask:
        meter = Meter()
        outcome = grade(course, stage, dask.address, meter)
    if outcome.graded != number:
        raise RuntimeError(f"not all of {number} submissions were graded: {outcome}")
    return meter.run(workers)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m autograder.bench.cluster", description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=40, help="submissions of the class (default 40)")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4], help="worker processes (default 1 2 4)")
    parser.add_argument("--simulated", type=int, default=10_000, help="submissions simulated (default 10000)")
    options = parser.parse_args()
    if options.n < 10 or options.simulated < 100:
        parser.error("the class needs at least 10 submissions, and the simulated one 100")
    stage = find_stage("save-and-reuse")
    use_one_thread()
    exit_on_sigterm()
    load = f", load {os.getloadavg()[0]:.1f} before" if hasattr(os, "getloadavg") else ""
    print(f"{os.cpu_count()} processors{load}; submissions of {stage.assignment}:")
    with tempfile.TemporaryDirectory() as temporary:
        for workers in options.workers:
            print(measure(Path(temporary), stage, workers, options.n), flush=True)
    from autograder.bench.large_class import report

    for sentence in report(stage, options.simulated):
        print(sentence, flush=True)


if __name__ == "__main__":
    main()
