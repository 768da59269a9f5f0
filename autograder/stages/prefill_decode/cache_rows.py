"""Whether a cache of the student's holds the right rows, and what wrong ones look like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autograder.judge.bugs import HALF_PRECISION, KEYS_VALUES_SWAPPED, Bug
from autograder.judge.cases import JudgeModel
from autograder.judge.compare import expect_close, matches
from autograder.judge.framework import Failure
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.words import count
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.suspects import wrong_runs

_ROWS = {"atol": 3e-4, "rtol": 1e-4}  # float32 is within 1e-5; float16 is off by 1e-3


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether keys or values agree as far as float32 goes."""
    return matches(a, b, **_ROWS)


def begins_with(kv: KV, right: KV) -> bool:
    """Whether every layer of kv begins with the rows of `right`."""
    n = right[0][0].shape[1]
    return len(kv) == len(right) and all(
        same(a[:, :n], b) for x, y in zip(kv, right, strict=True) for a, b in zip(x, y, strict=True)
    )


def expect_rows(kv: KV, model: JudgeModel, ids: Sequence[int], n_past: int, where: str) -> None:
    """Every layer of the student's cache holds the rows of ids, of which n_past were there before the call."""
    n, right = len(ids), model.reference.run(ids).kv
    counts = [sorted({keys.shape[1], values.shape[1]}) for keys, values in kv]
    if len(kv) != len(right):
        raise Failure(None, f"The cache has {count(len(kv), 'layer')} where the model has {len(right)} ({where}).")
    if counts != [[n]] * len(kv):
        layer = next(i for i, c in enumerate(counts) if c != [n])
        has = " and ".join(map(str, counts[layer]))
        rows, belong = "row" if counts[layer] == [1] else "rows", "belongs" if n == 1 else "belong"
        detail = f"Layer {layer} holds {has} {rows} where {n} {belong} ({where})."
        raise Failure(None, detail, _count_bug([c[0] for c in counts], n_past, n))
    for i, (layer, expected) in enumerate(zip(kv, right, strict=True)):
        for name, actual, wanted in zip(("keys", "values"), layer, expected, strict=True):
            if not same(actual, wanted):
                try:
                    axes = ("head", "row", "element")
                    about = f"the array of {name} in layer {i}"
                    expect_close(actual, wanted, name=about, where=where, axes=axes, **_ROWS)
                except Failure as failure:
                    raise Failure(None, failure.detail, _row_bug(kv, model, ids, n_past)) from None


def _count_bug(counts: list[int], n_past: int, n: int) -> Bug | None:
    """What the numbers of rows of the layers look like."""
    n_new = n - n_past
    if len(set(counts)) > 1:
        return own.ONE_LAYER_FOR_ALL if set(counts[1:]) == {n_past} and counts[0] > n else None
    if counts[0] == n + n_new:
        return own.ROW_KEPT_TWICE if n_past else own.FED_TWICE
    if counts[0] == n_past and n_past:
        return own.ROW_NOT_KEPT
    if counts[0] == n + 1:
        return own.LAST_TOKEN_AGAIN
    return own.LAST_TOKEN_MISSING if counts[0] == n - 1 else None


def _row_bug(kv: KV, model: JudgeModel, ids: Sequence[int], n_past: int) -> Bug | None:
    """What the wrong rows of a cache of the right length look like."""
    right = model.reference.run(ids).kv
    flat = np.concatenate([a[:, n_past:].ravel() for pair in kv for a in pair]).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(flat).all() and flat.any() and (flat == flat.astype(np.float16)).all():
            return HALF_PRECISION
    if n_past and not begins_with(kv, part_of_rows(right, 0, n_past)):
        return own.ROWS_REPLACED

    def looks_like(candidate: KV) -> bool:
        return all(same(a, b) for x, y in zip(kv, candidate, strict=True) for a, b in zip(x, y, strict=True))

    if all(any(same(k, a) and same(v, b) for a, b in right) for k, v in kv):
        return own.LAYERS_MIXED
    if looks_like([(v, k) for k, v in right]):
        return KEYS_VALUES_SWAPPED
    return next((bug for bug, wrong in wrong_runs(model, ids, n_past) if looks_like(wrong().kv)), None)
