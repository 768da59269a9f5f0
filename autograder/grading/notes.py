"""What the grader did to a submission, for the teaching assistant's table."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.plain_text import one_line


@dataclass(frozen=True)
class Note:
    """Something repaired, left out or odd. kind is for programs; sentence, on one line, is for people."""

    kind: str
    cell: str | None
    sentence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", one_line(self.sentence, 2000))


class Notes(list[Note]):
    """A list of notes."""

    def add(self, kind: str, sentence: str, cell: str | None = None) -> None:
        self.append(Note(kind, cell, sentence))
