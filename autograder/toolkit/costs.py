"""The cost of attention, in attention units: pure functions of numbers of tokens.

A token attends to every token before it and to itself. It costs 2 units for each earlier token, one to compare with its
key and one to add its value, and 1 unit for the token itself. Token i (from 1) costs 2i - 1 units, and 1 + 3 + 5 + ...
adds up to n * n for n tokens: 256 for 16. Every head of every layer costs the same.

The other costs of a token (the projections and the MLP) do not depend on the tokens before it, and are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile


def attention_units(n_seq: int, n_cached: int = 0) -> int:
    """The units of a pass that extends a sequence from n_cached tokens, whose keys and values are kept, to n_seq."""
    if not 0 <= n_cached <= n_seq:
        raise ValueError(f"of {n_seq} tokens, 0 to {n_seq} can be cached, not {n_cached}")
    return n_seq * n_seq - n_cached * n_cached


@dataclass(frozen=True)
class Decoding:
    """Lab 1: a prompt, and n_steps passes so far: the prefill, which gives the first new token, then one per token."""

    n_prompt: int
    use_cache: bool
    n_steps: int = 0

    def __post_init__(self) -> None:
        if self.n_prompt < 1 or self.n_steps < 0:
            raise ValueError("a prompt has at least one token, and there is no negative number of steps")

    def next(self) -> Decoding:
        """One more pass."""
        return replace(self, n_steps=self.n_steps + 1)

    def n_seq(self, step: int | None = None) -> int:
        """How many tokens have been through the model after a step (from 1; the last one when left out)."""
        step = self.n_steps if step is None else step
        return self.n_prompt + step - 1 if step else 0

    def units(self, step: int | None = None) -> int:
        """The cost of a step: for all tokens again, or with the cache only for the new ones."""
        step = self.n_steps if step is None else step
        return (
            attention_units(self.n_seq(step), self.n_seq(step - 1) if self.use_cache and step > 1 else 0) if step else 0
        )

    @property
    def paid(self) -> int:
        """The total cost of all steps so far."""
        return sum(self.units(step) for step in range(1, self.n_steps + 1))

    @property
    def paid_without_cache(self) -> int:
        """Their total cost if each had recomputed everything."""
        return replace(self, use_cache=False).paid


@dataclass(frozen=True)
class NextRequest:
    """Lab 2: the ids of a prompt whose keys and values were saved, and those of the next prompt."""

    saved: tuple[int, ...]
    live: tuple[int, ...]

    @classmethod
    def of(cls, saved: Sequence[int], live: Sequence[int]) -> NextRequest:
        return cls(tuple(saved), tuple(live))

    @property
    def shared(self) -> int:
        """How many ids the two share before the first that differs."""
        pairs = zip(self.saved, self.live, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    @property
    def reused(self) -> int:
        """How many saved rows can be used: at least one token must be computed, because the cache holds no logits."""
        return max(0, min(self.shared, len(self.live) - 1))

    @property
    def cold(self) -> int:
        """The units of the live prompt with nothing reused."""
        return attention_units(len(self.live))

    @property
    def warm(self) -> int:
        """The units of the live prompt when the shared prefix is reused."""
        return attention_units(len(self.live), self.reused)
