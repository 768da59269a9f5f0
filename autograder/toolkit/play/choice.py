"""A question with choices, each of which says at once why it is right or wrong."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autograder.toolkit.play.shown import Shown


@dataclass(frozen=True)
class Question:
    """One question: what is asked, the right choice, and for every choice what is said about it."""

    asked: str
    right: str
    choices: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.right not in self.choices:
            raise ValueError(f"{self.right!r} is not among the choices")


class Choice(Shown):
    """A question as it is shown. `answer(2)` is for where widgets do not run."""

    def __init__(self, question: Question, first: str = "") -> None:
        self.question, self._first = question, first
        self._make_widgets()

    @property
    def choices(self) -> list[str]:
        """In an order that tells nothing and stays the same."""
        return sorted(self.question.choices, key=lambda choice: hashlib.sha256(choice.encode()).digest())

    def answer(self, number: int) -> str:
        """What is said about choice `number`, counted from 1; ValueError when there is none."""
        if not 1 <= number <= len(self.choices):
            raise ValueError(f"choose a number from 1 to {len(self.choices)}, not {number}")
        return self._said(self.choices[number - 1])

    def _said(self, choice: str) -> str:
        return f"{'Right' if choice == self.question.right else 'Not so'}: {self.question.choices[choice]}"

    def still(self) -> tuple[dict[str, Any], dict[str, Any]]:
        lines = [self._first, self.question.asked]
        lines += [f"  {i}. {choice}" for i, choice in enumerate(self.choices, start=1)]
        lines.append("Answer with .answer(1), .answer(2), ...")
        return {"text/plain": "\n".join(filter(None, lines))}, {}

    def _make_widgets(self) -> None:
        import ipywidgets as w

        first = [w.HTML(f"<pre>{html.escape(self._first)}</pre>")] if self._first else []
        asked = w.HTML(f"<b>{html.escape(self.question.asked)}</b>")
        self.radio = w.RadioButtons(options=self.choices, value=None, layout={"width": "max-content"})
        self.said = w.HTML()

        def choose(change: Any) -> None:
            mark = "✓" if change["new"] == self.question.right else "✗"
            self.said.value = f"<p role='status'>{mark} {html.escape(self._said(change['new']))}</p>"

        self.radio.observe(choose, "value")
        self.box = w.VBox([*first, asked, self.radio, self.said])
