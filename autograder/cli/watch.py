"""Runs something again whenever a file is saved, whatever way the editor saves it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from autograder.cli.errors import report
from autograder.notebooks.errors import NotebookError

_SETTLE = 1.0  # seconds a file that cannot be read is given to become whole
_LOOK = 500  # milliseconds after which the file is looked at although nothing was reported

Stamp = tuple[int, int, int]  # it differs after every save: time, inode and size


def watch_file(path: Path, act: Callable[[], int]) -> int:
    """Call `act` now and after every save, until Ctrl-C; the status of its last call."""
    from watchfiles import watch

    path = path.resolve()
    status, seen = _attempt(path, act)
    try:
        # The folder is watched, not the file: many editors save by putting a new file in the old one's place. What was
        # saved while nobody watched, which is while `act` ran, is told by the stamp.
        for _ in watch(path.parent, watch_filter=lambda _, changed: Path(changed) == path, debounce=200, step=50,
                       recursive=False, raise_interrupt=True, rust_timeout=_LOOK, yield_on_timeout=True):  # fmt: skip
            if _stamp(path) not in (None, seen):
                status, seen = _attempt(path, act)
    except KeyboardInterrupt:
        print()
    return status


def _attempt(path: Path, act: Callable[[], int]) -> tuple[int, Stamp | None]:
    """The status of one call, and the stamp of the file that it saw; an error for people is printed.

    A half-written file gets a second to be finished.
    """
    print(f"{_now()}  " + "-" * 50)
    deadline = time.monotonic() + _SETTLE
    while True:
        stamp = _stamp(path)
        try:
            status = act()
            break
        except NotebookError as error:
            if time.monotonic() >= deadline:
                status = report(error)
                break
            time.sleep(0.1)
        except Exception as error:
            status = report(error)
            break
    print(f"\nWaiting for {path.name} to be saved; Ctrl-C ends.\n", flush=True)
    return status, stamp


def _stamp(path: Path) -> Stamp | None:
    """None where there is no file, as for a moment while some editors save."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_ino, about.st_size


def _now() -> str:
    return time.strftime("%H:%M:%S")
