"""What the checks of save-and-reuse share: calls of the student's functions, and comparisons several of them make."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.judge.bugs import CACHED_ROWS_IGNORED, FIRST_TOKEN_LOGITS, KEYS_VALUES_SWAPPED, Bug
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.compare import Suspects, expect_close, matches
from autograder.judge.framework import Failure
from autograder.judge.plurals import count, tokens
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.variants import wrong_positions
from autograder.stages.save_and_reuse import bugs as own

UNIT = "prefix lengths"
REUSE, SAVE = "generate_with_prefix", "save_prefix_cache"
# Reuse that gives wrong logits, or changes what the next request finds, is no reuse: five checks look for right answers
# and for a saved cache that is kept, and fail together.
TOGETHER = "Reuse counts as a whole: its logits are right, and no request changes the saved cache."


def case(model: JudgeModel, n_prefix: int, n_suffix: int | None = None) -> str:
    """The case in words."""
    suffix = "" if n_suffix is None else f" and a suffix of {tokens(n_suffix)}"
    return f"for a prefix of {tokens(n_prefix)}{suffix} on {model.about}"


def wrong_saved(model: JudgeModel, prefix: list[int]) -> Iterator[tuple[Bug, Callable[[], KV]]]:
    """The keys and values that a wrong save leaves; each is computed when it is looked at."""
    reference, p = model.reference, len(prefix)
    right = reference.run(prefix)
    yield KEYS_VALUES_SWAPPED, lambda: [(v, k) for k, v in right.kv]
    if p > 1:
        yield own.LAST_PREFIX_ROW_MISSING, lambda: part_of_rows(right.kv, 0, p - 1)
    if p < model.config.n_ctx:
        yield own.GENERATED_ROW_SAVED, lambda: reference.run([*prefix, int(right.logits[-1].argmax())]).kv


def reuse_suspects(model: JudgeModel, prefix: list[int], suffix: list[int]) -> Suspects:
    """The common wrong answers of a reuse; each is computed when it is looked at."""
    reference, p, s = model.reference, len(prefix), len(suffix)
    whole = reference.run(prefix + suffix)
    saved = part_of_rows(whole.kv, 0, p)

    def decode(positions, ids=suffix, past: KV | None = saved):
        return lambda: reference.run(ids, past=past, positions=positions).logits[-1]

    for bug, moved in wrong_positions(reference, suffix, saved):
        yield bug, lambda moved=moved: moved().logits[-1]
    yield own.POSITION_STUCK, decode([p] * s)
    yield FIRST_TOKEN_LOGITS, lambda: whole.logits[p]
    yield own.ONLY_LAST_SUFFIX_TOKEN, decode([p + s - 1], suffix[-1:])
    yield CACHED_ROWS_IGNORED, decode(range(p, p + s), past=None)
    for bug, wrong in wrong_saved(model, prefix):
        yield bug, lambda wrong=wrong: decode(range(p, p + s), past=wrong())()


def expect_right(
    student: Student,
    saved: Handle,
    model: JudgeModel,
    prefix: list[int],
    suffix: list[int],
    close: Callable[..., None] = expect_close,
) -> np.ndarray:
    """The answer to a request, which must be right. close: expect_close, or that of a Sweep."""
    answer = student.array(REUSE, saved, len(prefix), suffix, model)
    close(
        answer,
        model.reference.logits(prefix + suffix)[-1],
        name=REUSE,
        axes=("id",),
        where=case(model, len(prefix), len(suffix)),
        suspects=reuse_suspects(model, prefix, suffix),
    )
    return answer


def same_answer(
    student: Student, saved: Handle, p: int, suffix: list[int], model: JudgeModel, answer: np.ndarray
) -> bool:
    """Whether a request that should end in another answer, or in a clear error, gives this one."""
    try:
        return matches(student.array(REUSE, saved, p, suffix, model), answer)
    except StudentError as error:
        if error.refusal:
            return False
        raise


def append_rows(student: Student, cache: Handle, kv: KV) -> None:
    """Append to each layer of a cache of the student's; StudentError where that cannot be done."""
    for layer, (k, v) in zip(student.layers(cache, len(kv)), kv, strict=True):
        student.method(layer, "append", k, v, returns="none")


def same_bits(a: KV, b: KV) -> bool:
    """Whether two caches hold the same numbers to the bit, each in float32 or float64."""
    return _content(a) == _content(b)


def _content(kv: KV) -> list[tuple[tuple[int, ...], bytes]]:
    return [(a.shape, a.astype(np.float64).tobytes()) for pair in kv for a in pair]


def expect_same(before: KV, after: KV, where: str, event: str) -> None:
    """Pass when the saved cache is to the bit what it was before the event."""
    if same_bits(before, after):
        return
    was, now = _size(before), _size(after)
    became = "other numbers" if was == now else f"{now} instead of {was}"
    more = sum(k.shape[1] for k, _ in after) > sum(k.shape[1] for k, _ in before)
    bug = own.SAVED_CACHE_GROWS if more else None
    raise Failure(f"After {event}, the saved cache has {became} ({where}).", bug)


def _size(kv: KV) -> str:
    rows = sorted({a.shape[1] for pair in kv for a in pair})
    return f"{count(len(kv), 'layer')} of {' or '.join(map(str, rows))} rows"


def expect_kept(student: Student, cases: Cases) -> None:
    """Pass when requests are answered right, and they and one that raises half-way leave the saved cache as it was."""
    student.once("kept", lambda: _expect_kept(student, cases))


def _expect_kept(student: Student, cases: Cases) -> None:
    """With suffixes of 3 and 1 rows past a buffer of 8, and when it is full."""
    for model, p in ((cases.odd[0], 7), (cases.odd[2], 8)):
        prefix, suffix, where = cases.ids(model, p, "prefix"), cases.ids(model, 3, "suffix", p), case(model, p)
        saved = student.handle(SAVE, prefix, model)
        before = student.read_cache(saved, SAVE)
        for n in (3, 1):
            expect_right(student, saved, model, prefix, suffix[:n])
            expect_same(before, student.read_cache(saved), where, "a request")
        c = model.config
        deeper = random_judge_model(replace(c, n_layer=c.n_layer + 1), p)  # raises when all layers have grown
        for ids, weights in (([*suffix[:2], c.n_vocab, suffix[2]], model), (suffix, deeper)):
            with contextlib.suppress(StudentError):  # how it ends is another check's question
                student.array(REUSE, saved, p, ids, weights)
        expect_same(before, student.read_cache(saved), where, "a request that raised half-way")


def expect_kept_as_well(student: Student, cases: Cases) -> None:
    """expect_kept, at the end of a check of something else."""
    try:
        expect_kept(student, cases)
    except Failure as failure:
        raise Failure(failure.detail, failure.bug, failure.figures, prop=TOGETHER) from None


def expect_refusals(student: Student, calls: Iterable[tuple[Any, ...]]) -> None:
    """Pass when all calls raise a ValueError or an IndexError; else a Failure of the first, with a list of the others.

    A call is (what, bug, name, *arguments); bug: what it is when the call returns.
    """
    failed: dict[str, Failure] = {}
    for what, bug, name, *arguments in calls:
        try:
            student.expect_error(name, *arguments, what=what, bug=bug)
        except Failure as failure:
            failed.setdefault(what, failure)
    if not failed:
        return
    first = next(iter(failed.values()))
    _, *more = failed
    more = [*more[:3], f"{len(more) - 3} more"] if len(more) > 4 else more
    raise Failure(f"{first.detail} The same check fails for {'; '.join(more)}." if more else first.detail, first.bug)
