"""What the checks of save and reuse share: calls of the student's functions, and comparisons several of them make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import expect_close, matches, recognize
from autograder.judge.framework import Failure
from autograder.judge.reference import KV
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.words import count, tokens
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.suspects import reuse_suspects

STAGE = "save-and-reuse"
UNIT = "prefix lengths"


def with_room_for_chunks(cases: Cases) -> JudgeModel:
    """A small random model with a context past all usual sizes of a chunk, of which the notebook's own is 256."""
    return cases.random_model(replace(cases.long.config, n_ctx=290))


def case(model: JudgeModel, n_prefix: int, n_suffix: int) -> str:
    """The case in words."""
    return f"for a prefix of {n_prefix} and a suffix of {tokens(n_suffix)} on {model.about}"


def rows_of(counts: set[int]) -> str:
    """The numbers of rows of the layers: "1 row", "3 to 5 rows"."""
    return count(min(counts), "row") if len(counts) == 1 else f"{min(counts)} to {max(counts)} rows"


def right_logits(model: JudgeModel, prefix: list[int], suffix: list[int]) -> np.ndarray:
    """The right answer."""
    return model.reference.logits(prefix + suffix)[-1]


def save_prefix(student: Student, prefix: list[int], model: JudgeModel) -> Handle:
    """What save_prefix_cache of the student's returns."""
    return student.handle("save_prefix_cache", prefix, model)


def reuse_prefix(student: Student, saved: Handle, p: int, suffix: list[int], model: JudgeModel) -> np.ndarray:
    """What generate_with_prefix of the student's returns."""
    try:
        return student.array("generate_with_prefix", saved, p, suffix, model)
    except StudentError as error:
        if error.type in ("AttributeError", "TypeError"):
            saved_rows(student, saved)  # where there are none to be had, it is save_prefix_cache that is wrong
        raise _nothing_returned(error) or error from None


def append_rows(student: Student, cache: Handle, kv: KV) -> None:
    """Append to each layer of a cache of the student's; StudentError where that cannot be done."""
    layers = student.attribute(cache, "layers", returns="handle")
    for i, (k, v) in enumerate(kv):
        student.method(student.method(layers, "__getitem__", i, returns="handle"), "append", k, v, returns="none")


def saved_rows(student: Student, saved: Handle) -> KV:
    """The keys and values of what save_prefix_cache returned."""
    try:
        return student.read_cache(saved, "save_prefix_cache")
    except StudentError as error:
        if "object has no attribute 'layers'" in error.message and "NoneType" not in error.message:
            kind = error.message.split("'")[1]
            raise Failure(None, f"save_prefix_cache returned no cache but a {kind}.", own.NOT_A_CACHE) from None
        empty = Failure(None, "What save_prefix_cache returned has no rows.", own.CACHE_EMPTY)
        raise _nothing_returned(error) or (empty if "NoneType" in error.message else error) from None


def _nothing_returned(error: StudentError) -> Failure | None:
    """The failure to raise instead, when a None was taken for a result."""
    none = "the result is not an array of numbers but NoneType", "'NoneType' object has no attribute 'layers'"
    return (
        Failure(None, f"{error.name} returned None.", own.NOTHING_RETURNED) if error.message.startswith(none) else None
    )


def expect_answer(answer: np.ndarray, model: JudgeModel, prefix: list[int], suffix: list[int]) -> Bug | None:
    """Pass when the answer is right, or is one of the wrong ones that have a name, which is returned.

    For checks of another property: who gets the positions wrong can still keep the saved cache pristine. An answer
    that nothing explains passes none of them.
    """
    expected = right_logits(model, prefix, suffix)
    if matches(answer, expected):
        return None
    bug = recognize(answer, expected, reuse_suspects(model, prefix, suffix))
    if bug is None:
        where = case(model, len(prefix), len(suffix))
        expect_close(answer, expected, name="generate_with_prefix", axes=("id",), where=where)
    return bug


def expect_same(before: KV, after: KV, model: JudgeModel, p: int, event: str, by_error: bool = False) -> None:
    """Pass when the saved cache is to the bit what it was before the event.

    by_error: whether the event was a request that is refused, with its own prefix_len.
    """

    def rows(kv):
        return [{a.shape[1] for a in pair} for pair in kv]

    where = f"(for a prefix of {tokens(p)} on {model.about})"
    changed = [
        layer
        for layer, (old, new) in enumerate(zip(before, after, strict=False))
        if any(
            o.shape != n.shape or o.dtype != n.dtype or o.tobytes() != n.tobytes()
            for o, n in zip(old, new, strict=True)
        )
    ]
    if len(before) != len(after):
        has = f"has {count(len(after), 'layer')} instead of {len(before)}" if after else "has no layers any more"
        raise Failure(None, f"After {event}, the saved cache {has} {where}.")
    if not changed:
        return
    n_old, n_new = max(map(max, rows(before))), max(map(max, rows(after)))
    grown = [layer for layer, (old, new) in enumerate(zip(rows(before), rows(after), strict=True)) if old != new]
    if not grown:
        bug = own.SAVED_ROWS_OVERWRITTEN
        hold = f"{len(changed)} of {len(before)} layers {'holds' if len(changed) == 1 else 'hold'}"
        detail = f"After {event}, {hold} other numbers {where}."
    else:
        if by_error:
            bug = own.LEFT_BY_ERROR
        elif len(grown) < len(before):
            bug = own.CLONE_INCOMPLETE
        else:
            bug = own.SAVED_CACHE_GROWS if n_new > n_old else own.SAVED_CACHE_SHRINKS
        new = {n for layer in grown for n in rows(after)[layer]}
        have = f"{len(grown)} of {len(before)} layers {'has' if len(grown) == 1 else 'have'}"
        detail = f"After {event}, {have} {rows_of(new)} instead of {n_old} {where}."
    raise Failure(None, detail, bug)


def finish_refusals(failed: list[tuple[str, str, Bug | None]]) -> None:
    """Fail with the first attempt that did not end as it should, and name the others."""
    if not failed:
        return
    what, happened, bug = failed[0]
    more = list(dict.fromkeys(w for w, _, _ in failed[1:]))
    more = [*more[:3], f"{len(more) - 3} more"] if len(more) > 4 else more
    others = f" The same check fails for {'; '.join(more)}." if more else ""
    raise Failure(None, f"For {what}, {happened}.{others}", bug)
