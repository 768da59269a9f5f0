"""The checks of generate: its ids, and the work it does for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.judge.bugs import POSITIONS_COUNTED_TWICE, POSITIONS_RESET, Bug, positions_shifted
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.requests import Answer, Request, draw_elsewhere, draw_request, lively
from autograder.judge.student import NoAnswer, NotWritten, Student, StudentError
from autograder.stages.forward_pass.bugs import PROMPT_RETURNED
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.shared import prefilled

NAME = "generate"
PARTS_WRONG = "So do prefill and decode_step when they are called one after the other: mend them first."
# What wrong loops feed after each new id, and at which position, with n rows in the cache.
WRONG_LOOPS: tuple[tuple[Bug, Callable[[list[int], list[int], int], tuple[list[int], int]]], ...] = (
    (own.GENERATE_FEEDS_ALL_AGAIN, lambda prompt, new, n: (prompt + new, n)),
    *((POSITIONS_RESET, lambda prompt, new, n, k=k: (new[-1:], n - len(prompt) + k)) for k in (0, 1)),
    (POSITIONS_COUNTED_TWICE, lambda prompt, new, n: (new[-1:], n + len(prompt))),
    (positions_shifted(1), lambda prompt, new, n: (new[-1:], n + 1)),
    (positions_shifted(-1), lambda prompt, new, n: (new[-1:], n - 1)),
)
ON_AN_EMPTY_CACHE = (
    lambda prompt, new, n: (new[-1:], len(prompt) + len(new) - 1),
    lambda prompt, new, n: (new[-1:], 0),
)


@check("generate returns exactly n_new greedy ids", points=2, watches=(NAME,))
def generate_ids(student, cases):
    """generate returns a list of exactly n_new ids, each the one with the largest logit of a recompute of everything
    before it."""
    requests = _draw_requests(cases)
    answers = [request.ask(student, NAME) for request in requests]
    right = [request.is_right(answer) for request, answer in zip(requests, answers, strict=True)]
    if not all(right):
        first = right.index(False)
        fault = requests[first].fault(NAME, answers[first])
        fault = f"{fault} Requests that go wrong: {right.count(False)} of {len(right)}."
        if not all(_parts_work(student, request) for request in requests[1:3]):
            raise Failure(f"{fault} {PARTS_WRONG}")
        kept = right[0] and not right[1]  # the same request, right at first
        raise Failure(fault, own.GENERATE_STATE_KEPT if kept else _loop_bug(requests[1:4], answers[1:4]))
    first, *_, other, _ = requests
    weights = student.keep(first.model)
    student.ids(NAME, first.prompt, first.n_new, weights)
    student.replace(weights)  # with the next, which has its id()
    ids = student.ids(NAME, other.prompt, other.n_new, student.keep(other.model))
    if not other.is_right(ids):
        raise Failure(f"{other.fault(NAME, ids)} Another model of this shape, which is gone, was asked before.")


def _draw_requests(cases: Cases) -> list[Request]:
    """Requests of several sizes, and four that show whether something of an earlier one is left over.

    Two of the first give the last id and the first of the vocabulary. The four: the first again at once, later its
    prompt with more ids, the same for another model, and that answer continued by the first model.
    """
    middle, small, large = (lively(model) for model in cases.odd)
    first = draw_request(cases, middle, 5, 9).with_new_id(1, middle.config.n_vocab - 1)
    second = draw_request(cases, large, 1, 12).with_new_id(2, 0)
    plans = ((small, 3, 2), (small, 4, 1), (small, 6, 0), (cases.trained, 11, 8), (lively(cases.long), 4, 45))
    several = [draw_request(cases, *plan) for plan in plans]
    beyond = [draw_request(cases, lively(model), 1, 3, ids) for model, ids in cases.beyond]
    longer, other = draw_request(cases, first.model, 3, 5, first.prompt), draw_elsewhere(cases, first)
    turn = draw_request(cases, first.model, 2, 3, other.prompt + other.clear)
    return [first, first, second, *several, *beyond, longer, other, turn]


def _parts_work(student: Student, request: Request) -> bool:
    """Whether the student's prefill and decode_step, in a loop of the judge's, give the right ids."""
    try:
        cache, logits = prefilled(student, request.model, request.prompt)
        for position, token_id in enumerate(request.clear, len(request.prompt)):
            if int(np.argmax(logits)) != token_id:
                return False
            logits = student.array("decode_step", token_id, position, request.model, cache)
    except NoAnswer as error:
        return isinstance(error, NotWritten)  # generate may do without them
    return True


def _loop_bug(requests: list[Request], answers: list[Answer]) -> Bug | None:
    """The bug that explains all answers; one alone may agree with it by chance."""
    pairs = [
        (request, None if isinstance(answer, StudentError) and answer.refusal else answer)
        for request, answer in zip(requests, answers, strict=True)
    ]
    if all(r.with_prompt(answer) for r, answer in pairs):
        return PROMPT_RETURNED
    if all(answer == r.model.reference.greedy([*r.prompt, r.prompt[-1]], r.n_new)[0] for r, answer in pairs):
        return own.GENERATE_LAST_TOKEN_TWICE
    loops = [(bug, feed, True) for bug, feed in WRONG_LOOPS]
    loops += [(own.GENERATE_NEW_CACHE_EACH_STEP, feed, False) for feed in ON_AN_EMPTY_CACHE]
    return next((bug for bug, *loop in loops if all(_loop(r, *loop) == answer for r, answer in pairs)), None)


def _loop(request: Request, feed: Callable, keeps: bool) -> list[int] | None:
    """The ids of a generate with this loop; None where it would run past the end. keeps: whether it keeps the cache."""
    reference, prompt = request.model.reference, request.prompt
    run = reference.run(prompt)
    new = [int(run.logits[-1].argmax())]
    while len(new) < request.n_new:
        tokens, start = feed(prompt, new, run.kv[0][0].shape[1])
        if start + len(tokens) > request.model.config.n_ctx:
            return None
        run = reference.run(tokens, past=run.kv if keeps else None, positions=range(start, start + len(tokens)))
        new.append(int(run.logits[-1].argmax()))
    return new


@check("No token is seen to go through the model twice", points=1)
def generate_work(student, cases):
    """generate is seen to send at most prompt + n_new - 1 tokens through the model, however long the sequence grows."""
    for n_prompt, n_new in ((6, 14), (3, 20), (3, 3)):  # 20: past a block of 16
        request = draw_request(cases, lively(cases.odd[2]), n_prompt, n_new)
        ids, tokens = student.counted_ids(NAME, request.prompt, n_new, request.model)
        enough = n_prompt + n_new - 1
        # A function that finds neither of the first two ids, or stops early, has not done the work to be counted.
        stops = len(ids) < n_new and (tokens or 0) < enough - 0.5
        if stops or (request.clear and not {*request.clear[:2]} & {*ids}):
            raise Failure(f"{request.fault(NAME, ids)} So there is no work to be counted.")
        # Work that is not seen, as with weights that were prepared once, is nobody's fault. One token more is a step
        # for the last new id: the check of the context limit is the one that tells.
        if tokens and tokens > enough + 1.5:
            sent = f"generate sent {tokens:.0f} tokens through the model where {enough} are enough ({request.where})."
            known = {
                2 * n_prompt + n_new - 1: own.GENERATE_PROMPT_RUN_TWICE,
                sum(range(n_prompt, n_prompt + n_new)): own.GENERATE_RECOMPUTES,
            }  # where the ids are wrong, something else is, and has its own check
            raise Failure(sent, known.get(round(tokens)) if request.is_right(ids) else None)
