"""Decides which sandbox isolates a student's process. The process that grades decides once.

It passes the decision to every process that it starts, because one with another PATH or environment could decide
differently.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, replace

from autograder.sandbox.bubblewrap import bwrap_command
from autograder.toolkit.errors import UserError
from autograder.worker import landlock
from autograder.worker.limits import has_system_call_filter

BUBBLEWRAP, LANDLOCK, LIMITS = MODES = ("bubblewrap", "landlock", "limits")  # the best first
MODE_VARIABLE = "AUTOGRADER_SANDBOX"  # environment variable: the mode to use
PROBE_SECONDS = 60.0
_USUAL_FOLDERS = (  # of programs, in case PATH is incomplete
    *(os.path.join(sys.prefix, "bin"), "/usr/bin", "/usr/local/bin", "/bin", "/opt/conda/bin"),
    *("/run/current-system/sw/bin", os.path.expanduser("~/.nix-profile/bin")),
)
REMEDY = "install bubblewrap (apt install bubblewrap), or grade where Linux is 5.13 or newer"


class SandboxMissing(UserError):
    """A sandbox was requested or is needed, and does not work; the message is one sentence with the remedy."""


@dataclass(frozen=True)
class Isolation:
    """One of the modes, and what it needs. why: why it is not a better mode, as the end of a sentence."""

    mode: str
    bwrap: str = ""  # the program's absolute path
    landlock: int = 0  # the kernel's ABI
    why: str = ""

    @property
    def sandboxed(self) -> bool:
        return self.mode != LIMITS

    @property
    def missing(self) -> str:
        """One sentence for the teaching assistant; empty in a sandbox."""
        if self.sandboxed:
            return ""
        rest = (
            "student code can read and write files of this account, and the network and other processes are closed to "
            "it only by a system call filter"
            if has_system_call_filter()
            else "student code can read and write files of this account, reach the network and start processes"
        )
        return f"Not sandboxed: {self.why}; {rest}."

    @property
    def _remedy(self) -> str:
        return f"unset {MODE_VARIABLE}" if MODE_VARIABLE in self.why else REMEDY

    def expect(self, *, sandbox: bool = False, unsandboxed: bool = False) -> None:
        """Raise SandboxMissing if this mode is no sandbox and one is needed, for root or because it is required.

        sandbox: every account needs one. unsandboxed: root does not need one.
        """
        if not self.sandboxed and sandbox:
            raise SandboxMissing(f"{self.missing} The course requires the sandbox.")
        if not self.sandboxed and not unsandboxed and os.name == "posix" and os.geteuid() == 0:
            raise SandboxMissing(
                f"Root grades only in a sandbox: {self.why}; {self._remedy}, grade as another account, or set "
                "c.SubmissionExporter.allow_unsandboxed = True."
            )


@functools.cache
def find_isolation() -> Isolation:
    """The best mode here, or the one that the environment requests; raises SandboxMissing if that does not work."""
    asked = os.environ.get(MODE_VARIABLE) or ""
    if asked not in ("", *MODES):
        raise SandboxMissing(f"{MODE_VARIABLE}={asked} is no sandbox; choose {', '.join(MODES)}, or unset it.")
    without: list[str] = []
    for mode in [asked] if asked else MODES:
        found = try_mode(mode)
        if isinstance(found, Isolation):
            return replace(found, why=f"{MODE_VARIABLE} asks for {mode}" if asked else " and ".join(without))
        without.append(found)
    raise SandboxMissing(f"{MODE_VARIABLE} asks for {asked}, but {without[0]}; put that right, or unset it.")


def try_mode(mode: str) -> Isolation | str:
    """The mode, or why it does not work here, as the end of a sentence."""
    return {BUBBLEWRAP: _find_bubblewrap, LANDLOCK: _find_landlock, LIMITS: lambda: Isolation(LIMITS)}[mode]()


def _find_bubblewrap() -> Isolation | str:
    """bubblewrap, if starting a sandbox with it works; otherwise the reason why not."""
    if not sys.platform.startswith("linux"):
        return f"there is no bubblewrap on {sys.platform}"
    bwrap = shutil.which("bwrap") or shutil.which("bwrap", path=os.pathsep.join(_USUAL_FOLDERS))
    if bwrap is None:
        return "bubblewrap (bwrap) is not installed"
    bwrap = os.path.abspath(bwrap)
    status = _status_of([*bwrap_command(bwrap), sys.executable, "-I", "-S", "-c", "pass"])
    if status is None:
        return f"bubblewrap is installed but did not start within {PROBE_SECONDS:g} s"
    if status != 0:
        return "bubblewrap is installed but cannot start here"
    return Isolation(BUBBLEWRAP, bwrap=bwrap)


def _find_landlock() -> Isolation | str:
    abi = landlock.abi()
    if not abi:
        return "this kernel offers no Landlock" if sys.platform.startswith("linux") else "Landlock is of Linux"
    if not has_system_call_filter():
        return "there is no system call filter for this processor, without which Landlock is not enough"
    return Isolation(LANDLOCK, landlock=abi)


def _status_of(command: list[str]) -> int | None:
    """The exit status, or None if there is none in time. No process is left, whatever interrupts the wait."""
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
    """Kill a process that leads a group, with the whole group, and wait for it."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
