"""The checks of decode_step."""

from __future__ import annotations

from autograder.judge.bugs import positions_shifted
from autograder.judge.compare import Sweep, expect_close
from autograder.judge.far import expect_right_far_on
from autograder.judge.framework import check
from autograder.judge.plurals import count, tokens
from autograder.judge.reference import part_of_rows
from autograder.judge.student import StudentError
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.shared import (
    cached,
    expect_logits,
    expect_rows,
    sweep_lengths,
    wrong_logits,
)


@check("decode_step equals a recompute at every step", points=2)
def decode_every_step(student, cases):
    """decode_step returns the logits [n_vocab] after its token, equal to a recompute of everything so far, at every
    step up to the last position."""
    middle, small, large = cases.odd

    def step(close, model, ids, n, cache=None, what="a token"):
        """One step after n cached tokens."""
        cache = cache or cached(student, model, ids, n)
        logits = student.array("decode_step", ids[n], n, model, cache)
        where = f"for {what} after {n} cached on {model.about}"
        expect_logits(logits, model, ids, n, n + 1, close, name="decode_step", where=where)

    plans = (
        (small, range(1, small.config.n_ctx)),
        (large, (1, 2, 12, large.config.n_ctx - 1)),
        (cases.long, (32, 63, 64, 128, 149)),
        (cases.trained, (1, 30)),
    )
    sweep_lengths(cases, "cached lengths", plans, step, more=1)
    step(expect_close, cases.deep, cases.ids(cases.deep, 5), 4)
    expect_right_far_on(student, cases, "decode_step", 1, lambda ids, p, cache: (ids[0], p, cases.far, cache))
    n = 5
    after_others = [*cases.ids(small, n, "others"), cases.ids(small, small.config.n_ctx)[n]]
    step(expect_close, small, after_others, n, what="the same token at its position, with others")

    sweep = Sweep("cached lengths, in one run of steps")
    for model, begin, end in ((middle, 2, middle.config.n_ctx), (cases.trained, 20, 24)):
        ids = cases.ids(model, end, "steps")
        cache = cached(student, model, ids, begin)
        for n in range(begin, end):
            with sweep.at(n):
                step(sweep.close, model, ids, n, cache)
    sweep.finish()


@check("decode_step uses the position it is given", points=1)
def decode_position(student, cases):
    """decode_step adds the row of wpe of the position it is given; a position that is not len(cache) may be refused,
    but not replaced."""
    for model, n in ((cases.odd[0], 6), (cases.odd[2], 9)):
        ids = cases.ids(model, n + 1)
        past = part_of_rows(model.reference.run(ids).kv, 0, n)
        for k in (0, 3, 1, -2, -n):  # 0 is a position, too
            try:
                logits = student.array("decode_step", ids[n], n + k, model, cached(student, model, ids, n))
            except StudentError as error:
                if k and error.refusal:
                    continue
                raise
            right, ignored, late, early = (
                model.reference.run(ids[n:], past=past, positions=[p]).logits[-1]
                for p in (n + k, n, n + k + 1, n + k - 1)
            )
            elsewhere = (
                (own.DECODE_POSITION_IGNORED, ignored),
                (positions_shifted(1), late),
                (positions_shifted(-1), early),
            )
            suspects = [(bug, lambda a=a: a) for bug, a in elsewhere] if k else wrong_logits(model, ids, n)
            where = f"for a token at position {n + k} after {n} cached on {model.about}"
            expect_close(logits, right, name="decode_step", axes=("id",), where=where, suspects=suspects)


@check("A decode step adds one row to every layer", points=1)
def decode_grows_cache(student, cases):
    """A decode step appends its token's keys and values to every layer, one row, and leaves the earlier rows as they
    are."""
    for model, n, n_steps in ((cases.odd[0], 5, 3), (cases.odd[1], 1, 2), (cases.trained, 12, 1)):
        ids = cases.ids(model, n + n_steps)
        cache = cached(student, model, ids, n)
        for i in range(n, n + n_steps):
            student.plain("decode_step", ids[i], i, model, cache)
            where = f"after {count(i - n + 1, 'decode step')} on a cache of {tokens(n)}, {model.about}"
            expect_rows(student, cache, model, ids[: i + 1], i, where)
