"""The secret that the hidden inputs are drawn from: one a course, kept beside the gradebook."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import tempfile
from pathlib import Path

from autograder.sandbox.client import Cell

FILE_NAME = ".autograder-seed"


class SeedError(ValueError):
    """The course's secret cannot be used; the message says what to do."""


def course_secret(course: Path) -> bytes:
    """The course's secret, made when there is none. It is never overwritten: marks given with it stay repeatable."""
    path = course / FILE_NAME
    try:
        if not path.exists():
            _make(path, secrets.token_hex(32) + "\n")
        text = path.read_text(encoding="ascii", errors="replace")
    except PermissionError as error:
        raise SeedError(
            f"{path} cannot be used ({error.strerror}); who made it has to let you: chgrp GROUP and chmod 640 on it."
        ) from None
    except OSError as error:
        raise SeedError(f"{path} cannot be used ({error.strerror or error}); see to its folder and disk.") from None
    return _secret_in(text.strip(), path)


def _make(path: Path, text: str) -> None:
    """Whole or not at all, and never over another process's."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=FILE_NAME)  # readable by its owner alone
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            with contextlib.suppress(FileExistsError), open(path, "x", encoding="ascii", opener=_for_owner) as file:
                file.write(text)
    finally:
        os.unlink(temporary)


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _secret_in(text: str, path: Path) -> bytes:
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) < 16:
        raise SeedError(
            f"{path} does not hold a secret; restore it from a backup, or remove it to have a new one made."
        )
    return secret


def student_key(secret: bytes, student: str) -> bytes:
    """What the inputs of one student are drawn from. It tells nothing of the secret, or of another student's."""
    return hmac.new(secret, student.encode(), hashlib.sha256).digest()


def check_seed(key: bytes, check_id: str, code: str) -> int:
    """The seed of one check's inputs, below 2**63. key: of the student.

    It depends on the student's code too, so that inputs which leaked through a message fit no other submission. The
    same submission has the same inputs whenever it is graded.
    """
    text = "\0".join((check_id, code))
    return int.from_bytes(hmac.new(key, text.encode(), hashlib.sha256).digest()[:8], "big") >> 1


def code_digest(cells: list[Cell]) -> str:
    """A digest of all that of a submission reaches its process: the code of its cells, their names and order."""
    return hashlib.sha256(json.dumps([[c.label, c.source] for c in cells]).encode()).hexdigest()
