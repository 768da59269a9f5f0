"""What the grader did to a submission, for the teaching assistant's table."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.plain_text import one_line


@dataclass(frozen=True)
class Note:
    """One thing that was repaired, left out or odd. kind is for programs, the sentence, on one line, for people."""

    kind: str
    cell: str | None
    sentence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", one_line(self.sentence, 2000))


class Notes(list[Note]):
    """Notes as they are collected."""

    def add(self, kind: str, sentence: str, cell: str | None = None) -> None:
        self.append(Note(kind, cell, sentence))
