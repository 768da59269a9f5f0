"""What the checks share: caches of the student's, and what must hold of their rows and of logits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from autograder.judge import bugs
from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure
from autograder.judge.reference import Run, part_of_rows
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.variants import Suspect, variant
from autograder.stages.forward_pass.bugs import BLOCK, MASK_REVERSED
from autograder.stages.prefill_decode import bugs as own

MODEL_MISTAKES: tuple[Suspect, ...] = (
    (bugs.NO_FINAL_LAYER_NORM, "no-final-layer-norm"),
    (bugs.FINAL_NORM_TWICE, "final-norm-twice"),
    (bugs.POSITIONS_MISSING, "positions-missing"),
    (bugs.MASK_WITHOUT_OFFSET, "mask-without-offset"),
    *(suspect for suspect in BLOCK if suspect[0] is not MASK_REVERSED),  # one new token sees itself alone
)
_ROWS = {"atol": 3e-4, "rtol": 1e-4}  # float32 is within 1e-5; float16 is off by 1e-3


def prefilled(student: Student, model: JudgeModel, *chunks: Sequence[int]) -> tuple[Handle, np.ndarray]:
    """A cache of the student's after prefill of each chunk in turn, and the logits of the last."""
    cache = student.handle("ModelCache", model.config.n_layer)
    for chunk in chunks:
        try:
            logits = student.array("prefill", list(chunk), model, cache)
        except StudentError as error:
            if "NoneType" in error.message and _attends_too_early(student, model):
                raise Failure(error.sentence, own.ATTENDS_TOO_EARLY) from None
            raise
    return cache, logits


def _attends_too_early(student: Student, model: JudgeModel) -> bool:
    """Whether a new token is seen not to see itself, where there are others; an empty cache has no keys to see."""
    ids = [0, 1, 2]
    try:
        logits = student.array("decode_step", ids[2], 2, model, cached(student, model, ids, 2))
    except StudentError:
        return False
    past = part_of_rows(model.reference.run(ids).kv, 0, 2)
    return matches(logits, variant(model.reference, "mask-strict").run(ids[2:], past=past).logits[-1])


def cached(student: Student, model: JudgeModel, ids: Sequence[int], n: int) -> Handle:
    """A cache of the student's that holds the right rows of ids[:n]; no function of the student's made them."""
    return student.make_cache(model, part_of_rows(model.reference.run(ids).kv, 0, n))


def sweep_lengths(cases: Cases, unit: str, plans: Iterable, look: Callable, more: int = 0) -> None:
    """A sweep of look(close, model, ids, n) over (model, lengths): ids are those of the greatest length and `more`."""
    sweep = Sweep(unit)
    for model, lengths in plans:
        ids = cases.ids(model, max(lengths) + more)
        for n in lengths:
            with sweep.at(n):
                look(sweep.close, model, ids, n)
    sweep.finish()


def expect_logits(logits, model: JudgeModel, ids: Sequence[int], n_past: int, n: int, close=expect_close, **words):
    """The logits are those after token n - 1 of ids. The first n_past were cached; what follows n changes nothing."""
    right = model.reference.logits(ids)[n - 1]
    close(logits, right, axes=("id",), suspects=wrong_logits(model, ids[:n], n_past), **words)


def expect_rows(
    student: Student, cache: Handle, model: JudgeModel, ids: Sequence[int], n_past: int, where: str, close=expect_close
) -> None:
    """Every layer of the student's cache holds the rows of ids, of which n_past were there before the call."""
    n, n_layer = len(ids), model.config.n_layer
    try:
        kv = student.read_cache(cache, "the cache")
        counts = [k.shape[1] if k.shape == v.shape else f"{k.shape[1]} and {v.shape[1]}" for k, v in kv]
    except StudentError:
        counts = _lengths(student, cache)
        if all(counts):  # then it is not for want of rows that they cannot be read
            raise
    if counts != [n] * n_layer:
        held = f"{counts[0]} rows each" if len(set(counts)) == 1 else f"{', '.join(map(str, counts))} rows"
        detail = f"The layers of the cache hold {held} where {n} belong in each of {n_layer} ({where})."
        raise Failure(detail, _count_bug(counts, n_past, n))
    rows = np.array(kv)  # [n_layer, 2, n_head, n, head_dim]
    close(
        rows,
        np.array(model.reference.run(ids).kv),
        name="The cache",
        where=where,
        axes=("layer", "keys (0) or values (1)", "head", "row", "element"),
        suspects=((bug, lambda wrong=wrong: np.array(wrong().kv)) for bug, wrong in wrong_runs(model, ids, n_past)),
        bug=bugs.HALF_PRECISION if _fits_half_precision(rows[..., n_past:, :]) else None,
        **_ROWS,
    )


def _lengths(student: Student, cache: Handle) -> list[int]:
    layers = student.attribute(cache, "layers", returns="handle")
    one = (student.method(layers, "__getitem__", i, returns="handle") for i in range(student.length(layers)))
    return [student.length(layer) for layer in one]


def _count_bug(counts: list, n_past: int, n: int) -> Bug | None:
    """What the numbers of rows of the layers make certain."""
    if set(counts) == {n_past}:
        return own.OWN_CACHE
    return own.FED_TWICE if set(counts) == {2 * n - n_past} else None


def _fits_half_precision(rows: np.ndarray) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(rows).all() and rows.any() and (rows == rows.astype(np.float16)).all())


# The wrong passes through the model that are recognized


def wrong_runs(model: JudgeModel, ids: Sequence[int], n_past: int) -> Iterator[tuple[Bug, Callable[[], Run]]]:
    """The passes over ids[n_past:] that people get wrong; the past is right, or made by the same mistake."""
    reference, n_ctx = model.reference, model.config.n_ctx
    new, n_new = list(ids[n_past:]), len(ids) - n_past
    past = part_of_rows(reference.run(ids).kv, 0, n_past) if n_past else None

    def at(start, past=past):
        return lambda: reference.run(new, past=past, positions=range(start, start + n_new))

    if n_past:
        yield bugs.POSITIONS_RESET, at(0)
        yield own.OWN_CACHE, at(0, None)
        yield bugs.CACHED_ROWS_IGNORED, at(n_past, None)
    for bug, k in (
        *((bugs.positions_shifted(k), k) for k in (1, -1, 2)),
        *([(bugs.POSITIONS_COUNTED_TWICE, n_past)] if n_past else []),
    ):
        if 0 <= n_past + k <= n_ctx - n_new:
            yield bug, at(n_past + k)
    if n_new > 1:
        for one in (n_past, len(ids) - 1):
            yield bugs.ONE_POSITION, lambda one=one: reference.run(new, past=past, positions=[one] * n_new)
    elif n_past:
        yield own.ATTENDS_TOO_EARLY, lambda: variant(reference, "mask-strict").run(new, past=past)
    for bug, name in MODEL_MISTAKES:
        wrong = variant(reference, name)
        yield bug, lambda wrong=wrong: wrong.run(new, past=past)
        if n_past:
            yield bug, lambda wrong=wrong: wrong.run(new, past=wrong.run(ids[:n_past]).kv)


def wrong_logits(model: JudgeModel, ids: Sequence[int], n_past: int) -> Iterator[tuple[Bug, Callable[[], np.ndarray]]]:
    """What a pass over ids[n_past:] gives, wrongly, as logits."""
    logits = model.reference.logits(ids)
    if len(ids) - n_past > 1:
        yield bugs.FIRST_TOKEN_LOGITS, lambda: logits[n_past]
    for bug, wrong in wrong_runs(model, ids, n_past):
        yield bug, lambda wrong=wrong: wrong().logits[-1]
