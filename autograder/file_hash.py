"""The hash of a file of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def hash_of(path: Path, digest: Any) -> str:
    """The file's hash in hex; digest is a new hash object of hashlib. hashlib.file_digest is of Python 3.11."""
    with path.open("rb") as file:
        while piece := file.read(2**20):
            digest.update(piece)
    return digest.hexdigest()
