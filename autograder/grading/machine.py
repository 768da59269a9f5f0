"""How many submissions this machine can grade at a time, given its processors and memory."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from autograder.toolkit.threads import processors
from autograder.worker.limits import memory_bytes

CGROUP = Path("/sys/fs/cgroup")  # where the limits of a container are
JOBS = "AUTOGRADER_JOBS"  # environment variable: how many submissions are graded at the same time


def default_jobs() -> int:
    """AUTOGRADER_JOBS if it is a number; otherwise as many as there are processors and memory for."""
    chosen = os.environ.get(JOBS, "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    return min(_processors(), _workers_that_fit())


def _processors() -> int:
    """The processors that this process may use, which `taskset`, batch schedulers and containers can limit."""
    cores = processors()
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):  # of cgroups, version 2 and 1
        with contextlib.suppress(OSError, ValueError):
            quota, period = (number for name in names for number in _numbers(name))
            if quota > 0 < period:
                cores = min(cores, -(-quota // period))
    return max(1, cores)


def _workers_that_fit() -> int:
    """How many workers fit into memory if each uses all that it is allowed."""
    memory = _memory()
    return max(1, round(memory / memory_bytes())) if memory else 1000


def _memory() -> int | None:
    """The memory that this process may use, in bytes; None if the system does not say."""
    found = []
    with contextlib.suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            found += _numbers(name)
    return min(found, default=None)


def _numbers(name: str) -> list[int]:
    """The numbers in a file of the cgroup; raises ValueError if it says "max"."""
    return [int(number) for number in (CGROUP / name).read_text(encoding="utf-8").split()]
