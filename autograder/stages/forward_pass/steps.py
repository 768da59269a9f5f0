"""The steps of the forward pass: checks of helpers, worth no points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from autograder.judge.cases import Cases
from autograder.judge.compare import expect_close
from autograder.judge.framework import check
from autograder.judge.reference import gelu, softmax
from autograder.judge.student import Student
from autograder.stages.forward_pass.shared import STAGE


def _expect(actual: np.ndarray, expected: np.ndarray, name: str, where: str, *axes: str) -> None:
    expect_close(actual, expected, name=name, where=where, axes=axes, atol=1e-5, rtol=1e-4)


def _drawn(cases: Cases, *shape: int) -> np.ndarray:
    return cases.rng(*shape).standard_normal(shape).astype(np.float32)


def _drawn_heads(cases: Cases) -> Iterator[tuple[np.ndarray, str]]:
    for n_seq, n_head, head_dim in ((5, 3, 4), (4, 4, 4), (1, 2, 3)):
        yield _drawn(cases, n_head, n_seq, head_dim), f"for n_seq {n_seq}, n_head {n_head} and head_dim {head_dim}"


def _linear(x: np.ndarray, layer) -> np.ndarray:
    return x @ layer.weight.astype(np.float64) + layer.bias


@check(stage=STAGE, id="step-linear", points=0, title="linear multiplies by the weight and adds the bias")
def step_linear(student: Student, cases: Cases) -> None:
    """linear(x, layer) is x @ layer.weight + layer.bias, for any number of rows."""
    model = cases.odd[0]
    layer, part = model.weights.blocks[0].mlp.c_fc, model.part("blocks.0.mlp.c_fc")
    x = _drawn(cases, 4, model.config.n_embd)
    _expect(student.array("linear", x, part), _linear(x, layer), "linear", "for 4 rows", "row", "feature")
    where = "for a single row without an axis for rows"
    _expect(student.array("linear", x[0], part), _linear(x[0], layer), "linear", where, "feature")


@check(stage=STAGE, id="step-split-heads", points=0, title="split_heads brings the heads to the front")
def step_split_heads(student: Student, cases: Cases) -> None:
    """Head h of split_heads(x, n_head) has the features h * head_dim to (h + 1) * head_dim - 1 of every row."""
    for heads, where in _drawn_heads(cases):
        x = np.concatenate(list(heads), axis=-1)
        _expect(student.array("split_heads", x, len(heads)), heads, "split_heads", where, "head", "row", "feature")


@check(stage=STAGE, id="step-merge-heads", points=0, title="merge_heads lays the heads side by side again")
def step_merge_heads(student: Student, cases: Cases) -> None:
    """Row i of merge_heads(heads) is row i of head 0, then of head 1, and so on."""
    for heads, where in _drawn_heads(cases):
        expected = np.concatenate(list(heads), axis=-1)
        _expect(student.array("merge_heads", heads), expected, "merge_heads", where, "row", "feature")


@check(stage=STAGE, id="step-softmax", points=0, title="softmax adds up to 1 and never overflows")
def step_softmax(student: Student, cases: Cases) -> None:
    """softmax(scores) is exp of each score divided by the sum of its row, for scores of any size."""
    scores = _drawn(cases, 2, 3, 5)
    for rows, where in (
        (scores, "for 3 rows of 5 scores in 2 heads"),
        (np.where(np.tri(3, 5, k=1, dtype=bool), scores, np.float32(-np.inf)), "for rows with scores of -inf"),
        (scores * 1000 + 5000, "for scores of several thousand"),
    ):
        expected = softmax(rows.astype(np.float64))
        _expect(student.array("softmax", rows), expected, "softmax", where, "head", "row", "key")


@check(stage=STAGE, id="step-attention-weights", points=0, title="attention_weights are causal and add up to 1")
def step_attention_weights(student: Student, cases: Cases) -> None:
    """Row i of attention_weights is the softmax of q @ k / sqrt(head_dim) over the keys 0 to i, and 0 after them."""
    q, k = _drawn(cases, 2, 3, 5, 4)
    scores = q.astype(np.float64) @ k.swapaxes(1, 2) / 2
    expected = softmax(np.where(np.tri(5, dtype=bool), scores, -np.inf))
    where, axes = "for 3 heads, 5 rows and a head_dim of 4", ("head", "query", "key")
    _expect(student.array("attention_weights", q, k), expected, "attention_weights", where, *axes)


@check(stage=STAGE, id="step-feed-forward", points=0, title="feed_forward is linear, gelu, linear")
def step_feed_forward(student: Student, cases: Cases) -> None:
    """feed_forward(x, mlp) is c_fc, then gelu, then c_proj."""
    model = cases.odd[1]
    x, mlp = _drawn(cases, 3, model.config.n_embd), model.weights.blocks[0].mlp
    expected = _linear(gelu(_linear(x, mlp.c_fc)), mlp.c_proj)
    actual = student.array("feed_forward", x, model.part("blocks.0.mlp"))
    _expect(actual, expected, "feed_forward", "for 3 rows", "row", "feature")
