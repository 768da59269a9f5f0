"""The steps of the forward pass: checks of helpers, worth no points."""

from __future__ import annotations

import numpy as np

from autograder.judge.cases import Cases
from autograder.judge.compare import expect_close
from autograder.judge.framework import check
from autograder.judge.student import Student
from autograder.stages.forward_pass.shared import STAGE

_CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def _float64(part) -> tuple[np.ndarray, np.ndarray]:
    return part.weight.astype(np.float64), part.bias.astype(np.float64)


@check(stage=STAGE, id="step-linear", points=0, title="linear multiplies by the weight and adds the bias")
def step_linear(student: Student, cases: Cases) -> None:
    """linear(x, layer) is x @ layer.weight + layer.bias, for any number of rows."""
    model = cases.odd[0]
    layer = model.part("blocks.0.mlp.c_fc")
    x = cases.rng().standard_normal((4, model.config.n_embd)).astype(np.float32)
    weight, bias = _float64(model.weights.blocks[0].mlp.c_fc)
    for rows, where in ((x, "for 4 rows"), (x[0], "for a single row without an axis for rows")):
        axes = ("row", "feature")[-rows.ndim :]
        expect_close(
            student.array("linear", rows, layer), rows @ weight + bias, name="linear", where=where, axes=axes, **_CLOSE
        )


@check(stage=STAGE, id="step-split-heads", points=0, title="split_heads brings the heads to the front")
def step_split_heads(student: Student, cases: Cases) -> None:
    """Head h of split_heads(x, n_head) has the features h * head_dim to (h + 1) * head_dim - 1 of every row."""
    for n_seq, n_head, head_dim in ((5, 3, 4), (4, 4, 4), (1, 2, 3)):
        x = cases.rng(f"{n_seq} rows").standard_normal((n_seq, n_head * head_dim)).astype(np.float32)
        expected = np.stack([x[:, h * head_dim : (h + 1) * head_dim] for h in range(n_head)])
        expect_close(
            student.array("split_heads", x, n_head),
            expected,
            name="split_heads",
            where=f"for n_seq {n_seq}, n_head {n_head} and head_dim {head_dim}",
            axes=("head", "row", "feature"),
            **_CLOSE,
        )


@check(stage=STAGE, id="step-merge-heads", points=0, title="merge_heads lays the heads side by side again")
def step_merge_heads(student: Student, cases: Cases) -> None:
    """Row i of merge_heads(heads) is row i of head 0, then of head 1, and so on."""
    for n_seq, n_head, head_dim in ((5, 3, 4), (4, 4, 4), (1, 2, 3)):
        heads = cases.rng(f"{n_seq} rows").standard_normal((n_head, n_seq, head_dim)).astype(np.float32)
        expect_close(
            student.array("merge_heads", heads),
            np.concatenate(list(heads), axis=-1),
            name="merge_heads",
            where=f"for n_seq {n_seq}, n_head {n_head} and head_dim {head_dim}",
            axes=("row", "feature"),
            **_CLOSE,
        )


@check(stage=STAGE, id="step-softmax", points=0, title="softmax adds up to 1 and never overflows")
def step_softmax(student: Student, cases: Cases) -> None:
    """softmax(scores) is exp of each score divided by the sum of its row, for scores of any size."""
    scores = cases.rng().standard_normal((2, 3, 5)).astype(np.float32)
    hidden = np.where(np.tri(3, 5, k=1, dtype=bool), scores, np.float32(-np.inf))
    for rows, where in (
        (scores, "for 3 rows of 5 scores in 2 heads"),
        (hidden, "for rows with scores of -inf"),
        (scores * 1000 + 5000, "for scores of several thousand"),
    ):
        exps = np.exp(rows.astype(np.float64) - rows.max(axis=-1, keepdims=True))
        expect_close(
            student.array("softmax", rows),
            exps / exps.sum(axis=-1, keepdims=True),
            name="softmax",
            where=where,
            axes=("head", "row", "key"),
            **_CLOSE,
        )


@check(stage=STAGE, id="step-attention-weights", points=0, title="attention_weights are causal and add up to 1")
def step_attention_weights(student: Student, cases: Cases) -> None:
    """Row i of attention_weights is the softmax of q @ k / sqrt(head_dim) over the keys 0 to i, and 0 after them."""
    q, k = cases.rng().standard_normal((2, 3, 5, 4)).astype(np.float32)
    scores = q.astype(np.float64) @ k.swapaxes(1, 2) / 2
    exps = np.where(np.tri(5, dtype=bool), np.exp(scores), 0)
    expect_close(
        student.array("attention_weights", q, k),
        exps / exps.sum(axis=-1, keepdims=True),
        name="attention_weights",
        where="for 3 heads, 5 rows and a head_dim of 4",
        axes=("head", "query", "key"),
        **_CLOSE,
    )


@check(stage=STAGE, id="step-feed-forward", points=0, title="feed_forward is linear, gelu, linear")
def step_feed_forward(student: Student, cases: Cases) -> None:
    """feed_forward(x, mlp) is c_fc, then gelu, then c_proj."""
    model = cases.odd[1]
    x = cases.rng().standard_normal((3, model.config.n_embd)).astype(np.float32)
    mlp = model.weights.blocks[0].mlp
    (w1, b1), (w2, b2) = _float64(mlp.c_fc), _float64(mlp.c_proj)
    h = x @ w1 + b1
    hidden = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    expect_close(
        student.array("feed_forward", x, model.part("blocks.0.mlp")),
        hidden @ w2 + b2,
        name="feed_forward",
        where="for 3 rows",
        axes=("row", "feature"),
        **_CLOSE,
    )
