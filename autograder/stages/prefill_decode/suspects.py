"""The wrong passes through the model that the checks of prefill and decode recognize."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from autograder.judge.bugs import (
    CACHED_ROWS_IGNORED,
    FIRST_TOKEN_LOGITS,
    HEADS_MERGED_WRONG,
    HEADS_SPLIT_WRONG,
    KEYS_VALUES_SWAPPED,
    LN_1_TWICE,
    MASK_WITHOUT_OFFSET,
    NO_CAUSAL_MASK,
    NO_FINAL_LAYER_NORM,
    NO_RESIDUAL,
    NO_RESIDUAL_ATTENTION,
    NO_RESIDUAL_MLP,
    NORMED_RESIDUAL,
    POSITIONS_COUNTED_TWICE,
    POSITIONS_MISSING,
    POSITIONS_RESET,
    QKV_ORDER,
    SCORES_SCALED_BY_EMBD,
    SCORES_UNSCALED,
    Bug,
    positions_shifted,
)
from autograder.judge.cases import JudgeModel
from autograder.judge.reference import Run, part_of_rows
from autograder.judge.variants import Suspect, variant
from autograder.stages.prefill_decode import bugs as own

_MODEL_MISTAKES: tuple[Suspect, ...] = (
    (NO_FINAL_LAYER_NORM, "no-final-layer-norm"),
    (POSITIONS_MISSING, "positions-missing"),
    (NO_CAUSAL_MASK, "no-causal-mask"),
    (MASK_WITHOUT_OFFSET, "mask-without-offset"),
    (KEYS_VALUES_SWAPPED, "qkv-qvk"),
    *((QKV_ORDER, f"qkv-{order}") for order in ("kqv", "vkq", "kvq", "vqk")),
    (HEADS_MERGED_WRONG, "heads-merged-wrong"),
    (HEADS_SPLIT_WRONG, "heads-split-wrong"),
    (SCORES_UNSCALED, "scores-unscaled"),
    (SCORES_SCALED_BY_EMBD, "scores-scaled-by-n-embd"),
    (NORMED_RESIDUAL, "normed-residual"),
    (NORMED_RESIDUAL, "normed-attention"),
    (NO_RESIDUAL_ATTENTION, "no-residual-attention"),
    (NO_RESIDUAL_MLP, "no-residual-mlp"),
    (NO_RESIDUAL, "no-residual"),
    (LN_1_TWICE, "ln-1-twice"),
)


def wrong_runs(model: JudgeModel, ids: Sequence[int], n_past: int) -> Iterator[tuple[Bug, Callable[[], Run]]]:
    """The passes over ids[n_past:] that people get wrong; the past is right, or made by the same mistake."""
    reference, n_ctx = model.reference, model.config.n_ctx
    new, n_new = list(ids[n_past:]), len(ids) - n_past
    past = part_of_rows(reference.run(ids).kv, 0, n_past) if n_past else None

    def at(positions, past=past):
        return lambda: reference.run(new, past=past, positions=positions)

    if n_past:
        yield POSITIONS_RESET, at(range(n_new))
        yield own.OWN_CACHE, at(range(n_new), None)
        yield CACHED_ROWS_IGNORED, at(range(n_past, n_past + n_new), None)
        if 2 * n_past + n_new <= n_ctx:
            yield POSITIONS_COUNTED_TWICE, at(range(2 * n_past, 2 * n_past + n_new))
    for k in (1, -1, 2):
        if 0 <= n_past + k <= n_ctx - n_new:
            yield positions_shifted(k), at(range(n_past + k, n_past + k + n_new))
    if n_new > 1:
        yield own.SAME_POSITION, at([n_past] * n_new)
        yield own.SAME_POSITION, at([n_past + n_new - 1] * n_new)
    if n_past and n_new == 1:
        yield own.ATTENDS_TOO_EARLY, lambda: variant(reference, "mask-strict").run(new, past=past)
    for bug, name in _MODEL_MISTAKES:
        wrong = variant(reference, name)
        yield bug, lambda wrong=wrong: wrong.run(new, past=past)
        if n_past > 0:
            yield bug, lambda wrong=wrong: wrong.run(new, past=wrong.run(ids[:n_past]).kv)


def wrong_logits(
    model: JudgeModel, ids: Sequence[int], n_past: int = 0
) -> Iterator[tuple[Bug, Callable[[], np.ndarray]]]:
    """What a pass over ids[n_past:] gives, wrongly, as logits."""
    logits = model.reference.logits(ids)
    if len(ids) - n_past > 1:
        yield own.ALL_ROWS, lambda: logits[n_past:]
        yield FIRST_TOKEN_LOGITS, lambda: logits[n_past]
        yield own.LAST_TOKEN_MISSING, lambda: logits[-2]
        yield from _last_token_again(model, ids, n_past)
    yield own.ALL_ROWS, lambda: logits[-1:]
    for bug, wrong in wrong_runs(model, ids, n_past):
        yield bug, lambda wrong=wrong: wrong().logits[-1]


def _last_token_again(model: JudgeModel, ids: Sequence[int], n_past: int) -> Iterator[tuple[Bug, Callable]]:
    """The last of the tokens is fed once more after the pass, at its own position or at the next."""
    reference, last = model.reference, len(ids) - 1
    past = part_of_rows(reference.run(ids).kv, 0, n_past) if n_past else None
    for position in (last, last + 1):
        if position < model.config.n_ctx:
            positions = [*range(n_past, len(ids)), position]
            yield (
                own.LAST_TOKEN_AGAIN,
                lambda p=positions: reference.run([*ids[n_past:], ids[-1]], past=past, positions=p).logits[-1],
            )
