"""Asking cache_key for many keys at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autograder.judge.bugs import Bug
from autograder.judge.framework import Failure
from autograder.judge.student import Student
from autograder.stages.failure_modes.bugs import key as bugs
from autograder.stages.failure_modes.shared import kind_of

IN_ONE_MESSAGE = 250  # all of them are answered within the time for one


@dataclass(frozen=True, eq=False)
class Question:
    """The arguments of cache_key: the ids, and the texts by their names."""

    ids: list[int]
    texts: dict[str, str]

    def having(self, **texts: str) -> Question:
        """The same with other texts."""
        return Question(self.ids, {**self.texts, **texts})

    def with_ids(self, ids: list[int]) -> Question:
        return Question(ids, self.texts)


@dataclass(frozen=True)
class Pair:
    """Two questions whose keys must differ; detail and bug say what it means when they do not."""

    one: Question
    two: Question
    detail: str
    bug: Bug | None = None


class Keys:
    """The student's keys, each question asked once."""

    def __init__(self, student: Student):
        self._student = student
        self._keys: dict[Question, str] = {}

    def ask(self, questions: Sequence[Question]) -> None:
        """Ask what was not asked yet, many in one message."""
        new = [q for q in dict.fromkeys(questions) if q not in self._keys]
        for i in range(0, len(new), IN_ONE_MESSAGE):
            some = new[i : i + IN_ONE_MESSAGE]
            values = self._student.each_plain("cache_key", [((q.ids,), q.texts) for q in some])
            self._keys.update((q, expect_key(value)) for q, value in zip(some, values, strict=True))

    def __getitem__(self, question: Question) -> str:
        return self._keys[question]

    def differ(self, pair: Pair) -> bool:
        return self[pair.one] != self[pair.two]

    def expect_different(self, pairs: Sequence[Pair]) -> None:
        for pair in pairs:
            if not self.differ(pair):
                raise Failure(None, pair.detail, pair.bug)


def expect_key(value: Any) -> str:
    """The value, a text."""
    if not isinstance(value, str):
        what = "a list or tuple" if isinstance(value, list) else kind_of(value)
        bug = None if value is None else bugs.KEY_NOT_A_TEXT
        raise Failure(None, f"cache_key returned {what} where a text is expected.", bug)
    return value
