"""Bugs to find: a plausible function that is wrong, the numbers that show it, and causes to choose from."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from autograder.toolkit.play.choice import Choice, Question


class Puzzle(Choice):
    """A broken function to play with: call it as `puzzle.function(...)`, then choose the cause."""

    def __init__(self, function: Callable[..., Any], story: str, numbers: str, question: Question) -> None:
        self.function = function
        super().__init__(question, first=f"{story}\n\n{numbers}")


def _content(stage: str) -> Any:
    try:
        return importlib.import_module(f"autograder.toolkit.play.bugs.{stage.replace('-', '_')}")
    except ModuleNotFoundError:
        raise ValueError(f"there is no bug to find for {stage!r}") from None


def puzzle(stage: str) -> Puzzle:
    """A stage's bug to find, such as that of "kv-cache"; the last line of a cell shows it."""
    content = _content(stage)
    return Puzzle(content.broken, content.STORY, content.numbers(), content.CAUSE)


def question(stage: str, number: int) -> Choice:
    """Question `number`, counted from 1, of a stage; ValueError when there is none."""
    questions = _content(stage).QUESTIONS
    if not 1 <= number <= len(questions):
        raise ValueError(f"{stage} has questions 1 to {len(questions)}, not {number}")
    return Choice(questions[number - 1])
