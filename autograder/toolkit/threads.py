"""How many threads NumPy's matrix products may use."""

from __future__ import annotations

import os
from typing import Any

LARGE = 512  # n_embd from which threads are worth it
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_one_thread() -> None:
    """Make NumPy use one thread, unless the environment says otherwise. Call it before NumPy is imported.

    The matrices of the small models are so small that threads mostly wait for each other: with two on a busy machine
    the checks take three times as long.
    """
    for variable in BLAS_VARIABLES:
        os.environ.setdefault(variable, "1")


_limit: Any = None  # in force, for a small model


def suit_threads(n_embd: int) -> None:
    """The same for a process that has already imported NumPy, such as a notebook's: one thread for a small model.

    For a large one the original number is restored. Apple's Accelerate ignores this setting.
    """
    global _limit
    if any(os.environ.get(variable) for variable in BLAS_VARIABLES):
        return
    if n_embd < LARGE and _limit is None:
        from threadpoolctl import threadpool_limits

        _limit = threadpool_limits(1, "blas")
    elif n_embd >= LARGE and _limit is not None:
        _limit.restore_original_limits()
        _limit = None
