"""The account of a student's process if root grades."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from autograder.sandbox.shown import model_folders, own_paths
from autograder.worker.privileges import NOBODY


def account_for(paths: Iterable[str]) -> int | None:
    """The uid of nobody if root grades and nobody can reach what a student's process needs; otherwise this account.

    Nobody cannot reach a Python below /root, for example. paths: what the process needs besides Python, this package
    and the model; the folders in which root makes them count, not their own modes.
    """
    if os.name != "posix" or os.geteuid() != 0:
        return None
    needed = [os.path.realpath(path) for path in (*own_paths(), *model_folders()) if os.path.exists(path)]
    parents = {parent for path in (*needed, *filter(None, paths)) for parent in Path(path).parents}
    open_to_all = all(_allows(path, 0o004) for path in needed) and all(_allows(parent, 0o001) for parent in parents)
    return NOBODY if open_to_all else None


def _allows(path: str | Path, right: int) -> bool:
    return bool(os.stat(path).st_mode & right)
