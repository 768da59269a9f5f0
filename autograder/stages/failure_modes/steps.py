"""The step of failure modes: a check of a helper, worth no points."""

from __future__ import annotations

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student
from autograder.stages.failure_modes.shared import STAGE


@check(stage=STAGE, id="step-serve-openly", points=0, title="serve_openly reports a reuse that fails")
def step_serve_openly(student: Student, cases: Cases) -> None:
    """serve_openly answers every request, and its line for the log says whether it was a hit, a miss or a failure."""
    for outcome, logits, line in (
        ("hit", "logits by reuse", "hit"),
        ("miss", "logits by recompute", "miss"),
        ("raises", "logits by recompute", "failed: the suffix is empty"),
    ):
        answer = student.plain("serve_openly", student.handle("ScriptedServer", outcome))
        if not isinstance(answer, (list, tuple)) or len(answer) != 2:
            raise Failure(None, "The result is not a pair of logits and line.")
        if answer[0] != logits:
            raise Failure(None, f"For a server whose outcome is {outcome!r}, the answer is not the {logits}.")
        if answer[1] != line:
            raise Failure(None, f"For a server whose outcome is {outcome!r}, the line is not {line!r}.")
