"""Compares arrays with the reference, and says in words how far off they are, where, and what it looks like.

The tolerance on logits, atol 1e-3 and rtol 1e-2, is the usual envelope of a 12-block pass in float32.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.framework import Failure
from autograder.judge.plurals import count
from autograder.judge.student_error import StudentError

ATOL, RTOL = 1e-3, 1e-2
Suspects = Iterable[tuple[Bug, Callable[[], np.ndarray]]]
Look = Callable[[Callable[[Bug], bool]], Bug | None]  # the first bug that explains a failure, of those asked for


def matches(actual: np.ndarray, expected: np.ndarray, atol: float = ATOL, rtol: float = RTOL) -> bool:
    """Whether the arrays have one shape, are finite and agree within the tolerance."""
    if actual.shape != expected.shape or actual.dtype.kind not in "fiu":
        return False
    with np.errstate(invalid="ignore"):  # numpy.allclose does the same, and thrice as slowly on small arrays
        difference = np.abs(actual.astype(np.float64) - expected)
        near = difference <= atol + rtol * np.abs(expected)
    return bool(near.all() and np.isfinite(difference).all())


def expect_close(
    actual: np.ndarray,
    expected: np.ndarray,
    *,
    name: str,
    where: str,
    axes: tuple[str, ...] = (),
    suspects: Suspects = (),
    bug: Bug | None = None,
    atol: float = ATOL,
    rtol: float = RTOL,
    prop: str | None = None,
) -> None:
    """Pass when `actual` agrees with `expected`; else a Failure with size, place and, if a suspect agrees, its bug.

    name: what was compared, e.g. "generate_with_prefix". where: the case in words, without its values.
    axes: names of the array's axes, for the place of the first difference. bug: what it is when no suspect agrees.
    prop: the property's own sentence, if the check's docstring does not say it.
    """
    if matches(actual, expected, atol, rtol):
        return
    bug = recognize(actual, expected, suspects, atol=atol, rtol=rtol) or bug
    difference, figures = _difference(actual, expected, name, axes, atol, rtol)
    raise Failure(prop, f"{difference} ({where}).", bug, {"result of": name, **figures, "case": where})


def recognize(
    actual: np.ndarray, expected: np.ndarray, suspects: Suspects, atol: float = ATOL, rtol: float = RTOL
) -> Bug | None:
    """The first suspect whose wrong numbers `actual` agrees with, where they can be told from the right ones."""
    for suspect, wrong in suspects:
        candidate = wrong()
        if not matches(candidate, expected, atol, rtol) and matches(actual, candidate, atol, rtol):
            return suspect
    return None


class Sweep:
    """One property at many lengths: goes through all of them, then fails with the first failure and a list of all.

        sweep = Sweep("lengths")
        for n in range(1, n_ctx + 1):
            with sweep.at(n):
                sweep.close(actual, expected, name=..., where=..., suspects=...)
        sweep.finish()

    Wrong numbers are looked up among the suspects only at the end, from the greatest length down: at the small ones
    many mistakes look alike. So a name counts when it explains the greatest length that fails and, where others fail,
    one more of them at least, and when none of the others has another name.
    """

    def __init__(self, unit: str = "lengths", looks: int = 4):
        self._unit = unit
        self._looks = looks
        self._tried: list[int] = []
        self._failed: dict[int, Failure] = {}
        self._wrong: list[tuple[int, Look]] = []
        self._look: Look | None = None
        self._raised: Failure | None = None

    @contextlib.contextmanager
    def at(self, length: int) -> Iterator[None]:
        """What fails in this block fails at this length; a function that is not written yet ends the sweep."""
        self._tried.append(length)
        self._look = None
        try:
            yield
        except Failure as failure:
            self._failed.setdefault(length, failure)
            self._wrong.append((length, self._look if self._look and not failure.bug else _named(failure.bug)))
        except StudentError as error:
            if error.unwritten:
                raise
            self._raised = Failure(None, error.sentence)
            self._failed.setdefault(length, self._raised)

    @property
    def failed(self) -> bool:
        return bool(self._failed)

    def close(self, actual: np.ndarray, expected: np.ndarray, *, suspects: Suspects = (), **options: Any) -> None:
        """expect_close, with the suspects looked at when the sweep is finished."""
        try:
            expect_close(actual, expected, **options)
        except Failure:
            tolerance = {key: options[key] for key in ("atol", "rtol") if key in options}
            known = functools.cache(lambda: list(suspects))
            self._look = lambda asked: recognize(actual, expected, (s for s in known() if asked(s[0])), **tolerance)
            raise

    def finish(self) -> None:
        """Raise the first failure, if there was one, with the failing lengths listed.

        Where there is no name for it, the last error tells more: with an axis of length 1, wrong shapes go a long way.
        """
        if not self._failed:
            return
        bug = self._name()
        first = (not bug and self._raised) or next(iter(self._failed.values()))
        failing = f"{in_words(self._failed)} (of {in_words(self._tried)})"
        which = f"Failing {self._unit}: {failing}."
        if len(self._failed) == len(set(self._tried)):
            failing = f"all {len(self._failed)}"
            which = f"All {len(self._failed)} {self._unit} fail."
        if len(set(self._tried)) == 1:
            raise Failure(first.prop, first.detail, bug, first.figures)
        figures = {**first.figures, f"failing {self._unit}": failing} if first.figures else {}
        raise Failure(first.prop, f"{first.detail} {which}", bug, figures)

    def _name(self) -> Bug | None:
        longest = [look for _, look in sorted(self._wrong, key=lambda wrong: -wrong[0])[: self._looks]]
        bug = longest[0](lambda other: True) if longest else None
        explained = 0
        for look in longest[1:] if bug else ():
            if look(lambda other: other == bug):
                explained += 1
            elif look(lambda other: other != bug):
                return None
        return bug if explained or len(longest) == 1 else None


def _named(bug: Bug | None) -> Look:
    return lambda asked: bug if bug and asked(bug) else None


def in_words(numbers: Iterable[int]) -> str:
    """Whole numbers as runs: "1, 3 to 7, 12"."""
    runs: list[list[int]] = []
    for n in sorted(set(numbers)):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(f"{a}" if a == b else f"{a}, {b}" if b == a + 1 else f"{a} to {b}" for a, b in runs)


def _difference(actual, expected, name, axes, atol, rtol) -> tuple[str, dict[str, str]]:
    """What is wrong, as the beginning of a sentence and as a table's rows."""
    if actual.shape != expected.shape:
        shape, other = str(list(actual.shape)), str(list(expected.shape))
        return f"{name} has shape {shape} where {other} is expected", {"shape": shape, "expected": other}
    if actual.dtype.kind not in "fiu":
        rows = {"dtype": str(actual.dtype), "expected": "numbers"}
        return f"{name} has dtype {actual.dtype} where numbers are expected", rows
    actual = actual.astype(np.float64)
    bad = ~np.isfinite(actual)
    if bad.any():
        values, first = count(int(bad.sum()), "value"), _place(bad, axes)
        are = "is" if bad.sum() == 1 else "are"
        rows = {"not finite": values, "first at": first}
        return f"{name} has {values} that {are} not finite, the first at {first}", rows
    error = np.abs(actual - expected)
    off = error > atol + rtol * np.abs(expected)
    rows = {
        "off by up to": f"{error.max():.2g}",
        "values that differ": f"{off.mean():.0%}" if off.mean() >= 0.01 else "less than 1%",
    }
    sentence = f"{name} is off by up to {rows['off by up to']}; {rows['values that differ']} of its values differ"
    if not off.ndim:
        return sentence, rows
    first = _place(off, axes)
    return f"{sentence}, the first at {first}", {**rows, "first at": first}


def _place(mask: np.ndarray, axes: tuple[str, ...]) -> str:
    index = np.argwhere(mask)[0]
    if len(axes) != len(index):
        return f"element {index.tolist()}"
    return ", ".join(f"{name} {int(i)}" for name, i in zip(axes, index, strict=True))
