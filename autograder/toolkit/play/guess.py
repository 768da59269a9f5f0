"""Guess, then run: a number or a choice that the student enters before a result, and sees beside it afterwards."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from autograder.toolkit.chart_style import amount
from autograder.toolkit.play.shown import Shown
from autograder.toolkit.timing import plain


class Guess(Shown):
    """A guess that is still open. `mine` is what was entered; None for nothing yet."""

    def __init__(self, question: str, unit: str = "", choices: Sequence[str] = (), mine: Any = None) -> None:
        if mine is not None and choices and mine not in choices:
            raise ValueError(f"mine must be one of {', '.join(map(repr, choices))}, not {mine!r}")
        self.question, self.unit, self.choices, self._entered = question, unit, tuple(choices), mine
        self._make_widgets()

    @property
    def mine(self) -> Any:
        """The number or choice that was entered, or None."""
        if self._entered is None:
            entered = self._entry.value
            return _as_number(entered) if not self.choices else entered
        return self._entered

    def beside(self, result: Any, note: str = "") -> Beside:
        """The guess beside the result; the last line of the cell that measured it. result: a number or a choice."""
        return Beside(self, result, note)

    def words(self, value: Any) -> str:
        """A guess or a result with its unit."""
        number = isinstance(value, (int, float)) or hasattr(value, "__float__")
        return amount(float(value), self.unit) if number else str(value)

    def still(self) -> tuple[dict[str, Any], dict[str, Any]]:
        how = f"one of {', '.join(map(repr, self.choices))}" if self.choices else "a number"
        said = f"Your guess: {self.words(self.mine)}" if self.mine is not None else f"Guess first: mine={how}"
        return {"text/plain": f"{self.question}\n{said}"}, {}

    def _make_widgets(self) -> None:
        import ipywidgets as w

        label = w.HTML(f"<b>Guess.</b> {html.escape(self.question)}")
        if self.choices:
            self._entry = w.RadioButtons(options=self.choices, value=self._entered, layout={"width": "max-content"})
        else:
            value = "" if self._entered is None else plain(float(self._entered))
            self._entry = w.Text(value=value, placeholder="a number", layout={"width": "120px"})
        unit = [w.HTML(html.escape(self.unit))] if self.unit else []
        self.box = w.VBox([label, w.HBox([self._entry, *unit])])


class Beside:
    """A guess and a result in one line."""

    def __init__(self, guess: Guess, result: Any, note: str) -> None:
        self.guess, self.result, self.note = guess, result, note

    def __str__(self) -> str:
        guess, mine, result = self.guess, self.guess.mine, self.guess.words(self.result)
        if mine is None:
            line = f"No guess was entered. The result: {result}."
        elif guess.choices:
            line = f"You guessed {mine!r}. {'That is right.' if mine == self.result else f'The answer is {result!r}.'}"
        else:
            line = f"You guessed {guess.words(mine)}. The result: {result}{_how_far(float(mine), float(self.result))}."
        return f"{line} {self.note}".strip()

    __repr__ = __str__


def _how_far(mine: float, result: float) -> str:
    if mine == result:
        return ", as you guessed"
    if mine * result > 0:
        factor = max(mine / result, result / mine)
        return f", off by a factor of {plain(factor)}" if factor >= 1.05 else ", very close"
    return ""


def _as_number(text: str) -> float | None:
    try:
        return float(text.strip().rstrip("%x ").replace(",", ""))
    except ValueError:
        return None


def guess(question: str, unit: str = "", choices: Sequence[str] = (), mine: Any = None) -> Guess:
    """Ask for a guess before a result is computed. Nothing depends on it.

    question: one sentence. unit: what a number counts, such as "ms" or "times". choices: in place of a number, the
    answers to choose from. mine: the guess itself, to be written into the cell where widgets do not run.

        ahead = autograder.guess("How many times faster is one pass?", unit="times")
        ahead                                # enter it
        ahead.beside(measured)               # in a later cell
    """
    return Guess(question, unit, choices, mine)
