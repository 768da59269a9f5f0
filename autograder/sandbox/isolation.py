"""What keeps the worker apart from the rest of the machine: bubblewrap where that works, else the platform's limits."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass

from autograder.sandbox.bubblewrap import bwrap_command
from autograder.worker.limits import has_system_call_filter

PROBE_SECONDS = 60.0


@dataclass(frozen=True)
class Isolation:
    """What keeps the worker apart from the rest of the machine, and what does not."""

    name: str
    complete: bool
    missing: str = ""  # one sentence for the teaching assistant


class SandboxMissing(Exception):
    """A sandbox is required and there is none."""


@functools.cache
def isolation() -> Isolation:
    """What this machine offers; tried once, by really starting a sandbox."""
    if os.environ.get("AUTOGRADER_NO_BWRAP"):
        return _without("bubblewrap is switched off by AUTOGRADER_NO_BWRAP")
    if not sys.platform.startswith("linux"):
        return _without(f"there is no bubblewrap on {sys.platform}")
    if shutil.which("bwrap") is None:
        return _without("bubblewrap (bwrap) is not installed")
    command = [*bwrap_command(None), sys.executable, "-I", "-S", "-c", "pass"]
    status = _status_of(command)
    if status is None:
        return _without(f"bubblewrap is installed but did not start within {PROBE_SECONDS:g} s")
    if status != 0:
        return _without("bubblewrap is installed but cannot start here")
    return Isolation("bubblewrap", True)


def _status_of(command: list[str]) -> int | None:
    """The exit status, None for none in time. Whatever interrupts the waiting, no process of it is left."""
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True)
    try:
        return process.wait(PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            end_group(process)  # bubblewrap's own child would wait for ever


def end_group(process: subprocess.Popen) -> None:
    """Kill a process that leads a group, with all that is in the group, and wait for it."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _without(reason: str) -> Isolation:
    rest = (
        "student code can read and write files of this account, and the network and other processes are closed to it "
        "only by a system call filter"
        if has_system_call_filter()
        else "student code can read and write files of this account, reach the network and start processes"
    )
    return Isolation("limits", False, f"Not sandboxed: {reason}; {rest}.")
