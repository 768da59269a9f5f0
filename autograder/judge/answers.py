"""Validates a student's answers: their length and form. Also describes an answer without revealing its content."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.judge.cases import JudgeModel, ModelPart
from autograder.judge.framework import Failure
from autograder.judge.student_error import StudentError
from autograder.worker.protocol import MAX_FRAME_BYTES
from autograder.worker.runtime import MAX_REPLY_BYTES
from autograder.worker.values import MAX_DEPTH, PLAIN


def described(value: Any) -> str:
    """The kind of a value, without its content: "a list of length 3"."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)} and dtype {value.dtype}" + ("" if value.size else ", empty")
    if isinstance(value, (str, bytes)):
        return f"a {'string' if isinstance(value, str) else 'bytes object'} of length {len(value):,}"
    if isinstance(value, (list, dict)):
        return f"a {type(value).__name__} of length {len(value):,}"
    return f"a value of type {type(value).__name__}"


class Room:
    """Limits the length of an answer by what was asked, so that the questions bound the grader's memory.

    An array or a cache may be twice as large as the logits and cache of a full context of the largest model plus the
    arrays that were passed, in float64. A file may be twice as long as that, for numbers written as text.
    """

    def __init__(self) -> None:
        self._of_model = 0  # numbers
        self._of_arrays = 0

    def make_for(self, value: Any) -> None:
        """Allow for the size of an argument."""
        if isinstance(value, np.ndarray):
            self._of_arrays += value.size
        elif isinstance(value, ModelPart):
            if value.path != "config":  # it holds no array, and may be of a large model
                self.make_for(value.model)
        elif isinstance(value, JudgeModel):
            c = value.config
            self._of_model = max(self._of_model, c.n_ctx * (2 * c.n_layer * c.n_embd + c.n_vocab))
        elif isinstance(value, tuple) or (isinstance(value, list) and not PLAIN.issuperset(map(type, value))):
            for item in value:
                self.make_for(item)

    def bytes_for(self, request: dict[str, Any]) -> int:
        """The maximum length of the answer to a request, in bytes."""
        arrays = 16 * (self._of_model + self._of_arrays)
        if request["op"] == "read_file":
            return min(MAX_REPLY_BYTES + 2 * arrays, MAX_FRAME_BYTES)
        if request["op"] == "read_cache" or request.get("returns") == "array":
            return min(MAX_REPLY_BYTES + arrays, MAX_FRAME_BYTES)
        return MAX_REPLY_BYTES


def expect_plain(name: str, value: Any, depth: int = 0) -> Any:
    """A value made only of plain values, as `Runtime` returns them; raises StudentError for anything else."""
    if depth > MAX_DEPTH:
        raise StudentError(name, {"kind": "bad-result", "message": "the result is nested too deeply"})
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise StudentError(name, {"kind": "bad-result", "message": "the result has keys that are not strings"})
        value = {key: expect_plain(name, item, depth + 1) for key, item in value.items()}
    elif isinstance(value, list):
        value = [expect_plain(name, item, depth + 1) for item in value]
    return value


def tokens_of(reply: dict[str, Any]) -> float | None:
    tokens = reply.get("tokens")
    return float(tokens) if type(tokens) in (int, float) and tokens >= 0 else None


def expect_array(name: str, value: Any) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise StudentError(name, {"kind": "bad-result", "message": "the result is not an array"})
    return value


def expect_ids(name: str, value: Any) -> list[int]:
    if not (isinstance(value, list) and all(type(i) is int for i in value)):
        raise StudentError(name, {"kind": "bad-result", "message": "the result is not a list of token ids"})
    return value


def expect_string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Failure(f"{name} returned {described(value)} where a string is expected.")
    return value
