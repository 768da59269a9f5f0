"""The course's goals for speed, and what was measured.

A pass cannot be faster than its arithmetic, nor than one read of its weights and cache; the second is what bounds a
decode step and a reuse, however few tokens they compute.
"""

from __future__ import annotations

from dataclasses import dataclass

from autograder.bench.speed import PREFILL, PREFIX, SUFFIX, Call, Speed

SHARED = "the same on a shared prefix"


@dataclass(frozen=True)
class Goal:
    """Something measured that is to be at most `most`."""

    what: str
    most: float
    value: float

    @property
    def verdict(self) -> str:
        return "met" if self.value <= self.most else f"missed by {self.value / self.most - 1:.0%}"


def speed_goals(speed: Speed) -> list[Goal]:
    """At the size of GPT-2 small."""
    calls: list[tuple[str, Call, tuple[int, int], float, float]] = [
        *((f"decode at {n:,}", ("decode", n), (1, n + 1), 0.65, 1.25) for n in (64, 512, 1000)),
        *((f"prefill of {n:,} tokens", ("prefill", n), (n, n), 0.85, 1.5) for n in PREFILL),
        (f"reuse, {PREFIX} + {SUFFIX} tokens", ("reuse", PREFIX, SUFFIX), (SUFFIX, PREFIX + SUFFIX), 0.65, 1.25),
    ]
    goals = []
    for what, call, work, to_peer, to_limit in calls:
        time = speed.time("solutions", *call).median
        if speed.has_peer:
            goals.append(Goal(f"{what}, to transformers", to_peer, time / speed.time("transformers", *call).median))
        goals.append(Goal(f"{what}, to the limit", to_limit, time / speed.limit(*work)))
    return goals
