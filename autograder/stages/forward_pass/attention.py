"""The checks of causal_self_attention."""

from __future__ import annotations

import numpy as np

from autograder.judge import bugs, large_scores
from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import ATOL, RTOL, Sweep, expect_close, recognize
from autograder.judge.framework import Failure, check
from autograder.judge.reference import Reference
from autograder.judge.student import Student
from autograder.judge.variants import suspects_from
from autograder.judge.words import count
from autograder.stages.forward_pass import bugs as own
from autograder.stages.forward_pass.shared import (
    STAGE,
    about,
    attend,
    expect_shape,
    row_counts,
    rows,
)
from autograder.stages.forward_pass.suspects import ATTENTION, HIDDEN_ROWS, MASK_TOO_SMALL
from autograder.toolkit.model import GPT2Config


@check(
    stage=STAGE,
    id="attention-heads",
    points=2,
    title="causal_self_attention is multi-head attention",
    watches=("causal_self_attention",),
)
def attention_heads(student: Student, cases: Cases) -> None:
    """causal_self_attention attends in every head, causally and with scores over sqrt(head_dim), and merges them."""
    for model in (*cases.odd, cases.trained):
        layer = int(cases.rng("layer", model.config.n_layer).integers(model.config.n_layer))
        sweep = Sweep("numbers of rows")
        for n_seq in row_counts(model):
            x = rows(cases, model, n_seq)
            expected = model.reference.attention_layer(x, layer)
            with sweep.at(n_seq):
                actual = attend(student, x, model, layer)
                sweep.close(
                    actual,
                    expected,
                    name="causal_self_attention",
                    where=f"for {count(n_seq, 'row')}, block {layer} of {about(model)}",
                    axes=("row", "feature"),
                    suspects=suspects_from(ATTENTION, model.reference, Reference.attention_layer, x, layer),
                    bug=_not_finite(actual, model, x, layer),
                )
        sweep.finish()


@check(stage=STAGE, id="attention-causal", points=1, title="No token sees a later one")
def attention_causal(student: Student, cases: Cases) -> None:
    """In causal_self_attention a row depends on itself and on the rows before it, and on no later row."""
    model, layer = cases.odd[0], 1
    n_seq = 9
    x, other = rows(cases, model, n_seq), rows(cases, model, n_seq, "other")
    before = attend(student, x, model, layer)
    before = expect_shape(before, x.shape, "causal_self_attention", _not_finite(before, model, x, layer))
    for changed in cases.rng("order").permutation(n_seq):
        mixed = x.copy()
        mixed[changed] = other[changed]
        after = expect_shape(attend(student, mixed, model, layer), x.shape, "causal_self_attention")
        difference = np.abs(after - before).max(axis=-1)
        leaked = np.flatnonzero(difference[:changed] > 1e-5)
        if leaked.size:
            what = f"changed row {leaked[0]} of the result by {difference[leaked[0]]:.2g}"
        elif difference[changed] < 1e-3:
            what = f"did not change row {changed} of the result"
        elif changed == 0 and difference[1:].max() < 1e-3:
            what = "changed no later row of the result"
        else:
            continue
        suspects = suspects_from(ATTENTION, model.reference, Reference.attention_layer, x, layer)
        bug = recognize(before, model.reference.attention_layer(x, layer), suspects)
        place = f"rows 0 to {n_seq - 1}, block {layer} of {about(model)}"
        raise Failure(None, f"Changing row {changed} of x {what} ({place}).", bug)


@check(stage=STAGE, id="attention-large-scores", points=1, title="Large attention scores do not overflow")
def attention_large_scores(student: Student, cases: Cases) -> None:
    """The softmax in causal_self_attention stays exact however large the scores are, hidden ones included."""
    layer, n_seq = 0, 11
    for factor in (12.0, 36.0):  # too large for exp in float32, and in float64
        model = _with_large_scores(cases.odd[2], factor)
        x = rows(cases, model, n_seq)
        actual, expected = attend(student, x, model, layer), model.reference.attention_layer(x, layer)
        bug = None
        if actual.shape == expected.shape and not np.isfinite(actual.astype(np.float64)).all():
            ordinary = cases.odd[2]
            bug = _not_finite(attend(student, x, ordinary, layer), ordinary, x, layer)
            bug = bug or _overflow(student, cases)
        expect_close(
            actual,
            expected,
            name="causal_self_attention",
            where=f"for {n_seq} rows, block {layer} of {about(model)} with weights that make large scores",
            axes=("row", "feature"),
            suspects=suspects_from((*ATTENTION, *MASK_TOO_SMALL), model.reference, Reference.attention_layer, x, layer),
            bug=bug,
        )
    for flags, sign, scores in (
        ([0] * (n_seq - 1) + [1], 1, f"a last token whose scores are around {large_scores.LARGE}"),
        ([1] * n_seq, -1, f"scores around -{large_scores.LARGE}"),
    ):
        x, model = _with_exact_scores(cases, flags, sign)
        expect_close(
            attend(student, x, model, layer),
            model.reference.attention_layer(x, layer),
            name="causal_self_attention",
            where=f"for {n_seq} rows and {scores}, block {layer} of {about(model)}",
            axes=("row", "feature"),
            suspects=suspects_from(MASK_TOO_SMALL, model.reference, Reference.attention_layer, x, layer),
        )


def _with_exact_scores(cases: Cases, flags: list[int], sign: int) -> tuple[np.ndarray, JudgeModel]:
    """Input and a model whose block 0 makes the queries and keys of large_scores.draw of it."""
    size = large_scores.HEAD_DIM
    model = cases.random_model(GPT2Config(n_layer=1, n_head=3, n_embd=3 * size, n_ctx=16, n_vocab=29))
    n_head, n_embd = model.config.n_head, model.config.n_embd
    _, keys = large_scores.draw(cases.rng("exact", sign), n_head, flags, sign)
    x = keys.transpose(1, 0, 2).copy()  # [n_seq, n_head, head_dim]
    x[:, :, 0] /= large_scores.SIZE
    c_attn = model.weights.blocks[0].attn.c_attn
    weight, bias = c_attn.weight.copy(), c_attn.bias.copy()
    weight[:, : 2 * n_embd], bias[: 2 * n_embd] = 0, 0
    bias[:n_embd:size] = sign * 4 * large_scores.SIZE
    for head in range(0, n_embd, size):
        rest = np.arange(head + 1, head + size)
        weight[np.roll(rest, 1), rest] = large_scores.SPREAD
        weight[rest, n_embd + rest], weight[head, n_embd + head] = 1, large_scores.SIZE
    patched = model.patched("h.0.attn.c_attn.weight", weight).patched("h.0.attn.c_attn.bias", bias)
    return x.reshape(len(flags), n_embd), patched


def _with_large_scores(model: JudgeModel, factor: float) -> JudgeModel:
    """The model with the queries and keys of block 0 made larger, and so their scores by the square of the factor."""
    c_attn = model.weights.blocks[0].attn.c_attn
    spread = np.repeat([factor, factor, 1.0], model.config.n_embd)
    return model.patched("h.0.attn.c_attn.weight", c_attn.weight * spread).patched(
        "h.0.attn.c_attn.bias", c_attn.bias * spread
    )


def _overflow(student: Student, cases: Cases) -> Bug | None:
    """A row alone in a single head has the weight 1, whatever its score: NaN for large ones alone is overflow."""
    ordinary = cases.random_model(GPT2Config(n_layer=1, n_head=1, n_embd=12, n_ctx=16, n_vocab=29))

    def finite(model):
        x = rows(cases, model, 3)
        return all(np.isfinite(attend(student, row[None], model, 0).astype(np.float64)).all() for row in x)

    return own.SOFTMAX_OVERFLOW if finite(ordinary) and not finite(_with_large_scores(ordinary, 100.0)) else None


def _not_finite(actual: np.ndarray, model: JudgeModel, x: np.ndarray, layer: int) -> Bug | None:
    """What makes values NaN at ordinary scores; with a single row it cannot be told."""
    if actual.shape != x.shape or len(x) < 2 or np.isfinite(actual.astype(np.float64)).all():
        return None
    if np.isnan(actual).all():
        return bugs.MASK_TIMES_INFINITY
    with np.errstate(invalid="ignore"):
        for bug, wrong in suspects_from(HIDDEN_ROWS, model.reference, Reference.attention_layer, x, layer):
            if np.allclose(actual, wrong(), RTOL, ATOL, equal_nan=True):
                return bug
    return None
