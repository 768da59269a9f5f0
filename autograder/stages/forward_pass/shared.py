"""What the checks of the forward pass share."""

from __future__ import annotations

import numpy as np

from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import matches
from autograder.judge.student import Student, StudentError


def row_counts(model: JudgeModel) -> list[int]:
    """Numbers of rows that equal a figure of the model, where a wrong reshape goes unnoticed, and some that do not."""
    return sorted({1, 2, model.config.n_head, model.config.head_dim, model.config.head_dim + 2})


def rows(cases: Cases, model: JudgeModel, n_seq: int, *label: object) -> np.ndarray:
    """Random input for the blocks of the model: one row of n_embd numbers a token."""
    rng = cases.rng("rows", model.config.n_embd, n_seq, *label)
    return rng.standard_normal((n_seq, model.config.n_embd)).astype(np.float32)


def right_at(student: Student, model: JudgeModel, ids: list[int]) -> bool:
    """Whether the student's forward gives the right logits of these tokens."""
    try:
        return matches(student.array("forward", ids, model), model.reference.logits(ids))
    except StudentError:
        return False


def refuses(student: Student, model: JudgeModel, n_seq: int) -> bool:
    """Whether the student's forward refuses n_seq tokens."""
    try:
        student.array("forward", [0] * n_seq, model)
    except StudentError as error:
        return error.refusal
    return False
