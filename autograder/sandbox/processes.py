"""Starts a worker's processes, one at a time; none inherits anything from the one before.

In a sandbox they are forked from a process that has Python and NumPy ready; otherwise each is started anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import BinaryIO

from autograder.sandbox.account import account_for
from autograder.sandbox.bubblewrap import INSIDE, INSIDE_GIVEN, bwrap_command
from autograder.sandbox.isolation import BUBBLEWRAP, LANDLOCK, LIMITS, Isolation, end_group, find_isolation
from autograder.sandbox.pipes import Pipes
from autograder.sandbox.shown import folders_to_list, paths_to_read
from autograder.toolkit.model.config import MODEL_VARIABLE, chosen_model
from autograder.toolkit.threads import BLAS_VARIABLES
from autograder.worker import fork_server, limits
from autograder.worker.folders import empty
from autograder.worker.start import Start

END_SECONDS = 5.0  # in which a process ends and its files are removed; otherwise the sandbox is ended
EXIT_SECONDS = 2.0
_PASSED_ON = ("LANG", "LC_ALL", "SYSTEMROOT")


def environment(home: str) -> dict[str, str]:
    """The environment variables of a student's process."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if chosen_model() != "tiny":
        from autograder.toolkit.model.load import absolute_name

        env[MODEL_VARIABLE] = absolute_name(None)  # its home and working directory differ
    env["PATH"] = "/usr/bin:/bin" if os.name == "posix" else os.environ.get("PATH", "")  # for libraries, on Windows
    env |= {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    env |= dict.fromkeys(BLAS_VARIABLES, "1")  # the arrays are small; threads would only wait for each other
    return env | {"HOME": home, "USERPROFILE": home, "TMPDIR": home, "MPLBACKEND": "Agg"}


class Processes:
    """Starts the processes without a sandbox. Calls of `begin` and `end` alternate."""

    _home = ""  # of a student's process, below the folder

    def __init__(self, isolation: Isolation, given: Path | None, hidden: tuple[Path, ...], memory_bytes: int):
        self._isolation = isolation
        self._given = given
        self._hidden = hidden
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen | None = None
        self.filtered = False  # whether the current process reported the system call filter

    def begin(self) -> Pipes:
        """Begin a new process, which may not have started when this returns."""
        self._start(stdout=subprocess.PIPE)
        assert self._process is not None
        return Pipes(self._process.stdin, self._process.stdout)

    def end(self) -> None:
        """End the current process and everything it started, and remove what it wrote."""
        self.close()

    def exit_code(self) -> int | None:
        """The exit status of the current process after its pipe has ended; None if it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(EXIT_SECONDS) if self._process else None
        return None

    def close(self) -> None:
        """End everything and remove the folder."""
        if self._process is not None:
            end_group(self._process)
            self._process = None
            self._folder.close()

    def _start(self, **options) -> None:
        with contextlib.ExitStack() as undo:
            folder = undo.enter_context(tempfile.TemporaryDirectory(prefix="autograder-", ignore_cleanup_errors=True))
            undo.callback(_empty, folder)  # rmtree fails on very deep folders
            start = self._what_to_tell(folder)
            if start.account is not None:
                os.chown(folder, start.account, start.account)
            self._process = subprocess.Popen(
                [*self._before(), sys.executable, "-I", "-B", "-m", "autograder.worker"],
                stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=environment(self._inside(folder) + self._home),
                start_new_session=os.name == "posix",
                **options,
            )
            self._folder = undo.pop_all()
        with contextlib.suppress(OSError):  # it ended at once, which its pipes report
            self._process.stdin.write(json.dumps(asdict(start)).encode() + b"\n")
            self._process.stdin.flush()

    def _before(self) -> list[str]:
        """The beginning of the command line."""
        return []

    def _inside(self, folder: str) -> str:
        """The path of the folder as the process sees it."""
        return folder

    def _what_to_tell(self, folder: str) -> Start:
        given = str(self._given or "")
        return Start(self._memory_bytes, given, account_for([folder, given]))


class ForkedProcesses(Processes):
    """Forks the processes in a sandbox, which lasts until `close`, or until a process in it does not end."""

    _home = "/home"
    _control: socket.socket | None = None

    def begin(self) -> Pipes:
        if self._process is not None and self._process.poll() is not None:  # the system ended it, as for its memory
            self.close()
        if self._process is None:
            self._start_server()
        with _pipe() as (theirs_in, requests), _pipe(reading=True) as (theirs_out, replies):
            with contextlib.suppress(OSError):  # the server ended, and with it the pipes
                socket.send_fds(self._control, [fork_server.BEGIN], [theirs_in, theirs_out])
            return Pipes(requests, replies)

    def end(self) -> None:
        # Without the filter, the process may have started others and reached the server
        if not self.filtered or self._ask(fork_server.END, END_SECONDS) != fork_server.DONE:
            self.close()

    def exit_code(self) -> int | None:
        answer = self._ask(fork_server.WAIT, EXIT_SECONDS)
        if answer is None:  # it still runs, and the server waits for it
            self.close()
            return None
        return answer[0] if answer else super().exit_code()

    def close(self) -> None:
        super().close()
        if self._control is not None:
            self._control.close()
            self._control = None

    def _start_server(self) -> None:
        self._control, self._theirs = socket.socketpair()
        with self._theirs:
            self._start(stdout=subprocess.DEVNULL, pass_fds=(self._theirs.fileno(),))
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def _ask(self, what: bytes, seconds: float) -> bytes | None:
        """The server's answer; empty if it has ended, None if there is none in time."""
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


class InLandlock(ForkedProcesses):
    """A sandbox in which the processes give up access to all files that they need not read."""

    def _what_to_tell(self, folder: str) -> Start:
        given = [str(self._given)] if self._given else []
        return replace(
            super()._what_to_tell(folder),
            landlock=self._isolation.landlock,
            read=(*paths_to_read(self._hidden), *given),
            list_names=folders_to_list(self._hidden),
            control=self._theirs.fileno(),
        )


class InBubblewrap(ForkedProcesses):
    """A sandbox in which other files do not exist."""

    def _before(self) -> list[str]:
        return bwrap_command(self._isolation.bwrap, self._given, self._hidden)

    def _inside(self, folder: str) -> str:
        return INSIDE

    def _what_to_tell(self, folder: str) -> Start:
        return Start(self._memory_bytes, INSIDE_GIVEN if self._given else "", control=self._theirs.fileno())


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


def _empty(folder: str) -> None:
    if os.name == "posix":
        with contextlib.suppress(OSError):
            empty(folder)


def new_processes(
    given_path: str | Path | None = None,
    isolation: Isolation | None = None,
    *,
    hidden: Iterable[Path] = (),
    memory_bytes: int | None = None,
) -> Processes:
    """Processes in the given isolation, or the machine's best.

    hidden: folders that no process may see, such as the course's, wherever they are.
    memory_bytes: the address space that a process may use, if not the default.
    """
    isolation = isolation or find_isolation()
    given = Path(given_path).resolve() if given_path is not None else None
    kind = {BUBBLEWRAP: InBubblewrap, LANDLOCK: InLandlock, LIMITS: Processes}[isolation.mode]
    return kind(isolation, given, tuple(hidden), memory_bytes or limits.memory_bytes())
