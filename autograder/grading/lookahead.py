"""Marks the submissions of a batch in several threads, a few ahead of nbgrader's loop, which takes them one by one.

Threads are enough: most of the time is spent in the students' processes, and only the thread that asks writes anything.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from autograder.grading.grade import GradingError
from autograder.grading.submission import Marked
from autograder.worker.client import Worker

JOBS = "AUTOGRADER_JOBS"  # environment variable: how many submissions are marked at the same time


def default_jobs() -> int:
    """AUTOGRADER_JOBS if it is set to a number, else the number of processors."""
    chosen = os.environ.get(JOBS, "")
    return int(chosen) if chosen.isdigit() and int(chosen) > 0 else os.cpu_count() or 1


class LookAhead:
    """Results for `students`, in their order; at most 2 * jobs are computed and not yet taken.

    wanted is asked just before a student's turn, by the thread that takes results. One that it refuses is computed only
    when it is asked for.
    """

    def __init__(
        self,
        compute: Callable[[str], Marked],
        students: Iterable[str],
        jobs: int,
        wanted: Callable[[str], bool] = lambda student: True,
    ):
        self._compute = compute
        self._wanted = wanted
        self._waiting = deque(students)
        self._jobs = jobs
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="mark") if jobs > 1 else None
        self._started: dict[str, Future[Marked]] = {}

    def take(self, student: str) -> Marked:
        """The student's result, waited for if need be; raises what computing it raised."""
        if self._pool is None:
            return self._compute(student)
        if student not in self._started:
            if student in self._waiting:
                self._waiting.remove(student)
            self._started[student] = self._pool.submit(self._compute, student)
        self._fill()
        result = self._started.pop(student)
        try:
            return result.result()
        finally:
            self._fill()

    def _fill(self) -> None:
        while self._waiting and len(self._started) < 2 * self._jobs:
            student = self._waiting.popleft()
            if self._wanted(student):
                self._started[student] = self._pool.submit(self._compute, student)

    def drop(self, student: str) -> None:
        """The result will not be asked for after all."""
        started = self._started.pop(student, None)
        if started is not None:
            started.cancel()

    def close(self) -> None:
        """Start nothing more, and wait for what runs."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


class Workers:
    """Starts the students' processes of a run, and can end all of them, so that no thread waits for one any longer."""

    def __init__(self) -> None:
        self._running: set[Worker] = set()
        self._stopped = False
        self._guard = threading.Lock()

    def start(self, given: Path | None) -> Worker:
        with self._guard:
            self._running = {worker for worker in self._running if not worker.closed}
        self._refuse_when_stopped()
        worker = Worker(given)
        with self._guard:
            self._running.add(worker)
        if self._stopped:
            worker.close()
        self._refuse_when_stopped()
        return worker

    def _refuse_when_stopped(self) -> None:
        if self._stopped:
            raise GradingError("the run was stopped")

    def stop(self) -> None:
        """End every process; those that would be started next raise GradingError."""
        self._stopped = True
        with self._guard:
            running = list(self._running)
        for worker in running:
            worker.close()
