"""The wrong saved caches and wrong answers that the checks recognize."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autograder.judge.bugs import (
    CACHED_ROWS_IGNORED,
    FIRST_TOKEN_LOGITS,
    KEYS_VALUES_SWAPPED,
    LAYERS_AS_TEXT,
    MASK_WITHOUT_OFFSET,
    NO_CAUSAL_MASK,
    POSITIONS_COUNTED_TWICE,
    POSITIONS_MISSING,
    POSITIONS_RESET,
    Bug,
    positions_shifted,
)
from autograder.judge.cases import JudgeModel
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.variants import variant
from autograder.stages.save_and_reuse import bugs as own


def wrong_saved(model: JudgeModel, prefix: list[int]) -> Iterator[tuple[Bug, Callable[[], KV]]]:
    """The keys and values that a wrong save leaves; each is computed when it is looked at."""
    reference, p, n_ctx = model.reference, len(prefix), model.config.n_ctx
    right = reference.run(prefix).kv
    yield KEYS_VALUES_SWAPPED, lambda: [(v, k) for k, v in right]
    yield LAYERS_AS_TEXT, lambda: [right[i] for i in sorted(range(len(right)), key=str)]
    yield NO_CAUSAL_MASK, lambda: variant(reference, "no-causal-mask").run(prefix).kv
    yield POSITIONS_MISSING, lambda: variant(reference, "positions-missing").run(prefix).kv
    yield own.POSITION_STUCK, lambda: reference.run(prefix, positions=[0] * p).kv
    if p > 1:
        yield own.LAST_PREFIX_ROW_MISSING, lambda: part_of_rows(right, 0, p - 1)
        yield own.FIRST_PREFIX_ROW_MISSING, lambda: part_of_rows(right, 1, p)
        yield own.FIRST_PREFIX_ROW_MISSING, lambda: reference.run(prefix[1:], positions=range(1, p)).kv
        yield own.FIRST_PREFIX_ROW_MISSING, lambda: reference.run(prefix[1:]).kv
    yield own.PREFIX_SAVED_TWICE, lambda: reference.run(prefix, past=right, positions=range(p)).kv
    if 2 * p <= n_ctx:
        yield own.PREFIX_SAVED_TWICE, lambda: reference.run(prefix, past=right).kv
    if p < n_ctx:
        yield own.PREFIX_POSITIONS_SHIFTED, lambda: reference.run(prefix, positions=range(1, p + 1)).kv
        next_id = int(reference.logits(prefix)[-1].argmax())
        yield own.GENERATED_ROW_SAVED, lambda: reference.run([*prefix, next_id]).kv


def reuse_suspects(model: JudgeModel, prefix: list[int], suffix: list[int]) -> Iterator[tuple[Bug, Callable]]:
    """The common wrong answers of a reuse; each is computed when it is looked at."""
    reference, p, s, n_ctx = model.reference, len(prefix), len(suffix), model.config.n_ctx
    whole = reference.run(prefix + suffix)
    saved = part_of_rows(whole.kv, 0, p)

    def decode(positions, ids=suffix, past: KV | None = saved, model=reference):
        return lambda: model.run(ids, past=past, positions=positions).logits[-1]

    right = range(p, p + s)
    yield POSITIONS_RESET, decode(range(s))
    shifts = [k for n in range(1, 9) for k in (n, -n) if p + k >= 0 and p + k + s <= n_ctx]
    for k in shifts[:4]:
        yield positions_shifted(k), decode(range(p + k, p + k + s))
    if 2 * p + s <= n_ctx:
        yield POSITIONS_COUNTED_TWICE, decode(range(2 * p, 2 * p + s))
    yield own.POSITION_STUCK, decode([p] * s)
    yield POSITIONS_MISSING, decode(right, model=variant(reference, "positions-missing"))
    yield FIRST_TOKEN_LOGITS, lambda: whole.logits[p]
    yield own.STOPS_ONE_EARLY, lambda: whole.logits[-2]
    yield own.LAST_PREFIX_LOGITS, lambda: whole.logits[p - 1]
    yield own.ONLY_LAST_TOKEN, decode([p + s - 1], suffix[-1:])
    yield CACHED_ROWS_IGNORED, decode(right, past=None)
    yield CACHED_ROWS_IGNORED, decode(range(s), past=None)
    yield own.SUFFIX_REVERSED, decode(right, suffix[::-1])
    if p + s < n_ctx:
        again = prefix[-1:] + suffix
        yield own.LAST_PREFIX_TOKEN_TWICE, decode(range(p, p + s + 1), again)
        yield own.LAST_PREFIX_TOKEN_TWICE, decode(range(p - 1, p + s), again)
    yield own.ALL_LOGITS, lambda: whole.logits[p:]
    yield own.TOKEN_RETURNED, lambda: whole.logits[-1].argmax()
    yield MASK_WITHOUT_OFFSET, decode(right, model=variant(reference, "mask-without-offset"))
    yield NO_CAUSAL_MASK, decode(right, model=variant(reference, "no-causal-mask"))
    for bug, wrong in wrong_saved(model, prefix):
        yield bug, lambda wrong=wrong: reference.run(suffix, past=wrong(), positions=right).logits[-1]
    for k in shifts[4:]:
        yield positions_shifted(k), decode(range(p + k, p + k + s))
