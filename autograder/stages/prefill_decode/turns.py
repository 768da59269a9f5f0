"""A prompt that continues a cache which decode steps have grown, as in the second turn of a chat."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Suspects, expect_close
from autograder.judge.reference import part_of_rows
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.words import count, tokens
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.cache_rows import begins_with, expect_rows
from autograder.stages.prefill_decode.shared import cached, prefilled
from autograder.stages.prefill_decode.suspects import wrong_logits

N_PROMPT, N_PAST, N = 4, 6, 9


def expect_turns(student: Student, cases: Cases, model: JudgeModel) -> None:
    """Prefill is right after a prompt and decode steps, and again for the same chunk after other tokens."""
    ids, others = cases.ids(model, N, "turns"), cases.ids(model, N_PAST, "others")
    chunk = ids[N_PAST:]
    cache, _ = prefilled(student, model, ids[:N_PROMPT])
    try:
        for i in range(N_PROMPT, N_PAST):
            student.plain("decode_step", ids[i], i, model, cache)
        kv = student.read_cache(cache, "the cache")
    except StudentError:
        return  # decode_step is written after prefill, and has checks of its own
    past = part_of_rows(model.reference.run(ids).kv, 0, N_PAST)
    if not begins_with(kv, past):
        return
    positions = range(N_PROMPT, N_PROMPT + len(chunk))
    uncounted = (own.STEPS_NOT_COUNTED, lambda: model.reference.run(chunk, past=past, positions=positions).logits[-1])
    steps = count(N_PAST - N_PROMPT, "decode step")
    where = f"for a chunk of {tokens(len(chunk))} after a prompt of {tokens(N_PROMPT)} and {steps} on {model.about}"
    _expect_turn(student, cache, model, ids, where, [uncounted])

    remembered = (own.PAST_FORGOTTEN, lambda: model.reference.logits(ids)[-1])
    where = f"for the same chunk of {tokens(len(chunk))} after {N_PAST} other cached tokens on {model.about}"
    after = [*others, *chunk]
    _expect_turn(student, cached(student, model, after, N_PAST), model, after, where, [remembered])


def _expect_turn(
    student: Student, cache: Handle, model: JudgeModel, ids: Sequence[int], where: str, suspects: Suspects
) -> None:
    logits = student.array("prefill", ids[N_PAST:], model, cache)
    suspects = [*suspects, *wrong_logits(model, ids, N_PAST)]
    right = model.reference.logits(ids)[-1]
    expect_close(logits, right, name="prefill", axes=("id",), where=where, suspects=suspects)
    expect_rows(student.read_cache(cache, "the cache"), model, ids, N_PAST, where)
