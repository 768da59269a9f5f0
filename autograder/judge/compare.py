"""Compares arrays with the reference, and describes the size, place and likely cause of a difference.

The tolerance on logits, atol 1e-3 and rtol 1e-2, is the usual envelope of a 12-block pass in float32.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.framework import Failure
from autograder.judge.plurals import count
from autograder.judge.student_error import StudentError

ATOL, RTOL = 1e-3, 1e-2
Suspects = Iterable[tuple[Bug, Callable[[], np.ndarray]]]
Look = Callable[[Callable[[Bug], bool]], Bug | None]  # the first of the accepted bugs that explains a failure


def matches(actual: np.ndarray, expected: np.ndarray, atol: float = ATOL, rtol: float = RTOL) -> bool:
    """Whether the arrays have the same shape, are finite and agree within the tolerance."""
    if actual.shape != expected.shape or actual.dtype.kind not in "fiu":
        return False
    with np.errstate(invalid="ignore"):  # numpy.allclose is three times slower on small arrays
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
    """Raise Failure, with the size and place of the error, unless `actual` agrees with `expected`.

    name: what was compared, such as "generate_with_prefix". where: the case in words, without its values. axes: names
    of the array's axes, for the place of the first difference. suspects: wrong values with their bugs; the first that
    agrees gives the bug, otherwise `bug` does. prop: the property in a sentence, if not the check's docstring.
    """
    if matches(actual, expected, atol, rtol):
        return
    bug = recognize(actual, expected, suspects, atol=atol, rtol=rtol) or bug
    difference, figures = _difference(actual, expected, name, axes, atol, rtol)
    raise Failure(f"{difference} ({where}).", bug, {"result of": name, **figures, "case": where}, prop=prop)


def recognize(
    actual: np.ndarray, expected: np.ndarray, suspects: Suspects, atol: float = ATOL, rtol: float = RTOL
) -> Bug | None:
    """The first suspect whose wrong numbers agree with `actual` and differ from the right ones."""
    for suspect, wrong in suspects:
        candidate = wrong()
        if not matches(candidate, expected, atol, rtol) and matches(actual, candidate, atol, rtol):
            return suspect
    return None


class Sweep:
    """Tests one property at many lengths, then fails with the first failure and a list of all failing lengths.

        sweep = Sweep("lengths")
        for n in range(1, n_ctx + 1):
            with sweep.at(n):
                sweep.close(actual, expected, name=..., where=..., suspects=...)
        sweep.finish()

    Wrong numbers are compared with the suspects only at the end, from the greatest length down, because at small
    lengths many mistakes look alike. A bug is named if it explains the greatest failing length and, if others fail, at
    least one more, and if no other length has another name.
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
        """Record a failure in this block for this length; a function that is not written yet ends the sweep."""
        self._tried.append(length)
        self._look = None
        try:
            yield
        except Failure as failure:
            self._failed.setdefault(length, failure)
            self._wrong.append((length, self._look if self._look and not failure.bug else _named(failure.bug)))
        except StudentError as error:
            self._raised = Failure(error.sentence)
            self._failed.setdefault(length, self._raised)

    @property
    def failed(self) -> bool:
        return bool(self._failed)

    def close(self, actual: np.ndarray, expected: np.ndarray, *, suspects: Suspects = (), **options: Any) -> None:
        """expect_close, but the suspects are compared when the sweep is finished."""
        try:
            expect_close(actual, expected, **options)
        except Failure:
            tolerance = {key: options[key] for key in ("atol", "rtol") if key in options}
            known = functools.cache(lambda: list(suspects))
            self._look = lambda asked: recognize(actual, expected, (s for s in known() if asked(s[0])), **tolerance)
            raise

    def finish(self) -> None:
        """Raise the first failure, if there was one, with the failing lengths listed.

        Without a named bug, an exception at a later length says more: with an axis of length 1, wrong shapes may still
        broadcast.
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
            raise Failure(first.detail, bug, first.figures, prop=first.prop)
        figures = {**first.figures, f"failing {self._unit}": failing} if first.figures else {}
        raise Failure(f"{first.detail} {which}", bug, figures, prop=first.prop)

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


def common(a: Sequence, b: Sequence) -> int:
    """How many items two lists or strings share from the start."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


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
    """The difference, as the beginning of a sentence and as a table's rows."""
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
