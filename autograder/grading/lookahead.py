"""Has the submissions of a batch marked ahead of nbgrader's loop, which takes them one by one.

Its threads only wait, each for one of the processes that mark; the loop's own thread alone writes anything.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from autograder.grading.submission import Marked

WINDOW = (
    64  # how many are marked, or begun, and not yet taken: what is done meanwhile when one of them loops for minutes
)


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
