"""A request to a function that generates tokens: a prompt, and the greedy ids that it must return."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.plurals import count, tokens
from autograder.judge.student import Student, StudentError

CLEAR = 0.02  # a greedy choice counts if the best logit leads by this much; float32 rounding changes a logit by 1e-5
DRAWS = 6  # prompts or models tried to find one with clear ids
Answer = list[int] | StudentError


@dataclass(frozen=True)
class Request:
    """A prompt, and its greedy ids up to the first near tie, which must not fail anyone."""

    model: JudgeModel
    prompt: list[int]
    n_new: int
    clear: list[int]

    @property
    def where(self) -> str:
        asked = f"for a prompt of {tokens(len(self.prompt))} and {count(self.n_new, 'new id')} on {self.model.about}"
        n_ctx = self.model.config.n_ctx
        fits = len(self.prompt) + self.n_new - 1 == n_ctx
        return f"{asked}, which just fits into n_ctx = {n_ctx}: the last id needs no row" if fits else asked

    def shorter(self) -> Request:
        """The same request for one id fewer."""
        return replace(self, n_new=self.n_new - 1, clear=self.clear[: self.n_new - 1])

    def with_new_id(self, index: int, wanted: int) -> Request:
        """The same request to a model whose tokens are renumbered so that new id `index` is `wanted`."""
        if not self.clear:
            return self
        one = self.clear[min(index, len(self.clear) - 1)]
        model, prompt, clear = self.model.with_ids_exchanged(one, wanted, self.prompt, self.clear)
        return Request(model, prompt, self.n_new, clear)

    def ask(self, student: Student, name: str) -> Answer:
        """The ids that the student's function returns, or the error that it raises."""
        try:
            return student.ids(name, self.prompt, self.n_new, self.model)
        except StudentError as error:
            return error

    def is_right(self, ids: Answer) -> bool:
        return isinstance(ids, list) and len(ids) == self.n_new and ids[: len(self.clear)] == self.clear

    def with_prompt(self, ids: Answer) -> bool:
        """Whether the answer is the prompt followed by the right ids."""
        n = len(self.prompt)
        return isinstance(ids, list) and ids[:n] == self.prompt and self.is_right(ids[n:])

    def first_wrong(self, ids: list[int]) -> int:
        """The index of the first new id that is not the greedy one."""
        return next(i for i, (a, b) in enumerate(zip(ids, self.clear, strict=False)) if a != b)

    def fault(self, name: str, ids: Answer) -> str:
        """What is wrong with an answer, in a sentence."""
        if isinstance(ids, StudentError):
            return f"{ids.sentence[:-1]}, {self.where}."
        if len(ids) != self.n_new:
            return f"{name} returned {count(len(ids), 'id')} where n_new is {self.n_new} ({self.where})."
        return f"New id {self.first_wrong(ids) + 1} of {self.n_new} is not the greedy one ({self.where})."


def lively(model: JudgeModel) -> JudgeModel:
    """The model with larger position embeddings. Otherwise a random model would repeat one token forever, at any
    position, and wrong positions would not show in the ids."""
    return model.patched("wpe.weight", 3 * model.weights.wpe)


def draw_request(cases: Cases, model: JudgeModel, n_prompt: int, n_new: int, begin: Iterable[int] = ()) -> Request:
    """A request with a prompt of `begin` followed by n_prompt random ids."""
    prompts = ([*begin, *cases.ids(model, n_prompt, "request", n_new, i)] for i in range(DRAWS))
    return _clearest(((model, prompt) for prompt in prompts), n_new)


def draw_elsewhere(cases: Cases, request: Request) -> Request:
    """The same request to another model of the same shape."""
    seeds = (cases.number("elsewhere", i) for i in range(DRAWS))
    models = (lively(random_judge_model(request.model.config, seed)) for seed in seeds)
    return _clearest(((model, request.prompt) for model in models), request.n_new)


def _clearest(candidates: Iterable[tuple[JudgeModel, list[int]]], n_new: int) -> Request:
    """The first request whose greedy ids are all clear, or else the one with the most clear ids."""
    best = None
    for model, prompt in candidates:
        ids, gaps = model.reference.greedy(prompt, n_new) if n_new else ([], [])
        n_clear = next((i for i, gap in enumerate(gaps) if gap < CLEAR), n_new)
        if best is None or n_clear > len(best.clear):
            best = Request(model, prompt, n_new, ids[:n_clear])
        if n_clear == n_new:
            break
    return best
