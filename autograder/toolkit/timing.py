"""Measure the running time of functions reliably.

One call proves nothing: the first call includes warm-up, and other work on the machine slows whatever
runs at that moment. So everything here warms up, repeats, reports the median with the quartiles, and
``compare`` runs its functions in turn, so that a slow moment of the machine affects all of them.

    fast = measure(lambda: forward(ids, weights))
    print(fast)                                     # 12.3 ms (12.1 to 12.9, 7 runs)

    both = compare({"cold": run_cold, "reused": run_reused})
    print(both)                                     # a table
    both.ratio("cold", "reused")                    # how many times faster

Seconds depend on the machine and are for charts only: no score in this course depends on them.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from autograder.toolkit.threads import BLAS_VARIABLES, processors


@dataclass(frozen=True)
class Measurement:
    """The running times of one function: every sample in seconds, in the order they were taken."""

    samples: tuple[float, ...]
    label: str = ""

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("A measurement needs at least one sample.")

    @property
    def median(self) -> float:
        return float(np.median(self.samples))

    @property
    def spread(self) -> tuple[float, float]:
        """The first and third quartile: half of the samples lie between them."""
        low, high = np.percentile(self.samples, (25, 75))
        return float(low), float(high)

    @property
    def best(self) -> float:
        return min(self.samples)

    def __str__(self) -> str:
        scale, unit = time_unit(self.median)
        low, high = self.spread
        name = f"{self.label}: " if self.label else ""
        return (
            f"{name}{plain(self.median * scale)} {unit} "
            f"({plain(low * scale)} to {plain(high * scale)}, {len(self.samples)} runs)"
        )


class Comparison(dict[Any, Measurement]):
    """Measurements by label, taken in turn. A dict that can also say how they compare."""

    def ratio(self, slower: Any, faster: Any) -> float:
        """How many times longer `slower` takes than `faster`, by their medians."""
        return self[slower].median / self[faster].median

    def __str__(self) -> str:
        width = max(len(str(label)) for label in self)
        lines = [f"{label!s:<{width}}  {Measurement(m.samples)}" for label, m in self.items()]
        return "\n".join([*lines, machine()])


def measure(
    fn: Callable[..., Any],
    *,
    repeats: int = 7,
    warmup: int = 1,
    setup: Callable[[], Any] | None = None,
) -> Measurement:
    """Time `fn` `repeats` times after `warmup` calls that are not counted.

    With `setup`, each timed call is `fn(setup())`, and the time of `setup` is not counted: use it for
    something that a call changes, such as a clone of a saved cache.
    """
    return compare({"": fn}, repeats=repeats, warmup=warmup, setup={"": setup} if setup else None)[""]


def compare(
    functions: Mapping[Any, Callable[..., Any]],
    *,
    repeats: int = 7,
    warmup: int = 1,
    setup: Mapping[Any, Callable[[], Any]] | None = None,
) -> Comparison:
    """Time several functions in turn: one call of each, then the next round in another order.

    The labels are strings, or numbers such as a length. `setup` gives the functions that need it something
    fresh for each call (see `measure`).
    """
    if not functions:
        raise ValueError("There is nothing to compare.")
    if repeats < 1 or warmup < 0:
        raise ValueError(f"repeats must be 1 or more and warmup 0 or more, not {repeats} and {warmup}.")
    setup = setup or {}
    for name in setup:
        if name not in functions:
            raise ValueError(f"{name!r} is none of the functions: {', '.join(map(repr, functions))}.")
    for label, fn in functions.items():
        for _ in range(warmup):
            _timed(fn, setup.get(label))
    samples: dict[Any, list[float]] = {label: [] for label in functions}
    labels = list(functions)
    for round_number in range(repeats):
        start = round_number % len(labels)
        for label in labels[start:] + labels[:start]:
            samples[label].append(_timed(functions[label], setup.get(label)))
    return Comparison({label: Measurement(tuple(values), str(label)) for label, values in samples.items()})


def sweep(
    xs: Sequence[int],
    functions: Mapping[str, Callable[..., Any]],
    *,
    setup: Callable[[int], Any] | None = None,
    repeats: int = 3,
) -> dict[str, tuple[list[int], list[Measurement]]]:
    """Time functions of a size at every size: for each label its sizes and Measurements, as line_chart takes them.

    Each timed call is `fn(x)`, or `fn(x, setup(x))`, where the time of `setup` is not counted.
    """
    series: dict[str, tuple[list[int], list[Measurement]]] = {label: ([], []) for label in functions}
    for x in xs:
        calls = {label: (lambda *ready, fn=fn, x=x: fn(x, *ready)) for label, fn in functions.items()}
        prepare = {label: (lambda x=x: setup(x)) for label in functions} if setup else None
        for label, one in compare(calls, repeats=repeats, setup=prepare).items():
            series[label][0].append(x)
            series[label][1].append(one)
    return series


def _timed(fn: Callable[..., Any], setup: Callable[[], Any] | None) -> float:
    """The seconds of one call, without garbage collection."""
    arguments = () if setup is None else (setup(),)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        fn(*arguments)
        return time.perf_counter() - start
    finally:
        if was_enabled:
            gc.enable()


def time_unit(seconds: float) -> tuple[float, str]:
    """The factor and the unit in which this many seconds read well: 0.0123 gives (1e3, "ms")."""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(seconds) * scale >= 1:
            return scale, unit
    return (1.0, "s") if seconds == 0 else (1e9, "ns")


def plain(value: float) -> str:
    """A number with three significant digits and no exponent: 0.0123, 1.23, 12300."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    digits = 2 - int(np.floor(np.log10(abs(value))))
    text = f"{round(value, digits):.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def threads() -> int:
    """How many threads NumPy's matrix product uses at most."""
    from threadpoolctl import threadpool_info

    counts = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    if counts:
        return max(counts)
    cores = processors()
    for variable in BLAS_VARIABLES:
        value = os.environ.get(variable, "")
        if value.isdigit() and int(value) > 0:
            return min(int(value), cores)
    return cores


@lru_cache(maxsize=1)
def cpu_name() -> str:
    """The processor's name, as the machine reports it."""
    name = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            name = next((line.split(":", 1)[1] for line in lines if line.startswith("model name")), "")
    except OSError:
        if platform.system() == "Darwin":
            import subprocess

            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            with contextlib.suppress(OSError):
                name = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    for mark in ("(R)", "(TM)", "CPU "):
        name = name.replace(mark, "")
    return " ".join(name.split()) or platform.processor() or platform.machine() or "unknown processor"


def machine(count: int | None = None) -> str:
    """One line that describes the machine of a measurement; count: its threads, if they differ from this process's."""
    count = count or threads()
    return f"{cpu_name()}, {count} thread{'' if count == 1 else 's'}, NumPy {np.__version__}"
