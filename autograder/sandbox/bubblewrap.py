"""The command line that starts a program in bubblewrap.

There it has no network, its own process and ipc spaces, no capabilities and an unprivileged uid. It sees what shown.py
lists and one given.py, all read-only, and a private folder in memory. Nothing else can be written.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from autograder.sandbox.shown import folders_to_hide, model_folders, shown_paths

INSIDE = "/run/worker"  # the worker's private folder
INSIDE_GIVEN = "/run/given.py"
FOLDER_BYTES = 64 * 2**20
_HIDDEN_OF_PROC = ("/proc/cmdline", "/proc/kallsyms", "/proc/keys", "/proc/kcore", "/proc/kmsg", "/proc/timer_list")


def bwrap_command(given_path: Path | None) -> list[str]:
    """The command line up to the program to run."""
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent", "--new-session"]
    command += ["--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "worker"]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for path in ("/tmp", "/dev/shm", INSIDE):  # first: what is bound below may itself lie under /tmp
        command += ["--size", str(FOLDER_BYTES), "--tmpfs", path]
    bound = shown_paths()
    for path in _folders_on_the_way(under="/tmp", to=[*bound, *model_folders()]):
        command += ["--perms", "0555", "--dir", path]  # else they would be the worker's to write to
    covered = {folder for folder in folders_to_hide() if any(_inside(folder, path) for path in bound)}
    for path in sorted({*bound, *covered}):  # the outer ones first: Python may lie in a course that lies in /usr/lib
        command += ["--tmpfs", path] if path in covered else ["--ro-bind-try", path, path]
    for path in model_folders():
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


def _inside(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip(os.sep) + os.sep)


def _folders_on_the_way(under: str, to: list[str]) -> list[str]:
    """The folders below `under` that must be made so that these paths can be bound, the outer ones first."""
    found = {str(parent) for path in to for parent in Path(path).parents if Path(under) in parent.parents}
    return sorted(found)
