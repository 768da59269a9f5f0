"""Marks the submissions of a batch in several threads, a few ahead of nbgrader's loop, which takes them one by one.

Threads are enough: most of the time is spent in the students' processes, and only the thread that asks writes anything.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from autograder.grading.submission import Marked

JOBS = "AUTOGRADER_JOBS"  # environment variable: how many submissions are marked at the same time


def default_jobs() -> int:
    """AUTOGRADER_JOBS if it is set to a number, else the number of processors."""
    chosen = os.environ.get(JOBS, "")
    return int(chosen) if chosen.isdigit() and int(chosen) > 0 else os.cpu_count() or 1


class LookAhead:
    """Results for `students`, in their order; at most 2 * jobs are computed and not yet taken."""

    def __init__(self, compute: Callable[[str], Marked], students: Iterable[str], jobs: int):
        self._compute = compute
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
            self._started[student] = self._pool.submit(self._compute, student)

    def close(self) -> None:
        """Start nothing more; what runs is left to its own deadlines."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
