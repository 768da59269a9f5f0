"""Checks a submission's folder and its timestamp before anything in it is used."""

from __future__ import annotations

import glob
import os
import re
from datetime import datetime
from pathlib import Path

from nbgrader.utils import as_timezone, parse_utc

_LARGEST_COPIED = 2**20  # bytes


def may_be_copied(folder: Path, name: str) -> bool:
    """Whether a file that a student handed in may be copied to the graded folder: small, readable and not a link."""
    path = folder / name
    if not path.is_file() or not os.access(path, os.R_OK) or path.stat().st_size > _LARGEST_COPIED:
        return False
    return os.path.realpath(path) == os.path.join(os.path.realpath(folder), os.path.normpath(name))


def folder_problem(folder: Path) -> str | None:
    """Why a submission's folder cannot be used, in a sentence with the remedy; None if it can."""
    try:
        return _problem(folder)
    except OSError as error:
        return f"the folder or its timestamp.txt cannot be read ({error.strerror or error}); let this account read them"


def _problem(folder: Path) -> str | None:
    name = folder.parent.name
    if not name.isprintable() or len(os.fsencode(name)) > 200:
        return "the name of the student's folder has characters that cannot be shown, or too many; rename it"
    if glob.has_magic(str(folder)):
        return "the folder's path contains *, ?, [ or ]; rename it"
    if folder.is_symlink() or folder.parent.is_symlink():
        return "the folder is a link to another one; put the submission itself there"
    os.listdir(folder)
    stamp = folder / "timestamp.txt"
    if stamp.is_symlink() or (stamp.exists() and not stamp.is_file()):
        return "timestamp.txt is not a file; remove it"
    if stamp.exists():
        try:
            text = stamp.read_text(encoding="utf-8").strip() if stamp.stat().st_size < 1000 else "?"
            if text:
                parse_time(text)
        except (ValueError, OverflowError):
            return "timestamp.txt does not hold a time such as 2026-01-31 12:00:00 UTC; correct or remove it"
    return None


def handed_in_at(folder: Path) -> datetime | None:
    """The time in a folder's timestamp.txt, in UTC and without a zone; None if there is none."""
    stamp = folder / "timestamp.txt"
    text = stamp.read_text(encoding="utf-8").strip() if stamp.is_file() else ""
    return parse_time(text) if text else None


def parse_time(text: str) -> datetime:
    """Parse a time to UTC, without a zone; raises ValueError if it is not a time or its zone is unknown.

    nbgrader's own parser reads the zone +0100 as 100 seconds, and an unknown zone as UTC.
    """
    *_, zone = parts = text.split(" ")
    if len(parts) == 3:
        if re.fullmatch(r"[+-]\d\d:?\d\d", zone):
            return parse_utc("".join([parts[0], "T", *parts[1:]]))
        if as_timezone(datetime(2000, 1, 1), zone).tzinfo is None:
            raise ValueError(f"the zone {zone} is not known")
    return parse_utc(text)
