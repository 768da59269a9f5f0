"""Marks a class on a Dask cluster of this machine, and a large class whose marking is only simulated.

    python -m autograder.bench.cluster [--n 40] [--workers 1 2 4] [--simulate 1000] [--db URL]

Throughput with so many worker processes, and what each submission costs the one process that hands out jobs and stores
marks. In the simulated class, real workers wait as long as marking took and give the marks of one submission; all else
is as it is. It is stopped in its middle and run again: nothing may be lost, and nothing marked twice.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.bench.local_cluster import local_cluster
from autograder.cli.sample_class import make_course, write_submission
from autograder.grading.environment import import_nbgrader
from autograder.notebooks.build import build
from autograder.places import ROOT
from autograder.stages import Stage, find_stage
from autograder.toolkit.threads import use_one_thread

import_nbgrader()

from autograder.grading import cluster  # noqa: E402
from autograder.grading.class_run import Course  # noqa: E402
from autograder.grading.marker import HandedIn, Markers, Marking  # noqa: E402
from autograder.grading.outcome import Outcome, Watcher  # noqa: E402
from autograder.grading.records import GRADED, read_records  # noqa: E402
from autograder.grading.submission import Marked  # noqa: E402

GOAL_PARENT = 0.005  # seconds of the parent's processor for a submission: one parent feeds fifty machines
_LINKS = 1000  # names of one file at most; file systems have a limit


@dataclass(frozen=True)
class Run:
    """One run over a class. cpu: seconds of this process's processor; mb: its memory in the middle and at the end."""

    workers: int
    submissions: int
    seconds: float
    cpu: float
    mb: tuple[float, float] = (0.0, 0.0)

    @property
    def throughput(self) -> float:
        return self.submissions / self.seconds

    @property
    def parent(self) -> float:
        return self.cpu / self.submissions


class Meter(Watcher):
    """Measures from the first submission that is settled to the last, and may stop the run on the way."""

    def __init__(self, stop_after: int | None = None):
        self.stop_after = stop_after
        self.settled_at: list[tuple[float, float, float]] = []

    def settled(self, student: str) -> None:
        self.settled_at.append((time.perf_counter(), time.process_time(), resident_mb()))
        if len(self.settled_at) == self.stop_after:
            raise KeyboardInterrupt

    def run(self, workers: int, before: int = 0) -> Run:
        """Without those that were marked before, and the first tenth, in which the workers begin."""
        settled = self.settled_at[before:]
        first, middle, last = settled[len(settled) // 10], settled[len(settled) // 2], settled[-1]
        number = len(settled) - 1 - len(settled) // 10
        return Run(workers, number, last[0] - first[0], last[1] - first[1], (middle[2], last[2]))


def resident_mb() -> float:
    """The memory of this process; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0


# The class


def hand_in(course: Path, stage: Stage, number: int) -> None:
    """So many copies of the course's own solution; copies share files, as many as a file may have names."""
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


# Measuring


def grade(course: Path, stage: Stage, address: str, meter: Meter) -> Outcome | None:
    """The outcome; None when the meter stopped the run."""
    here = Path.cwd()
    try:
        return Course(course).grade(stage, meter, dask=address)
    except KeyboardInterrupt:
        return None
    finally:
        os.chdir(here)


def measure(folder: Path, stage: Stage, workers: int, number: int) -> Run:
    """A class that is really marked."""
    course, private = folder / f"course-{workers}", folder / f"cluster-{workers}"
    make_class(course, stage, number)
    private.mkdir()
    with local_cluster(private, workers) as dask:
        meter = Meter()
        outcome = grade(course, stage, dask.address, meter)
    if outcome is None or outcome.graded != number:
        raise RuntimeError(f"not all of {number} submissions were marked: {outcome}")
    return meter.run(workers)


def simulate(folder: Path, stage: Stage, number: int, threads: int, seconds: float, db: str | None) -> tuple[Run, int]:
    """A class whose marking takes so many seconds and no processor; its run, and how many were lost or marked twice."""
    course, private = folder / "simulated", folder / "cluster-simulated"
    make_class(course, stage, number, db)
    private.mkdir()
    with local_cluster(private, 2, threads // 2) as dask, stub_markers(course, stage, seconds):
        grade(course, stage, dask.address, Meter(stop_after=number // 2))
        before = graded_at(course, stage)
        meter = Meter()
        grade(course, stage, dask.address, meter)
    after = graded_at(course, stage)
    wrong = sum(after.get(student) != when for student, when in before.items()) + number - len(after)
    return meter.run(threads, len(before)), wrong


def graded_at(course: Path, stage: Stage) -> dict[str, str]:
    return {r.student: r.graded_at for r in read_records(course / "autograded", stage.assignment) if r.status == GRADED}


@contextlib.contextmanager
def stub_markers(course: Path, stage: Stage, seconds: float) -> Iterator[None]:
    """Within it, a cluster's workers wait for so many seconds in place of marking, and all give the same marks."""
    one = next((course / "submitted").iterdir()) / stage.assignment
    mark, pack = cluster._mark, cluster._pack
    cluster._mark = stub
    cluster._pack = lambda marking: pickle.dumps((seconds, pickle.dumps((True, mark_here(marking, one)))))
    try:
        yield
    finally:
        cluster._mark, cluster._pack = mark, pack


def mark_here(marking: Marking, folder: Path) -> Marked:
    markers = Markers(marking)
    try:
        return markers.mark(HandedIn(folder, b"the key of a student who is not there"))
    finally:
        markers.close()


def stub(shared: bytes, job: object) -> bytes:
    """In a worker, in place of marking."""
    seconds, answer = pickle.loads(shared)
    time.sleep(seconds)
    return answer


# What is printed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder.bench.cluster", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--n", type=int, default=40, help="submissions that are really marked (default 40)")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4], help="worker processes (default 1 2 4)")
    parser.add_argument("--simulate", type=int, default=400, help="submissions of the simulated class (default 400)")
    parser.add_argument("--db", help="the simulated class's gradebook, such as postgresql+psycopg://...; else SQLite")
    parser.add_argument("--stage", default="save-and-reuse")
    options = parser.parse_args()
    if options.n < 10 or options.simulate < 20:
        parser.error("a class has at least 10 submissions, a simulated one 20")
    stage = find_stage(options.stage)
    use_one_thread()
    load = f", load {os.getloadavg()[0]:.1f} before" if hasattr(os, "getloadavg") else ""
    print(
        f"{os.cpu_count()} processors{load}; a submission of {stage.assignment} costs the parent its processor for ..."
    )
    with tempfile.TemporaryDirectory() as temporary:
        runs = []
        for workers in options.workers:
            runs.append(measure(Path(temporary), stage, workers, options.n))
            print(line(runs[-1]), flush=True)
        each = min((run.workers / run.throughput for run in runs), default=1.0)
        run, wrong = simulate(Path(temporary), stage, options.simulate, 32, each, options.db)
        where = "PostgreSQL" if options.db else "SQLite"
        print(f"simulated, {where}, {each:.2f} s each on 32 threads, stopped in the middle and run again:")
        memory = f"{run.mb[0]:.0f} MB in the middle, {run.mb[1]:.0f} MB at the end"
        print(f"{line(run)}; {memory}; {wrong} lost or marked twice")
    best = min(run.parent for run in [*runs, run])
    print(f"{'met    ' if best <= GOAL_PARENT else 'not met'} parent: {1000 * best:.1f} ms (goal: at most 5 ms)")


def line(run: Run) -> str:
    return (
        f"{run.workers:3} workers: {run.submissions} submissions, {run.throughput:.2f} a second, "
        f"{1000 * run.parent:.1f} ms of the parent's processor each"
    )


if __name__ == "__main__":
    main()
