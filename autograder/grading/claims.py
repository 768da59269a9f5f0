"""Decides which process grades which student, so that several processes can grade one course folder.

A claim is a lock on one byte of autograded/.records/.claims. The system releases it when the process ends, however it
ends, so a killed run leaves nothing to clean up.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from pathlib import Path

from autograder.whole_file import share

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, place: int) -> None:
        os.lseek(file, place % 2**31, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _unlock(file: int, place: int) -> None:
        os.lseek(file, place % 2**31, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)

    def _unlock(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


class Claims:
    """The claims of this process."""

    def __init__(self, autograded: Path, group: bool = False):
        """group: accounts of the folder's group share the course."""
        path = autograded / ".records" / ".claims"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        for made in (autograded, path.parent, path) if group else ():
            share(made)
        self._held: set[str] = set()

    def take(self, student: str) -> bool:
        """Claim a student. True if this process has the claim; False while another has it."""
        if student not in self._held:
            try:
                _lock(self._file, _place(student))
            except (BlockingIOError, PermissionError):
                return False
            except OSError:  # a file system without locks
                pass
            self._held.add(student)
        return True

    def release(self, student: str) -> None:
        if student in self._held:
            self._held.remove(student)
            with contextlib.suppress(OSError):
                _unlock(self._file, _place(student))

    def close(self) -> None:
        """Release every claim."""
        os.close(self._file)
        self._held.clear()


def _place(student: str) -> int:
    """The offset of the byte that stands for a student. Nothing is written there."""
    return int.from_bytes(hashlib.sha256(student.encode("utf-8", "surrogateescape")).digest()[:6], "big")
