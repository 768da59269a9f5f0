"""How many threads NumPy's matrix products may use. One place, because it must be said before NumPy is imported."""

from __future__ import annotations

import os

BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")


def use_one_thread() -> None:
    """Let NumPy use one thread, unless the environment says otherwise; to be called before it is imported.

    The matrices of the small models are so small that threads mostly wait for each other: with two on a busy machine
    the checks take three times as long.
    """
    for variable in BLAS_VARIABLES:
        os.environ.setdefault(variable, "1")
