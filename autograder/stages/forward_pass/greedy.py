"""The check of generate_recompute."""

from __future__ import annotations

from collections.abc import Callable

from autograder.judge import bugs
from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student, StudentError
from autograder.judge.variants import variant
from autograder.judge.words import count
from autograder.stages.forward_pass import bugs as own
from autograder.stages.forward_pass.shared import STAGE, about, is_trained, right_at

CLEAR = 0.15  # by how much the chosen logit leads; float32 moves it by 1e-5
FORWARD_WRONG = "The logits of forward are wrong there too, so look at its checks first."


@check(
    stage=STAGE,
    id="generate-greedy",
    points=2,
    title="generate_recompute returns the greedy ids",
    watches=("generate_recompute",),
)
def generate_greedy(student: Student, cases: Cases) -> None:
    """generate_recompute returns exactly n_new ids, each the one with the largest logit after all tokens before it."""
    for i, model in enumerate(cases.odd):
        n_ctx, last = model.config.n_ctx, model.config.n_vocab - 1
        _compare_ids(student, cases, model, n_prompt=4, n_new=5, second=(last, 0, None)[i])
        _compare_ids(student, cases, model, n_prompt=8, n_new=4)
        _compare_ids(student, cases, model, n_prompt=n_ctx - 2, n_new=3, exact_limit=True)
    _compare_ids(student, cases, cases.trained, n_prompt=7, n_new=4)
    _compare_many(student, cases, cases.long, n_prompt=17, n_new=41)
    _compare_twins(student, cases, cases.odd[2])
    model = cases.odd[1]
    n_ctx = model.config.n_ctx
    prompt = cases.ids(model, n_ctx)
    _expect_ids(student, cases, model, prompt[:3], [], "3 prompt tokens and 0 new ones")
    if _refuses(student, model, 0):  # the check of forward's limits looks at forward
        student.expect_error("generate_recompute", [], 3, model, what="an empty prompt")
    student.expect_error(
        "generate_recompute",
        prompt[:-2],
        4,
        model,
        what=f"{n_ctx - 2} prompt tokens and 4 new ones with n_ctx = {n_ctx}, one too many",
        bug=own.WINDOW_SLID if _refuses(student, model, n_ctx + 1) else own.LIMIT_IGNORED,
    )


def _refuses(student: Student, model: JudgeModel, n_seq: int) -> bool:
    """Whether the student's forward refuses n_seq tokens."""
    try:
        student.array("forward", [0] * n_seq, model)
    except StudentError as error:
        return error.loud
    return False


def _compare_many(student: Student, cases: Cases, model: JudgeModel, n_prompt: int, n_new: int) -> None:
    """More ids than any other request asks for, compared as far as they are clear."""
    prompt = cases.ids(model, n_prompt, n_new)
    expected, gaps = model.reference.greedy(prompt, n_new)
    n_clear = next((i for i, gap in enumerate(gaps) if gap < CLEAR), n_new)
    where = f"{n_prompt} prompt tokens and {n_new} new ones on {about(model)}"
    _expect_ids(student, cases, model, prompt, expected, where, n_clear)


def _compare_twins(student: Student, cases: Cases, model: JudgeModel) -> None:
    """The prompt that the model had first, on another of the same shape."""
    prompt, others = clear_prompt(cases, model, 4, 5)
    twins = (random_judge_model(model.config, cases.number("twin", i)) for i in range(40))
    for twin in twins:
        expected, gaps = twin.reference.greedy(prompt, 5)
        if min(gaps) > CLEAR and expected != others:
            break
    actual = student.ids("generate_recompute", prompt, 5, twin)
    if actual != expected:
        detail = f"generate_recompute returned other ids for a prompt that another model had before ({about(twin)})."
        if not right_at(student, twin, prompt):
            raise Failure(None, f"{detail} {FORWARD_WRONG}")
        raise Failure(None, detail, bugs.IDS_REMEMBERED if actual == others else None)


def _compare_ids(student, cases, model, n_prompt, n_new, exact_limit=False, second=None):
    """second: what the id of the second new token is to be; the tokens are numbered so that it is."""
    prompt, expected = clear_prompt(cases, model, n_prompt, n_new)
    if second is not None:
        model, prompt, expected = model.with_ids_exchanged(expected[1], second, prompt, expected)
    where = f"{n_prompt} prompt tokens and {n_new} new ones on {about(model)}"
    if exact_limit:
        where += f", which just fit into n_ctx = {model.config.n_ctx}"
    try:
        _expect_ids(student, cases, model, prompt, expected, where)
    except StudentError as error:
        foreign = f"index {_argmax_of_all(model, prompt)} "
        if error.type == "IndexError" and foreign in error.message and right_at(student, model, prompt):
            raise Failure(None, f"For {where}, {error.sentence}", own.ARGMAX_OF_ALL_ROWS) from None
        if not (exact_limit and error.loud):
            raise
        bug = own.GENERATE_LIMIT_TOO_LOW
        if _refuses(student, model, model.config.n_ctx):
            bug = own.LIMIT_TOO_LOW if right_at(student, model, cases.ids(model, model.config.n_ctx - 1)) else None
        raise Failure(None, f"For {where}, {error.sentence}", bug) from None


def _argmax_of_all(model: JudgeModel, prompt: list[int]) -> int:
    """The first id outside the vocabulary when ids are chosen by argmax of all rows of the logits at once, or -1."""
    ids = list(prompt)
    while len(ids) <= model.config.n_ctx:
        ids.append(int(model.reference.logits(ids).argmax()))
        if ids[-1] >= model.config.n_vocab:
            return ids[-1]
    return -1


def clear_prompt(cases: Cases, model: JudgeModel, n_prompt: int, n_new: int) -> tuple[list[int], list[int]]:
    """A prompt and its greedy ids, each ahead of the second best by more than any honest rounding.

    On 12 blocks, another order of the blocks gives other ids.
    """
    layers_as_text = variant(model.reference, "layers-sorted-as-text")
    for attempt in range(40):
        prompt = cases.ids(model, n_prompt, n_new, attempt)
        ids, gaps = model.reference.greedy(prompt, n_new)
        if min(gaps) > CLEAR and not (is_trained(model) and ids == layers_as_text.greedy(prompt, n_new)[0]):
            break
    return prompt, ids


def _expect_ids(student, cases, model, prompt, expected, where, n_clear=None):
    """n_clear: how many of the expected ids no rounding can change; None for all."""
    name, n_new = "generate_recompute", len(expected)
    actual = student.ids(name, prompt, n_new, model)
    if len(actual) == n_new and actual[:n_clear] == expected[:n_clear]:
        return
    if len(actual) != n_new:
        bug = own.PROMPT_RETURNED if actual == prompt + expected else None
        raise Failure(None, f"{name} returned {count(len(actual), 'id')} for {where}.", bug)
    wrong = next(i for i, (a, b) in enumerate(zip(actual, expected, strict=True)) if a != b)
    detail = f"{name} chose another id at new token {wrong}, counted from 0 ({where})."
    seen = prompt + expected[:wrong]
    if not right_at(student, model, seen):
        raise Failure(None, f"{detail} {FORWARD_WRONG}")
    raise Failure(None, detail, _recognize_ids(student, cases, model, prompt, actual))


def _recognize_ids(
    student: Student, cases: Cases, model: JudgeModel, prompt: list[int], actual: list[int]
) -> Bug | None:
    """How the wrong ids were chosen from right logits: what explains them, and those of other prompts as well.

    A short run of ids may agree with anything by chance.
    """
    logits, trained_logits = model.reference.logits, cases.trained.reference.logits
    answers = [(prompt, actual)]
    for n_prompt in (3, 5, 7):
        other = cases.ids(model, n_prompt, "recognize")
        try:
            answers.append((other, student.ids("generate_recompute", other, 4, model)))
        except (Failure, StudentError):
            return None
    for bug, choose in (
        (own.LAST_TOKEN_ALONE, lambda ids, n: logits(ids[-1:])[-1].argmax()),
        (own.SEQUENCE_NOT_GROWN, lambda ids, n: logits(ids[:n])[-1].argmax()),
        (own.NOTEBOOK_WEIGHTS, lambda ids, n: trained_logits(ids)[-1].argmax()),
    ):
        if all(_chosen(choose, prompt, len(ids)) == ids for prompt, ids in answers):
            return bug
    return None


def _chosen(choose: Callable[[list[int], int], int], prompt: list[int], n_new: int) -> list[int]:
    ids = list(prompt)
    for _ in range(n_new):
        ids.append(int(choose(ids, len(prompt))))
    return ids[len(prompt) :]
