"""The course's goals for speed, compared with the measurements.

A pass cannot be faster than its arithmetic, nor than one read of its weights and cache; the second is what bounds a
decode step and a reuse, however few tokens they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autograder.bench.chat import CALLS, COLD, REUSE, ChatTimes, in_words
from autograder.bench.serving import BLOCK, Served
from autograder.bench.serving import SHARED as ONE_PROMPT
from autograder.bench.speed import PREFILL, PREFIX, SUFFIX, Call, Speed

SHARED = "the same on a shared prefix"
SPEED_NOTE = "A decode step and a reuse are bounded by one read of the weights, not by the tokens that they compute."


@dataclass(frozen=True)
class Goal:
    """A measured value that should be at most `most`."""

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


def serving_goals(results: Sequence[Served]) -> list[Goal]:
    """Each trace computes the fewest tokens possible; the shared prompt takes at most half of transformers' time."""
    goals = []
    by = {(r.model, r.trace, r.block): r for r in results}
    for (model, trace, block), own in by.items():
        if block != BLOCK:
            continue
        goals.append(Goal(f"{model}, {trace}: tokens computed, to the fewest", 1.0, own.computed / own.least))
        peer = by.get((model, trace, 0))
        if peer and trace == ONE_PROMPT:
            goals.append(Goal(f"{model}, {trace}: time to first token, to transformers", 0.5, own.median / peer.median))
    return goals


def chat_goals(times: ChatTimes) -> list[Goal]:
    """Times relative to transformers, reuse relative to a cold prompt, and memory relative to weights and cache."""
    own = {call: times.best("solution", call) for call in CALLS}
    goals = [
        Goal(f"{in_words(call)}, to transformers", most, own[call] / times.best("transformers", call))
        for call, most in zip(CALLS, (1.25, 1.4, 0.5, 0.9), strict=True)
        if "transformers" in times.peak
    ]
    return [
        *goals,
        Goal(f"{in_words(REUSE)}, to all of them cold", 0.1, own[REUSE] / own[COLD]),
        Goal("most memory, to weights and cache", 1.2, times.peak["solution"] / times.weights_and_cache),
    ]
