"""Marks the submissions of a batch in several threads, ahead of nbgrader's loop, which takes them one by one.

Threads are enough: most of the time is spent in the students' processes, and only the thread that asks writes anything.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path

from autograder.display.run import DisplayRun, Shown
from autograder.grading.grade import GradingError
from autograder.grading.submission import Marked
from autograder.worker.client import Cell, Worker
from autograder.worker.limits import workers_that_fit
from autograder.worker.processes import Processes, new_processes

CGROUP = Path("/sys/fs/cgroup")
JOBS = "AUTOGRADER_JOBS"  # environment variable: how many submissions are marked at the same time
WINDOW = (
    64  # how many are marked, or begun, and not yet taken: what is done meanwhile when one of them loops for minutes
)


def default_jobs() -> int:
    """AUTOGRADER_JOBS if it is set to a number, else as many as may run at a time, if there is memory for so many."""
    chosen = os.environ.get(JOBS, "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    return min(_processors(), workers_that_fit())


def _processors() -> int:
    """The processors that this process may use: `taskset`, batch schedulers and containers leave it fewer."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):  # of cgroups, version 2 and 1
        with contextlib.suppress(OSError, ValueError):
            quota, period = (int(n) for name in names for n in (CGROUP / name).read_text(encoding="utf-8").split())
            if quota > 0 < period:
                cores = min(cores, -(-quota // period))
    return max(1, cores)


class LookAhead:
    """Results for `students`, begun in their order; at most `window` are there and not yet taken.

    wanted is asked just before a student's turn, in one of the threads. One that it refuses is computed only when it is
    asked for.
    """

    def __init__(
        self,
        compute: Callable[[str], Marked],
        students: Iterable[str],
        jobs: int,
        wanted: Callable[[str], bool] = lambda student: True,
        window: int = WINDOW,
    ):
        self._compute = compute
        self._wanted = wanted
        self._window = window
        self._change = threading.Condition()  # guards what follows
        self._waiting = deque(students)
        self._asked: deque[str] = deque()  # these are waited for, and go before all others
        self._begun: dict[str, Future[Marked]] = {}
        self._closed = False
        self._threads = [threading.Thread(target=self._work, name=f"mark-{n}", daemon=True) for n in range(jobs)]
        for thread in self._threads:
            thread.start()

    def reach(self, student: str) -> None:
        """The loop is at the student, who from now on is marked only if `take` is called, unless that has begun."""
        with self._change:
            if student in self._waiting:
                self._waiting.remove(student)

    def take(self, student: str) -> Marked:
        """The student's result, waited for if need be; raises what computing it raised."""
        with self._change:
            if student not in self._begun:
                self._begun[student] = Future()
                self._asked.append(student)
                self._change.notify_all()
            result = self._begun[student]
        try:
            return result.result()
        finally:
            self.drop(student)

    def drop(self, student: str) -> None:
        """The result will not be asked for again."""
        with self._change:
            self._begun.pop(student, None)
            self._change.notify_all()

    def close(self) -> None:
        """Begin nothing more, and wait for what runs."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (next_one := self._next()) is not None:
            student, result = next_one
            try:
                result.set_result(self._compute(student))
            except BaseException as error:
                result.set_exception(error)
            del next_one, result  # nothing of it stays while this thread waits

    def _next(self) -> tuple[str, Future[Marked]] | None:
        with self._change:
            while not self._closed:
                if self._asked:
                    student = self._asked.popleft()
                    return student, self._begun[student]
                if not self._waiting or len(self._begun) >= self._window:
                    self._change.wait()
                elif self._wanted(student := self._waiting.popleft()):
                    self._begun[student] = Future()
                    return student, self._begun[student]
        return None


class Workers:
    """Starts the students' processes of a run, and can end all of them, so that no thread waits for one any longer."""

    def __init__(self) -> None:
        self._processes: dict[tuple[int, Path | None], Processes] = {}  # one of each thread and given.py, used again
        self._drawing: set[DisplayRun] = set()
        self._stopped = False
        self._guard = threading.Lock()

    def start(self, given: Path | None) -> Worker:
        """A worker for this thread, whose last one has been closed."""
        whose = threading.get_ident(), given
        with self._guard:
            if whose not in self._processes:
                self._processes[whose] = new_processes(given)
            processes = self._processes[whose]
        self._refuse_when_stopped()
        return Worker(processes=processes)

    def draw(self, cells: list[Cell], given: Path | None, seconds: float) -> Shown:
        """The display run of a submission. Whatever goes wrong with it is the result's `problem`."""
        self._refuse_when_stopped()
        if os.name != "posix":
            return Shown(problem="the kernel needs Unix sockets, which this system does not have")
        try:
            run = DisplayRun(cells, given, seconds)
        except Exception as error:
            return Shown(problem=f"no process could be started ({type(error).__name__})")
        with self._guard:
            self._drawing = {drawing for drawing in self._drawing if not drawing.closed} | {run}
        if self._stopped:
            run.close()
        self._refuse_when_stopped()
        return run.shown()

    def _refuse_when_stopped(self) -> None:
        if self._stopped:
            raise GradingError("the run was stopped")

    def stop(self) -> None:
        """End every process; those that would be started next raise GradingError."""
        self._stopped = True
        with self._guard:
            running = [*self._processes.values(), *(run for run in self._drawing if not run.closed)]
        for processes in running:
            processes.kill()

    def close(self) -> None:
        """End what is there to be used again. To be called when no thread uses it any more."""
        for processes in self._processes.values():
            processes.close()
