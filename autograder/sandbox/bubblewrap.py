"""The command line that starts a program in bubblewrap.

The program has no network, its own process and IPC name spaces, no capabilities and an unprivileged uid. It sees what
shown.py lists, all read-only, and a private folder in memory. It can write nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from autograder.sandbox.shown import all_paths, folders_to_hide, inside, model_folders

INSIDE = "/run/worker"  # the worker's private folder
INSIDE_GIVEN = "/run/given.py"
FOLDER_BYTES = 64 * 2**20
_HIDDEN_OF_PROC = ("/proc/cmdline", "/proc/kallsyms", "/proc/keys", "/proc/kcore", "/proc/kmsg", "/proc/timer_list")


def bwrap_command(bwrap: str, given_path: Path | None = None, hidden: Iterable[Path] = ()) -> list[str]:
    """The command line up to the program to run. bwrap: bubblewrap's own path; hidden: folders not to show."""
    command = [bwrap, "--unshare-all", "--die-with-parent", "--new-session"]
    command += ["--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "worker"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    command += ["--size", str(FOLDER_BYTES), "--tmpfs", INSIDE]  # first: what is bound below may itself lie under /tmp
    bound = all_paths()
    covered = {folder for folder in folders_to_hide(hidden) if any(inside(folder, path) for path in bound)}
    for path in sorted({*bound, *covered}):  # the outer ones first: Python may lie in a course that lies in /usr/lib
        command += ["--tmpfs", path] if path in covered else ["--ro-bind-try", path, path]
    for path in model_folders():
        command += ["--ro-bind-try", path, path]
    if given_path is not None:
        command += ["--ro-bind", str(given_path), INSIDE_GIVEN]
    for path in _HIDDEN_OF_PROC:
        if os.path.exists(path):
            command += ["--ro-bind", "/dev/null", path]
    # Last: where root grades, /proc/sys would be writable, and there is memory at /, /dev and /tmp
    for path in (*sorted(covered), "/proc", "/dev", "/tmp", "/"):
        command += ["--remount-ro", path]
    return [*command, "--chdir", INSIDE]
