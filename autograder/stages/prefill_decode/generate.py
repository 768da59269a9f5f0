"""The checks of generate: its ids, and the work it does for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from autograder.judge.bugs import POSITIONS_COUNTED_TWICE, Bug, positions_shifted
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student, StudentError
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.request import Request, ask, draw_elsewhere, draw_request, lively
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
    right = [request.is_right(answer) for request, answer in zip(requests, answers, strict=True)]
    if not all(right):
        first = right.index(False)
        fault = f"{requests[first].fault(answers[first])} Requests that go wrong: {right.count(False)} of {len(right)}."
        if not all(_parts_work(student, request) for request in requests[:2]):
            raise Failure(None, f"{fault} {PARTS_WRONG}")
        again = requests.index(requests[0], 1)
        kept = right[0] and not right[again]  # the same request, right at first
        raise Failure(None, fault, own.STATE_KEPT if kept else _loop_bug(requests, answers))


def _draw_requests(cases: Cases) -> list[Request]:
    """Requests of several sizes, two of which give the last id and the first of the vocabulary as they go on; then
    what shows that something is left over from the first: it again, its prompt with more ids, and another model."""
    middle, small, large = (lively(model) for model in cases.odd)
    first = draw_request(cases, middle, 5, 9).with_new_id(1, middle.config.n_vocab - 1)
    second = draw_request(cases, large, 1, 12).with_new_id(2, 0)
    plans = ((small, 3, 2), (small, 4, 1), (small, 6, 0), (cases.trained, 11, 8), (lively(cases.long), 4, 45))
    longer = draw_request(cases, first.model, 3, 5, first.prompt)
    return [first, second, *(draw_request(cases, *p) for p in plans), first, longer, draw_elsewhere(cases, first)]


def _parts_work(student: Student, request: Request) -> bool:
    """Whether the student's prefill and decode_step, in a loop of the judge's, give the right ids."""
    try:
        cache, logits = prefilled(student, request.model, request.prompt)
        for position, token_id in enumerate(request.clear, len(request.prompt)):
            if int(np.argmax(logits)) != token_id:
                return False
            logits = student.array("decode_step", token_id, position, request.model, cache)
    except StudentError as error:
        return error.unwritten  # generate may do without them
    return True


def _loop_bug(requests: list[Request], answers: list) -> Bug | None:
    """The bug that explains every answer; one alone may agree with it by chance."""
    pairs = list(zip(requests, answers, strict=True))
    if any(all(_off_by(more, request, answer) for request, answer in pairs) for more in (1, -1)):
        return own.NUMBER_OF_IDS
    return next((bug for bug, wrongly in _wrong_loops() if all(_same(wrongly(r), a) for r, a in pairs)), None)


def _off_by(more: int, request: Request, answer: list[int] | StudentError) -> bool:
    """Whether the ids are right, and their number is off."""
    if not isinstance(answer, list) or len(answer) != max(0, request.n_new + more):
        return False
    return answer[: len(request.clear)] == request.clear[: len(answer)]


def _same(ids: list[int] | None, answer: list[int] | StudentError) -> bool:
    return answer.loud if isinstance(answer, StudentError) and ids is None else ids == answer


def _wrong_loops() -> Iterator[tuple[Bug, Callable[[Request], list[int] | None]]]:
    """The loops that people get wrong, as functions of a request; None where the loop would run past the end."""

    def newest(prompt, new, n_cached):
        return new[-1:], n_cached

    yield own.PROMPT_RETURNED, lambda r: r.prompt + _loop(r, newest)
    yield own.LAST_TOKEN_TWICE, lambda r: _loop(r, newest, again=True)
    yield own.NOT_FED_BACK, lambda r: _loop(r, lambda prompt, new, n: (prompt[-1:], n))
    yield own.NOT_FED_BACK, lambda r: _loop(r, lambda prompt, new, n: (new[:1], n))
    yield own.FED_AGAIN, lambda r: _loop(r, lambda prompt, new, n: (prompt + new, n))
    for bug, position in (
        (own.GENERATE_RESTARTS, lambda n_prompt, n: n - n_prompt),
        (own.GENERATE_STUCK, lambda n_prompt, n: n_prompt),
        (POSITIONS_COUNTED_TWICE, lambda n_prompt, n: n_prompt + n),
        *((positions_shifted(k), lambda n_prompt, n, k=k: n + k) for k in (1, -1)),
    ):
        yield bug, lambda r, at=position: _loop(r, lambda prompt, new, n: (new[-1:], at(len(prompt), n)))


def _loop(request: Request, feed: Callable, again: bool = False) -> list[int] | None:
    """The ids of a generate that feeds, after each new id, the tokens that `feed` says, from the position it says on.

    again: the last prompt token is fed again first.
    """
    reference, n_ctx, prompt = request.model.reference, request.model.config.n_ctx, request.prompt
    run, new = reference.run(prompt), []
    step = (prompt[-1:], len(prompt)) if again else None
    while len(new) < request.n_new:
        if step:
            tokens, position = step
            if position + len(tokens) > n_ctx:
                return None
            run = reference.run(tokens, past=run.kv, positions=range(position, position + len(tokens)))
        new.append(int(run.logits[-1].argmax()))
        step = feed(prompt, new, run.kv[0][0].shape[1])
    return new


@check(stage=STAGE, id="generate-work", points=1, title="No token is seen to go through the model twice")
def generate_work(student, cases):
    """generate is seen to send at most prompt + n_new - 1 tokens through the model, however long the sequence grows."""
    for n_prompt, n_new in ((6, 14), (3, 3)):
        request = draw_request(cases, lively(cases.odd[2]), n_prompt, n_new)
        ids, tokens = student.counted_ids("generate", request.prompt, n_new, request.model)
        enough = n_prompt + n_new - 1
        # A function that finds neither of the first two ids, or stops early, has not done the work to be counted.
        stops = len(ids) < n_new and (tokens or 0) < enough - 0.5
        if stops or (request.clear and not {*request.clear[:2]} & {*ids}):
            raise Failure(None, f"{request.fault(ids)} So there is no work to be counted.")
        # Work that is not seen, as with weights that were prepared once, is nobody's fault. One token more is a step
        # for the last new id: the check of the context limit is the one that tells.
        if tokens and tokens > enough + 1.5:
            sent = f"generate sent {tokens:.0f} tokens through the model where {enough} are enough ({request.where})."
            raise Failure(None, sent, _work_bug(request, ids, tokens))


def _work_bug(request: Request, ids: list[int], tokens: float) -> Bug | None:
    n_prompt, n_new = len(request.prompt), request.n_new
    if not request.is_right(ids):
        return None  # something else is wrong, and has its own check
    if abs(tokens - (2 * n_prompt + n_new - 1)) < 0.5:
        return own.PROMPT_RUN_TWICE
    return own.RECOMPUTES if abs(tokens - sum(range(n_prompt, n_prompt + n_new))) < 0.5 else None
