"""The error that the student's code raised, or that makes its answer unusable, on the three levels of a failure."""

from __future__ import annotations

from typing import Any

from autograder.judge.raw_errors import meaning, shorter
from autograder.plain_text import one_line

IS_NONE = "a value is None"


class NoAnswer(Exception):
    """The student's code raised, is missing, or returned something that cannot be used. It is one of two classes."""

    def __init__(self, name: str, error: dict[str, Any]):
        self.name = name
        self.kind = str(error.get("kind"))
        self.type = one_line(str(error.get("type")), 80)
        self.message = shorter(one_line(str(error.get("message"))))
        self.because = one_line(str(error.get("because") or ""), 2000)  # why it is missing, if that is known
        self.not_parsed = error.get("not_parsed") is True  # it is missing because its cell is not valid Python
        self.refusal = error.get("refusal") is True
        self.stub = error.get("stub") is True
        where = error.get("where")
        self.where = where if isinstance(where, dict) else None
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """What was seen."""
        if self.kind == "missing":
            because = self.because or "Run the cell that defines it, and look for an error above it."
            return f"{self.name} is not defined. {because}"
        if self.kind == "bad-result":
            return f"{self.name}: {self.message}."
        return f"{self.name} raised {self.type}{': ' if self.message else ''}{self.message.removesuffix('.')}."

    @property
    def look(self) -> str:
        """Where to look."""
        if self._place:
            return f"Look at {self._place}"
        return f"Look in {self.name}, at what it returns." if self.kind == "bad-result" else ""

    @property
    def cause(self) -> str:
        """What it comes from, or what the words of Python or NumPy mean; empty where there is nothing to say."""
        means = meaning(f"{self.type}: {self.message}")
        return (self.because if self.kind != "missing" else "") or (f"It means that {means}." if means else "")

    @property
    def roots(self) -> tuple[str, ...]:
        """What errors with one cause share: why the name is missing, or the type and line; and that a value is None."""
        root = self.because or (f"{self.type} at {self._place}" if self._place else self.sentence)
        is_none = "NoneType" in self.message or self.message.endswith("has no axis")
        return (root, *[IS_NONE] * is_none)

    @property
    def whole(self) -> str:
        """All levels in one sentence, for an error outside of a check."""
        place = f" ({self._place})" if self._place else ""
        means = meaning(f"{self.type}: {self.message}")
        return f"{self.sentence[:-1]}{place}{'; ' + means if means else ''}."

    @property
    def _place(self) -> str:
        if not self.where:
            return ""
        text = f": {one_line(str(self.where['text']), 200)}" if self.where.get("text") else ""
        return f"line {self.where.get('line')} of {one_line(str(self.where.get('cell')), 200)}{text}"


class StudentError(NoAnswer):
    """It raised, or returned something that cannot be used."""


class NotWritten(NoAnswer):
    """It is a stub, or is not defined: no check goes on without it."""
