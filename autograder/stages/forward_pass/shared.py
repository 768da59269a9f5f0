"""What the checks of the forward pass share."""

from __future__ import annotations

import numpy as np

from autograder.judge.cases import Cases, JudgeModel


def row_counts(model: JudgeModel) -> list[int]:
    """Numbers of rows that equal a figure of the model, where a wrong reshape goes unnoticed, and some that do not."""
    return sorted({1, 2, model.config.n_head, model.config.head_dim, model.config.head_dim + 2})


def rows(cases: Cases, model: JudgeModel, n_seq: int, *label: object) -> np.ndarray:
    """Random input for the blocks of the model: one row of n_embd numbers a token."""
    rng = cases.rng("rows", model.config.n_embd, n_seq, *label)
    return rng.standard_normal((n_seq, model.config.n_embd)).astype(np.float32)
