"""Grades on the workers of a Dask cluster instead of this machine's processors.

A worker needs this package and nothing of the course. For each run it receives the course's notebook of the stage and
its given.py; with each job, one student's notebooks and key. A grader process on the worker's machine (graders.py)
grades the job in that machine's sandbox. The secret and the gradebook stay on this machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import pickle
import re
import socket
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from distributed import Client, Future, KilledWorker, as_completed

from autograder.grading.folders import CourseProblem
from autograder.grading.grade import GradingError
from autograder.grading.graders import Graders
from autograder.grading.submission import Graded, Grading, HandedIn, submitted_notebook
from autograder.judge.plurals import count
from autograder.notebooks.document import read_bytes
from autograder.notebooks.errors import NotebookError
from autograder.sandbox.isolation import SandboxMissing, find_isolation
from autograder.stages import Stage, versions

ANSWER_SECONDS = 15.0  # in which a running scheduler answers
AHEAD = 2  # jobs sent for each of the workers' threads, so that none waits for this process


class Cluster:
    """Has the methods of Graders; the workers of a cluster do the work. Raises CourseProblem if it cannot be used."""

    def __init__(self, grading: Grading, address: str):
        if not re.fullmatch(r"(?:tcp|tls|wss?)://[^/]+:\d+/?", address):
            raise CourseProblem(f"{address} is not the address of a Dask scheduler; one looks like tcp://HOST:8786.")
        try:
            there = urlsplit(address)
            socket.create_connection((there.hostname, there.port), ANSWER_SECONDS).close()  # Dask would keep trying
            self._client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False, name="autograder-grade")
        except (OSError, ValueError) as error:
            raise CourseProblem(
                f"No Dask scheduler answers at {address} ({type(error).__name__}); start one with: dask scheduler"
            ) from None
        threads = sum(self._client.nthreads().values())
        if not threads:
            self._client.close()
            raise CourseProblem(f"The Dask scheduler at {address} has no workers; start some: dask worker {address}")
        self.window = max(AHEAD * threads, 16)  # workers may be added
        self.notice = f"Grading on {count(threads, 'thread')} of Dask workers; dashboard: {self._client.dashboard_link}"
        self._stage = grading.stage
        shared = _pack(grading)
        self._name = hashlib.sha256(shared).hexdigest()
        # The result of a task, so that Dask computes it again when the worker that holds it ends
        self._shared = self._client.submit(_same, shared, key=f"autograder-course-{self._name}")
        self._students: dict[str, str] = {}  # by the keys of their futures
        self._begun: list[tuple[str, _Job]] = []  # not yet sent to the scheduler
        self._ended = as_completed(loop=self._client.loop)
        self._results: deque[tuple[str, Callable[[], Graded]]] = deque()

    def begin(self, student: str, handed_in: HandedIn) -> None:
        """Start to grade a submission; `next` returns its result."""
        try:
            self._begun.append((student, _Job(_notebooks(handed_in.folder, self._stage), handed_in.key)))
        except (NotebookError, OSError) as error:
            self._results.append((student, partial(_raise, error)))

    def next(self) -> tuple[str, Callable[[], Graded]]:
        """The next student whose submission is graded, and a function that returns the scores or raises the error."""
        if not self._results:
            self._hand_out()
            ended = self._ended.next_batch()
            done = [future for future in ended if future.status == "finished"]
            answers: dict[Future, bytes] = {}
            with contextlib.suppress(CancelledError):  # the scheduler has ended
                answers = dict(zip(done, self._client.gather(done), strict=True))  # all results in one message
            for future in ended:
                result = partial(_scores, answers[future]) if future in answers else partial(_raise, _why_none(future))
                self._results.append((self._students.pop(future.key), result))
        return self._results.popleft()

    def _hand_out(self) -> None:
        """Send the jobs that have begun, all in one message, which costs little more than a message for one."""
        if not self._begun:
            return
        students, jobs = zip(*self._begun, strict=True)
        self._begun.clear()
        with warnings.catch_warnings():  # it proposes other ways to send the notebooks, which are the whole job
            warnings.filterwarnings("ignore", "Sending large graph")
            futures = self._client.map(_grade, jobs, shared=self._shared, pure=False, batch_size=16)
        self._students |= {future.key: student for future, student in zip(futures, students, strict=True)}
        self._ended.update(futures)

    def stop(self) -> None:
        """Cancel every job."""
        self._client.cancel(list(self._ended.futures), force=True)

    def close(self) -> None:
        """End the workers' graders of this run, and leave the cluster."""
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            self._client.run(_end, self._name, on_error="ignore")
        self._client.close()


def _scores(answer: bytes) -> Graded:
    ok, value = pickle.loads(answer)
    if not ok:
        raise value
    return value


def _raise(error: Exception) -> NoReturn:
    raise error


def _why_none(future: Future) -> Exception:
    if future.status != "error":
        return GradingError("the Dask scheduler ended; run it again.")
    error = future.exception()
    if isinstance(error, KilledWorker):
        return GradingError("several workers ended while grading it; run it again.")
    return error


@dataclass(frozen=True)
class _Job:
    notebooks: dict[str, bytes]  # by their names
    key: bytes


def _notebooks(folder: Path, stage: Stage) -> dict[str, bytes]:
    """The contents of the notebooks handed in, by name; NotebookError if there is none or one cannot be read."""
    found = [p for p in folder.iterdir() if p.suffix.lower() == ".ipynb" and p.is_file() and not p.is_symlink()]
    if not found:
        submitted_notebook(folder, stage)  # raises an error that names what is there instead
    return {path.name: read_bytes(path) for path in found if not path.name.startswith(".")}


@dataclass(frozen=True)
class _Shared:
    grading: Grading
    given: bytes | None
    code: list[str]  # the version of the checks, and a digest of their code


def _pack(grading: Grading) -> bytes:
    given = grading.given.read_bytes() if grading.given else None
    return pickle.dumps(_Shared(grading, given, versions.present()[grading.stage.name]))


def _same(value: bytes) -> bytes:
    return value


# On a worker

_runs: dict[str, tuple[Graders, tempfile.TemporaryDirectory]] = {}  # by a digest of what the jobs of the run share
_guard = threading.Lock()


def _grade(job: _Job, shared: bytes) -> bytes:
    """(True, the scores) or (False, the error), pickled."""
    try:
        graders = _graders_for(shared)
        with tempfile.TemporaryDirectory(prefix="autograder-job-") as folder:
            for name, data in job.notebooks.items():
                (Path(folder) / name).write_bytes(data)
            return pickle.dumps((True, graders.grade(HandedIn(Path(folder), job.key))))
    except Exception as error:
        return pickle.dumps((False, error))


def _graders_for(shared: bytes) -> Graders:
    name = hashlib.sha256(shared).hexdigest()
    with _guard:
        if name not in _runs:
            _runs[name] = _begin(pickle.loads(shared))
        return _runs[name][0]


def _begin(shared: _Shared) -> tuple[Graders, tempfile.TemporaryDirectory]:
    if versions.present()[shared.grading.stage.name] != shared.code:
        raise GradingError("a worker has another version of the checks; install the same version on all machines.")
    there = shared.grading.isolation  # where the command runs
    try:
        isolation = find_isolation()
        isolation.expect(sandbox=there.sandboxed, unsandboxed=shared.grading.allow_unsandboxed)
    except SandboxMissing as error:
        raise GradingError(f"a worker's machine cannot grade: {error}") from None
    folder = tempfile.TemporaryDirectory(prefix="autograder-course-")
    given = None
    if shared.given is not None:
        given = Path(folder.name) / "given.py"
        given.write_bytes(shared.given)
    grading = dataclasses.replace(shared.grading, course=Path(folder.name), given=given, isolation=isolation)
    return Graders(grading), folder


def _end(name: str) -> None:
    with _guard:
        graders, folder = _runs.pop(name, (None, None))
    if graders is not None:
        graders.stop()  # a run that was stopped may still be grading
        graders.close()
        folder.cleanup()
