"""What the grader did to a submission, for the teaching assistant's table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """One thing that was repaired, left out or odd. kind is for programs, the sentence for people."""

    kind: str
    cell: str | None
    sentence: str
