"""The steps of the forward pass: checks of helpers, worth no points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from autograder.judge.bugs import (
    BIASES_MISSING,
    HEADS_MERGED_WRONG,
    HEADS_SPLIT_WRONG,
    NO_CAUSAL_MASK,
    SCORES_SCALED_BY_N_EMBD,
    SCORES_SCALED_BY_N_HEAD,
    SCORES_UNSCALED,
    Bug,
)
from autograder.judge.cases import Cases
from autograder.judge.compare import Suspects, expect_close
from autograder.judge.framework import check
from autograder.judge.reference import gelu, softmax
from autograder.judge.student import Student
from autograder.stages.forward_pass import bugs


def _expect(
    actual: np.ndarray,
    expected: np.ndarray,
    name: str,
    where: str,
    *axes: str,
    suspects: Suspects = (),
    bug: Bug | None = None,
) -> None:
    close = {"atol": 1e-5, "rtol": 1e-4}
    expect_close(actual, expected, name=name, where=where, axes=axes, suspects=suspects, bug=bug, **close)


def _drawn(cases: Cases, *shape: int) -> np.ndarray:
    return cases.rng(*shape).standard_normal(shape).astype(np.float32)


def _drawn_heads(cases: Cases) -> Iterator[tuple[np.ndarray, str]]:
    for n_seq, n_head, head_dim in ((5, 3, 4), (4, 4, 4), (1, 2, 3)):
        yield _drawn(cases, n_head, n_seq, head_dim), f"for n_seq {n_seq}, n_head {n_head} and head_dim {head_dim}"


def _linear(x: np.ndarray, layer) -> np.ndarray:
    return x @ layer.weight.astype(np.float64) + layer.bias


@check("linear multiplies by the weight and adds the bias", points=0)
def step_linear(student: Student, cases: Cases) -> None:
    """linear(x, layer) is x @ layer.weight + layer.bias, for any number of rows."""
    model = cases.odd[0]
    layer, part = model.weights.blocks[0].mlp.c_fc, model.part("blocks.0.mlp.c_fc")
    x = _drawn(cases, 4, model.config.n_embd)
    actual, no_bias = student.array("linear", x, part), (BIASES_MISSING, lambda: _linear(x, layer) - layer.bias)
    _expect(actual, _linear(x, layer), "linear", "for 4 rows", "row", "feature", suspects=[no_bias])
    where = "for a single row without an axis for rows"
    _expect(student.array("linear", x[0], part), _linear(x[0], layer), "linear", where, "feature")


@check("split_heads brings the heads to the front", points=0)
def step_split_heads(student: Student, cases: Cases) -> None:
    """Head h of split_heads(x, n_head) has the features h * head_dim to (h + 1) * head_dim - 1 of every row."""
    for heads, where in _drawn_heads(cases):
        x = np.concatenate(list(heads), axis=-1)
        reshaped = HEADS_SPLIT_WRONG, lambda x=x, heads=heads: x.reshape(heads.shape)
        actual = student.array("split_heads", x, len(heads))
        _expect(actual, heads, "split_heads", where, "head", "row", "feature", suspects=[reshaped])


@check("merge_heads lays the heads side by side again", points=0)
def step_merge_heads(student: Student, cases: Cases) -> None:
    """Row i of merge_heads(heads) is row i of head 0, then of head 1, and so on."""
    for heads, where in _drawn_heads(cases):
        expected = np.concatenate(list(heads), axis=-1)
        reshaped = HEADS_MERGED_WRONG, lambda heads=heads, expected=expected: heads.reshape(expected.shape)
        actual = student.array("merge_heads", heads)
        _expect(actual, expected, "merge_heads", where, "row", "feature", suspects=[reshaped])


@check("softmax adds up to 1 and never overflows", points=0)
def step_softmax(student: Student, cases: Cases) -> None:
    """softmax(scores) is exp of each score divided by the sum of its row, for scores of any size."""
    scores = _drawn(cases, 2, 3, 5)
    for rows, where in (
        (scores, "for 3 rows of 5 scores in 2 heads"),
        (np.where(np.tri(3, 5, k=1, dtype=bool), scores, np.float32(-np.inf)), "for rows with scores of -inf"),
        (scores * 1000 + 5000, "for scores of several thousand"),
    ):
        expected = softmax(rows.astype(np.float64))
        actual = student.array("softmax", rows)
        bug = None if np.isfinite(actual).all() else bugs.SOFTMAX_OVERFLOW
        suspects = [(bugs.LOG_SOFTMAX, lambda right=expected: np.log(right))]
        _expect(actual, expected, "softmax", where, "head", "row", "key", suspects=suspects, bug=bug)


@check("attention_weights are causal and add up to 1", points=0)
def step_attention_weights(student: Student, cases: Cases) -> None:
    """Row i of attention_weights is the softmax of q @ k / sqrt(head_dim) over the keys 0 to i, and 0 after them."""
    q, k = _drawn(cases, 2, 3, 5, 4)
    scores = q.astype(np.float64) @ k.swapaxes(1, 2) / 2

    def masked(scores: np.ndarray) -> np.ndarray:
        return softmax(np.where(np.tri(5, dtype=bool), scores, -np.inf))

    actual, where = student.array("attention_weights", q, k), "for 3 heads, 5 rows and a head_dim of 4"
    suspects = [
        (SCORES_UNSCALED, lambda: masked(2 * scores)),
        (SCORES_SCALED_BY_N_EMBD, lambda: masked(scores / np.sqrt(3))),
        (SCORES_SCALED_BY_N_HEAD, lambda: masked(scores * 2 / np.sqrt(3))),
        (bugs.SCORES_NO_ROOT, lambda: masked(scores / 2)),
        (NO_CAUSAL_MASK, lambda: softmax(scores)),
        (bugs.MASK_ZEROS, lambda: softmax(np.tril(scores))),
    ]
    lost = [row for row in range(5) if actual.shape == scores.shape and np.isnan(actual[:, row]).all()]
    bug = {(0,): bugs.MASK_STRICT, (4,): bugs.MASK_REVERSED}.get(tuple(lost))  # a row of which every key is hidden
    _expect(actual, masked(scores), "attention_weights", where, "head", "query", "key", suspects=suspects, bug=bug)


@check("feed_forward is linear, gelu, linear", points=0)
def step_feed_forward(student: Student, cases: Cases) -> None:
    """feed_forward(x, mlp) is c_fc, then gelu, then c_proj."""
    model = cases.odd[1]
    x, mlp = _drawn(cases, 3, model.config.n_embd), model.weights.blocks[0].mlp
    expected = _linear(gelu(_linear(x, mlp.c_fc)), mlp.c_proj)
    actual = student.array("feed_forward", x, model.part("blocks.0.mlp"))
    _expect(actual, expected, "feed_forward", "for 3 rows", "row", "feature")
