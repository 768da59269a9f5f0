"""Real passes of the small model for the labs, with their times.

They use the judge's own GPT-2, in float64, which is in the package because the checks in a student's notebook need it.
float64 and its plain style cost some speed, equally on both sides of every comparison.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from autograder.judge.reference import KV, Reference

T = TypeVar("T")


@dataclass(frozen=True)
class Pass:
    """The results of a pass: the greedy next id, the keys and values of all positions, and the seconds."""

    next_id: int
    kv: KV
    seconds: float


class Passes:
    """Passes over one model."""

    def __init__(self, weights) -> None:
        self._reference = Reference(weights)
        self.n_ctx: int = weights.config.n_ctx
        self._warm = False

    def run(self, token_ids: Sequence[int], past: KV | None = None) -> Pass:
        """A pass over the new tokens, after `past` if there is one, with the median time of a few runs."""
        if not self._warm:  # the first pass makes the float64 copies of the weights, which is no part of any pass
            self._reference.run(list(token_ids), past=past or [])
            self._warm = True
        # an empty past, not None: the reference remembers passes without one, and would answer from memory
        run, seconds = timed(lambda: self._reference.run(list(token_ids), past=past or []))
        return Pass(int(run.logits[-1].argmax()), run.kv, seconds)


def timed(function: Callable[[], T], repeats: int = 5, budget: float = 0.1) -> tuple[T, float]:
    """The function's result, and the median of up to `repeats` runs; no run starts after `budget` seconds."""
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < budget:
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return result, float(np.median(seconds))
