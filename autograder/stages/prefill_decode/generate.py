"""The checks of generate: its ids, and the work it does for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from autograder.judge.bugs import (
    IDS_REMEMBERED,
    ONLY_SO_MANY_IDS,
    POSITIONS_COUNTED_TWICE,
    STOPS_AT_AN_ID,
    Bug,
    positions_shifted,
)
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student, StudentError
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.request import (
    Request,
    ask,
    draw_elsewhere,
    draw_longer,
    draw_request,
    lively,
)
from autograder.stages.prefill_decode.shared import STAGE, prefilled

PARTS_WRONG = "So do prefill and decode_step when they are called one after the other: mend them first."


@check(
    stage=STAGE, id="generate-ids", points=2, title="generate returns exactly n_new greedy ids", watches=("generate",)
)
def generate_ids(student, cases):
    """generate returns a list of exactly n_new ids, each the one with the largest logit of a recompute of everything
    before it."""
    requests = _draw_requests(cases)
    answers = [ask(student, request) for request in requests]
    wrong = [
        i for i, (request, answer) in enumerate(zip(requests, answers, strict=True)) if not request.is_right(answer)
    ]
    if wrong:
        detail = (
            f"{requests[wrong[0]].fault(answers[wrong[0]])} Requests that go wrong: {len(wrong)} of {len(requests)}."
        )
        if not all(_parts_work(student, request) for request in requests[:2]):
            raise Failure(None, f"{detail} {PARTS_WRONG}")
        raise Failure(None, detail, _ids_bug(student, requests, answers, wrong))


LONG, AGAIN, LONGER, ELSEWHERE = 6, 7, 8, 9  # the last requests, by what is asked for


def _draw_requests(cases: Cases) -> list[Request]:
    """Requests of several sizes, two of which give the last id and the first of the vocabulary as they go on; then
    what shows that something is left over from the first: it again, its prompt with more ids, and another model."""
    middle, small, large = (lively(model) for model in cases.odd)
    long = lively(cases.long)
    plans = ((middle, 5, 9), (large, 1, 12), (small, 3, 2), (small, 4, 1), (small, 6, 0), (cases.trained, 11, 8))
    first, second, *others = (draw_request(cases, *plan) for plan in (*plans, (long, 4, 45)))
    first, second = first.with_new_id(1, middle.config.n_vocab - 1), second.with_new_id(2, 0)
    return [first, second, *others, first, draw_longer(cases, first, 3, 5), draw_elsewhere(cases, first)]


def _parts_work(student: Student, request: Request) -> bool:
    """Whether the student's prefill and decode_step, in a loop of the judge's, give the right ids."""
    try:
        cache, logits = prefilled(student, request.model, request.prompt)
        for i, token_id in enumerate(request.clear):
            if int(np.argmax(logits)) != token_id:
                return False
            if i + 1 < len(request.clear):
                position = len(request.prompt) + i
                logits = student.array("decode_step", token_id, position, request.model, cache)
    except StudentError as error:
        return error.unwritten  # generate may do without them
    return True


def _ids_bug(student: Student, requests: list[Request], answers: list, wrong: list[int]) -> Bug | None:
    """The bug that explains every answer; one alone may agree with it by chance."""
    if 0 not in wrong and AGAIN in wrong:  # the same request, right at first
        return own.STATE_KEPT
    if wrong == [ELSEWHERE] and answers[ELSEWHERE] == answers[0]:
        return IDS_REMEMBERED
    if wrong == [LONGER]:
        ask(student, requests[1])
        return own.GOES_ON if requests[LONGER].is_right(ask(student, requests[LONGER])) else None
    short = _short_answer_bug(requests, answers, wrong)
    if short:
        return short
    first = wrong[0]
    if isinstance(answers[first], list) and ask(student, requests[first]) != answers[first]:
        return own.SAMPLED
    for bug, wrongly in _wrong_generates():
        if all(_explains(wrongly(request), answer) for request, answer in zip(requests, answers, strict=True)):
            return bug
    if all(isinstance(answer, list) for answer in answers):
        pairs = list(zip(requests, answers, strict=True))
        more = {len(answer) - request.n_new for request, answer in pairs if request.n_new}
        if len(more) == 1 and 0 not in more and all(_agree(answer, request.clear) for request, answer in pairs):
            return own.NUMBER_OF_IDS
    return None


def _short_answer_bug(requests: list[Request], answers: list, wrong: list[int]) -> Bug | None:
    """Why every wrong answer is the beginning of the right one."""
    pairs = [(requests[i], answers[i]) for i in wrong]
    if not all(isinstance(answer, list) and len(answer) < r.n_new and _agree(answer, r.clear) for r, answer in pairs):
        return None
    if LONG in wrong and len({len(answer) for _, answer in pairs}) == 1:
        return ONLY_SO_MANY_IDS
    stopped = all(answer and answer[-1] in (0, request.model.config.n_vocab - 1) for request, answer in pairs)
    return STOPS_AT_AN_ID if stopped else None


def _agree(ids: list[int], right: list[int]) -> bool:
    return all(a == b for a, b in zip(ids, right, strict=False))


def _explains(ids: list[int] | None, answer: list[int] | StudentError) -> bool:
    return answer.loud if isinstance(answer, StudentError) and ids is None else ids == answer


def _wrong_generates() -> Iterator[tuple[Bug, Callable[[Request], list[int] | None]]]:
    """The loops that people get wrong, as functions of a request; None where the loop would run past the end."""

    def right(more: int = 0):
        return lambda request: _loop(request, lambda prompt, new, n_cached: (new[-1:], [n_cached]), more)

    yield own.PROMPT_RETURNED, lambda request: request.prompt + right()(request)
    yield own.FIRST_ID_LOST, lambda request: right()(request)[1:]
    yield own.FIRST_ID_LOST, lambda request: (right(1)(request) or [None])[1:]
    yield own.ZERO_GIVES_ONE, lambda request: right(0 if request.n_new else 1)(request)

    def newest_at(position: Callable[[int, int, int], int], first=None):
        """The newest token at position(len(prompt), number of steps so far, cached length)."""
        return lambda request: _loop(
            request, lambda prompt, new, n: (new[-1:], [position(len(prompt), len(new) - 1, n)]), first=first
        )

    yield own.GENERATE_RESTARTS, newest_at(lambda n_prompt, i, n: i)
    for k in (1, -1, 2):
        yield positions_shifted(k), newest_at(lambda n_prompt, i, n, k=k: n + k)
    yield POSITIONS_COUNTED_TWICE, newest_at(lambda n_prompt, i, n: n_prompt + n)
    yield own.GENERATE_STUCK, newest_at(lambda n_prompt, i, n: n_prompt)
    yield own.LAST_TOKEN_TWICE, newest_at(lambda n_prompt, i, n: n, first=0)
    yield own.LAST_TOKEN_TWICE, newest_at(lambda n_prompt, i, n: n - 1, first=-1)
    yield own.NOT_FED_BACK, lambda request: _loop(request, lambda prompt, new, n: (prompt[-1:], [n]))
    yield own.NOT_FED_BACK, lambda request: _loop(request, lambda prompt, new, n: (new[:1], [n]))
    yield (
        own.FED_AGAIN,
        lambda request: _loop(
            request, lambda prompt, new, n: (prompt + new, list(range(n, n + len(prompt) + len(new))))
        ),
    )
    yield (
        own.FED_AGAIN,
        lambda request: _loop(request, lambda prompt, new, n: (prompt + new, list(range(len(prompt) + len(new))))),
    )


def _loop(request: Request, feed: Callable, more: int = 0, first: int | None = None) -> list[int] | None:
    """The ids of a generate that feeds, after each new id, the tokens and positions that `feed` says.

    more: ids beyond n_new. first: the last prompt token is fed again before any, at len(prompt) + first.
    """
    reference, n_ctx, prompt = request.model.reference, request.model.config.n_ctx, request.prompt
    n_new = max(0, request.n_new + more)
    run = reference.run(prompt)
    new: list[int] = []
    step = None if first is None else (prompt[-1:], [len(prompt) + first])
    while len(new) < n_new:
        if step is not None:
            tokens, positions = step
            if not 0 <= min(positions) <= max(positions) < n_ctx:
                return None
            run = reference.run(tokens, past=run.kv, positions=positions)
        new.append(int(run.logits[-1].argmax()))
        step = feed(prompt, new, run.kv[0][0].shape[1])
    return new


@check(stage=STAGE, id="generate-work", points=1, title="Each token goes through the model once")
def generate_work(student, cases):
    """generate sends prompt and new tokens through the model once: prompt + n_new - 1 tokens of work, however long the
    sequence grows."""
    for n_prompt, n_new in ((6, 14), (3, 3)):
        request = draw_request(cases, lively(cases.odd[2]), n_prompt, n_new)
        ids, tokens = student.counted_ids("generate", request.prompt, n_new, request.model)
        where = f"for a prompt of {n_prompt} and {n_new} new ids on {request.model.about}"
        enough = n_prompt + n_new - 1
        # A function that finds neither of the first two ids has not done the work that is to be counted.
        if request.clear and not {*request.clear[:2]} & {*ids}:
            raise Failure(None, f"The ids are not the greedy ones, so there is no work to be counted ({where}).")
        # What is not seen is neither passed nor accused: whoever recomputes and whoever does not are told alike how
        # to be seen. The student's own check cell says the same, so nobody learns of it from the mark.
        if tokens is None or tokens < enough - 0.5:
            if len(ids) < n_new:  # and so it need not have seen them
                raise Failure(None, request.fault(ids))
            seen = f"Only {tokens or 0:.0f} of the {enough} tokens that must go through the model were seen ({where})."
            remedy = "Call prefill and decode_step in generate, or multiply by the arrays in weights as they are."
            raise Failure(None, f"{seen} {remedy}")
        # One token more is a step for the last new id: the check of the context limit is the one that tells.
        if tokens > enough + 1.5:
            detail = f"generate sent {tokens:.0f} tokens through the model where {enough} are enough ({where})."
            raise Failure(None, detail, _work_bug(request, ids, tokens))


def _work_bug(request: Request, ids: list[int], tokens: float) -> Bug | None:
    n_prompt, n_new = len(request.prompt), request.n_new
    if not request.is_right(ids):
        return None  # something else is wrong, and has its own check
    if abs(tokens - (2 * n_prompt + n_new - 1)) <= 1:
        return own.PROMPT_RUN_TWICE
    return own.RECOMPUTES if tokens >= 0.9 * sum(range(n_prompt, n_prompt + n_new)) else None
