"""What the checks of the forward pass share."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import matches
from autograder.judge.framework import Failure
from autograder.judge.student import Student, StudentError
from autograder.judge.words import count

STAGE = "forward-pass"


def row_counts(model: JudgeModel) -> list[int]:
    """Numbers of rows that equal a figure of the model, where a wrong reshape goes unnoticed, and some that do not."""
    if is_trained(model):
        return [17]
    return sorted({1, 2, model.config.n_head, model.config.head_dim, model.config.head_dim + 2})


def rows(cases: Cases, model: JudgeModel, n_seq: int, *label: object) -> np.ndarray:
    """Random input for the blocks of the model: one row of n_embd numbers a token."""
    rng = cases.rng("rows", model.config.n_embd, n_seq, *label)
    return rng.standard_normal((n_seq, model.config.n_embd)).astype(np.float32)


def attend(student: Student, x: np.ndarray, model: JudgeModel, layer: int) -> np.ndarray:
    """What the student's causal_self_attention makes of x in this block."""
    return student.array("causal_self_attention", x, model.part(f"blocks.{layer}.attn"), model.config.n_head)


def expect_shape(actual: np.ndarray, shape: tuple[int, ...], name: str, bug: Bug | None = None) -> np.ndarray:
    """actual in float64, when it has the shape and is finite. bug: what it is when it is not finite."""
    if actual.shape != shape:
        raise Failure(None, f"{name} has shape {list(actual.shape)} where {list(shape)} is expected.")
    actual = actual.astype(np.float64)
    if not np.isfinite(actual).all():
        raise Failure(None, f"{name} has values that are not finite.", bug)
    return actual


def right_at(student: Student, model: JudgeModel, ids: list[int]) -> bool:
    """Whether the student's forward gives the right logits of these tokens."""
    try:
        return matches(student.array("forward", ids, model), model.reference.logits(ids))
    except StudentError:
        return False


def is_trained(model: JudgeModel) -> bool:
    """Whether it is the course's trained model, not a random one."""
    return "name" in model.spec


def about(model: JudgeModel) -> str:
    """What to call the model in a message, with its sizes."""
    config = model.config
    if is_trained(model):
        return "the trained model"
    blocks, heads = count(config.n_layer, "block"), count(config.n_head, "head")
    return f"a random model with {blocks}, {heads} and n_embd {config.n_embd}"
