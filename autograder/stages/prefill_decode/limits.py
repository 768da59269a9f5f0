"""The check of the context limit: what fits into n_ctx works, what does not is refused."""

from __future__ import annotations

from autograder.judge.bugs import Bug
from autograder.judge.cases import JudgeModel
from autograder.judge.compare import matches
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import tokens
from autograder.judge.requests import Answer, Request, draw_request, lively
from autograder.judge.student import Student, StudentError
from autograder.stages.forward_pass.bugs import PROMPT_RETURNED
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.shared import cached, expect_logits


@check("What fits into n_ctx works, what does not is an error", points=1)
def decode_context_limit(student, cases):
    """Every position up to n_ctx - 1 can be used, so generate works while prompt + n_new - 1 <= n_ctx; one more token,
    an empty prompt, a negative position or an id outside the vocabulary is a ValueError or an IndexError, and
    gets no row in the cache."""
    model = cases.odd[1]
    n_ctx = model.config.n_ctx
    ids = cases.ids(model, n_ctx + 2)
    for name, n_past in (("prefill", 0), ("prefill", n_ctx - 3), ("decode_step", n_ctx - 1)):
        _expect_the_last_position(student, model, ids, name, n_past)
    for n_prompt in (5, n_ctx):
        request = draw_request(cases, lively(model), n_prompt, n_ctx + 1 - n_prompt)
        answer = request.ask(student, "generate")
        if not request.is_right(answer):
            raise Failure(request.fault("generate", answer), _full_context_bug(student, request, answer))
    _expect_errors_past_the_end(student, model, ids)
    _expect_errors_of_ids_and_positions(student, model, ids[:6])


def _expect_the_last_position(student: Student, model: JudgeModel, ids: list[int], name: str, n_past: int) -> None:
    n_ctx = model.config.n_ctx
    cache = cached(student, model, ids[:n_ctx], n_past)
    where = f"for tokens up to position {n_ctx - 1}, the last one, on {model.about}"
    new = (ids[n_past:n_ctx],) if name == "prefill" else (ids[n_past], n_past)
    try:
        logits = student.array(name, *new, model, cache)
    except StudentError as error:
        if not error.refusal:
            raise
        raise Failure(f"{error.sentence[:-1]}, {where}.") from None
    expect_logits(logits, model, ids[:n_ctx], n_past, n_ctx, name=name, where=where)


def _full_context_bug(student: Student, request: Request, answer: Answer) -> Bug | None:
    """Whether the prompt is returned too, or a request is refused, where with an id less one token too many is run."""
    if request.with_prompt(answer):
        return PROMPT_RETURNED
    shorter = request.shorter()
    if shorter.n_new < 1 or not (isinstance(answer, StudentError) and answer.refusal):
        return None
    try:
        ids, n_seen = student.counted_ids("generate", shorter.prompt, shorter.n_new, shorter.model)
    except StudentError:
        return None
    one_more = n_seen and round(n_seen) == len(shorter.prompt) + shorter.n_new
    return own.GENERATE_ONE_STEP_TOO_MANY if one_more and shorter.is_right(ids) else None


def _expect_errors_past_the_end(student: Student, model: JudgeModel, ids: list[int]) -> None:
    n_ctx = model.config.n_ctx
    n_ctx_is = f"n_ctx = {n_ctx} on {model.about}"
    silent = "NumPy cuts a slice of wpe short, and broadcasts a row that is left"
    for n_past, n_new in ((n_ctx - 1, 2), (n_ctx - 1, 3), (n_ctx, 1), (0, n_ctx + 1)):
        what = f"a chunk of {tokens(n_new)} after {n_past} cached and {n_ctx_is} ({silent})"
        _expect_refused(student, model, ids, n_past, what, "prefill", ids[n_past : n_past + n_new])
    what = f"a decode step at position {n_ctx} and {n_ctx_is}"
    _expect_refused(student, model, ids, n_ctx, what, "decode_step", ids[n_ctx], n_ctx)
    for n_prompt, n_new in ((5, n_ctx - 3), (n_ctx, 2), (n_ctx + 1, 1)):
        what = f"a prompt of {n_prompt} and {n_new} new ids, one more than fits into {n_ctx_is}"
        student.expect_error("generate", ids[:n_prompt], n_new, model, what=what)
    for n_past in (0, 4):
        _expect_refused(student, model, ids, n_past, f"an empty prompt after {n_past} cached tokens", "prefill", [])
    student.expect_error("generate", [], 3, model, what="an empty prompt")


def _expect_refused(student: Student, model: JudgeModel, ids: list[int], n_past: int, what: str, name: str, *args):
    """Pass when a call on the first n_past of ids is an error, and not all of its tokens have rows then.

    A pass over one token after the other has appended those before the one that it refuses.
    """
    cache = cached(student, model, ids[: model.config.n_ctx], n_past)
    student.expect_error(name, *args, model, cache, what=what)
    n_new = len(args[0]) if name == "prefill" else 1
    counts = [student.length(layer) for layer in student.layers(cache, model.config.n_layer)]
    if max(counts) > n_past + max(n_new - 1, 0):
        had = f"The cache has {max(counts)} rows after {what}, which was refused; it had {n_past} before."
        raise Failure(f"{had} A token that is refused gets no row: raise the error before anything is appended.")


def _expect_errors_of_ids_and_positions(student: Student, model: JudgeModel, ids: list[int]) -> None:
    """What NumPy takes for a place counted from the end, or what a wrong repair of that makes of it."""
    n_vocab, n_past = model.config.n_vocab, 4
    for wrong_id, what in ((-1, "the id -1, which NumPy counts from the end"), (n_vocab, "an id of n_vocab")):
        chunk = [ids[n_past], wrong_id, ids[n_past + 1]]
        _expect_refused(student, model, ids, n_past, what, "prefill", chunk)
        _expect_refused(student, model, ids, n_past, what, "decode_step", wrong_id, n_past)
    ignored = model.reference.logits(ids)[n_past]
    for position in (-1, -2):  # of wpe[position:position + 1], the first is empty, and the second is a row
        try:
            logits = student.array("decode_step", ids[n_past], position, model, cached(student, model, ids, n_past))
        except StudentError:
            continue  # what an error has to be is the question of decode-position, and so is a position that is ignored
        if not matches(logits, ignored):
            what = f"position {position}, which NumPy counts from the end"
            raise Failure(f"For {what}, decode_step returned as if nothing were wrong; a ValueError is expected.")
