"""The grader's side of the worker: starts it, asks with a deadline, ends it with everything it started."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.threads import BLAS_VARIABLES
from autograder.worker import limits, protocol
from autograder.worker.pipes import Pipes
from autograder.worker.sandbox import INSIDE, INSIDE_GIVEN, SandboxMissing, bwrap_command, isolation

START_SECONDS = 60.0
MAX_MESSAGE = 600  # characters of an error's message
CALL_SECONDS = 20.0
_PASSED_ON = ("LANG", "LC_ALL", "SYSTEMROOT")


@dataclass(frozen=True)
class Cell:
    """One code cell to run: a label that names it to people, and its source."""

    label: str
    source: str


class WorkerGone(Exception):
    """The worker ended, or was ended, before it answered. `reason` is one sentence for student and TA."""

    def __init__(self, reason: str, timed_out: bool = False):
        super().__init__(reason)
        self.reason = reason
        self.timed_out = timed_out


def environment(home: str) -> dict[str, str]:
    """All that a student's process is told of this machine's environment."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if os.environ.get("AUTOGRADER_MODEL"):
        from autograder.model.load import absolute_name

        env["AUTOGRADER_MODEL"] = absolute_name(None)  # its home and its folder are others
    env["PATH"] = "/usr/bin:/bin" if os.name == "posix" else os.environ.get("PATH", "")  # libraries, on Windows
    env |= {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    env |= dict.fromkeys(BLAS_VARIABLES, "1")  # the arrays are small; threads would only wait for each other
    return env | {"HOME": home, "TMPDIR": home, "MPLBACKEND": "Agg"}


class Worker:
    """A running worker process. A context manager; `request` is the only way to talk to it.

    require_sandbox: refuse with SandboxMissing where bubblewrap does not work.
    memory_bytes: the address space that the process may use, if not the usual.
    """

    def __init__(
        self,
        given_path: str | Path | None = None,
        *,
        call_seconds: float = CALL_SECONDS,
        require_sandbox: bool = False,
        memory_bytes: int | None = None,
    ):
        self.call_seconds = call_seconds
        sandboxed = isolation().complete
        if require_sandbox and not sandboxed:
            raise SandboxMissing(isolation().missing)
        given = Path(given_path).resolve() if given_path is not None else None
        self._folder = tempfile.TemporaryDirectory(prefix="autograder-", ignore_cleanup_errors=True)
        command = [sys.executable, "-I", "-B", "-m", "autograder.worker", str(memory_bytes or limits.memory_bytes())]
        if given is not None:
            command.append(INSIDE_GIVEN if sandboxed else str(given))
        self._process = subprocess.Popen(
            bwrap_command(given) + command if sandboxed else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env=environment(INSIDE if sandboxed else self._folder.name),
            start_new_session=os.name == "posix",
        )
        self._pipes = Pipes(self._process.stdin, self._process.stdout)
        self.given_error = self._wait(time.monotonic() + START_SECONDS, START_SECONDS, "starting").get("given_error")

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _wait(self, deadline: float, seconds: float, doing: str) -> dict[str, Any]:
        try:
            frame = self._pipes.receive(deadline)
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
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=2)
            with contextlib.suppress(ValueError):  # bubblewrap tells of a signal as a shell does
                return f"signal {signal.Signals(code - 128 if code > 128 else -code).name}"
            return f"exit status {code}"
        return "its pipe was closed"

    def request(self, message: dict[str, Any], *, doing: str = "answering", seconds: float | None = None) -> Any:
        """Send one request and wait for its reply; WorkerGone when there is none in time."""
        if self.closed:
            raise WorkerGone("the worker has ended")
        seconds = self.call_seconds if seconds is None else seconds
        deadline = time.monotonic() + seconds
        number = secrets.randbits(62)  # a reply written before the question cannot carry it
        try:
            self._pipes.send(protocol.encode({**message, "number": number}), deadline)
        except TimeoutError:
            raise self._too_late(seconds, doing) from None
        reply = self._wait(deadline, seconds, doing)
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
        """Run one cell; None when it went well, else the error's description."""
        reply = self.request(
            {"op": "run_cell", "label": cell.label, "source": cell.source},
            doing=f"running {cell.label}",
            seconds=seconds,
        )
        return reply.get("error")

    @property
    def closed(self) -> bool:
        return self._process.stdin.closed

    def kill(self) -> None:
        """End the process, from any thread; whoever waits for its answer gets WorkerGone and has to close it."""
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def close(self) -> None:
        """End the process and everything in its group; remove its folder."""
        if self.closed:
            return
        self.kill()
        self._process.wait()
        self._pipes.close()
        self._folder.cleanup()


def _plain_error(said: dict[Any, Any]) -> dict[str, Any]:
    """An error as Runtime describes them, whatever was sent: texts of limited length, numbers and truth values."""

    def text(value: Any, most: int) -> str:
        return value[:most] if isinstance(value, str) else ""

    error: dict[str, Any] = {key: text(said.get(key), MAX_MESSAGE) for key in ("kind", "type", "message")}
    error |= {key: said.get(key) is True for key in ("loud", "stub")}
    where = said.get("where")
    if isinstance(where, dict) and type(where.get("line")) is int:
        error["where"] = {key: text(where.get(key), 200) for key in ("cell", "text")} | {"line": where["line"]}
    return error
