"""The course's goals for speed, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autograder.bench.grading import Grading
from autograder.bench.memory import Held
from autograder.bench.reuse import Reuse
from autograder.bench.speed import DECODE, PREFILL, PREFIX, SUFFIX, Speed
from autograder.bench.startup import Startup
from autograder.toolkit.charts import fit_slope

SHARED = "the same on a shared prefix"


@dataclass(frozen=True)
class Goal:
    """Something measured that is to be at most `most`."""

    what: str
    most: float
    value: float
    unit: str = ""

    @property
    def verdict(self) -> str:
        return "met" if self.value <= self.most else f"missed by {self.value / self.most - 1:.0%}"


def reuse_goals(results: Sequence[Reuse], at: tuple[int, int] = (400, 8), most: float = 1.3) -> list[Goal]:
    """On the course's own model."""
    goals = []
    for r in results:
        if (r.prefix, r.suffix) == at:
            goals.append(Goal(f"reuse, {r.prefix} + {r.suffix} tokens, to the ideal", most, r.short_of_ideal))
            goals.append(Goal(SHARED, most, r.shared_short_of_ideal))
    return goals


def grading_goals(grading: Grading) -> list[Goal]:
    return [Goal("`autograder test`", 2.0, grading.command.median, "s")]


def startup_goals(startup: Startup) -> list[Goal]:
    return [
        Goal("`import autograder`", 0.3, startup.import_package.median, "s"),
        Goal("`autograder --help`", 0.5, startup.help.median, "s"),
        Goal("loading 124 million weights", 1.0, startup.load.median, "s"),
        Goal("peak memory of it, in sizes of the file", 1.15, startup.peak),
    ]


def memory_goals(held: Held) -> list[Goal]:
    """A tail may have room for as many rows again as it holds, as any growing buffer."""
    return [Goal("memory of a reuse on a shared prefix, to its suffix's rows", 2.5, held.shared / held.suffix)]


def speed_goals(speed: Speed) -> list[Goal]:
    """At the size of GPT-2 small."""
    goals = []
    for what, lengths, to_peer, to_limit in (("decode", (64, 512, 1000), 0.65, 1.25), ("prefill", PREFILL, 0.85, 1.5)):
        for n in lengths:
            time = speed.time("solutions", what, n).median
            new, seq = (1, n + 1) if what == "decode" else (n, n)
            where = f"{what} at {n:,}" if what == "decode" else f"{what} of {n:,} tokens"
            if speed.has_peer:
                goals.append(
                    Goal(f"{where}, to transformers", to_peer, time / speed.time("transformers", what, n).median)
                )
            goals.append(Goal(f"{where}, to the limit", to_limit, time / speed.limit(new, seq)))
    goals += [
        Goal(f"reuse, {PREFIX} + {SUFFIX} tokens, to the ideal", 1.2, short_of_ideal(speed, "reuse")),
        Goal(SHARED, 1.2, short_of_ideal(speed, "share")),
        Goal("decode, each cached token more, to the line of its bytes", 1.25, line(speed) / bytes_line(speed)),
    ]
    return goals


def short_of_ideal(speed: Speed, call: str) -> float:
    """How many times longer a reuse takes than if every token of a cold request cost the same."""
    cold = speed.time("solutions", "prefill", PREFIX + SUFFIX).median
    return speed.time("solutions", call, PREFIX, SUFFIX).median / cold * (PREFIX + SUFFIX) / SUFFIX


def line(speed: Speed) -> float:
    """The seconds by which each cached token makes a decode step longer, from a straight line through the times."""
    times = [speed.time("solutions", "decode", n).median for n in DECODE]
    return float(np.polyfit(DECODE, times, 1)[0])


def bytes_line(speed: Speed) -> float:
    """The same if only the bytes of that token's keys and values counted."""
    return (speed.limit(1, 1001) - speed.limit(1, 1)) / 1000


def text_slopes(speed: Speed) -> dict[str, float]:
    """The exponent with which the time of a whole text grows with its length, cached and by recompute."""
    slopes = {}
    for name, call, degree in (("cached", "decode", 1), ("recompute", "recompute", 2)):
        times = [speed.time("solutions", call, n).median for n in DECODE]
        each = np.polyval(np.polyfit(DECODE, times, degree), np.arange(DECODE[-1]))  # one token, at each place
        slopes[name] = fit_slope(DECODE, [float(each[:n].sum()) for n in DECODE])
    return slopes
