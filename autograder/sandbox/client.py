"""The grader's side of the worker: sends requests with a deadline, and ends it with everything it started."""

from __future__ import annotations

import contextlib
import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.sandbox.isolation import Isolation
from autograder.sandbox.processes import Processes, new_processes
from autograder.worker import protocol
from autograder.worker.runtime import MAX_MESSAGE, MAX_REPLY_BYTES

START_SECONDS = 60.0
CALL_SECONDS = 10.0  # an honest call takes a tenth of a second


@dataclass(frozen=True)
class Cell:
    """One code cell to run: its name in messages, and its source."""

    label: str
    source: str


class WorkerGone(Exception):
    """The worker ended, or was ended, before it answered. `reason` is one sentence for student and TA."""

    def __init__(self, reason: str, timed_out: bool = False):
        super().__init__(reason)
        self.reason = reason
        self.timed_out = timed_out


class Worker:
    """A running worker process. A context manager; `request` is the only way to talk to it.

    given_path, isolation, memory_bytes: as for new_processes.
    processes: starts its process, and can be used again after the worker is closed. others: as processes, for
        processes in which strings hash differently.
    """

    def __init__(
        self,
        given_path: str | Path | None = None,
        isolation: Isolation | None = None,
        *,
        call_seconds: float = CALL_SECONDS,
        memory_bytes: int | None = None,
        processes: Processes | None = None,
        others: Processes | None = None,
    ):
        self.call_seconds = call_seconds
        self._shared = processes is not None
        self.closed = True
        self._others = others
        self.processes = processes or new_processes(given_path, isolation, memory_bytes=memory_bytes)
        self._begin()

    def _begin(self) -> None:
        self._pipes = self.processes.begin()
        self.closed = False
        ready = self._wait(time.monotonic() + START_SECONDS, START_SECONDS, "starting", MAX_REPLY_BYTES)
        self.given_error = ready.get("given_error")
        self.processes.filtered = ready.get("filtered") is True

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _wait(self, deadline: float, seconds: float, doing: str, max_bytes: int) -> dict[str, Any]:
        try:
            frame = self._pipes.receive(deadline, max_bytes)
            reply = None if frame is None else protocol.decode(frame)
        except TimeoutError:
            raise self._too_late(seconds, doing) from None
        except (protocol.ProtocolError, OSError, ValueError) as error:
            self.close()
            raise WorkerGone(f"the worker's reply could not be read: {error}") from None
        if frame is None:
            code = self._end_code()
            self.close()
            raise WorkerGone(f"the process ended while {doing} ({code})")
        if not isinstance(reply, dict):
            self.close()
            raise WorkerGone("the worker's reply is not a message")
        return reply

    def _too_late(self, seconds: float, doing: str) -> WorkerGone:
        self.close()
        return WorkerGone(f"no answer within {seconds:.3g} s while {doing}", timed_out=True)

    def _end_code(self) -> str:
        code = self.processes.exit_code()
        if code is None:
            return "its pipe was closed"
        with contextlib.suppress(ValueError):  # the sandbox tells of a signal as a shell does
            return f"signal {signal.Signals(code - 128 if code > 128 else -code).name}"
        return f"exit status {code}"

    def request(self, message: dict[str, Any], *, doing: str = "answering", seconds: float | None = None) -> Any:
        """Send one request and wait for its reply; raises WorkerGone if there is none in time.

        The request's "max_bytes" limits the length of the reply; the default is MAX_REPLY_BYTES.
        """
        if self.closed:
            raise WorkerGone("the worker has ended")
        seconds = self.call_seconds if seconds is None else seconds
        deadline = time.monotonic() + seconds
        number = secrets.randbits(62)  # a reply written before the question cannot carry it
        try:
            self._pipes.send(protocol.encode({**message, "number": number}), deadline)
        except TimeoutError:
            raise self._too_late(seconds, doing) from None
        reply = self._wait(deadline, seconds, doing, message.get("max_bytes", MAX_REPLY_BYTES))
        said, error, changed = reply.pop("number", None), reply.get("error"), reply.get("changed", [])
        if type(said) is not int or said != number:  # an array would answer the comparison with an array
            self.close()
            raise WorkerGone(f"a reply that answers no question came while {doing}")
        if not (error is None or isinstance(error, dict)) or not isinstance(changed, list):
            self.close()
            raise WorkerGone(f"a malformed reply came while {doing}")
        if error is not None:
            reply["error"] = _plain_error(reply["error"])
        return reply

    def run_cell(self, cell: Cell, seconds: float | None = None) -> dict[str, Any] | None:
        """Run one cell; returns None, or the description of its error."""
        reply = self.request(
            {"op": "run_cell", "label": cell.label, "source": cell.source},
            doing=f"running {cell.label}",
            seconds=seconds,
        )
        return reply.get("error")

    def begin_anew(self, other_hashes: bool = False) -> None:
        """Continue in a new process, in which no cell has run; with `other_hashes`, strings hash differently there."""
        self._end()
        if other_hashes and self._others:  # what is forked from one process has one secret for hashes
            self.processes, self._others = self._others, self.processes
        elif other_hashes:
            self.processes.close()
        self._begin()

    def close(self) -> None:
        """End the process and everything that it started, whatever its state; remove what it wrote."""
        if not self.closed:
            self._end()
        if not self._shared:
            self.processes.close()

    def _end(self) -> None:
        self.processes.end()
        self._pipes.close()
        self.closed = True


def _plain_error(said: dict[Any, Any]) -> dict[str, Any]:
    """An error in the form that Runtime sends, whatever was sent: strings of limited length, numbers and booleans."""

    def text(value: Any, most: int) -> str:
        return value[:most] if isinstance(value, str) else ""

    error: dict[str, Any] = {key: text(said.get(key), MAX_MESSAGE) for key in ("kind", "type", "message")}
    error |= {key: said.get(key) is True for key in ("refusal", "stub")}
    error["call"] = said.get("call")
    where = said.get("where")
    if isinstance(where, dict) and type(where.get("line")) is int:
        error["where"] = {key: text(where.get(key), 200) for key in ("cell", "text")} | {"line": where["line"]}
    return error
