"""A decoy home, course and library that student code may try to change: writable for all, and compared afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
import stat
import tempfile
from pathlib import Path

FILES = {
    "home/.ssh/id": "the key of the canary",
    "home/.bashrc": "# of the canary",
    "course/.autograder-seed": "the secret of the canary",
    "course/submitted/other/work.ipynb": '{"cells": [], "of": "the work of the canary"}',
    "site-packages/numpy/__init__.py": "# of the canary",
}


class Canary:
    """The folder, and what it was when it was made. It lies where every account gets to, unlike pytest's folders."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="canary-"))
        for name, content in FILES.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        base = sqlite3.connect(self.folder / "course" / "gradebook.db")
        base.executescript("CREATE TABLE grade (auto_score, manual_score); INSERT INTO grade VALUES (1, 2);")
        base.close()
        (self.folder / "home" / "link").symlink_to(self.folder / "home" / ".bashrc")
        os.link(self.folder / "home" / ".bashrc", self.folder / "home" / "same")
        self._log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)  # as the system's log has one
        self._log.bind(str(self.folder / "log"))
        self._log.setblocking(False)
        for path in (self.folder, *self.folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o777 if path.is_dir() else 0o666)
        self.before = self.state()

    def state(self) -> dict[str, tuple]:
        """Everything about each file and folder that could change."""
        found = {}
        for path in (self.folder, *sorted(self.folder.rglob("*"))):
            s = path.lstat()
            content = None
            if stat.S_ISLNK(s.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(s.st_mode):
                content = path.read_bytes()
            attributes = os.listxattr(path, follow_symlinks=False)
            about = (s.st_mode, s.st_uid, s.st_gid, s.st_nlink, s.st_mtime_ns, attributes)
            found[path.relative_to(self.folder).as_posix()] = (*about, content)
        return found

    def changed(self) -> list[str]:
        """The names of files that appeared, vanished or changed, and of messages that arrived."""
        after = self.state() if self.folder.exists() else {}
        names = {name for name in {*self.before, *after} if self.before.get(name) != after.get(name)}
        with contextlib.suppress(OSError):
            names.add(f"message {self._log.recv(100)!r}")
        return sorted(names)

    def close(self) -> None:
        """Remove it, but only what was made here."""
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
