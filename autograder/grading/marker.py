"""Processes that mark submissions beside the command.

Judging takes about as long as the students' code does, and threads of one process would judge one after the other. A
marker gets what all submissions of a run share, then the names of students; it gives what it found. It has one sandbox,
which it uses again, and ends with the command, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from autograder.display.run import DisplayRun, Shown
from autograder.grading.grade import GradingError, Limits
from autograder.grading.submission import Job, Marked, mark
from autograder.stages import Stage
from autograder.worker.client import Cell, Worker
from autograder.worker.processes import Processes, new_processes
from autograder.worker.sandbox import hide

_END_SECONDS = 10.0


@dataclass(frozen=True)
class Marking:
    """What the marks of all submissions of a run depend on."""

    course: Path
    submitted: Path
    stage: Stage
    source_notebook: dict[str, Any]
    given: Path | None
    secret: bytes
    limits: Limits | None
    sandboxed: bool  # as the command found it, so that it cannot change now
    display_seconds: float | None  # None: no display run


class Markers:
    """As many markers as threads ask at the same time."""

    def __init__(self, marking: Marking):
        self._marking = marking
        self._all: list[_Marker] = []
        self._free: list[_Marker] = []
        self._stopped = False
        self._guard = threading.Lock()

    def mark(self, student: str) -> Marked:
        """The student's marks; raises what marking raised, and GradingError when the marker ends."""
        with self._guard:
            self._refuse_when_stopped()
            if not self._free:
                self._free.append(_Marker(self._marking))
                self._all.append(self._free[-1])
            marker = self._free.pop()
        try:
            ok, value = marker.ask(student)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            marker.close()
            self._refuse_when_stopped()
            raise GradingError(f"the process that marked it ended ({type(error).__name__})") from None
        with self._guard:
            self._free.append(marker)
        if not ok:
            raise value
        return value

    def _refuse_when_stopped(self) -> None:
        if self._stopped:
            raise GradingError("the run was stopped")

    def stop(self) -> None:
        """End every marker, whatever it does; whoever waits for one gets GradingError."""
        with self._guard:
            self._stopped = True
            for marker in self._all:
                marker.stop()

    def close(self) -> None:
        """End the markers. To be called when nobody waits for one."""
        for marker in self._all:
            marker.close()


class _Marker:
    def __init__(self, marking: Marking):
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", f"from {__name__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=os.name == "posix",  # an interrupt from the keyboard is for the command alone
        )
        self._send(marking)

    def ask(self, student: str) -> tuple[bool, Any]:
        self._send(student)
        return pickle.load(self._process.stdout)

    def _send(self, value: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended; there will be no answer
            pickle.dump(value, self._process.stdin)
            self._process.stdin.flush()

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


# In the marker


def main() -> None:
    signal.signal(signal.SIGTERM, _end)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    marking: Marking = pickle.load(requests)
    asked: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_take_in, args=(requests, asked), daemon=True).start()
    hide(marking.course)
    with contextlib.closing(new_processes(marking.given, require_sandbox=marking.sandboxed)) as processes:
        _answer(marking, processes, asked, replies)


def _end(number: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)  # on the way out, the sandbox is ended and its folder removed


def _take_in(requests: BinaryIO, asked: queue.Queue[str]) -> None:
    """Until the command wants no more, or has ended, whatever is being marked then."""
    with contextlib.suppress(EOFError):
        while True:
            asked.put(pickle.load(requests))
    os.kill(os.getpid(), signal.SIGTERM)


def _answer(marking: Marking, processes: Processes, asked: queue.Queue[str], replies: BinaryIO) -> NoReturn:
    def draw(cells: list[Cell], given: Path | None) -> Shown:
        return _draw(cells, given, marking.display_seconds or 0.0)

    while True:
        student = asked.get()
        job = Job(
            student=student,
            folder=marking.submitted / student / marking.stage.assignment,
            stage=marking.stage,
            source_notebook=marking.source_notebook,
            given=marking.given,
            secret=marking.secret,
            limits=marking.limits,
            start_worker=lambda given: Worker(processes=processes),
            draw=None if marking.display_seconds is None else draw,
        )
        try:
            answer = pickle.dumps((True, mark(job)))
        except Exception as error:
            answer = _as_answer(error)
        replies.write(answer)
        replies.flush()


def _as_answer(error: Exception) -> bytes:
    try:
        answer = pickle.dumps((False, error))
        pickle.loads(answer)
    except Exception:
        answer = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return answer


def _draw(cells: list[Cell], given: Path | None, seconds: float) -> Shown:
    """The display run of a submission. Whatever goes wrong with it is the result's `problem`."""
    if os.name != "posix":
        return Shown(problem="the kernel needs Unix sockets, which this system does not have")
    try:
        run = DisplayRun(cells, given, seconds)
    except Exception as error:
        return Shown(problem=f"no process could be started ({type(error).__name__})")
    return run.shown()
