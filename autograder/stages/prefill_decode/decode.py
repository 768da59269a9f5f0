"""The checks of decode_step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from autograder.judge.bugs import Bug, positions_shifted
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Sweep, expect_close
from autograder.judge.framework import check
from autograder.judge.reference import part_of_rows
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.words import count, tokens
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.cache_rows import expect_rows
from autograder.stages.prefill_decode.shared import STAGE, cached
from autograder.stages.prefill_decode.suspects import wrong_logits


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
                _compare_step(sweep, student, model, cached(student, model, ids, n), ids, n)
    sweep.finish()
    _compare_after_others(student, cases, small, 5)

    sweep = Sweep("cached lengths, in one run of steps")
    for model, begin, end in ((middle, 2, middle.config.n_ctx), (cases.trained, 20, 24)):
        ids = cases.ids(model, end, "steps")
        cache = cached(student, model, ids, begin)
        for n in range(begin, end):
            with sweep.at(n):
                _compare_step(sweep, student, model, cache, ids, n)
    sweep.finish()


def _compare_after_others(student: Student, cases: Cases, model: JudgeModel, n: int) -> None:
    """The token of the first sweep at position n, after n other tokens."""
    ids = cases.ids(model, model.config.n_ctx)
    after = [*cases.ids(model, n, "others"), ids[n]]
    remembered = (own.PAST_FORGOTTEN, lambda: model.reference.logits(ids)[n])
    expect_close(
        student.array("decode_step", ids[n], n, model, cached(student, model, after, n)),
        model.reference.logits(after)[n],
        name="decode_step",
        axes=("id",),
        where=f"for the same token after {n} other cached tokens on {model.about}",
        suspects=[remembered, *wrong_logits(model, after, n)],
    )


def _compare_step(sweep: Sweep, student: Student, model: JudgeModel, cache: Handle, ids: Sequence[int], n: int) -> None:
    """One step of the student's after n cached tokens; ids goes on after it, which changes nothing before."""
    sweep.close(
        student.array("decode_step", ids[n], n, model, cache),
        model.reference.logits(ids)[n],
        name="decode_step",
        axes=("id",),
        where=_step(model, n),
        suspects=wrong_logits(model, ids[: n + 1], n),
    )


def _step(model: JudgeModel, n_cached: int) -> str:
    return f"for a token after {n_cached} cached on {model.about}"


@check(stage=STAGE, id="decode-position", points=1, title="decode_step uses the position it is given")
def decode_position(student, cases):
    """decode_step adds the row of wpe of the position it is given; a position that is not len(cache) may be refused,
    but not replaced."""
    for model, n in ((cases.odd[0], 6), (cases.odd[2], 9)):
        ids = cases.ids(model, n + 1)
        reference = model.reference
        past = part_of_rows(reference.run(ids).kv, 0, n)
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
            suspects = _wrong_positions(model, ids, n, k) if k else wrong_logits(model, ids, n)
            expect_close(logits, right, name="decode_step", axes=("id",), where=where, suspects=suspects)


def _wrong_positions(model: JudgeModel, ids: Sequence[int], n: int, k: int) -> Iterator[tuple[Bug, Callable]]:
    """What a step after n cached tokens gives that was asked to stand at n + k and stands elsewhere."""
    past = part_of_rows(model.reference.run(ids).kv, 0, n)

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
        cache = cached(student, model, ids, n)
        for i in range(n, n + n_steps):
            student.plain("decode_step", ids[i], i, model, cache)
            where = f"after {count(i - n + 1, 'decode step')} on a cache of {tokens(n)}, {model.about}"
            expect_rows(student.read_cache(cache, "the cache"), model, ids[: i + 1], i, where)
