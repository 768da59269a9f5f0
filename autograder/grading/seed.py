"""The seed of a submission's hidden inputs, derived from the course's secret, the student and the code."""

from __future__ import annotations

import hashlib
import hmac
import json

from autograder.sandbox.client import Cell


def student_key(secret: bytes, student: str) -> bytes:
    """The key that a student's inputs are drawn from. It reveals neither the secret nor another student's key."""
    return hmac.new(secret, student.encode(), hashlib.sha256).digest()


def submission_seed(key: bytes, code: str) -> int:
    """The seed of all checks' inputs, below 2**63. key: of the student.

    It also depends on the student's code, so that inputs leaked through a message fit no other submission. The same
    submission has the same inputs whenever it is graded.
    """
    return int.from_bytes(hmac.new(key, code.encode(), hashlib.sha256).digest()[:8], "big") >> 1


def code_digest(cells: list[Cell]) -> str:
    """A digest of everything in a submission that reaches its process: the cells' code, names and order."""
    return hashlib.sha256(json.dumps([[c.label, c.source] for c in cells]).encode()).hexdigest()
