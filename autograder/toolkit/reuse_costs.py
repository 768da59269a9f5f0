"""The cost of prompts of thousands of tokens, cold and with a saved prefix, beside the published figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.toolkit.costs import attention_units
from autograder.toolkit.model import GPT2Config, random_model
from autograder.toolkit.play.live import live_table
from autograder.toolkit.timing import Measurement, measure

CHUNK = 256  # tokens of a prefill at once, which keeps the matrix of scores small
_MANY_UNITS = 10_000_000  # what costs more is timed once


@dataclass
class Cost:
    """The work and time to answer one prompt."""

    tokens: int  # computed, not reused
    units: int  # attention units
    time: Measurement

    @property
    def seconds(self) -> float:
        return self.time.median

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, {self.units / 1e6:.1f} million units, {self.seconds:.3f} s"

    def against(self, other: Cost) -> str:
        """This cost, compared with another."""
        tokens = f"{self.tokens:,} tokens computed, not {other.tokens:,}"
        return f"{tokens}; {self.seconds:.2g} s, not {other.seconds:.2g} s"


class LongModel:
    """A model with random weights and room for 8,192 tokens. Its output is meaningless; its costs are real.

    prefill, new_cache: the course's `prefill` and `ModelCache`.
    """

    def __init__(self, prefill: Callable[..., Any], new_cache: Callable[[int], Any], n_vocab: int) -> None:
        config = GPT2Config(n_layer=2, n_head=1, n_embd=32, n_ctx=8192, n_vocab=n_vocab)
        self.weights = random_model(config, seed=0)
        self._prefill, self._new_cache = prefill, new_cache

    def _feed(self, token_ids: Sequence[int], cache: Any) -> Any:
        for i in range(0, len(token_ids), CHUNK):
            self._prefill(token_ids[i : i + CHUNK], self.weights, cache)
        return cache

    def save(self, token_ids: Sequence[int]) -> Any:
        """The cache of a prefix."""
        return self._feed(token_ids, self._new_cache(self.weights.config.n_layer))

    def cost(self, prompt_ids: Sequence[int], entry: Any = None) -> Cost:
        """The cost of a prompt's first logits, cold, or on a clone of an entry whose ids begin the prompt."""
        n = len(entry.token_ids) if entry else 0
        units = attention_units(len(prompt_ids), n)

        def start() -> Any:
            return entry.cache.clone() if entry else self._new_cache(self.weights.config.n_layer)

        repeats = 3 if units < _MANY_UNITS else 1
        time = measure(lambda cache: self._feed(prompt_ids[n:], cache), setup=start, repeats=repeats, warmup=0)
        return Cost(len(prompt_ids) - n, units, time)


def beside_the_source(ranking: str, drift: str, note: str) -> list[dict[str, Any]]:
    """A table of the costs of the three failures at their source, and here."""
    other = "another model, another machine"
    rows = (
        ("ranking, 2,328 + 104", "18.5 s, then 1.39 to 4.71 s", ranking, other),
        ("drift, 5,919 of 5,923", "11.6 s more at each step", drift, other),
        (
            "note in the system block",
            "93% recomputed at each step",
            note,
            "the seconds do; the tokens follow from the ids",
        ),
    )
    heads = ("failure", "source", "here", "why they differ")
    return live_table(dict(zip(heads, row, strict=True)) for row in rows)
