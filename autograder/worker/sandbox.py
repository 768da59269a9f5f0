"""Where the worker runs: in bubblewrap where that works, else with the limits the platform has.

In bubblewrap the worker has no network, its own process and ipc spaces, no capabilities and an unprivileged uid. It
sees Python, the libraries, the student's side of this package, the trained model and one given.py, all read-only, and a
private folder in memory. Nothing else can be written. It does not see the judge, the solutions, the course directory,
other students or the home directory, also where these lie in a folder of the system, such as /usr/local/lib.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from autograder.toolkit.model.config import chosen_model
from autograder.worker.limits import has_system_call_filter

PACKAGE = Path(__file__).resolve().parents[1]
SHOWN_PARTS = ("__init__.py", "toolkit", "worker", "display")  # of the package
INSIDE = "/run/worker"  # the worker's private folder
INSIDE_GIVEN = "/run/given.py"
PROBE_SECONDS = 60.0
FOLDER_BYTES = 64 * 2**20
_PYTHON_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")  # of an installation or a virtual environment
_HIDDEN_OF_PROC = ("/proc/cmdline", "/proc/kallsyms", "/proc/keys", "/proc/kcore", "/proc/kmsg", "/proc/timer_list")
_SYSTEM = (  # never all of /usr: /usr/src and the like are where containers have their projects
    *(f"{top}/{part}" for top in ("/usr", "/usr/local") for part in ("bin", "lib", "lib32", "lib64", "libexec")),
    *(f"/usr/share/{part}" for part in ("zoneinfo", "fonts", "locale")),
    *("/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/localtime"),
)
_hidden: set[Path] = set()


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


def hide(folder: Path) -> None:
    """Never show this folder, such as a course's, wherever it lies."""
    _hidden.add(folder.resolve())


def bwrap_command(given_path: Path | None) -> list[str]:
    """The command line up to the program to run."""
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent", "--new-session"]
    command += ["--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "worker"]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for path in ("/tmp", "/dev/shm", INSIDE):  # first: what is bound below may itself lie under /tmp
        command += ["--size", str(FOLDER_BYTES), "--tmpfs", path]
    bound = [*_SYSTEM, *_python_folders(), *(str(PACKAGE / part) for part in SHOWN_PARTS)]
    for path in _folders_on_the_way(under="/tmp", to=[*bound, *_model_folders()]):
        command += ["--perms", "0555", "--dir", path]  # else they would be the worker's to write to
    covered = {folder for folder in _folders_to_hide() if any(_inside(folder, path) for path in bound)}
    for path in sorted({*bound, *covered}):  # the outer ones first: Python may lie in a course that lies in /usr/lib
        command += ["--tmpfs", path] if path in covered else ["--ro-bind-try", path, path]
    for path in _model_folders():
        command += ["--ro-bind-try", path, path]
    if given_path is not None:
        command += ["--ro-bind", str(given_path), INSIDE_GIVEN]
    for path in _HIDDEN_OF_PROC:
        if os.path.exists(path):
            command += ["--ro-bind", "/dev/null", path]
    # Last: where root grades, /proc/sys would be writable, and there is memory behind / and /dev
    for path in (*sorted(covered), "/proc", "/dev", "/"):
        command += ["--remount-ro", path]
    return [*command, "--chdir", INSIDE]


def _folders_to_hide() -> set[str]:
    """The course, the home directory, and the checkout that this package is in."""
    folders = {*_hidden, Path.home().resolve(), PACKAGE}
    if (PACKAGE.parent / "pyproject.toml").is_file():
        folders.add(PACKAGE.parent)
    return {str(folder) for folder in folders}


def _inside(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip(os.sep) + os.sep)


def _folders_on_the_way(under: str, to: list[str]) -> list[str]:
    """The folders below `under` that must be made so that these paths can be bound, the outer ones first."""
    found = {str(parent) for path in to for parent in Path(path).parents if Path(under) in parent.parents}
    return sorted(found)


@functools.cache
def _python_folders() -> list[str]:
    """Programs and libraries of the interpreter and the environment, never all of the folder that they are in.

    An environment may have been made in the project's folder, in a course's, or at home.
    """
    prefixes = {Path(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    prefixes.add(Path(sys.executable).resolve().parents[1])
    folders = {str(prefix / part) for prefix in prefixes for part in _PYTHON_PARTS if (prefix / part).exists()}
    spec = importlib.util.find_spec("numpy")
    return sorted(folders | ({str(Path(spec.origin).parents[1])} if spec and spec.origin else set()))


def _model_folders() -> list[str]:
    folders = [str(PACKAGE.parent / "data" / "tiny-gpt2")]
    if chosen_model() != "tiny":
        from autograder.toolkit.model.load import absolute_name

        chosen = Path(absolute_name(None))
        if chosen.is_absolute():  # "tiny" is there already, and a model of random weights lies in no folder
            linked = (path.resolve() for path in chosen.iterdir() if path.is_symlink())  # as in Hugging Face's cache
            folders += [str(chosen), *(str(path) for path in linked if path.is_file())]
    return folders
