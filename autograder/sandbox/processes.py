"""Where a worker's processes come from: one at a time, none of them with anything of the one before.

In the sandbox they are forked from one that has Python and NumPy ready; elsewhere each is started.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from autograder.sandbox.bubblewrap import INSIDE, INSIDE_GIVEN, bwrap_command
from autograder.sandbox.isolation import SandboxMissing, end_group, isolation
from autograder.sandbox.pipes import Pipes
from autograder.toolkit.model.config import MODEL_VARIABLE, chosen_model
from autograder.toolkit.threads import BLAS_VARIABLES
from autograder.worker import fork_server, limits

END_SECONDS = 5.0  # for the end of a process and of what it left; else the sandbox ends
EXIT_SECONDS = 2.0
_PASSED_ON = ("LANG", "LC_ALL", "SYSTEMROOT")


def environment(home: str) -> dict[str, str]:
    """All that a student's process is told of this machine's environment."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if chosen_model() != "tiny":
        from autograder.toolkit.model.load import absolute_name

        env[MODEL_VARIABLE] = absolute_name(None)  # its home and its folder are others
    env["PATH"] = "/usr/bin:/bin" if os.name == "posix" else os.environ.get("PATH", "")  # libraries, on Windows
    env |= {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    env |= dict.fromkeys(BLAS_VARIABLES, "1")  # the arrays are small; threads would only wait for each other
    return env | {"HOME": home, "USERPROFILE": home, "TMPDIR": home, "MPLBACKEND": "Agg"}


class Processes:
    """Starts the processes, without a sandbox. `begin` and `end` are called in turn."""

    def __init__(self, given: Path | None, memory_bytes: int):
        self._given = given
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen | None = None
        self.filtered = False  # whether the present process has the system call filter, as it said when it began

    def begin(self) -> Pipes:
        """A new process, which may not have started yet."""
        given = "" if self._given is None else str(self._given)
        self._start(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process is not None
        return Pipes(self._process.stdin, self._process.stdout)

    def end(self) -> None:
        """End the present process, and what it started and wrote."""
        self.close()

    def exit_code(self) -> int | None:
        """How the present process ended, once its pipe has ended: its exit status; None when it runs on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(EXIT_SECONDS) if self._process else None
        return None

    def close(self) -> None:
        """End everything and remove the folder."""
        if self._process is not None:
            end_group(self._process)
            self._process = None
            self._folder.close()

    def _start(self, *arguments: str, before: tuple[str, ...] = (), home: str | None = None, **options) -> None:
        python = (sys.executable, "-I", "-B", "-m", "autograder.worker", str(self._memory_bytes))
        with contextlib.ExitStack() as undo:
            folder = undo.enter_context(tempfile.TemporaryDirectory(prefix="autograder-", ignore_cleanup_errors=True))
            self._process = subprocess.Popen(
                [*before, *python, *arguments],
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=environment(home or folder),
                start_new_session=os.name == "posix",
                **options,
            )
            self._folder = undo.pop_all()


class ForkedProcesses(Processes):
    """Forks the processes in a sandbox, which lasts until `close`, or until something in it does not end."""

    _control: socket.socket | None = None

    def begin(self) -> Pipes:
        if self._process is not None and self._process.poll() is not None:  # ended by the system, as for its memory
            self.close()
        if self._process is None:
            self._start_server()
        with _pipe() as (theirs_in, requests), _pipe(reading=True) as (theirs_out, replies):
            with contextlib.suppress(OSError):  # a server that ended; the pipes end, too
                socket.send_fds(self._control, [fork_server.BEGIN], [theirs_in, theirs_out])
            return Pipes(requests, replies)

    def end(self) -> None:
        # Without the filter, it may have started others, and have reached the server
        if not self.filtered or self._ask(fork_server.END, END_SECONDS) != fork_server.DONE:
            self.close()

    def exit_code(self) -> int | None:
        answer = self._ask(fork_server.WAIT, EXIT_SECONDS)
        if answer is None:
            return None
        return answer[0] if answer else super().exit_code()

    def close(self) -> None:
        super().close()
        if self._control is not None:
            self._control.close()
            self._control = None

    def _start_server(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._start(
                "" if self._given is None else INSIDE_GIVEN,
                str(theirs.fileno()),
                before=tuple(bwrap_command(self._given)),
                home=INSIDE,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )

    def _ask(self, what: bytes, seconds: float) -> bytes | None:
        """The answer; empty when the server has ended, None when there is none in time."""
        if self._control is None:
            return b""
        self._control.settimeout(seconds)
        try:
            self._control.send(what)
            return self._control.recv(1)
        except TimeoutError:
            return None
        except OSError:
            return b""


@contextlib.contextmanager
def _pipe(reading: bool = False) -> Iterator[tuple[int, BinaryIO]]:
    """The worker's end of a pipe, open within the context, and the grader's."""
    read, write = os.pipe()
    theirs, ours = (write, read) if reading else (read, write)
    stream = open(ours, "rb" if reading else "wb", buffering=0)  # noqa: SIM115 - whoever gets it closes it
    try:
        yield theirs, stream
    except BaseException:
        stream.close()
        raise
    finally:
        os.close(theirs)


def new_processes(
    given_path: str | Path | None = None, *, require_sandbox: bool = False, memory_bytes: int | None = None
) -> Processes:
    """As this machine has them.

    require_sandbox: refuse with SandboxMissing where bubblewrap does not work.
    memory_bytes: the address space that a process may use, if not the usual.
    """
    sandboxed = isolation().complete
    if require_sandbox and not sandboxed:
        raise SandboxMissing(isolation().missing)
    given = Path(given_path).resolve() if given_path is not None else None
    kind = ForkedProcesses if sandboxed else Processes
    return kind(given, memory_bytes or limits.memory_bytes())
