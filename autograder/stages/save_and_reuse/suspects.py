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

    right = range(p, p + s)
    yield POSITIONS_RESET, decode(range(s))
    shifts = [k for n in range(1, 9) for k in (n, -n) if p + k >= 0 and p + k + s <= n_ctx]
    for k in shifts[:4]:
        yield positions_shifted(k), decode(range(p + k, p + k + s))
    if 2 * p + s <= n_ctx:
        yield POSITIONS_COUNTED_TWICE, decode(range(2 * p, 2 * p + s))
    yield own.POSITION_STUCK, decode([p] * s)
    yield FIRST_TOKEN_LOGITS, lambda: whole.logits[p]
    yield own.STOPS_ONE_EARLY, lambda: whole.logits[-2]
    yield own.ONLY_LAST_TOKEN, decode([p + s - 1], suffix[-1:])
    yield CACHED_ROWS_IGNORED, decode(right, past=None)
    for bug, wrong in wrong_saved(model, prefix):
        yield bug, lambda wrong=wrong: reference.run(suffix, past=wrong(), positions=right).logits[-1]
    for k in shifts[4:]:
        yield positions_shifted(k), decode(range(p + k, p + k + s))
