"""What the checks of save-and-reuse share: calls of the student's functions, and comparisons several of them make."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import expect_close, matches
from autograder.judge.framework import Failure
from autograder.judge.reference import KV
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.words import count, tokens
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.suspects import reuse_suspects

STAGE = "save-and-reuse"
UNIT = "prefix lengths"
# Reuse that gives wrong logits, or changes what the next request finds, is no reuse: five checks look for right answers
# and for a saved cache that is kept, and fail together.
TOGETHER = "Reuse counts as a whole: its logits are right, and no request changes the saved cache."


def with_room_for_chunks(cases: Cases) -> JudgeModel:
    """A small random model with a context past all usual sizes of a chunk, of which the notebook's own is 256."""
    return cases.random_model(replace(cases.long.config, n_ctx=290))


def case(model: JudgeModel, n_prefix: int, n_suffix: int) -> str:
    """The case in words."""
    return f"for a prefix of {n_prefix} and a suffix of {tokens(n_suffix)} on {model.about}"


def rows_of(counts: set[int]) -> str:
    """The numbers of rows of the layers: "1 row", "3 to 5 rows"."""
    return count(min(counts), "row") if len(counts) == 1 else f"{min(counts)} to {max(counts)} rows"


def save_prefix(student: Student, prefix: list[int], model: JudgeModel) -> Handle:
    """What save_prefix_cache of the student's returns."""
    return student.handle("save_prefix_cache", prefix, model)


def reuse_prefix(student: Student, saved: Handle, p: int, suffix: list[int], model: JudgeModel) -> np.ndarray:
    """What generate_with_prefix of the student's returns."""
    try:
        return student.array("generate_with_prefix", saved, p, suffix, model)
    except StudentError as error:
        if error.message.startswith("the result is not an array of numbers but NoneType"):
            raise Failure(None, "generate_with_prefix returned None.", own.NOTHING_RETURNED) from None
        if error.type in ("AttributeError", "TypeError"):
            saved_rows(student, saved)  # where there are none to be had, it is save_prefix_cache that is wrong
        raise


def saved_rows(student: Student, saved: Handle) -> KV:
    """The keys and values of what save_prefix_cache returned."""
    try:
        return student.read_cache(saved, "save_prefix_cache")
    except StudentError as error:
        kind = re.search(r"'([\w.]+)' object has no attribute 'layers'", error.message)
        if kind:
            bug = own.NOTHING_RETURNED if kind[1] == "NoneType" else own.NOT_A_CACHE
            raise Failure(None, f"save_prefix_cache returned no cache but a {kind[1]}.", bug) from None
        if "NoneType" in error.message:
            raise Failure(None, "What save_prefix_cache returned has no rows.") from None
        raise


def expect_right(
    student: Student,
    saved: Handle,
    model: JudgeModel,
    prefix: list[int],
    suffix: list[int],
    close: Callable = expect_close,
    prop: str | None = TOGETHER,
) -> np.ndarray:
    """The answer to a request, which must be right. close: expect_close, or that of a Sweep."""
    answer = reuse_prefix(student, saved, len(prefix), suffix, model)
    close(
        answer,
        model.reference.logits(prefix + suffix)[-1],
        name="generate_with_prefix",
        axes=("id",),
        where=case(model, len(prefix), len(suffix)),
        suspects=reuse_suspects(model, prefix, suffix),
        prop=prop,
    )
    return answer


def append_rows(student: Student, cache: Handle, kv: KV) -> None:
    """Append to each layer of a cache of the student's; StudentError where that cannot be done."""
    layers = student.attribute(cache, "layers", returns="handle")
    for i, (k, v) in enumerate(kv):
        student.method(student.method(layers, "__getitem__", i, returns="handle"), "append", k, v, returns="none")


def same_bits(a: KV, b: KV) -> bool:
    """Whether two caches hold the same numbers, each in float32 or float64."""
    return len(a) == len(b) and all(map(np.array_equal, _arrays(a), _arrays(b)))


def _arrays(kv: KV) -> list[np.ndarray]:
    return [array for pair in kv for array in pair]


def expect_same(
    before: KV, after: KV, model: JudgeModel, p: int, event: str, by_error: bool = False, prop: str | None = None
) -> None:
    """Pass when the saved cache is to the bit what it was before the event.

    by_error: whether the event was a request that is refused, with its own prefix_len.
    """
    where = f"(for a prefix of {tokens(p)} on {model.about})"
    if len(before) != len(after):
        has = f"has {count(len(after), 'layer')} instead of {len(before)}" if after else "has no layers any more"
        raise Failure(prop, f"After {event}, the saved cache {has} {where}.")
    changed = [new for old, new in zip(before, after, strict=True) if _content(old) != _content(new)]
    if not changed:
        return
    n_rows = {a.shape[1] for pair in changed for a in pair}
    bug = None
    if n_rows == {p}:
        what, bug = "other numbers", own.SAVED_ROWS_OVERWRITTEN
    else:
        what = f"{rows_of(n_rows)} instead of {p}"
        if by_error:
            bug = own.LEFT_BY_ERROR
        elif max(n_rows) > p:
            bug = own.SAVED_CACHE_GROWS if len(changed) == len(before) else own.CLONE_INCOMPLETE
    detail = f"After {event}, {len(changed)} of {len(before)} layers {'has' if len(changed) == 1 else 'have'} {what}"
    raise Failure(prop, f"{detail} {where}.", bug)


def _content(arrays: tuple[np.ndarray, np.ndarray]) -> list[tuple[tuple[int, ...], bytes]]:
    return [(a.shape, a.tobytes()) for a in arrays]


def same_answer(
    student: Student, saved: Handle, p: int, suffix: list[int], model: JudgeModel, answer: np.ndarray
) -> bool:
    """Whether a request that should end in another answer, or in a clear error, gives this one."""
    try:
        return matches(reuse_prefix(student, saved, p, suffix, model), answer)
    except StudentError as error:
        if error.loud:
            return False
        raise


def cases_of_keeping(cases: Cases) -> list[tuple[JudgeModel, int]]:
    """Models and prefix lengths: with suffixes of 3 and 1 rows, past a buffer of 8 rows, and when it is full."""
    small, _, large = cases.odd
    return [(small, 7), (large, 8)]


def expect_kept_everywhere(student: Student, cases: Cases) -> None:
    for model, p in cases_of_keeping(cases):
        expect_kept(student, cases, model, p, TOGETHER)


def expect_kept(student: Student, cases: Cases, model: JudgeModel, p: int, prop: str | None = None) -> None:
    """Pass when requests are answered right, and they and one that raises half-way leave the saved cache as it was."""
    prefix, suffix = cases.ids(model, p, "prefix"), cases.ids(model, 3, "suffix", p)
    saved = save_prefix(student, prefix, model)
    before = saved_rows(student, saved)
    for n in (3, 1):
        expect_right(student, saved, model, prefix, suffix[:n])
        expect_same(before, student.read_cache(saved), model, p, "a request", prop=prop)
    try_reuse(student, saved, p, [*suffix[:2], model.config.n_vocab, suffix[2]], model)
    after = student.read_cache(saved)
    expect_same(before, after, model, p, "a request that raised half-way", by_error=True, prop=prop)


def try_reuse(student: Student, saved: Handle, p: int, suffix: list[int], model: JudgeModel) -> None:
    """A request that should be refused, or goes elsewhere; how it ends is another check's question."""
    try:
        reuse_prefix(student, saved, p, suffix, model)
    except StudentError as error:
        if error.unwritten:
            raise


def finish_refusals(failed: list[tuple[str, str, Bug | None]]) -> None:
    """Fail with the first attempt that did not end as it should, and list the others. (what, what happened, bug)."""
    if not failed:
        return
    what, happened, bug = failed[0]
    more = list(dict.fromkeys(w for w, _, _ in failed[1:]))
    more = [*more[:3], f"{len(more) - 3} more"] if len(more) > 4 else more
    others = f" The same check fails for {'; '.join(more)}." if more else ""
    raise Failure(None, f"For {what}, {happened}.{others}", bug)
