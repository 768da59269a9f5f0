"""Writes a file atomically: readers see the old file or the whole new one."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


@contextlib.contextmanager
def whole_file(path: Path, group: bool = False) -> Iterator[TextIO]:
    """A text file to write to, which replaces `path` at the end; an error leaves `path` unchanged.

    Its mode follows the umask; with group, others of the file's group may write to it too. A lone surrogate, as in a
    file name that is not UTF-8, is written as its escape, which means the same in JSON.
    """
    if path.is_symlink():  # the link stays, and its target is written
        path = path.resolve()
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(None, "not an ordinary file", str(path))
    temporary = path.with_name(f".{secrets.token_hex(6)}.tmp")
    try:
        # Not with tempfile, whose files only their owner can read
        with temporary.open("x", encoding="utf-8", errors="backslashreplace", newline="") as file:
            yield file
        if group:
            share(temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def share(path: Path) -> None:
    """Let the group read and write a file or folder, if this account owns it. New files in the folder get the group."""
    with contextlib.suppress(OSError):
        path.chmod(path.stat().st_mode | (0o2770 if path.is_dir() else 0o660))
