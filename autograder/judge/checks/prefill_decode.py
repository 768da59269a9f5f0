"""The checks of prefill-decode: the prompt in one pass, then one token at a time, equal to a recompute throughout.

`decode_step` is judged on caches that the judge fills through `append`, so that what is wrong with prefill does not
count twice, and so that a function which never saw the earlier ids cannot run them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from autograder.judge.bugs import (
    CACHED_ROWS_IGNORED,
    FIRST_TOKEN_LOGITS,
    HALF_PRECISION,
    HEADS_MERGED_WRONG,
    HEADS_SPLIT_WRONG,
    KEYS_VALUES_SWAPPED,
    MASK_WITHOUT_OFFSET,
    NO_CAUSAL_MASK,
    NO_FINAL_LAYER_NORM,
    POSITIONS_COUNTED_TWICE,
    POSITIONS_MISSING,
    POSITIONS_RESET,
    QKV_ORDER,
    SCORES_SCALED_BY_EMBD,
    SCORES_UNSCALED,
    Bug,
    define,
    positions_shifted,
)
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.recompute import KV, RIGHT, Mistakes, Run
from autograder.judge.student import Handle, Student, StudentError

STAGE = "prefill-decode"
CLEAR = 0.02  # a greedy choice counts when the best logit leads by this much; float32 moves a logit by 1e-5

# The bugs of this stage alone

ALL_ROWS = define(
    "prefill-all-rows",
    "logits of every token returned",
    "The logits of all tokens were returned: only those after the last token are asked for, one row [n_vocab].",
)
LAST_BUT_ONE = define(
    "prefill-last-but-one",
    "logits of the last token but one",
    "These are the logits after the last token but one.",
)
SAME_POSITION = define(
    "prefill-one-position",
    "all tokens at one position",
    "It looks as if all tokens of a pass had been given one and the same position: token i stands at position + i.",
)
LAST_ROW_MISSING = define(
    "prefill-last-row-missing",
    "last prompt token not cached",
    "The last token of the prompt has no row: its keys and values belong in the cache like all the others.",
)
CACHE_LEFT_EMPTY = define(
    "prefill-cache-left-empty",
    "the caller's cache stays empty",
    "The cache that was passed is still empty: fill it, and do not make a new one or work on a clone.",
)
FED_TWICE = define(
    "prefill-fed-twice",
    "prompt fed twice",
    "The cache has twice the tokens you have seen: the prompt went through the model two times.",
)
ONE_LAYER_FOR_ALL = define(
    "prefill-one-layer-for-all",
    "all blocks share one layer's cache",
    "All rows are in one layer: block i appends to cache.layers[i].",
)
LAYERS_MIXED = define(
    "prefill-layers-mixed",
    "layers in another order",
    "Every row is there, in another layer than the one it belongs to: block i uses cache.layers[i].",
)
LOOKS_AHEAD = define(
    "prefill-looks-ahead",
    "later tokens change earlier rows",
    "The rows of earlier tokens change when a later token of the prompt changes, so a token can see what comes after "
    "it: look at the mask.",
)
CACHE_REPLACED = define(
    "prefill-starts-anew",
    "earlier chunks dropped",
    "These are the logits of the last chunk as if it were the whole prompt: continue the cache that was passed.",
)
ROW_NOT_KEPT = define(
    "decode-row-not-kept",
    "new token not cached",
    "The cache does not grow: the new token's keys and values must be appended, for the tokens after it to see.",
)
ROW_KEPT_TWICE = define(
    "decode-row-kept-twice",
    "new token cached twice",
    "Each step adds two rows for one token: append a token's keys and values once.",
)
ROWS_REPLACED = define(
    "decode-rows-replaced",
    "earlier rows changed",
    "Rows that were in the cache before the step are different after it: keys and values of earlier tokens never "
    "change.",
)
POSITION_IGNORED = define(
    "decode-position-ignored",
    "position ignored",
    "The position that was passed is not used, as if it were always len(cache): use it, or raise a ValueError when the "
    "two differ.",
)
GENERATE_RESTARTS = define(
    "generate-positions-restart",
    "new tokens at positions 0, 1, 2, ...",
    "It looks as if generate counted the positions of the new tokens from 0: the first stands at len(prompt_ids).",
)
GENERATE_STUCK = define(
    "generate-position-stuck",
    "every new token at the same position",
    "It looks as if every new token stood at position len(prompt_ids): each is one further than the token before it.",
)
LAST_TOKEN_TWICE = define(
    "generate-last-token-twice",
    "last prompt token fed twice",
    "It looks as if the last token of the prompt had been fed again after prefill: prefill's own logits give the first "
    "new token.",
)
FED_AGAIN = define(
    "generate-feeds-all-again",
    "all tokens fed again with the cache",
    "The cache has about 2x the tokens you have seen: it looks as if prompt and new tokens were all fed again at each "
    "step. With the cache, feed the newest token alone.",
)
NOT_FED_BACK = define(
    "generate-not-fed-back",
    "new tokens not fed back",
    "It looks as if one token were decoded again and again: feed the newest id.",
)
PROMPT_RETURNED = define(
    "generate-returns-prompt",
    "the prompt is returned too",
    "It looks as if the prompt were returned along with the new ids.",
)
FIRST_ID_LOST = define(
    "generate-first-id-lost",
    "first new id left out",
    "The ids are right from the second one on: the first new id comes from prefill's logits and belongs in the list.",
)
NUMBER_OF_IDS = define(
    "generate-number-of-ids",
    "wrong number of ids",
    "The ids are right as far as they go: count how often the loop runs.",
)
ZERO_GIVES_ONE = define(
    "generate-zero-gives-one",
    "0 new tokens give one",
    "Every other number is right: with n_new = 0 nothing may be chosen, so look at n_new before the first argmax.",
)
SAMPLED = define(
    "generate-sampled",
    "sampled, not greedy",
    "Two equal calls gave different ids: greedy takes the largest logit, by argmax.",
)
STATE_KEPT = define(
    "generate-state-kept",
    "a cache kept from call to call",
    "The first call was right and an equal call after it is not: make a new ModelCache inside generate each time. A "
    "default argument is made once for all calls.",
)
RECOMPUTES = define(
    "generate-recomputes",
    "recomputes at each step",
    "That is the work of running the whole sequence again for each new token: after prefill, feed only the newest one.",
)
PROMPT_RUN_TWICE = define(
    "generate-prompt-run-twice",
    "prompt run two times",
    "It looks as if the prompt went through the model two times: one prefill gives both the cache and the logits.",
)
ONE_STEP_TOO_MANY = define(
    "generate-one-step-too-many",
    "one decode step too many",
    "It looks as if the last new token were fed to the model as well: nothing is chosen after it, so it needs no step "
    "and no row. The cache ends with prompt + n_new - 1 rows.",
)
LIMIT_TOO_LOW = define(
    "decode-limit-too-low",
    "limit one too low",
    "It looks as if the limit were one too low: position n_ctx - 1 is the last one and can be used.",
)
POSITION_CLAMPED = define(
    "decode-position-clamped",
    "positions clamped to n_ctx - 1",
    "It looks as if the tokens past the end were given the last position, n_ctx - 1: NumPy also does so silently when "
    "a slice of wpe ends early and one row is left to broadcast. Compare with n_ctx first.",
)
POSITION_WRAPPED = define(
    "decode-position-wrapped",
    "positions start over past n_ctx",
    "It looks as if the positions started over at 0 past the end.",
)
WINDOW_SLID = define(
    "decode-window-slid",
    "oldest rows dropped",
    "It looks as if the oldest rows were dropped to make room: that keeps the code running and spoils what it says.",
)
EMPTY_PROMPT = define(
    "prefill-empty-prompt",
    "empty prompt accepted",
    "There are no logits after no token: look for an empty prompt first, and raise a ValueError.",
)

_MODEL_MISTAKES: tuple[tuple[Bug, Mistakes], ...] = (
    (NO_FINAL_LAYER_NORM, RIGHT.with_(final_norm=False)),
    (POSITIONS_MISSING, RIGHT.with_(positions="missing")),
    (NO_CAUSAL_MASK, RIGHT.with_(mask="none")),
    (MASK_WITHOUT_OFFSET, RIGHT.with_(mask="no-offset")),
    (KEYS_VALUES_SWAPPED, RIGHT.with_(qkv="qvk")),
    *((QKV_ORDER, RIGHT.with_(qkv=order)) for order in ("kqv", "vkq", "kvq", "vqk")),
    (HEADS_MERGED_WRONG, RIGHT.with_(merge="reshape")),
    (HEADS_SPLIT_WRONG, RIGHT.with_(split="reshape")),
    (SCORES_UNSCALED, RIGHT.with_(scale="none")),
    (SCORES_SCALED_BY_EMBD, RIGHT.with_(scale="n_embd")),
)


# In words


def _tokens(n: int) -> str:
    return f"{n} token{'' if n == 1 else 's'}"


def _after(model: JudgeModel, n_prompt: int) -> str:
    return f"for a prompt of {_tokens(n_prompt)} on {model.about}"


def _step(model: JudgeModel, n_cached: int) -> str:
    return f"for a token after {n_cached} cached on {model.about}"


# The right answers, and the wrong ones people get


def _rows(kv: KV, n: int) -> KV:
    return [(k[:, :n], v[:, :n]) for k, v in kv]


def _wrong_runs(model: JudgeModel, ids: Sequence[int], n_past: int) -> Iterator[tuple[Bug, Callable[[], Run]]]:
    """The passes over ids[n_past:] that people get wrong; the past is right, or made by the same mistake."""
    reference, n_ctx = model.reference, model.config.n_ctx
    new, n_new = list(ids[n_past:]), len(ids) - n_past
    past = _rows(reference.run(ids).kv, n_past) if n_past else None

    def at(positions, past=past):
        return lambda: reference.run(new, past=past, positions=positions)

    if n_past:
        yield POSITIONS_RESET, at(range(n_new))
        yield CACHE_REPLACED, at(range(n_new), None)
        yield CACHED_ROWS_IGNORED, at(range(n_past, n_past + n_new), None)
        if 2 * n_past + n_new <= n_ctx:
            yield POSITIONS_COUNTED_TWICE, at(range(2 * n_past, 2 * n_past + n_new))
    for k in (1, -1, 2):
        if 0 <= n_past + k <= n_ctx - n_new:
            yield positions_shifted(k), at(range(n_past + k, n_past + k + n_new))
    if n_new > 1:
        yield SAME_POSITION, at([n_past] * n_new)
        yield SAME_POSITION, at([n_past + n_new - 1] * n_new)
    for bug, mistakes in _MODEL_MISTAKES:
        yield bug, lambda m=mistakes: reference.run(new, past=past, mistakes=m)
        if n_past > 0:
            yield (
                bug,
                lambda m=mistakes: reference.run(new, past=reference.run(ids[:n_past], mistakes=m).kv, mistakes=m),
            )


def _wrong_logits(
    model: JudgeModel, ids: Sequence[int], n_past: int = 0
) -> Iterator[tuple[Bug, Callable[[], np.ndarray]]]:
    """What a pass over ids[n_past:] gives, wrongly, as logits."""
    logits = model.reference.logits(ids)
    if len(ids) - n_past > 1:
        yield ALL_ROWS, lambda: logits[n_past:]
        yield FIRST_TOKEN_LOGITS, lambda: logits[n_past]
        yield LAST_BUT_ONE, lambda: logits[-2]
    yield ALL_ROWS, lambda: logits[-1:]
    for bug, wrong in _wrong_runs(model, ids, n_past):
        yield bug, lambda wrong=wrong: wrong().logits[-1]


def _prefilled(student: Student, model: JudgeModel, *chunks: Sequence[int]) -> tuple[Handle, np.ndarray]:
    """A cache of the student's after prefill of each chunk in turn, and the logits of the last."""
    cache = student.handle("ModelCache", model.config.n_layer)
    for chunk in chunks:
        logits = student.array("prefill", list(chunk), model, cache)
    return cache, logits


def _cached(student: Student, model: JudgeModel, ids: Sequence[int], n: int) -> Handle:
    """A cache of the student's that holds the right rows of ids[:n]; no function of the student's made them."""
    return student.make_cache(model, _rows(model.reference.run(ids).kv, n))


# Prefill


@check(stage=STAGE, id="prefill-logits", points=2, title="prefill gives the logits after the last prompt token")
def prefill_logits(student, cases):
    """prefill returns the logits [n_vocab] after the prompt's last token, equal to a recompute of the prompt."""
    sweep = Sweep("prompt lengths")
    middle, small, large = cases.odd
    for model, lengths in (
        (small, range(1, small.config.n_ctx + 1)),
        (middle, (1, 2, 3, middle.config.n_ctx)),
        (large, (2, 9, large.config.n_ctx)),
        (cases.trained, (1, 37)),
    ):
        ids = cases.ids(model, max(lengths))
        for n in lengths:
            with sweep.at(n):
                _, logits = _prefilled(student, model, ids[:n])
                sweep.close(
                    logits,
                    model.reference.logits(ids)[n - 1],  # what comes after a token changes nothing before it
                    name="prefill",
                    axes=("id",),
                    where=_after(model, n),
                    suspects=_wrong_logits(model, ids[:n]),
                )
    sweep.finish()


@check(stage=STAGE, id="prefill-cache", points=2, title="After prefill the cache holds exactly the prompt")
def prefill_cache(student, cases):
    """After prefill every layer of the cache holds the keys and values of the prompt's tokens, one row a token, and a
    row does not depend on the tokens after it."""
    sweep = Sweep("prompt lengths")
    middle, small, _ = cases.odd
    for model, lengths in (
        (small, (1, 2, 3, 8, small.config.n_ctx)),
        (middle, (1, 5, middle.config.n_ctx)),
        (cases.trained, (19,)),
    ):
        ids = cases.ids(model, max(lengths))
        for n in lengths:
            with sweep.at(n):
                cache, _ = _prefilled(student, model, ids[:n])
                try:
                    _expect_rows(student.read_cache(cache, "the cache"), model, ids[:n], 0, _after(model, n))
                except Failure as failure:
                    ahead = failure.bug is None and n > 2 and _looks_ahead(student, model, ids[:n])
                    raise Failure(None, failure.detail, LOOKS_AHEAD if ahead else failure.bug) from None
    sweep.finish()


def _looks_ahead(student: Student, model: JudgeModel, ids: list[int]) -> bool:
    """Whether the student's rows of the first half change when only the last token does."""
    half = len(ids) // 2
    other = [*ids[:-1], (ids[-1] + 1) % model.config.n_vocab]
    one, two = (student.read_cache(_prefilled(student, model, prompt)[0], "the cache") for prompt in (ids, other))
    return any(
        not _same(a[:, :half], b[:, :half]) for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True)
    )


def _expect_rows(kv: KV, model: JudgeModel, ids: Sequence[int], n_past: int, where: str) -> None:
    """Every layer of the student's cache holds the rows of ids, of which n_past were there before the call."""
    n, right = len(ids), model.reference.run(ids).kv
    counts = [sorted({keys.shape[1], values.shape[1]}) for keys, values in kv]
    if len(kv) != len(right):
        raise Failure(None, f"The cache has {len(kv)} layers where the model has {len(right)} ({where}).")
    if counts != [[n]] * len(kv):
        layer = next(i for i, c in enumerate(counts) if c != [n])
        has = " and ".join(map(str, counts[layer]))
        detail = f"Layer {layer} holds {has} row{'' if counts[layer] == [1] else 's'} where {n} belong ({where})."
        raise Failure(None, detail, _count_bug([c[0] for c in counts], n_past, n))
    for i, (layer, expected) in enumerate(zip(kv, right, strict=True)):
        for name, actual, wanted in zip(("keys", "values"), layer, expected, strict=True):
            if not _same(actual, wanted):
                try:
                    axes = ("head", "row", "element")
                    expect_close(actual, wanted, name=f"{name} of layer {i}", where=where, axes=axes, **_ROWS)
                except Failure as failure:
                    raise Failure(None, failure.detail, _row_bug(kv, model, ids, n_past)) from None


_ROWS = {"atol": 3e-4, "rtol": 1e-4}  # float32 is within 1e-5; float16 is off by 1e-3


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return matches(a, b, **_ROWS)


def _count_bug(counts: list[int], n_past: int, n: int) -> Bug | None:
    """What the numbers of rows of the layers look like."""
    n_new = n - n_past
    if len(counts) > 1 and counts[0] != n and len({*counts[1:]}) == 1 and counts[1] == n_past:
        return ONE_LAYER_FOR_ALL if counts[0] > n else None
    if len(set(counts)) > 1:
        return None
    if counts[0] == n_past:
        return ROW_NOT_KEPT if n_past else CACHE_LEFT_EMPTY if n_new > 1 else None
    if counts[0] == n + n_new:
        return ROW_KEPT_TWICE if n_past else FED_TWICE
    return LAST_ROW_MISSING if counts[0] == n - 1 else None


def _row_bug(kv: KV, model: JudgeModel, ids: Sequence[int], n_past: int) -> Bug | None:
    """What the wrong rows of a cache of the right length look like."""
    right = model.reference.run(ids).kv
    flat = np.concatenate([a.ravel() for pair in kv for a in pair]).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(flat).all() and flat.any() and (flat == flat.astype(np.float16)).all():
            return HALF_PRECISION
    past = all(
        _same(a[:, :n_past], b[:, :n_past]) for x, y in zip(kv, right, strict=True) for a, b in zip(x, y, strict=True)
    )
    if n_past and not past:
        return ROWS_REPLACED

    def looks_like(candidate: KV) -> bool:
        return all(matches(a, b) for x, y in zip(kv, candidate, strict=True) for a, b in zip(x, y, strict=True))

    if all(any(_same(k, a) and _same(v, b) for a, b in right) for k, v in kv):
        return LAYERS_MIXED
    if looks_like([(v, k) for k, v in right]):
        return KEYS_VALUES_SWAPPED
    return next((bug for bug, wrong in _wrong_runs(model, ids, n_past) if looks_like(wrong().kv)), None)


@check(stage=STAGE, id="prefill-in-chunks", points=2, title="prefill in chunks equals prefill at once")
def prefill_in_chunks(student, cases):
    """A prompt that comes in chunks, each continuing at len(cache), gives the same logits and the same cache as the
    prompt at once."""
    _, small, large = cases.odd
    sweep = Sweep("lengths of the first chunk")
    for model, n, firsts in (
        (small, 11, range(1, 11)),
        (large, large.config.n_ctx, (1, 2, 12, 25)),
        (cases.trained, 24, (9,)),
    ):
        ids = cases.ids(model, n)
        for first in firsts:
            with sweep.at(first):
                _, logits = _prefilled(student, model, ids[:first], ids[first:])
                where = f"for a chunk of {first} and one of {_tokens(n - first)} on {model.about}"
                _compare_chunk(sweep, logits, model, ids, first, where)
    sweep.finish()

    sweep = Sweep("numbers of chunks")
    ids = cases.ids(small, small.config.n_ctx, "many")
    for ends in ((4, 5, 11, 13), (*range(1, 14),)):
        with sweep.at(len(ends)):
            starts = (0, *ends[:-1])
            cache, logits = _prefilled(student, small, *(ids[a:b] for a, b in zip(starts, ends, strict=True)))
            where = f"for {_tokens(len(ids))} in {len(ends)} chunks on {small.about}"
            _compare_chunk(sweep, logits, small, ids, starts[-1], where)
            _expect_rows(student.read_cache(cache, "the cache"), small, ids, 0, where)
    sweep.finish()


def _compare_chunk(sweep: Sweep, logits, model: JudgeModel, ids: Sequence[int], n_past: int, where: str) -> None:
    sweep.close(
        logits,
        model.reference.logits(ids)[-1],
        name="prefill",
        axes=("id",),
        where=where,
        suspects=_wrong_logits(model, ids, n_past),
    )


# Decode


@check(stage=STAGE, id="decode-every-step", points=2, title="decode_step equals a recompute at every step")
def decode_every_step(student, cases):
    """decode_step returns the logits [n_vocab] after its token, equal to a recompute of everything so far, at every
    step up to the last position."""
    middle, small, large = cases.odd
    sweep = Sweep("cached lengths")
    for model, lengths in (
        (small, range(1, small.config.n_ctx)),
        (large, (1, 2, 12, large.config.n_ctx - 1)),
        (cases.trained, (1, 30)),
    ):
        ids = cases.ids(model, max(lengths) + 1)
        for n in lengths:
            with sweep.at(n):
                _compare_step(sweep, student, model, _cached(student, model, ids, n), ids, n)
    sweep.finish()

    sweep = Sweep("cached lengths, in one run of steps")
    for model, begin, end in ((middle, 2, middle.config.n_ctx), (cases.trained, 20, 24)):
        ids = cases.ids(model, end, "steps")
        cache = _cached(student, model, ids, begin)
        for n in range(begin, end):
            with sweep.at(n):
                _compare_step(sweep, student, model, cache, ids, n)
    sweep.finish()


def _compare_step(sweep: Sweep, student: Student, model: JudgeModel, cache: Handle, ids: Sequence[int], n: int) -> None:
    """One step of the student's after n cached tokens; ids goes on after it, which changes nothing before."""
    sweep.close(
        student.array("decode_step", ids[n], n, model, cache),
        model.reference.logits(ids)[n],
        name="decode_step",
        axes=("id",),
        where=_step(model, n),
        suspects=_wrong_logits(model, ids[: n + 1], n),
    )


@check(stage=STAGE, id="decode-position", points=1, title="decode_step uses the position it is given")
def decode_position(student, cases):
    """decode_step adds the row of wpe of the position it is given; a position that is not len(cache) may be refused,
    but not replaced."""
    for model, n in ((cases.odd[0], 6), (cases.odd[2], 9)):
        ids = cases.ids(model, n + 1)
        reference = model.reference
        past = _rows(reference.run(ids).kv, n)
        for k in (0, 3, 1, -2):
            cache = student.make_cache(model, past)
            try:
                logits = student.array("decode_step", ids[n], n + k, model, cache)
            except StudentError as error:
                if k and error.loud:
                    continue
                raise
            right = reference.run(ids[n:], past=past, positions=[n + k]).logits[-1]
            where = f"for a token at position {n + k} after {n} cached on {model.about}"
            suspects = _wrong_positions(model, ids, n, k) if k else _wrong_logits(model, ids, n)
            expect_close(logits, right, name="decode_step", axes=("id",), where=where, suspects=suspects)


def _wrong_positions(model: JudgeModel, ids: Sequence[int], n: int, k: int) -> Iterator[tuple[Bug, Callable]]:
    """What a step after n cached tokens gives that was asked to stand at n + k and stands elsewhere."""
    past = _rows(model.reference.run(ids).kv, n)

    def at(position):
        return lambda: model.reference.run(ids[n:], past=past, positions=[position]).logits[-1]

    yield POSITION_IGNORED, at(n)
    for j in (1, -1):
        yield positions_shifted(j), at(n + k + j)


@check(stage=STAGE, id="decode-grows-cache", points=1, title="A decode step adds one row to every layer")
def decode_grows_cache(student, cases):
    """A decode step appends its token's keys and values to every layer, one row, and leaves the earlier rows as they
    are."""
    for model, n, n_steps in ((cases.odd[1], 5, 3), (cases.odd[0], 1, 2), (cases.trained, 12, 1)):
        ids = cases.ids(model, n + n_steps)
        cache = _cached(student, model, ids, n)
        for i in range(n, n + n_steps):
            student.plain("decode_step", ids[i], i, model, cache)
            where = f"after {i - n + 1} decode step{'s' if i > n else ''} on a cache of {_tokens(n)}, {model.about}"
            _expect_rows(student.read_cache(cache, "the cache"), model, ids[: i + 1], i, where)


# Generate


@check(stage=STAGE, id="generate-ids", points=2, title="generate returns exactly n_new greedy ids")
def generate_ids(student, cases):
    """generate returns a list of exactly n_new ids, each the one with the largest logit of a recompute of everything
    before it."""
    lively = [_lively(model) for model in cases.odd]
    plans = ((lively[0], 5, 9), (lively[2], 1, 12), (lively[1], 4, 1), (lively[1], 3, 2), (cases.trained, 11, 8))
    sweep = Sweep("numbers of new ids")
    for model, n_prompt, n_new in plans:
        with sweep.at(n_new):
            prompt, expected = _clear_prompt(cases, model, n_prompt, n_new)
            where = f"for a prompt of {_tokens(n_prompt)} on {model.about}"
            _expect_ids(student, model, prompt, n_new, expected, where)
    with sweep.at(0):
        ids = student.ids("generate", cases.ids(lively[0], 6, "none"), 0, lively[0])
        if ids:
            raise Failure(
                None,
                f"generate returned {len(ids)} id{'s' if len(ids) > 1 else ''} for n_new = 0.",
                ZERO_GIVES_ONE if len(ids) == 1 else NUMBER_OF_IDS,
            )
    sweep.finish()


def _lively(model: JudgeModel) -> JudgeModel:
    """The model with larger position embeddings. With its own, a random model would repeat one token for ever, at any
    position, and no wrong position would show in the ids."""
    return model.patched("wpe.weight", 3 * model.weights.wpe)


def _clear_prompt(cases: Cases, model: JudgeModel, n_prompt: int, n_new: int) -> tuple[list[int], list[int]]:
    """A prompt and its greedy ids, as far as each leads clearly: a near tie must fail nobody."""
    best: tuple[list[int], list[int]] = ([], [])
    for attempt in range(6):
        prompt = cases.ids(model, n_prompt, "clear", n_new, attempt)
        ids, gaps = model.reference.greedy(prompt, n_new)
        n_clear = next((i for i, gap in enumerate(gaps) if gap < CLEAR), n_new)
        if not best[0] or n_clear > len(best[1]):
            best = prompt, ids[:n_clear]
        if n_clear == n_new:
            break
    return best


def _expect_ids(
    student: Student, model: JudgeModel, prompt: list[int], n_new: int, expected: list[int], where: str
) -> None:
    ids = student.ids("generate", prompt, n_new, model)
    n_clear = len(expected)
    if len(ids) == n_new and ids[:n_clear] == expected:
        return
    if len(ids) != n_new:
        detail = f"generate returned {len(ids)} ids where {n_new} are asked for ({where})."
    else:
        first = next(i for i, (a, b) in enumerate(zip(ids, expected, strict=False)) if a != b)
        detail = f"New id {first + 1} of {n_new} is not the greedy one ({where})."
    raise Failure(None, detail, _ids_bug(student, model, prompt, n_new, ids, expected))


def _ids_bug(student, model, prompt, n_new, ids, expected) -> Bug | None:
    n_clear = len(expected)
    if ids == [*prompt, *ids[len(prompt) :]] and ids[len(prompt) :][:n_clear] == expected:
        return PROMPT_RETURNED
    if n_clear > 1 and ids[: n_clear - 1] == expected[1:] and len(ids) in (n_new - 1, n_new):
        return FIRST_ID_LOST
    if len(ids) != n_new and ids[:n_clear] == expected[: len(ids)]:
        return NUMBER_OF_IDS
    for bug, wrong in _wrong_generates(model, prompt, n_new):
        candidate = wrong()
        if candidate is not None and candidate[:n_clear] != expected and ids == candidate:
            return bug
    again = student.ids("generate", prompt, n_new, model)
    return SAMPLED if again != ids else None


def _wrong_generates(model: JudgeModel, prompt: list[int], n_new: int):
    """The ids of loops that people get wrong; None where the loop would run past the end."""
    reference, n_ctx, n = model.reference, model.config.n_ctx, len(prompt)

    def loop(feed: Callable[[list[int], int], tuple[list[int], list[int]]], first=((), ())):
        def ids():
            run = reference.run(prompt)
            new: list[int] = []
            steps = [first] if first[0] else []
            while True:
                for tokens, positions in steps:
                    if not 0 <= min(positions) <= max(positions) < n_ctx:
                        return None
                    run = reference.run(tokens, past=run.kv, positions=positions)
                new.append(int(run.logits[-1].argmax()))
                if len(new) == n_new:
                    return new
                steps = [feed(new, run.kv[0][0].shape[1])]

        return ids

    def newest_at(position: Callable[[int, int], int], **options):
        return loop(lambda new, n_cached: ([new[-1]], [position(len(new) - 1, n_cached)]), **options)

    yield GENERATE_RESTARTS, newest_at(lambda i, n_cached: i)
    for k in (1, -1, 2):
        yield positions_shifted(k), newest_at(lambda i, n_cached, k=k: n_cached + k)
    yield POSITIONS_COUNTED_TWICE, newest_at(lambda i, n_cached: n + n_cached)
    yield GENERATE_STUCK, newest_at(lambda i, n_cached: n)
    yield LAST_TOKEN_TWICE, newest_at(lambda i, n_cached: n_cached, first=(prompt[-1:], [n]))
    yield LAST_TOKEN_TWICE, newest_at(lambda i, n_cached: n_cached - 1, first=(prompt[-1:], [n - 1]))
    yield NOT_FED_BACK, loop(lambda new, n_cached: (prompt[-1:], [n_cached]))
    yield NOT_FED_BACK, loop(lambda new, n_cached: (new[:1], [n_cached]))
    yield FED_AGAIN, loop(lambda new, n_cached: (prompt + new, list(range(n_cached, n_cached + n + len(new)))))
    yield FED_AGAIN, loop(lambda new, n_cached: (prompt + new, list(range(n + len(new)))))


@check(stage=STAGE, id="generate-work", points=1, title="Each token goes through the model once")
def generate_work(student, cases):
    """generate sends prompt and new tokens through the model once: prompt + n_new - 1 tokens of work, however long the
    sequence grows."""
    model = _lively(cases.odd[2])
    for n_prompt, n_new in ((6, 14), (3, 3)):
        prompt, expected = _clear_prompt(cases, model, n_prompt, n_new)
        ids, tokens = student.counted_ids("generate", prompt, n_new, model)
        where = f"for a prompt of {n_prompt} and {n_new} new ids on {model.about}"
        enough = n_prompt + n_new - 1
        right = len(ids) == n_new and ids[: len(expected)] == expected
        # A function that looks nothing like generating has done no work to be judged.
        if not ids or (expected and ids[0] != expected[0]):
            raise Failure(None, f"The first new id is not the greedy one, so there is nothing to count ({where}).")
        # Not seen is neither passed nor accused: both who recompute and who do not are told how to be seen.
        if tokens is None or tokens < enough - 0.5:
            seen = f"{tokens or 0:.0f} of the {enough} tokens that must go through the model were seen"
            remedy = "Call prefill and decode_step in generate, or multiply by the arrays in weights as they are."
            raise Failure(None, f"Only {seen} ({where}). {remedy}")
        # One token more is one step after the last new id: the check at the context limit is the one that tells.
        if tokens > enough + 1.5:
            whole = sum(range(n_prompt, enough + 1))
            bug = None
            if abs(tokens - enough - n_prompt) <= 1:
                bug = PROMPT_RUN_TWICE
            if tokens >= 0.9 * whole:
                bug = RECOMPUTES if right else FED_AGAIN
            detail = f"generate sent {tokens:.0f} tokens through the model where {enough} are enough ({where})."
            raise Failure(None, detail, bug)


# The limits


@check(stage=STAGE, id="decode-context-limit", points=1, title="What fits into n_ctx works, what does not is an error")
def decode_context_limit(student, cases):
    """Every position up to n_ctx - 1 can be used, so generate works while prompt + n_new - 1 <= n_ctx; one more token,
    or an empty prompt, is a ValueError or an IndexError."""
    model = cases.odd[1]
    n_ctx, reference = model.config.n_ctx, model.reference
    ids = cases.ids(model, n_ctx + 1)
    full = reference.run(ids[:n_ctx])
    on = f"on {model.about}"

    # What fits
    for name, n_past in (("prefill", 0), ("prefill", n_ctx - 3), ("decode_step", n_ctx - 1)):
        cache = student.make_cache(model, _rows(full.kv, n_past))
        what = f"up to position {n_ctx - 1}, the last one, {on}"
        args = ([ids[n_past:n_ctx]] if name == "prefill" else [ids[n_past], n_past]) + [model, cache]
        try:
            logits = student.array(name, *args)
        except StudentError as error:
            raise _limit_failure(error, what, LIMIT_TOO_LOW) from None
        suspects = _wrong_logits(model, ids[:n_ctx], n_past)
        expect_close(logits, full.logits[-1], name=name, axes=("id",), where=f"for tokens {what}", suspects=suspects)
    lively = _lively(model)
    for n_prompt in (5, n_ctx):
        n_new = n_ctx + 1 - n_prompt
        prompt, expected = _clear_prompt(cases, lively, n_prompt, n_new)
        where = f"for a prompt of {n_prompt} and n_ctx = {n_ctx} on {model.about}"
        try:
            _expect_ids(student, lively, prompt, n_new, expected, where)
        except StudentError as error:
            bug = _one_step_too_many(student, lively, prompt, n_new)
            raise _limit_failure(
                error,
                f"a prompt of {n_prompt} and {n_new} new ids, of which the last needs no row, {on} "
                f"with n_ctx = {n_ctx}",
                bug,
            ) from None

    # What does not
    for name, new, n_past, what in (
        ("prefill", ids[:3], n_ctx - 1, f"a chunk of 3 tokens after {n_ctx - 1} cached"),
        ("prefill", ids[:1], n_ctx, "one token more than n_ctx"),
        ("prefill", ids, 0, f"a prompt of n_ctx + 1 = {n_ctx + 1} tokens"),
        ("decode_step", ids[n_ctx:], n_ctx, f"a decode step at position n_ctx = {n_ctx}"),
    ):
        cache = student.make_cache(model, _rows(full.kv, n_past))
        args = ([new] if name == "prefill" else [new[0], n_past]) + [model, cache]
        _expect_refusal(student, name, args, f"{what} {on}", _past_the_end(model, new, n_past, full))
    for n_prompt, n_new in ((5, n_ctx - 3), (n_ctx, 2), (n_ctx + 1, 1)):
        what = f"a prompt of {n_prompt} and {n_new} new ids, one too many for n_ctx = {n_ctx},"
        student.expect_error("generate", ids[:n_prompt], n_new, model, what=what, bug=None)
    empty = student.handle("ModelCache", model.config.n_layer)
    student.expect_error("prefill", [], model, empty, what="an empty prompt", bug=EMPTY_PROMPT)
    student.expect_error(
        "prefill",
        [],
        model,
        _cached(student, model, ids[:n_ctx], 4),
        what="an empty chunk after 4 cached tokens",
        bug=EMPTY_PROMPT,
    )
    student.expect_error("generate", [], 3, model, what="an empty prompt", bug=EMPTY_PROMPT)


def _limit_failure(error: StudentError, what: str, bug: Bug | None) -> Exception:
    if error.stub or error.kind == "missing":
        return error
    return Failure(None, f"{error.sentence[:-1]}, for {what}.", bug if error.loud else None)


def _one_step_too_many(student: Student, model: JudgeModel, prompt: list[int], n_new: int) -> Bug | None:
    """Whether generate, where there is room, sends the last new token through the model as well."""
    if n_new < 3:
        return None
    try:
        _, tokens = student.counted_ids("generate", prompt, n_new - 2, model)
    except StudentError:
        return None
    return ONE_STEP_TOO_MANY if tokens and abs(tokens - len(prompt) - n_new + 2) < 0.5 else None


def _past_the_end(model: JudgeModel, new: list[int], n_past: int, full: Run) -> Iterator[tuple[Bug, Callable]]:
    reference, n_ctx, n_new = model.reference, model.config.n_ctx, len(new)
    past = _rows(full.kv, n_past) if n_past else None
    right = range(n_past, n_past + n_new)
    yield POSITION_CLAMPED, lambda: reference.run(new, past=past, positions=[min(p, n_ctx - 1) for p in right])
    yield POSITION_WRAPPED, lambda: reference.run(new, past=past, positions=[p % n_ctx for p in right])
    if past:
        late = [(k[:, -(n_ctx - n_new) :], v[:, -(n_ctx - n_new) :]) for k, v in past]
        yield WINDOW_SLID, lambda: reference.run(new, past=late, positions=range(n_ctx - n_new, n_ctx))
    yield WINDOW_SLID, lambda: reference.run(new[-n_ctx:])


def _expect_refusal(student: Student, name: str, args: list, what: str, suspects) -> None:
    try:
        logits = student.array(name, *args)
    except StudentError as error:
        if error.loud:
            return
        if error.stub or error.kind == "missing":
            raise
        raise Failure(None, f"For {what}, {error.sentence[:-1]}; a ValueError is expected.") from None
    bug = next((bug for bug, wrong in suspects if matches(logits, wrong().logits[-1])), None)
    raise Failure(None, f"For {what}, {name} returned as if nothing were wrong; a ValueError is expected.", bug)
