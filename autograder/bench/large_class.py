"""Grades a large class on a Dask cluster of this machine, where grading is only simulated.

The scheduler, the workers, and a PostgreSQL server whose commits wait for the disk are real. In place of grading, each
worker waits and returns the scores of one submission. The command is killed partway and run again: nothing may be lost,
and nothing that was stored may be graded twice.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.bench.cluster import Meter, Run, grade, make_class
from autograder.bench.goals import Goal
from autograder.bench.local_cluster import local_cluster
from autograder.bench.local_postgresql import local_postgresql, why_none
from autograder.grading import cluster
from autograder.grading.graders import Graders
from autograder.grading.outcome import Watcher
from autograder.grading.records import GRADED, each_record
from autograder.grading.submission import Graded, Grading, HandedIn
from autograder.stages import Stage, find_stage

GOAL_PARENT = 0.005  # processor seconds of the parent for each submission, so that it can feed fifty machines
KILLED_AT = 0.05  # of the class
SHOWN_AT = (0.1, 0.5, 1.0)  # of the class; where memory is shown


@dataclass(frozen=True)
class Simulated:
    """The second run. wrong: how many scores were lost or replaced. mb: memory at each point of SHOWN_AT."""

    run: Run
    before: int  # submissions that the killed run had stored
    wrong: int
    stored: int  # submissions with a score in the gradebook
    mb: dict[float, float]


def simulate(
    folder: Path, stage: Stage, number: int, address: str, threads: int, seconds: float, db: str | None = None
) -> Simulated:
    """Grade a class on the cluster at an address, where each submission takes `seconds` of waiting.

    threads: of all workers. db: the gradebook's URL, if it is not a file.
    """
    course = folder / "simulated"
    make_class(course, stage, number, db)
    first = multiprocessing.get_context("spawn").Process(
        target=grade_simulated, args=(course, stage.name, address, seconds, Watcher())
    )
    first.start()
    while first.is_alive() and stored_records(course, stage) < KILLED_AT * number:
        time.sleep(0.1)
    first.kill()
    first.join()
    before = graded_at(course, stage)
    meter = Meter()
    grade_simulated(course, stage.name, address, seconds, meter)
    after = graded_at(course, stage)
    wrong = sum(after.get(student) != when for student, when in before.items()) + number - len(after)
    mb = {part: next(s.mb for s in meter.samples if s.settled >= part * meter.samples[-1].settled) for part in SHOWN_AT}
    return Simulated(meter.run(threads, len(before)), len(before), wrong, scored(course, stage, db), mb)


def grade_simulated(course: Path, stage_name: str, address: str, seconds: float, watcher: Watcher) -> None:
    """Grade the class with workers that wait for `seconds` and all return the same scores."""
    stage = find_stage(stage_name)
    one = next((course / "submitted").iterdir()) / stage.assignment
    real = cluster._grade, cluster._pack
    cluster._grade = stub
    cluster._pack = lambda grading: pickle.dumps((seconds, pickle.dumps((True, grade_here(grading, one)))))
    try:
        grade(course, stage, address, watcher)
    finally:
        cluster._grade, cluster._pack = real


def grade_here(grading: Grading, folder: Path) -> Graded:
    graders = Graders(grading, jobs=1)
    try:
        return graders.grade(HandedIn(folder, b"the key of a student who is not there"))
    finally:
        graders.close()


def stub(job: object, shared: bytes) -> bytes:
    """In a worker, in place of grading."""
    seconds, answer = pickle.loads(shared)
    time.sleep(seconds)
    return answer


def stored_records(course: Path, stage: Stage) -> int:
    with contextlib.suppress(OSError), os.scandir(course / "autograded" / ".records" / stage.assignment) as found:
        return sum(1 for entry in found if entry.name.endswith(".json"))
    return 0


def graded_at(course: Path, stage: Stage) -> dict[str, str]:
    found = each_record(course / "autograded", stage.assignment)
    return {record.student: record.graded_at for record in found if record.status == GRADED}


def scored(course: Path, stage: Stage, db: str | None) -> int:
    """How many submissions in the gradebook have the same score as the first."""
    from nbgrader.api import Gradebook

    with Gradebook(db or f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        scores = [found["score"] for found in gradebook.submission_dicts(stage.assignment)]
    return sum(score == scores[0] > 0 for score in scores)


def report(stage: Stage, number: int, seconds: float = 0.3, threads: int = 200) -> Iterator[str]:
    """Simulate, and tell the results. By default the threads of fifty machines, four each."""
    yield f"{number} submissions of {seconds:g} s each on {threads} threads, simulated:"
    if why := why_none():
        yield f"the gradebook is a file, with SQLite: {why}"
    database = contextlib.nullcontext(None) if why else local_postgresql(safe=True)
    with contextlib.ExitStack() as stack:
        folder, private = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        dask = stack.enter_context(local_cluster(private, 2, max(1, threads // 2)))
        found = simulate(folder, stage, number, dask.address, threads, seconds, stack.enter_context(database))
    memory = ", ".join(f"{mb:.0f} MB at {part:.0%}" for part, mb in found.mb.items())
    yield f"{found.run}; {memory}"
    yield f"killed after {found.before} and run again: {found.wrong} lost or graded twice, {found.stored} have scores"
    goal = Goal("parent", 1000 * GOAL_PARENT, 1000 * found.run.parent)
    yield f"parent: {goal.value:.1f} ms a submission (goal: at most {goal.most:.0f} ms), {goal.verdict}"
