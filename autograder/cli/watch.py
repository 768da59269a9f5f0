"""Runs something again whenever a file is saved, whatever way the editor saves it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from autograder.cli.errors import is_for_people

_SETTLE = 1.0  # seconds a file that cannot be read is given to become whole


def watch_file(path: Path, act: Callable[[], int]) -> int:
    """Call `act` now and after every save, until Ctrl-C; the status of its last call."""
    from watchfiles import watch

    path = path.resolve()
    status = _attempt(path, act)
    try:
        # The folder is watched, not the file: many editors save by putting a new file in the old one's place.
        for _ in watch(path.parent, watch_filter=lambda _, changed: Path(changed) == path, debounce=200, step=50,
                       recursive=False, raise_interrupt=True):  # fmt: skip
            if path.exists():
                status = _attempt(path, act)
    except KeyboardInterrupt:
        print()
    return status


def _attempt(path: Path, act: Callable[[], int]) -> int:
    """One call. A half-written file gets a second to be finished; then its error is printed and watching goes on."""
    print(f"{_now()}  " + "-" * 50)
    deadline = time.monotonic() + _SETTLE
    while True:
        try:
            status = act()
            break
        except Exception as error:
            if not is_for_people(error):
                raise
            if time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            print(f"autograder: {error}", file=sys.stderr)
            status = 2
            break
    print(f"\nWaiting for {path.name} to be saved; Ctrl-C ends.\n", flush=True)
    return status


def _now() -> str:
    return time.strftime("%H:%M:%S")
