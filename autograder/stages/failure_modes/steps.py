"""The step of failure modes: a check of a helper, worth no points."""

from __future__ import annotations

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student

ANSWERS = {
    "hit": ("logits by reuse", "hit"),
    "miss": ("logits by recompute", "miss"),
    "raises": ("logits by recompute", "failed: the suffix is empty"),
}


@check("serve_openly reports a reuse that fails", points=0)
def step_serve_openly(student: Student, cases: Cases) -> None:
    """serve_openly answers every request, and of a row of requests no failed reuse is missing in the log."""
    log = []
    outcomes = cases.rng("requests").permutation([*ANSWERS] * 4).tolist()
    for outcome in outcomes:
        answer = student.plain("serve_openly", student.handle("ScriptedServer", outcome))
        if not isinstance(answer, (list, tuple)) or len(answer) != 2:
            raise Failure("The result is not a pair of logits and line.")
        if answer[0] != ANSWERS[outcome][0]:
            detail = f"For a server whose outcome is {outcome!r}, the answer is not the {ANSWERS[outcome][0]}."
            raise Failure(detail)
        log.append(str(answer[1]))
    failed = [line for outcome, line in zip(outcomes, log, strict=True) if outcome == "raises"]
    if swallowed := sum(line in ("hit", "miss") for line in failed):
        raise Failure(f"{swallowed} of {len(failed)} failed reuses are swallowed: the log calls them hit or miss.")
    for outcome, line in zip(outcomes, log, strict=True):
        if line != ANSWERS[outcome][1]:
            raise Failure(f"For a server whose outcome is {outcome!r}, the line is not {ANSWERS[outcome][1]!r}.")
