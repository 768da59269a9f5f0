"""The check of the context limit: what fits into n_ctx works, what does not is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.cases import JudgeModel
from autograder.judge.compare import expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV, Run, part_of_rows
from autograder.judge.student import Student, StudentError
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.request import Request, ask, draw_request, lively
from autograder.stages.prefill_decode.shared import STAGE, cached
from autograder.stages.prefill_decode.suspects import wrong_logits


@check(stage=STAGE, id="decode-context-limit", points=1, title="What fits into n_ctx works, what does not is an error")
def decode_context_limit(student, cases):
    """Every position up to n_ctx - 1 can be used, so generate works while prompt + n_new - 1 <= n_ctx; one more token,
    an empty prompt, a negative position or an id outside the vocabulary is a ValueError or an IndexError."""
    model = cases.odd[1]
    ids = cases.ids(model, model.config.n_ctx + 1)
    _expect_the_last_position(student, model, ids)
    roomy = draw_request(cases, lively(cases.odd[0]), 5, 9)
    for n_prompt in (5, model.config.n_ctx):
        request = draw_request(cases, lively(model), n_prompt, model.config.n_ctx + 1 - n_prompt)
        _expect_a_full_context(student, request, roomy)
    _expect_errors(student, model, ids)
    _expect_errors_of_ids_and_positions(student, model, ids[:6])


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
        suspects = wrong_logits(model, ids, n_past)
        right = model.reference.logits(ids)[-1]
        expect_close(logits, right, name=name, axes=("id",), where=where, suspects=suspects)


def _expect_a_full_context(student: Student, request: Request, roomy: Request) -> None:
    """roomy: a request that leaves room in the context, to see what a refused generate does otherwise."""
    answer = ask(student, request)
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
        ("prefill", ids[:2], n_ctx - 1, f"a chunk of 2 tokens after {n_ctx - 1} cached"),
        ("prefill", ids[:3], n_ctx - 1, f"a chunk of 3 tokens after {n_ctx - 1} cached"),
        ("prefill", ids[:1], n_ctx, f"one token after {n_ctx} cached"),
        ("prefill", ids, 0, f"a prompt of {n_ctx + 1} tokens"),
        ("decode_step", ids[n_ctx:], n_ctx, f"a decode step at position {n_ctx}"),
    ):
        cache = student.make_cache(model, part_of_rows(kv, 0, n_past))
        args = (new, model, cache) if name == "prefill" else (new[0], n_past, model, cache)
        logits = _unless_refused(student.array, name, *args)
        if logits is not None:
            suspects = _past_the_end(model, new, part_of_rows(kv, 0, n_past))
            bug = next((bug for bug, wrong in suspects if matches(logits, wrong().logits[-1])), None)
            raise _not_refused(f"{what} and n_ctx = {n_ctx} {on}", name, bug)
    for n_prompt, n_new in ((5, n_ctx - 3), (n_ctx, 2), (n_ctx + 1, 1)):
        new = _unless_refused(student.ids, "generate", ids[:n_prompt], n_new, model)
        if new is not None:
            what = f"a prompt of {n_prompt} and {n_new} new ids, one more than fits into n_ctx = {n_ctx}, {on}"
            raise _not_refused(what, "generate", own.CUT_SHORT if len(new) < n_new else None)
    for n_past, what in ((0, "an empty prompt"), (4, "an empty chunk after 4 cached tokens")):
        cache = cached(student, model, ids[:n_ctx], n_past)
        student.expect_error("prefill", [], model, cache, what=what, bug=own.EMPTY_PROMPT)
    student.expect_error("generate", [], 3, model, what="an empty prompt", bug=own.EMPTY_PROMPT)


def _expect_errors_of_ids_and_positions(student: Student, model: JudgeModel, ids: list[int]) -> None:
    """What NumPy takes for a place counted from the end, or what a wrong repair of that makes of it."""
    n_vocab, n_past = model.config.n_vocab, 4
    for wrong_id in (-1, n_vocab):
        what, bug = f"the id {wrong_id} where n_vocab is {n_vocab}", own.IDS_UNCHECKED
        chunk = [ids[n_past], wrong_id, ids[n_past + 1]]
        student.expect_error("prefill", chunk, model, cached(student, model, ids, n_past), what=what, bug=bug)
        step = (wrong_id, n_past, model, cached(student, model, ids, n_past))
        student.expect_error("decode_step", *step, what=what, bug=bug)
    past = part_of_rows(model.reference.run(ids).kv, 0, n_past)
    for position in (-1, -2):  # of wpe[position:position + 1], the first is empty, and the second is a row
        try:
            logits = student.array("decode_step", ids[n_past], position, model, cached(student, model, ids, n_past))
        except StudentError as error:
            if error.unwritten:
                raise
            continue  # what an error has to be is the question of decode-position, and so is a position that is ignored
        ignored, from_end = (
            model.reference.run([ids[n_past]], past=past, positions=[place]).logits[-1]
            for place in (n_past, model.config.n_ctx + position)
        )
        if not matches(logits, ignored):
            bug = own.NEGATIVE_POSITION if matches(logits, from_end) else None
            raise _not_refused(f"position {position}", "decode_step", bug)


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
    cache = cached(student, model, ids, n_past)
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
