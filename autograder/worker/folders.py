"""Empties a folder, whatever a student's process has put into it."""

from __future__ import annotations

import os


def empty(folder: str) -> None:
    """Remove everything in the folder, however deep its subfolders are. No link is followed.

    Raises OSError if something stays, if a link took a folder's place, or if a folder was moved away meanwhile.
    """
    at = _open(folder)
    try:
        above: list[tuple[str, tuple[int, int]]] = []  # each folder's name and its parent's identity
        while True:
            name = _remove_files(at)
            if name is not None:
                above.append((name, _identity(at)))
            elif not above:
                return
            below, at = at, _open(".." if name is None else name, at)
            os.close(below)
            if name is not None:
                os.fchmod(at, 0o700)  # otherwise its contents might not be removable
            else:
                name, parent = above.pop()
                if _identity(at) != parent:
                    raise OSError(f"{name} was moved while it was emptied")
                os.rmdir(name, dir_fd=at)
    finally:
        os.close(at)


def _open(name: str, inside: int | None = None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=inside)
    except PermissionError:  # root never gets this, so only modes of this account's own files are changed
        os.chmod(name, 0o700, dir_fd=inside)
        return os.open(name, flags, dir_fd=inside)


def _identity(folder: int) -> tuple[int, int]:
    state = os.fstat(folder)
    return state.st_dev, state.st_ino


def _remove_files(folder: int) -> str | None:
    """Remove files up to the first folder; returns that folder's name."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            os.unlink(entry.name, dir_fd=folder)
    return None
