"""The checks of prefill."""

from __future__ import annotations

from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.compare import Sweep, expect_close
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import tokens
from autograder.judge.student import NoAnswer, Student
from autograder.stages.prefill_decode.shared import cached, expect_logits, expect_rows, prefilled, sweep_lengths


@check("prefill gives the logits after the last prompt token", points=2, watches=("prefill",))
def prefill_logits(student, cases):
    """prefill returns the logits [n_vocab] after the prompt's last token, equal to a recompute of the prompt."""
    middle, small, large = cases.odd

    def expect(close, model, ids, n):
        logits = prefilled(student, model, ids[:n])[1]
        expect_logits(logits, model, ids, 0, n, close, name="prefill", where=_after(model, n))

    plans = (
        (small, (*range(2, small.config.n_ctx + 1), 1)),  # 1 last: it makes the poorest example
        (middle, (1, 2, 3, middle.config.n_ctx)),
        (large, (2, 9, large.config.n_ctx)),
        (cases.long, (32, 64, 65, 129)),  # at and past the sizes of blocks
        (cases.trained, (1, 37)),
    )
    sweep_lengths(cases, "prompt lengths", plans, expect)
    for model, ids in cases.beyond:
        expect(expect_close, model, ids, len(ids))
    n = 6
    ids, twin = cases.ids(small, small.config.n_ctx)[:n], random_judge_model(small.config, cases.number("twin"))
    for model, where in (
        (small, f"for {tokens(n)} on {small.about}"),
        (twin, f"for {tokens(n)} that another model of the same shape, which is gone, has been given before"),
    ):
        weights, cache = student.keep(model), student.handle("ModelCache", model.config.n_layer)
        logits = student.array("prefill", ids, weights, cache)
        student.replace(weights)  # with the next, which has its id()
        expect_logits(logits, model, ids, 0, n, name="prefill", where=where)


@check("After prefill the cache holds exactly the prompt", points=2)
def prefill_cache(student, cases):
    """After prefill every layer of the cache holds the keys and values of the prompt's tokens, one row a token, and a
    row does not depend on the tokens after it."""
    middle, small, _ = cases.odd

    def expect(close, model, ids, n):
        cache, _ = prefilled(student, model, ids[:n])
        expect_rows(student, cache, model, ids[:n], 0, _after(model, n), close)

    plans = (
        (small, (1, 2, 3, 8, small.config.n_ctx)),
        (middle, (1, 5, middle.config.n_ctx)),
        (cases.trained, (19,)),
    )
    sweep_lengths(cases, "prompt lengths", plans, expect)


@check("prefill in chunks equals prefill at once", points=2)
def prefill_in_chunks(student, cases):
    """A prompt that comes in chunks, each continuing at len(cache), gives the same logits and the same cache as the
    prompt at once, after decode steps too."""
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
                logits = prefilled(student, model, ids[:first], ids[first:])[1]
                where = f"for a chunk of {first} and one of {tokens(n - first)} on {model.about}"
                expect_logits(logits, model, ids, first, n, sweep.close, name="prefill", where=where)
    sweep.finish()

    sweep = Sweep("numbers of chunks")
    n = small.config.n_ctx
    ids = cases.ids(small, n, "many")
    for ends in ((4, 5, 11, n), (*range(1, n + 1),)):
        with sweep.at(len(ends)):
            starts = (0, *ends[:-1])
            cache, logits = prefilled(student, small, *(ids[a:b] for a, b in zip(starts, ends, strict=True)))
            where = f"for {tokens(n)} in {len(ends)} chunks on {small.about}"
            expect_logits(logits, small, ids, starts[-1], n, sweep.close, name="prefill", where=where)
            expect_rows(student, cache, small, ids, 0, where, sweep.close)
    sweep.finish()
    _expect_turns(student, cases, small)


def _expect_turns(student: Student, cases: Cases, model: JudgeModel) -> None:
    """A chunk is right after a prompt and decode steps, as in the second turn of a chat, and again after others."""
    n_prompt, n_past, n = 4, 6, 9
    ids = cases.ids(model, n, "turns")
    cache, _ = prefilled(student, model, ids[:n_prompt])
    try:
        for i in range(n_prompt, n_past):
            student.plain("decode_step", ids[i], i, model, cache)
        expect_rows(student, cache, model, ids[:n_past], n_prompt, "")
    except (NoAnswer, Failure):
        return  # decode_step is written after prefill, and has checks of its own
    others = [*cases.ids(model, n_past, "others"), *ids[n_past:]]
    for all_ids, past, after in (
        (ids, cache, f"a prompt of {tokens(n_prompt)} and {n_past - n_prompt} decode steps"),
        (others, cached(student, model, others, n_past), f"{n_past} other cached tokens"),
    ):
        where = f"for a chunk of {tokens(n - n_past)} after {after} on {model.about}"
        logits = student.array("prefill", all_ids[n_past:], model, past)
        expect_logits(logits, model, all_ids, n_past, n, name="prefill", where=where)
        expect_rows(student, past, model, all_ids, n_past, where)


def _after(model: JudgeModel, n_prompt: int) -> str:
    return f"for a prompt of {tokens(n_prompt)} on {model.about}"
