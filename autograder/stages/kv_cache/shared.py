"""What the checks of the KV cache share: sizes, random keys and values, and reading a layer back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autograder.judge.compare import matches
from autograder.judge.student import Handle, StudentError

EXACT = {"atol": 1e-6, "rtol": 1e-6}  # what was put in comes out, in float32 or wider


def configs(cases):
    """The configurations of the three odd models."""
    return [model.config for model in cases.odd]


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Standard normal float32 numbers."""
    return rng.standard_normal(shape, dtype=np.float32)


def draw_kv(cases, config, n_new: int, *label: object) -> tuple[np.ndarray, np.ndarray]:
    """Random keys and values of n_new positions, for one layer."""
    rng = cases.rng("kv", n_new, config.n_head, *label)
    return tuple(normal(rng, config.n_head, n_new, config.head_dim) for _ in range(2))


def read_layer(student, layer: Handle) -> list[np.ndarray]:
    """A layer's keys and values."""
    return [student.attribute(layer, name, returns="array") for name in ("keys", "values")]


def rows_if_any(student, layer: Handle) -> list[np.ndarray] | None:
    """A layer's keys and values, or None where it has no arrays to give."""
    try:
        return read_layer(student, layer)
    except StudentError:
        return None


def equal(got: Sequence[np.ndarray] | None, right: Sequence[np.ndarray]) -> bool:
    """Whether two pairs of keys and values are the same."""
    return got is not None and all(matches(a, b, **EXACT) for a, b in zip(got, right, strict=True))
