"""The check of generate_recompute."""

from __future__ import annotations

from collections.abc import Callable

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import matches
from autograder.judge.framework import Failure, check
from autograder.judge.requests import Answer, Request, draw_elsewhere, draw_request, lively
from autograder.judge.student import NoAnswer, Student, StudentError
from autograder.stages.forward_pass import bugs as own

NAME = "generate_recompute"
FORWARD_WRONG = "The logits of forward are wrong there too, so look at its checks first."

ONE_TOKEN = (  # the row that decides, by the function that gives the logits of ids: the first, or the newest's alone
    lambda logits, ids: logits(ids)[0],
    lambda logits, ids: logits(ids[-1:])[-1],
)


@check(f"{NAME} returns the greedy ids", points=2, watches=(NAME,))
def generate_greedy(student: Student, cases: Cases) -> None:
    """generate_recompute returns exactly n_new ids, each the one with the largest logit after all tokens before it."""
    for request in _draw_requests(cases):
        answer = request.ask(student, NAME)
        if not request.is_right(answer):
            fault = request.fault(NAME, answer)
            if _forward_is_wrong(student, request, answer):
                raise Failure(f"{fault} {FORWARD_WRONG}")
            raise Failure(fault, _bug(student, request, answer))
    model = cases.odd[1]
    n_ctx = model.config.n_ctx
    if _refuses(student, model, 0):  # the check of forward's limits looks at forward
        student.expect_error(NAME, [], 3, model, what="an empty prompt")
    what = f"{n_ctx - 2} prompt tokens and 4 new ids with n_ctx = {n_ctx}, one too many"
    student.expect_error(NAME, cases.ids(model, n_ctx - 2), 4, model, what=what, bug=own.LIMIT_IGNORED)


def _draw_requests(cases: Cases) -> list[Request]:
    """Requests of several sizes, two of which give the last id and the first of the vocabulary as they go on, and one
    comes again at once, to another model of the same shape."""
    requests = []
    for i, model in enumerate(map(lively, cases.odd)):
        first = draw_request(cases, model, 4, 5)
        if i == 2:
            requests += [first, draw_elsewhere(cases, first)]
        else:
            requests.append(first.with_new_id(1, (model.config.n_vocab - 1, 0)[i]))
        for n_prompt, n_new in ((8, 4), (model.config.n_ctx - 2, 3), (3, 0)):
            requests.append(draw_request(cases, model, n_prompt, n_new))
    requests += [draw_request(cases, cases.trained, 7, 12), draw_request(cases, lively(cases.long), 17, 41)]
    return [*requests, draw_request(cases, lively(cases.far), 1030, 2)]


def _forward_is_wrong(student: Student, request: Request, answer: Answer) -> bool:
    """Whether an answer has as many ids as it should, and forward is wrong where the first of them goes wrong."""
    if isinstance(answer, StudentError) or len(answer) != request.n_new:
        return False
    return not _right_at(student, request.model, request.prompt + request.clear[: request.first_wrong(answer)])


def _bug(student: Student, request: Request, answer: Answer) -> Bug | None:
    if isinstance(answer, StudentError):
        outside = f"out of bounds for axis 0 with size {request.model.config.n_vocab}" in answer.message
        return own.ARGMAX_OF_ALL_ROWS if outside and _right_at(student, request.model, request.prompt) else None
    if request.with_prompt(answer):
        return own.PROMPT_RETURNED
    return own.ONE_TOKEN_DECIDES if any(answer == _chosen(request, row) for row in ONE_TOKEN) else None


def _chosen(request: Request, row: Callable) -> list[int]:
    """The new ids, when row(logits, ids) decides each of them."""
    ids = list(request.prompt)
    for _ in range(request.n_new):
        ids.append(int(row(request.model.reference.logits, ids).argmax()))
    return ids[len(request.prompt) :]


def _right_at(student: Student, model: JudgeModel, ids: list[int]) -> bool:
    """Whether the student's forward gives the right logits of these tokens."""
    try:
        return matches(student.array("forward", ids, model), model.reference.logits(ids))
    except NoAnswer:
        return False


def _refuses(student: Student, model: JudgeModel, n_seq: int) -> bool:
    """Whether the student's forward refuses n_seq tokens."""
    try:
        student.array("forward", [0] * n_seq, model)
    except NoAnswer as error:
        return error.refusal
    return False
