"""The checks of prefill-decode: the prompt in one pass, then one token at a time, equal to a recompute throughout.

`decode_step` is judged on caches that the judge fills through `append`, so that what is wrong with prefill does not
count twice, and so that a function which never saw the earlier ids cannot run them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from autograder.judge.bugs import (
    CACHED_ROWS_IGNORED,
    FIRST_TOKEN_LOGITS,
    HALF_PRECISION,
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
from autograder.judge.bugs import prefill_decode as own
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.recompute import KV, RIGHT, Mistakes, Run
from autograder.judge.student import Handle, Student, StudentError

STAGE = "prefill-decode"
CLEAR = 0.02  # a greedy choice counts when the best logit leads by this much; float32 moves a logit by 1e-5

# The bugs of this stage alone


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
    (NORMED_RESIDUAL, RIGHT.with_(order="normed-residual")),
    (NORMED_RESIDUAL, RIGHT.with_(order="normed-attention")),
    (NO_RESIDUAL_ATTENTION, RIGHT.with_(residual="no-attention")),
    (NO_RESIDUAL_MLP, RIGHT.with_(residual="no-mlp")),
    (NO_RESIDUAL, RIGHT.with_(residual="none")),
    (LN_1_TWICE, RIGHT.with_(order="ln_1-twice")),
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
        yield own.ATTENDS_TOO_EARLY, lambda: reference.run(new, past=past, mistakes=RIGHT.with_(mask="strict"))
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
        yield own.ALL_ROWS, lambda: logits[n_past:]
        yield FIRST_TOKEN_LOGITS, lambda: logits[n_past]
        yield own.LAST_TOKEN_MISSING, lambda: logits[-2]
    yield own.ALL_ROWS, lambda: logits[-1:]
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


@check(
    stage=STAGE,
    id="prefill-logits",
    points=2,
    title="prefill gives the logits after the last prompt token",
    watches=("prefill",),
)
def prefill_logits(student, cases):
    """prefill returns the logits [n_vocab] after the prompt's last token, equal to a recompute of the prompt."""
    sweep = Sweep("prompt lengths")
    middle, small, large = cases.odd
    for model, lengths in (
        (small, (*range(2, small.config.n_ctx + 1), 1)),  # 1 last: it makes the poorest example
        (middle, (1, 2, 3, middle.config.n_ctx)),
        (large, (2, 9, large.config.n_ctx)),
        (cases.long, (32, 64, 65, 129)),  # at and past the sizes of blocks
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
                if student.length(cache) == 0:  # whose keys may be anything
                    raise Failure(None, f"The cache is empty ({_after(model, n)}).", own.OWN_CACHE if n > 1 else None)
                try:
                    kv = student.read_cache(cache, "the cache")
                except StudentError as error:
                    if "NoneType" not in error.message:
                        raise
                    detail = f"Some layers of the cache hold no rows ({_after(model, n)})."
                    raise Failure(None, detail, own.ONE_LAYER_FOR_ALL) from None
                try:
                    _expect_rows(kv, model, ids[:n], 0, _after(model, n))
                except Failure as failure:
                    bug = failure.bug if n > 3 else None  # at one to three tokens many mistakes look alike
                    if n > 3 and bug is None and _looks_ahead(student, model, ids[:n]):
                        bug = own.LOOKS_AHEAD
                    raise Failure(None, failure.detail, bug) from None
    sweep.finish()


def _looks_ahead(student: Student, model: JudgeModel, ids: list[int]) -> bool:
    """Whether the student's earlier rows change when only the last token does."""
    other = [*ids[:-1], (ids[-1] + 1) % model.config.n_vocab]
    one, two = (student.read_cache(_prefilled(student, model, prompt)[0], "the cache") for prompt in (ids, other))
    return any(
        not _same(a[:, :-1], b[:, :-1]) for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True)
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
        rows, belong = "row" if counts[layer] == [1] else "rows", "belongs" if n == 1 else "belong"
        detail = f"Layer {layer} holds {has} {rows} where {n} {belong} ({where})."
        raise Failure(None, detail, _count_bug([c[0] for c in counts], n_past, n))
    for i, (layer, expected) in enumerate(zip(kv, right, strict=True)):
        for name, actual, wanted in zip(("keys", "values"), layer, expected, strict=True):
            if not _same(actual, wanted):
                try:
                    axes = ("head", "row", "element")
                    about = f"the array of {name} in layer {i}"
                    expect_close(actual, wanted, name=about, where=where, axes=axes, **_ROWS)
                except Failure as failure:
                    raise Failure(None, failure.detail, _row_bug(kv, model, ids, n_past)) from None


_ROWS = {"atol": 3e-4, "rtol": 1e-4}  # float32 is within 1e-5; float16 is off by 1e-3


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return matches(a, b, **_ROWS)


def _count_bug(counts: list[int], n_past: int, n: int) -> Bug | None:
    """What the numbers of rows of the layers look like."""
    n_new = n - n_past
    if len(set(counts)) > 1:
        return own.ONE_LAYER_FOR_ALL if set(counts[1:]) == {n_past} and counts[0] > n else None
    if counts[0] == n + n_new:
        return own.ROW_KEPT_TWICE if n_past else own.FED_TWICE
    if counts[0] == n_past and n_past:
        return own.ROW_NOT_KEPT
    return own.LAST_TOKEN_MISSING if counts[0] == n - 1 else None


def _row_bug(kv: KV, model: JudgeModel, ids: Sequence[int], n_past: int) -> Bug | None:
    """What the wrong rows of a cache of the right length look like."""
    right = model.reference.run(ids).kv
    flat = np.concatenate([a[:, n_past:].ravel() for pair in kv for a in pair]).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(flat).all() and flat.any() and (flat == flat.astype(np.float16)).all():
            return HALF_PRECISION
    past = all(
        _same(a[:, :n_past], b[:, :n_past]) for x, y in zip(kv, right, strict=True) for a, b in zip(x, y, strict=True)
    )
    if n_past and not past:
        return own.ROWS_REPLACED

    def looks_like(candidate: KV) -> bool:
        return all(_same(a, b) for x, y in zip(kv, candidate, strict=True) for a, b in zip(x, y, strict=True))

    if all(any(_same(k, a) and _same(v, b) for a, b in right) for k, v in kv):
        return own.LAYERS_MIXED
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
        (cases.long, 150, (32, 64, 128)),
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
        (cases.long, (32, 63, 64, 128, 149)),
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

    yield own.POSITION_IGNORED, at(n)
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


@check(
    stage=STAGE, id="generate-ids", points=2, title="generate returns exactly n_new greedy ids", watches=("generate",)
)
def generate_ids(student, cases):
    """generate returns a list of exactly n_new ids, each the one with the largest logit of a recompute of everything
    before it."""
    middle, small, large = (_lively(model) for model in cases.odd)
    plans = ((middle, 5, 9), (large, 1, 12), (small, 3, 2), (small, 4, 1), (small, 6, 0), (cases.trained, 11, 8))
    requests = [_request(cases, *plan) for plan in plans]
    requests.append(requests[0])  # the same again: nothing may be left over from the first time
    answers = [_answer(student, request) for request in requests]
    wrong = [
        i for i, (request, answer) in enumerate(zip(requests, answers, strict=True)) if not request.is_right(answer)
    ]
    if wrong:
        detail = (
            f"{requests[wrong[0]].fault(answers[wrong[0]])} Requests that go wrong: {len(wrong)} of {len(requests)}."
        )
        if not all(_parts_work(student, request) for request in requests[:2]):
            raise Failure(None, f"{detail} {PARTS_WRONG}")
        raise Failure(None, detail, _ids_bug(student, requests, answers, wrong))


PARTS_WRONG = "So do prefill and decode_step when they are called one after the other: mend them first."


def _parts_work(student: Student, request: Request) -> bool:
    """Whether the student's prefill and decode_step, in a loop of the judge's, give the right ids."""
    try:
        cache, logits = _prefilled(student, request.model, request.prompt)
        for i, token_id in enumerate(request.clear):
            if int(np.argmax(logits)) != token_id:
                return False
            if i + 1 < len(request.clear):
                position = len(request.prompt) + i
                logits = student.array("decode_step", token_id, position, request.model, cache)
    except StudentError as error:
        return error.stub or error.kind == "missing"  # generate may do without them
    return True


@dataclass(frozen=True)
class Request:
    """A prompt, and its greedy ids as far as each of them leads clearly: a near tie must fail nobody."""

    model: JudgeModel
    prompt: list[int]
    n_new: int
    clear: list[int]

    @property
    def where(self) -> str:
        return f"for a prompt of {_tokens(len(self.prompt))} on {self.model.about}"

    def is_right(self, ids: list[int] | StudentError) -> bool:
        return isinstance(ids, list) and len(ids) == self.n_new and ids[: len(self.clear)] == self.clear

    def fault(self, ids: list[int] | StudentError) -> str:
        """What is wrong with an answer, in a sentence."""
        if isinstance(ids, StudentError):
            return f"{ids.sentence[:-1]}, {self.where}."
        if len(ids) != self.n_new:
            got = f"{len(ids)} id{'' if len(ids) == 1 else 's'}"
            return f"generate returned {got} where n_new is {self.n_new} ({self.where})."
        first = next(i for i, (a, b) in enumerate(zip(ids, self.clear, strict=False)) if a != b)
        return f"New id {first + 1} of {self.n_new} is not the greedy one ({self.where})."


def _lively(model: JudgeModel) -> JudgeModel:
    """The model with larger position embeddings. With its own, a random model would repeat one token for ever, at any
    position, and no wrong position would show in the ids."""
    return model.patched("wpe.weight", 3 * model.weights.wpe)


def _request(cases: Cases, model: JudgeModel, n_prompt: int, n_new: int) -> Request:
    best = None
    for attempt in range(6):
        prompt = cases.ids(model, n_prompt, "request", n_new, attempt)
        ids, gaps = model.reference.greedy(prompt, n_new) if n_new else ([], [])
        n_clear = next((i for i, gap in enumerate(gaps) if gap < CLEAR), n_new)
        if best is None or n_clear > len(best.clear):
            best = Request(model, prompt, n_new, ids[:n_clear])
        if n_clear == n_new:
            break
    return best


def _answer(student: Student, request: Request) -> list[int] | StudentError:
    try:
        return student.ids("generate", request.prompt, request.n_new, request.model)
    except StudentError as error:
        if error.stub or error.kind == "missing":
            raise
        return error


def _ids_bug(student: Student, requests: list[Request], answers: list, wrong: list[int]) -> Bug | None:
    """The bug that explains every answer; one alone may agree with it by chance."""
    if 0 not in wrong and len(requests) - 1 in wrong:  # the same request, right at first
        return own.STATE_KEPT
    first = wrong[0]
    if isinstance(answers[first], list) and _answer(student, requests[first]) != answers[first]:
        return own.SAMPLED
    for bug, wrongly in _wrong_generates():
        if all(_explains(wrongly(request), answer) for request, answer in zip(requests, answers, strict=True)):
            return bug
    if all(isinstance(answer, list) for answer in answers):
        pairs = list(zip(requests, answers, strict=True))
        more = {len(answer) - request.n_new for request, answer in pairs if request.n_new}
        if len(more) == 1 and 0 not in more and all(_agree(answer, request.clear) for request, answer in pairs):
            return own.NUMBER_OF_IDS
    return None


def _agree(ids: list[int], right: list[int]) -> bool:
    return all(a == b for a, b in zip(ids, right, strict=False))


def _explains(ids: list[int] | None, answer: list[int] | StudentError) -> bool:
    return answer.loud if isinstance(answer, StudentError) and ids is None else ids == answer


def _wrong_generates() -> Iterator[tuple[Bug, Callable[[Request], list[int] | None]]]:
    """The loops that people get wrong, as functions of a request; None where the loop would run past the end."""

    def right(more: int = 0):
        return lambda request: _loop(request, lambda prompt, new, n_cached: (new[-1:], [n_cached]), more)

    yield own.PROMPT_RETURNED, lambda request: request.prompt + right()(request)
    yield own.FIRST_ID_LOST, lambda request: right()(request)[1:]
    yield own.FIRST_ID_LOST, lambda request: (right(1)(request) or [None])[1:]
    yield own.ZERO_GIVES_ONE, lambda request: right(0 if request.n_new else 1)(request)

    def newest_at(position: Callable[[int, int, int], int], first=None):
        """The newest token at position(len(prompt), number of steps so far, cached length)."""
        return lambda request: _loop(
            request, lambda prompt, new, n: (new[-1:], [position(len(prompt), len(new) - 1, n)]), first=first
        )

    yield own.GENERATE_RESTARTS, newest_at(lambda n_prompt, i, n: i)
    for k in (1, -1, 2):
        yield positions_shifted(k), newest_at(lambda n_prompt, i, n, k=k: n + k)
    yield POSITIONS_COUNTED_TWICE, newest_at(lambda n_prompt, i, n: n_prompt + n)
    yield own.GENERATE_STUCK, newest_at(lambda n_prompt, i, n: n_prompt)
    yield own.LAST_TOKEN_TWICE, newest_at(lambda n_prompt, i, n: n, first=0)
    yield own.LAST_TOKEN_TWICE, newest_at(lambda n_prompt, i, n: n - 1, first=-1)
    yield own.NOT_FED_BACK, lambda request: _loop(request, lambda prompt, new, n: (prompt[-1:], [n]))
    yield own.NOT_FED_BACK, lambda request: _loop(request, lambda prompt, new, n: (new[:1], [n]))
    yield (
        own.FED_AGAIN,
        lambda request: _loop(
            request, lambda prompt, new, n: (prompt + new, list(range(n, n + len(prompt) + len(new))))
        ),
    )
    yield (
        own.FED_AGAIN,
        lambda request: _loop(request, lambda prompt, new, n: (prompt + new, list(range(len(prompt) + len(new))))),
    )


def _loop(request: Request, feed: Callable, more: int = 0, first: int | None = None) -> list[int] | None:
    """The ids of a generate that feeds, after each new id, the tokens and positions that `feed` says.

    more: ids beyond n_new. first: the last prompt token is fed again before any, at len(prompt) + first.
    """
    reference, n_ctx, prompt = request.model.reference, request.model.config.n_ctx, request.prompt
    n_new = max(0, request.n_new + more)
    run = reference.run(prompt)
    new: list[int] = []
    step = None if first is None else (prompt[-1:], [len(prompt) + first])
    while len(new) < n_new:
        if step is not None:
            tokens, positions = step
            if not 0 <= min(positions) <= max(positions) < n_ctx:
                return None
            run = reference.run(tokens, past=run.kv, positions=positions)
        new.append(int(run.logits[-1].argmax()))
        step = feed(prompt, new, run.kv[0][0].shape[1])
    return new


@check(stage=STAGE, id="generate-work", points=1, title="Each token goes through the model once")
def generate_work(student, cases):
    """generate sends prompt and new tokens through the model once: prompt + n_new - 1 tokens of work, however long the
    sequence grows."""
    for n_prompt, n_new in ((6, 14), (3, 3)):
        request = _request(cases, _lively(cases.odd[2]), n_prompt, n_new)
        ids, tokens = student.counted_ids("generate", request.prompt, n_new, request.model)
        where = f"for a prompt of {n_prompt} and {n_new} new ids on {request.model.about}"
        enough = n_prompt + n_new - 1
        # A function that finds neither of the first two ids has not done the work that is to be counted.
        if request.clear and not {*request.clear[:2]} & {*ids}:
            raise Failure(None, f"The ids are not the greedy ones, so there is no work to be counted ({where}).")
        # What is not seen is neither passed nor accused: whoever recomputes and whoever does not are told alike how
        # to be seen. The student's own check cell says the same, so nobody learns of it from the mark.
        if tokens is None or tokens < enough - 0.5:
            seen = f"Only {tokens or 0:.0f} of the {enough} tokens that must go through the model were seen ({where})."
            remedy = "Call prefill and decode_step in generate, or multiply by the arrays in weights as they are."
            raise Failure(None, f"{seen} {remedy}")
        # One token more is a step for the last new id: the check of the context limit is the one that tells.
        if tokens > enough + 1.5:
            detail = f"generate sent {tokens:.0f} tokens through the model where {enough} are enough ({where})."
            raise Failure(None, detail, _work_bug(request, ids, tokens))


def _work_bug(request: Request, ids: list[int], tokens: float) -> Bug | None:
    n_prompt, n_new = len(request.prompt), request.n_new
    if not request.is_right(ids):
        return None  # something else is wrong, and has its own check
    if abs(tokens - (2 * n_prompt + n_new - 1)) <= 1:
        return own.PROMPT_RUN_TWICE
    return own.RECOMPUTES if tokens >= 0.9 * sum(range(n_prompt, n_prompt + n_new)) else None


# The limits


@check(stage=STAGE, id="decode-context-limit", points=1, title="What fits into n_ctx works, what does not is an error")
def decode_context_limit(student, cases):
    """Every position up to n_ctx - 1 can be used, so generate works while prompt + n_new - 1 <= n_ctx; one more token,
    or an empty prompt, is a ValueError or an IndexError."""
    model = cases.odd[1]
    ids = cases.ids(model, model.config.n_ctx + 1)
    _expect_the_last_position(student, model, ids)
    roomy = _request(cases, _lively(cases.odd[0]), 5, 9)
    for n_prompt in (5, model.config.n_ctx):
        request = _request(cases, _lively(model), n_prompt, model.config.n_ctx + 1 - n_prompt)
        _expect_a_full_context(student, request, roomy)
    _expect_errors(student, model, ids)


def _expect_the_last_position(student: Student, model: JudgeModel, ids: list[int]) -> None:
    n_ctx = model.config.n_ctx
    ids = ids[:n_ctx]
    for name, n_past in (("prefill", 0), ("prefill", n_ctx - 3), ("decode_step", n_ctx - 1)):
        where = f"for tokens up to position {n_ctx - 1}, the last one, on {model.about}"
        try:
            logits = _pass(student, name, model, ids, n_past)
        except StudentError as error:
            if not error.loud:
                raise
            low = _works_one_earlier(student, name, model, ids[:-1], max(0, n_past - 1))
            raise Failure(None, f"{error.sentence[:-1]}, {where}.", own.LIMIT_TOO_LOW if low else None) from None
        suspects = _wrong_logits(model, ids, n_past)
        right = model.reference.logits(ids)[-1]
        expect_close(logits, right, name=name, axes=("id",), where=where, suspects=suspects)


def _expect_a_full_context(student: Student, request: Request, roomy: Request) -> None:
    """roomy: a request that leaves room in the context, to see what a refused generate does otherwise."""
    answer = _answer(student, request)
    if not request.is_right(answer):
        bug = _full_context_bug(student, roomy) if isinstance(answer, StudentError) and answer.loud else None
        last = f"{request.n_new} new ids, the last of which needs no row, and n_ctx = {request.model.config.n_ctx}"
        raise Failure(None, f"{request.fault(answer)[:-1]}, with {last}.", bug)


def _full_context_bug(student: Student, roomy: Request) -> Bug | None:
    try:
        ids, tokens = student.counted_ids("generate", roomy.prompt, roomy.n_new, roomy.model)
    except StudentError:
        return None
    if not roomy.is_right(ids) or tokens is None:
        return None
    return own.ONE_STEP_TOO_MANY if abs(tokens - len(roomy.prompt) - roomy.n_new) < 0.5 else own.GENERATE_LIMIT_TOO_LOW


def _expect_errors(student: Student, model: JudgeModel, ids: list[int]) -> None:
    n_ctx = model.config.n_ctx
    kv = model.reference.run(ids[:n_ctx]).kv
    on = f"on {model.about}"
    for name, new, n_past, what in (
        ("prefill", ids[:3], n_ctx - 1, f"a chunk of 3 tokens after {n_ctx - 1} cached"),
        ("prefill", ids[:1], n_ctx, f"one token after {n_ctx} cached"),
        ("prefill", ids, 0, f"a prompt of {n_ctx + 1} tokens"),
        ("decode_step", ids[n_ctx:], n_ctx, f"a decode step at position {n_ctx}"),
    ):
        cache = student.make_cache(model, _rows(kv, n_past))
        args = (new, model, cache) if name == "prefill" else (new[0], n_past, model, cache)
        logits = _unless_refused(student.array, name, *args)
        if logits is not None:
            suspects = _past_the_end(model, new, _rows(kv, n_past))
            bug = next((bug for bug, wrong in suspects if matches(logits, wrong().logits[-1])), None)
            raise _not_refused(f"{what} and n_ctx = {n_ctx} {on}", name, bug)
    for n_prompt, n_new in ((5, n_ctx - 3), (n_ctx, 2), (n_ctx + 1, 1)):
        new = _unless_refused(student.ids, "generate", ids[:n_prompt], n_new, model)
        if new is not None:
            what = f"a prompt of {n_prompt} and {n_new} new ids, one more than fits into n_ctx = {n_ctx}, {on}"
            raise _not_refused(what, "generate", own.CUT_SHORT if len(new) < n_new else None)
    for n_past, what in ((0, "an empty prompt"), (4, "an empty chunk after 4 cached tokens")):
        cache = _cached(student, model, ids[:n_ctx], n_past)
        student.expect_error("prefill", [], model, cache, what=what, bug=own.EMPTY_PROMPT)
    student.expect_error("generate", [], 3, model, what="an empty prompt", bug=own.EMPTY_PROMPT)


def _unless_refused(call: Callable, name: str, *args):
    """What the call returns; None when it raises a clear error."""
    try:
        return call(name, *args)
    except StudentError as error:
        if error.loud:
            return None
        raise


def _not_refused(what: str, name: str, bug: Bug | None) -> Failure:
    return Failure(None, f"For {what}, {name} returned as if nothing were wrong; a ValueError is expected.", bug)


def _pass(student: Student, name: str, model: JudgeModel, ids: list[int], n_past: int) -> np.ndarray:
    """What prefill or decode_step of the student's makes of ids[n_past:], with the rows before them cached."""
    cache = _cached(student, model, ids, n_past)
    if name == "prefill":
        return student.array("prefill", ids[n_past:], model, cache)
    return student.array("decode_step", ids[-1], n_past, model, cache)


def _works_one_earlier(student: Student, name: str, model: JudgeModel, ids: list[int], n_past: int) -> bool:
    try:
        return matches(_pass(student, name, model, ids, n_past), model.reference.logits(ids)[-1])
    except StudentError:
        return False


def _past_the_end(model: JudgeModel, new: list[int], past: KV) -> Iterator[tuple[Bug, Callable[[], Run]]]:
    """The passes that put tokens where there is no position."""
    reference, n_ctx, n_new = model.reference, model.config.n_ctx, len(new)
    n_past = past[0][0].shape[1]
    right = range(n_past, n_past + n_new)
    yield own.POSITION_CLAMPED, lambda: reference.run(new, past=past, positions=[min(p, n_ctx - 1) for p in right])
    yield own.POSITION_WRAPPED, lambda: reference.run(new, past=past, positions=[p % n_ctx for p in right])
    if n_past:
        late = [(k[:, n_new - n_ctx :], v[:, n_new - n_ctx :]) for k, v in past]
        yield own.WINDOW_SLID, lambda: reference.run(new, past=late, positions=range(n_ctx - n_new, n_ctx))
    yield own.WINDOW_SLID, lambda: reference.run(new[-n_ctx:])
