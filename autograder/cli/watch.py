"""Runs a function again whenever a file is saved, whichever way the editor saves it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from autograder.cli.errors import report
from autograder.notebooks.errors import NotebookError

_SETTLE = 1.0  # seconds in which a half-written file may be finished
_LOOK = 500  # milliseconds after which the file is checked even if no change was reported

Stamp = tuple[int, int, int]  # time, inode and size, which differ after every save


def watch_file(path: Path, act: Callable[[], int]) -> int:
    """Call `act` now and after every save, until Ctrl-C; returns the status of its last call."""
    from watchfiles import watch

    path = path.resolve()
    status, seen = _attempt(path, act)
    try:
        # The folder is watched, not the file, because many editors save by replacing the file. The stamp shows a save
        # that happened while `act` ran.
        for _ in watch(path.parent, watch_filter=lambda _, changed: Path(changed) == path, debounce=200, step=50,
                       recursive=False, raise_interrupt=True, rust_timeout=_LOOK, yield_on_timeout=True):  # fmt: skip
            if _stamp(path) not in (None, seen):
                status, seen = _attempt(path, act)
    except KeyboardInterrupt:
        print()
    return status


def _attempt(path: Path, act: Callable[[], int]) -> tuple[int, Stamp | None]:
    """The status of one call, and the file's stamp before it; an error that the user can fix is printed.

    A half-written file has _SETTLE seconds to be finished.
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
    """The file's stamp; None if there is no file, which is so for a moment while some editors save."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_ino, about.st_size


def _now() -> str:
    return time.strftime("%H:%M:%S")
