"""Empties a folder, whatever a student's process has put there."""

from __future__ import annotations

import os


def empty(folder: str) -> None:
    """Remove all that is in the folder. No link is followed, and however deep the folders in it lie, it ends.

    Nobody else may be at work in it. OSError when something stays, or when a link is in the folder's place.
    """
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        names: list[str] = []  # of the folders on the way down: no path is as long as they are together
        while True:
            name = _remove_files(at)
            if name is not None:
                os.chmod(name, 0o700, dir_fd=at)
                names.append(name)
            elif not names:
                return
            below, at = at, os.open(".." if name is None else name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
            os.close(below)
            if name is None:
                os.rmdir(names.pop(), dir_fd=at)
    finally:
        os.close(at)


def _remove_files(folder: int) -> str | None:
    """Remove what is no folder, up to the first that is one; its name."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            os.unlink(entry.name, dir_fd=folder)
    return None
