"""The wrong saved caches and wrong answers that the checks recognize."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from autograder.judge.bugs import (
    CACHED_ROWS_IGNORED,
    FIRST_TOKEN_LOGITS,
    KEYS_VALUES_SWAPPED,
    POSITIONS_COUNTED_TWICE,
    POSITIONS_RESET,
    Bug,
    positions_shifted,
)
from autograder.judge.cases import JudgeModel
from autograder.judge.reference import KV, part_of_rows
from autograder.stages.save_and_reuse import bugs as own


def wrong_saved(model: JudgeModel, prefix: list[int]) -> Iterator[tuple[Bug, Callable[[], KV]]]:
    """The keys and values that a wrong save leaves; each is computed when it is looked at."""
    reference, p = model.reference, len(prefix)
    right = reference.run(prefix)
    yield KEYS_VALUES_SWAPPED, lambda: [(v, k) for k, v in right.kv]
    if p > 1:
        yield own.LAST_PREFIX_ROW_MISSING, lambda: part_of_rows(right.kv, 0, p - 1)
    if p < model.config.n_ctx:
        yield own.GENERATED_ROW_SAVED, lambda: reference.run([*prefix, int(right.logits[-1].argmax())]).kv


def reuse_suspects(
    model: JudgeModel, prefix: list[int], suffix: list[int]
) -> Iterator[tuple[Bug, Callable[[], np.ndarray]]]:
    """The common wrong answers of a reuse; each is computed when it is looked at."""
    reference, p, s, n_ctx = model.reference, len(prefix), len(suffix), model.config.n_ctx
    whole = reference.run(prefix + suffix)
    saved = part_of_rows(whole.kv, 0, p)

    def decode(positions, ids=suffix, past: KV | None = saved):
        return lambda: reference.run(ids, past=past, positions=positions).logits[-1]

    starts = [(POSITIONS_RESET, 0), (POSITIONS_COUNTED_TWICE, 2 * p)]
    starts += [(positions_shifted(k), p + k) for n in range(1, 9) for k in (n, -n)]
    for bug, start in starts:
        if 0 <= start <= n_ctx - s:
            yield bug, decode(range(start, start + s))
    yield own.POSITION_STUCK, decode([p] * s)
    yield FIRST_TOKEN_LOGITS, lambda: whole.logits[p]
    yield own.ONLY_LAST_TOKEN, decode([p + s - 1], suffix[-1:])
    yield CACHED_ROWS_IGNORED, decode(range(p, p + s), past=None)
    for bug, wrong in wrong_saved(model, prefix):
        yield bug, lambda wrong=wrong: decode(range(p, p + s), past=wrong())()
