"""What the checks share: caches of the student's, and what must hold of their rows and of logits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autograder.judge.bugs import HALF_PRECISION, Bug
from autograder.judge.cases import JudgeModel
from autograder.judge.compare import expect_close
from autograder.judge.framework import Failure
from autograder.judge.reference import part_of_rows
from autograder.judge.student import Handle, Student, StudentError
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.suspects import wrong_logits, wrong_runs

STAGE = "prefill-decode"
_ROWS = {"atol": 3e-4, "rtol": 1e-4}  # float32 is within 1e-5; float16 is off by 1e-3


def prefilled(student: Student, model: JudgeModel, *chunks: Sequence[int]) -> tuple[Handle, np.ndarray]:
    """A cache of the student's after prefill of each chunk in turn, and the logits of the last."""
    cache = student.handle("ModelCache", model.config.n_layer)
    for chunk in chunks:
        logits = student.array("prefill", list(chunk), model, cache)
    return cache, logits


def cached(student: Student, model: JudgeModel, ids: Sequence[int], n: int) -> Handle:
    """A cache of the student's that holds the right rows of ids[:n]; no function of the student's made them."""
    return student.make_cache(model, part_of_rows(model.reference.run(ids).kv, 0, n))


def expect_logits(logits, model: JudgeModel, ids: Sequence[int], n_past: int, n: int, close=expect_close, **words):
    """The logits are those after token n - 1 of ids. The first n_past were cached; what follows n changes nothing."""
    right = model.reference.logits(ids)[n - 1]
    close(logits, right, axes=("id",), suspects=wrong_logits(model, ids[:n], n_past), **words)


def expect_rows(
    student: Student, cache: Handle, model: JudgeModel, ids: Sequence[int], n_past: int, where: str, close=expect_close
) -> None:
    """Every layer of the student's cache holds the rows of ids, of which n_past were there before the call."""
    n, n_layer = len(ids), model.config.n_layer
    try:
        kv = student.read_cache(cache, "the cache")
        counts = [k.shape[1] if k.shape == v.shape else f"{k.shape[1]} and {v.shape[1]}" for k, v in kv]
    except StudentError:
        counts = _lengths(student, cache)
        if all(counts):  # then it is not for want of rows that they cannot be read
            raise
    if counts != [n] * n_layer:
        held = f"{counts[0]} rows each" if len(set(counts)) == 1 else f"{', '.join(map(str, counts))} rows"
        detail = f"The layers of the cache hold {held} where {n} belong in each of {n_layer} ({where})."
        raise Failure(None, detail, _count_bug(counts, n_past, n))
    rows = np.array(kv)  # [n_layer, 2, n_head, n, head_dim]
    close(
        rows,
        np.array(model.reference.run(ids).kv),
        name="The cache",
        where=where,
        axes=("layer", "keys (0) or values (1)", "head", "row", "element"),
        suspects=((bug, lambda wrong=wrong: np.array(wrong().kv)) for bug, wrong in wrong_runs(model, ids, n_past)),
        bug=HALF_PRECISION if _fits_half_precision(rows[..., n_past:, :]) else None,
        **_ROWS,
    )


def _lengths(student: Student, cache: Handle) -> list[int]:
    layers = student.attribute(cache, "layers", returns="handle")
    one = (student.method(layers, "__getitem__", i, returns="handle") for i in range(student.length(layers)))
    return [student.length(layer) for layer in one]


def _count_bug(counts: list, n_past: int, n: int) -> Bug | None:
    """What the numbers of rows of the layers make certain."""
    if set(counts) == {n_past}:
        return own.OWN_CACHE
    return own.FED_TWICE if set(counts) == {2 * n - n_past} else None


def _fits_half_precision(rows: np.ndarray) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(rows).all() and rows.any() and (rows == rows.astype(np.float16)).all())
