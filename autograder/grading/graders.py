"""Processes that grade submissions for the command.

Judging takes about as long as the students' code, and threads of one process would judge in sequence. A grader receives
what all submissions of a run share, then one submission at a time, and returns the result of each. It reuses one
sandbox, and ends with the command, however that ends.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from autograder.grading.grade import GradingError
from autograder.grading.machine import default_jobs
from autograder.grading.submission import Graded, Grading, HandedIn, grade
from autograder.sandbox.client import Worker
from autograder.sandbox.processes import Processes, new_processes
from autograder.worker import limits

_END_SECONDS = 10.0


class Graders:
    """As many graders as threads call `grade` at the same time; `begin` and `next` use `jobs` threads of their own.

    jobs: how many submissions are graded at a time; None means as many as this machine can.
    """

    notice = ""

    def __init__(self, grading: Grading, jobs: int | None = None):
        self._grading = grading
        jobs = jobs or default_jobs()
        self.window = jobs + 2  # begun and not yet returned by `next`, so that no grader waits for the command
        self._threads = ThreadPoolExecutor(jobs)
        self._ended: queue.SimpleQueue[tuple[str, Future[Graded]]] = queue.SimpleQueue()
        self._all: list[_Grader] = []
        self._free: list[_Grader] = []
        self._stopped = False
        self._guard = threading.Lock()

    def begin(self, student: str, handed_in: HandedIn) -> None:
        """Start to grade a submission; `next` returns its result."""
        self._threads.submit(self.grade, handed_in).add_done_callback(lambda ended: self._ended.put((student, ended)))

    def next(self) -> tuple[str, Callable[[], Graded]]:
        """The student whose submission is graded next, and a function that returns or raises what `grade` does."""
        student, ended = self._ended.get()
        return student, ended.result

    def grade(self, handed_in: HandedIn) -> Graded:
        """The scores; raises what grading raised, or GradingError if the grader ends."""
        grader = self._take()
        try:
            ok, value = grader.ask(handed_in)
        except (OSError, EOFError, pickle.UnpicklingError):
            grader.close()
            self._refuse_when_stopped()
            raise GradingError(f"the process that graded it {grader.end}; run it again.") from None
        with self._guard:
            self._free.append(grader)
        if not ok:
            raise value
        return value

    def _take(self) -> _Grader:
        with self._guard:
            self._refuse_when_stopped()
            while self._free:
                grader = self._free.pop()
                if grader.runs:  # the system may have ended it in the meantime
                    return grader
            self._all.append(_Grader(self._grading))
            return self._all[-1]

    def _refuse_when_stopped(self) -> None:
        if self._stopped:
            raise GradingError("the run was stopped")

    def stop(self) -> None:
        """End every grader immediately; threads that wait for one get GradingError."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._guard:
            self._stopped = True
            for grader in self._all:
                grader.stop()

    def close(self) -> None:
        """End the graders. Call it when no thread waits for one."""
        self._threads.shutdown()
        for grader in self._all:
            grader.stop()
        for grader in self._all:
            grader.close()


class _Grader:
    def __init__(self, grading: Grading):
        self._first: Grading | None = grading  # goes before the first question
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", f"from {__name__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=os.name == "posix",  # an interrupt from the keyboard is for the command alone
        )

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def end(self) -> str:
        """How it ended, as the end of a sentence."""
        code = self._process.returncode
        return f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with status {code}"

    def ask(self, handed_in: HandedIn) -> tuple[bool, Any]:
        for value in (handed_in,) if self._first is None else (self._first, handed_in):
            pickle.dump(value, self._process.stdin)
        self._first = None
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)

    def stop(self) -> None:
        self._process.terminate()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


# In the grader


def main() -> None:
    signal.signal(signal.SIGTERM, _end)
    limit_memory()
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asked: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_take_in, args=(requests, asked), daemon=True).start()
    grading: Grading = asked.get()
    gc.freeze()  # the imported modules stay, so the collector need not scan them
    with contextlib.ExitStack() as at_the_end:
        start_worker = _Starter(grading, at_the_end)
        while True:
            replies.write(_answer(grading, asked.get(), start_worker))
            replies.flush()


def limit_memory() -> None:
    """Limit the memory of this process, whatever a submission makes it do, where the system supports that.

    It is a soft limit, which the student's process, a child of this one, replaces with its own.
    """
    try:
        import resource

        in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (in_use + 2 * limits.memory_bytes(), most))
    except (ImportError, OSError, ValueError):  # Windows, macOS, or a limit of the account's that is lower
        return


def _end(number: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)  # on the way out, the sandbox is ended and its folder removed


def _take_in(requests: BinaryIO, asked: queue.Queue[Any]) -> None:
    """Receive submissions until the command closes the pipe or ends; then end, even in the middle of grading."""
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            asked.put(pickle.load(requests))
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_END_SECONDS)
    os._exit(1)


class _Starter:
    """Starts one worker at a time in one sandbox; a second begins with the first worker that needs other hashes."""

    def __init__(self, grading: Grading, at_the_end: contextlib.ExitStack):
        self._grading, self._at_the_end = grading, at_the_end
        self._both: list[Processes] = []

    def __call__(self, given: Path | None) -> Worker:
        while len(self._both) < 2:
            self._both.append(new_processes(given, self._grading.isolation, hidden=[self._grading.course]))
            self._at_the_end.callback(self._both[-1].close)
        return Worker(processes=self._both[0], others=self._both[1])


def _answer(grading: Grading, handed_in: HandedIn, start_worker: _Starter) -> bytes:
    """(True, the scores) or (False, the error), for pickle.load."""
    try:
        return pickle.dumps((True, grade(grading, handed_in, start_worker)))
    except MemoryError:
        return _as_answer(GradingError("grading it takes more memory than is allowed; look at what its notebook holds"))
    except Exception as error:
        return _as_answer(error)


def _as_answer(error: Exception) -> bytes:
    try:
        answer = pickle.dumps((False, error))
        pickle.loads(answer)
    except Exception:
        answer = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return answer
