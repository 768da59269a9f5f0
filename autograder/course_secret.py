"""The secret from which hidden inputs are drawn: one per course, kept beside the gradebook."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from autograder.toolkit.errors import UserError

FILE_NAME = ".autograder-seed"


class SeedError(UserError, ValueError):
    """The course's secret cannot be used; the message says what to do."""


def course_secret(course: Path) -> bytes:
    """The course's secret, made if there is none. It is never overwritten, so that its scores stay reproducible."""
    path = course / FILE_NAME
    try:
        if not path.exists():
            _make(path, secrets.token_hex(32) + "\n")
        text = path.read_text(encoding="ascii", errors="replace")
    except PermissionError as error:
        raise SeedError(
            f"{path} cannot be used ({error.strerror}); its owner has to permit it: chgrp GROUP and chmod 640 on it."
        ) from None
    except OSError as error:
        raise SeedError(f"{path} cannot be used ({error.strerror or error}); check its folder and disk.") from None
    return _secret_in(text.strip(), path)


def _make(path: Path, text: str) -> None:
    """Write the file whole or not at all, and never over another process's."""
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
