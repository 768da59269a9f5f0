"""A cold request against one that reuses a saved prefix, on the course's own functions."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.toolkit.timing import Comparison, compare

SUFFIX = 8
PREFIXES = (16, 50, 100, 200, 400)
# A request without a cache; one with another prefix of the same length that was never saved; one that continues a clone
# of the saved prefix; one that reads the saved prefix in place
WAYS = ("cold", "control", "reused", "shared")


@dataclass(frozen=True)
class Reuse:
    """The times of WAYS for one prefix length."""

    prefix: int
    suffix: int
    times: Comparison

    @property
    def speedup(self) -> float:
        return self.times.ratio("cold", "reused")


def measure_reuse(
    functions: SimpleNamespace,
    weights: Any,
    prefixes: tuple[int, ...] = PREFIXES,
    suffix: int = SUFFIX,
    repeats: int = 9,
) -> list[Reuse]:
    """Measure every prefix length that fits the model; `functions` are those of `solved(sharing=True)`."""
    results = []
    rng = np.random.default_rng(0)
    n_vocab = weights.config.n_vocab
    for length in prefixes:
        if length + suffix > weights.config.n_ctx:
            continue
        prefix, other = (rng.integers(0, n_vocab, length).tolist() for _ in range(2))
        rest = rng.integers(0, n_vocab, suffix).tolist()
        saved = functions.save_prefix_cache(prefix, weights)

        def cold(ids: list[int]) -> None:
            functions.prefill(ids, weights, functions.ModelCache(weights.config.n_layer))

        times = compare(
            {
                "cold": lambda ids=prefix + rest: cold(ids),
                "control": lambda ids=other + rest: cold(ids),
                "reused": lambda saved=saved, n=length, rest=rest: functions.generate_with_prefix(
                    saved, n, rest, weights
                ),
                "shared": lambda saved=saved, n=length, rest=rest: functions.generate_sharing(
                    functions.SharedCache(saved), n, rest, weights
                ),
            },
            repeats=repeats,
            warmup=2,
        )
        results.append(Reuse(length, suffix, times))
    return results
