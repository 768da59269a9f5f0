"""The settings that the grader sends to a worker at the start, and how the worker restricts itself with them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from autograder.worker import landlock, limits, privileges


@dataclass(frozen=True)
class Start:
    """The settings, all decided by the grader.

    given: the path of a given.py, or empty. account: the uid and gid to become; None keeps the account.
    landlock: the ABI to use; 0 for none. read, list_names: as for landlock.restrict.
    control: the number of the socket on which a server receives requests for workers; None in a single worker.
    """

    memory_bytes: int
    given: str = ""
    account: int | None = None
    landlock: int = 0
    read: tuple[str, ...] = ()
    list_names: tuple[str, ...] = ()
    control: int | None = None

    def confine(self) -> None:
        """Give up everything that neither a worker nor a server needs."""
        if self.landlock and len(os.listdir("/proc/self/task")) != 1:
            sys.exit("other threads would not be bound")
        privileges.give_up(self.account)
        self.close_files()

    def close_files(self) -> None:
        """Restrict files to those that may be read, and the working directory."""
        if self.landlock:
            landlock.restrict(self.landlock, read=self.read, list_names=self.list_names, write=os.getcwd())

    def limit(self) -> bool:
        """Set the limits and the system call filter; returns whether the filter is in force. Landlock relies on it."""
        filtered = "seccomp" in limits.apply(self.memory_bytes)
        if self.landlock and not filtered:
            sys.exit("there is no system call filter")
        return filtered
