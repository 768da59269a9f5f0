"""Compares arrays with the reference, and says in words how far off they are, where, and what it looks like.

The tolerance on logits, atol 1e-3 and rtol 1e-2, is the usual envelope of a 12-block pass in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.framework import Failure

ATOL, RTOL = 1e-3, 1e-2
Suspects = Iterable[tuple[Bug, Callable[[], np.ndarray]]]


def matches(actual: np.ndarray, expected: np.ndarray, atol: float = ATOL, rtol: float = RTOL) -> bool:
    """Whether the arrays have one shape, are finite and agree within the tolerance."""
    if actual.shape != expected.shape or actual.dtype.kind not in "fiu":
        return False
    actual = actual.astype(np.float64)
    return bool(np.isfinite(actual).all() and np.allclose(actual, expected, atol=atol, rtol=rtol))


def expect_close(
    actual: np.ndarray,
    expected: np.ndarray,
    *,
    name: str,
    where: str,
    axes: tuple[str, ...] = (),
    suspects: Suspects = (),
    atol: float = ATOL,
    rtol: float = RTOL,
    prop: str | None = None,
) -> None:
    """Pass when `actual` agrees with `expected`; else a Failure with size, place and, if a suspect agrees, its bug.

    name: what was compared, e.g. "generate_with_prefix". where: the case in words, without its values.
    axes: names of the array's axes, for the place of the first difference. prop: the property's own sentence, if the
    check's title does not say it.
    """
    if matches(actual, expected, atol, rtol):
        return
    bug = None
    for suspect, wrong in suspects:
        candidate = wrong()
        if not matches(candidate, expected, atol, rtol) and matches(actual, candidate, atol, rtol):
            bug = suspect
            break
    raise Failure(prop, f"{_difference(actual, expected, name, axes, atol, rtol)} ({where}).", bug)


def _difference(actual, expected, name, axes, atol, rtol) -> str:
    if actual.shape != expected.shape:
        return f"{name} has shape {list(actual.shape)} where {list(expected.shape)} is expected"
    if actual.dtype.kind not in "fiu":
        return f"{name} has dtype {actual.dtype} where numbers are expected"
    actual = actual.astype(np.float64)
    bad = ~np.isfinite(actual)
    if bad.any():
        return f"{name} has {int(bad.sum())} values that are not finite, the first at {_place(bad, axes)}"
    error = np.abs(actual - expected)
    off = error > atol + rtol * np.abs(expected)
    share = 100 * off.mean()
    return (
        f"{name} is off by up to {error.max():.2g}; {share:.0f}% of its values differ"
        f"{', the first at ' + _place(off, axes) if off.ndim else ''}"
    )


def _place(mask: np.ndarray, axes: tuple[str, ...]) -> str:
    index = np.argwhere(mask)[0]
    names = axes if len(axes) == len(index) else tuple(f"axis {i}" for i in range(len(index)))
    return ", ".join(f"{name} {int(i)}" for name, i in zip(names, index, strict=True))
