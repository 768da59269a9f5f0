"""The wrong passes through the model that the checks of prefill and decode recognize."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from autograder.judge import bugs
from autograder.judge.bugs import Bug
from autograder.judge.cases import JudgeModel
from autograder.judge.reference import Run, part_of_rows
from autograder.judge.variants import Suspect, variant
from autograder.stages.prefill_decode import bugs as own

_MODEL_MISTAKES: tuple[Suspect, ...] = (
    (bugs.NO_FINAL_LAYER_NORM, "no-final-layer-norm"),
    (bugs.POSITIONS_MISSING, "positions-missing"),
    (bugs.NO_CAUSAL_MASK, "no-causal-mask"),
    (bugs.MASK_SEES_NEXT, "mask-sees-next"),
    (bugs.MASK_WITHOUT_OFFSET, "mask-without-offset"),
    (bugs.KEYS_VALUES_SWAPPED, "qkv-qvk"),
    *((bugs.QKV_ORDER, f"qkv-{order}") for order in ("kqv", "vkq", "kvq", "vqk")),
    (bugs.HEADS_MERGED_WRONG, "heads-merged-wrong"),
    (bugs.NORMED_RESIDUAL, "normed-residual"),
    (bugs.NORMED_RESIDUAL, "normed-attention"),
    (bugs.NO_RESIDUAL_ATTENTION, "no-residual-attention"),
    (bugs.NO_RESIDUAL_MLP, "no-residual-mlp"),
    (bugs.LN_1_TWICE, "ln-1-twice"),
)


def wrong_runs(model: JudgeModel, ids: Sequence[int], n_past: int) -> Iterator[tuple[Bug, Callable[[], Run]]]:
    """The passes over ids[n_past:] that people get wrong; the past is right, or made by the same mistake."""
    reference, n_ctx = model.reference, model.config.n_ctx
    new, n_new = list(ids[n_past:]), len(ids) - n_past
    past = part_of_rows(reference.run(ids).kv, 0, n_past) if n_past else None

    def at(positions, past=past):
        return lambda: reference.run(new, past=past, positions=positions)

    if n_past:
        yield bugs.POSITIONS_RESET, at(range(n_new))
        yield own.OWN_CACHE, at(range(n_new), None)
        yield bugs.CACHED_ROWS_IGNORED, at(range(n_past, n_past + n_new), None)
        if 2 * n_past + n_new <= n_ctx:
            yield bugs.POSITIONS_COUNTED_TWICE, at(range(2 * n_past, 2 * n_past + n_new))
    for k in (1, -1, 2):
        if 0 <= n_past + k <= n_ctx - n_new:
            yield bugs.positions_shifted(k), at(range(n_past + k, n_past + k + n_new))
    if n_new > 1:
        yield own.SAME_POSITION, at([n_past] * n_new)
    if n_past and n_new == 1:
        yield own.ATTENDS_TOO_EARLY, lambda: variant(reference, "mask-strict").run(new, past=past)
    for bug, name in _MODEL_MISTAKES:
        wrong = variant(reference, name)
        yield bug, lambda wrong=wrong: wrong.run(new, past=past)
        if n_past:
            yield bug, lambda wrong=wrong: wrong.run(new, past=wrong.run(ids[:n_past]).kv)


def wrong_logits(model: JudgeModel, ids: Sequence[int], n_past: int) -> Iterator[tuple[Bug, Callable[[], np.ndarray]]]:
    """What a pass over ids[n_past:] gives, wrongly, as logits."""
    logits = model.reference.logits(ids)
    yield own.ALL_ROWS, lambda: logits[n_past:]
    yield own.ALL_ROWS, lambda: logits[-1:]
    if len(ids) - n_past > 1:
        yield bugs.FIRST_TOKEN_LOGITS, lambda: logits[n_past]
    for bug, wrong in wrong_runs(model, ids, n_past):
        yield bug, lambda wrong=wrong: wrong().logits[-1]
