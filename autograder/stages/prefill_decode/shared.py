"""What the checks share: caches of the student's, and what must hold of their rows and of logits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from autograder.judge import bugs
from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Sweep, expect_close
from autograder.judge.framework import Failure
from autograder.judge.reference import Run, part_of_rows
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.variants import suspects, variant, wrong_positions
from autograder.stages.forward_pass.bugs import BLOCK, MASK_REVERSED
from autograder.stages.prefill_decode import bugs as own

MODEL_MISTAKES = (
    *suspects("no-final-layer-norm", "final-norm-twice", "positions-missing", "mask-without-offset"),
    *(suspect for suspect in BLOCK if suspect[0] is not MASK_REVERSED),  # one new token sees itself alone
)
_ROWS = {"atol": 3e-4, "rtol": 1e-4}  # float32 is within 1e-5; float16 is off by 1e-3


def prefilled(student: Student, model: JudgeModel, *chunks: Sequence[int]) -> tuple[Handle, np.ndarray]:
    """A cache of the student's after prefill of each chunk in turn, and the logits of the last."""
    cache = student.handle("ModelCache", model.config.n_layer)
    for chunk in chunks:
        logits = student.array("prefill", list(chunk), model, cache)
    return cache, logits


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
        counts = [student.length(layer) for layer in student.layers(cache)]
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


def _count_bug(counts: list, n_past: int, n: int) -> Bug | None:
    """What the numbers of rows of the layers make certain."""
    if set(counts) == {n_past}:
        return own.ROWS_NOT_IN_THE_CACHE
    return own.TWO_ROWS_A_TOKEN if set(counts) == {2 * n - n_past} else None


def _fits_half_precision(rows: np.ndarray) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(rows).all() and rows.any() and (rows == rows.astype(np.float16)).all())


# The wrong passes through the model that are recognized


def wrong_runs(model: JudgeModel, ids: Sequence[int], n_past: int) -> Iterator[tuple[Bug, Callable[[], Run]]]:
    """The passes over ids[n_past:] that people get wrong; the past is right, or made by the same mistake."""
    reference, new, n_new = model.reference, list(ids[n_past:]), len(ids) - n_past
    past = part_of_rows(reference.run(ids).kv, 0, n_past) if n_past else None
    yield from wrong_positions(reference, new, past)
    for bug, start in ((own.ROWS_NOT_IN_THE_CACHE, 0), (bugs.CACHED_ROWS_IGNORED, n_past)) if n_past else ():
        yield bug, lambda start=start: reference.run(new, positions=range(start, start + n_new))
    if n_new > 1:
        for one in (n_past, len(ids) - 1):
            yield bugs.ONE_POSITION, lambda one=one: reference.run(new, past=past, positions=[one] * n_new)
    elif n_past:
        yield own.DECODE_ATTENDS_TOO_EARLY, lambda: variant(reference, "mask-strict").run(new, past=past)
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
