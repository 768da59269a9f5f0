"""The checks of causal_self_attention."""

from __future__ import annotations

import numpy as np

from autograder.judge import bugs, large_scores
from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Sweep, expect_close, recognize
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.reference import Reference
from autograder.judge.student import Student
from autograder.judge.variants import suspects_from
from autograder.stages.forward_pass import bugs as own
from autograder.stages.forward_pass.shared import row_counts, rows
from autograder.toolkit.model import GPT2Config

NAME = "causal_self_attention"


@check(f"{NAME} is multi-head attention", points=2, watches=(NAME,))
def attention_heads(student: Student, cases: Cases) -> None:
    """causal_self_attention attends in every head, causally and with scores over sqrt(head_dim), and merges them."""
    for model in (*cases.odd, cases.trained):
        layer = int(cases.rng("layer", model.config.n_layer).integers(model.config.n_layer))
        sweep = Sweep("numbers of rows")
        for n_seq in [17] if model is cases.trained else row_counts(model):
            x = rows(cases, model, n_seq)
            with sweep.at(n_seq):
                actual = attend(student, x, model, layer)
                _expect(actual, x, model, layer, close=sweep.close, bug=_not_finite(actual))
        sweep.finish()
    _expect_scores_of_zero(student, cases)


def _expect_scores_of_zero(student: Student, cases: Cases) -> None:
    """Without a bias, a row of zeros has a query and a key of zeros: visible scores of exactly 0 hide nothing."""
    layer, model = 0, cases.odd[1]
    c_attn = model.weights.blocks[layer].attn.c_attn
    model = model.patched("h.0.attn.c_attn.bias", np.zeros_like(c_attn.bias))
    x = rows(cases, model, 9, "zeros")
    x[cases.rng("zeros").integers(2, 7)] = 0
    _expect(attend(student, x, model, layer), x, model, layer, " with a row of zeros among them and no bias")


@check("No token sees a later one", points=1)
def attention_causal(student: Student, cases: Cases) -> None:
    """In causal_self_attention a row depends on itself and on the rows before it, and on no later row."""
    model, layer, n_seq = cases.odd[0], 1, 9
    x, other = rows(cases, model, n_seq), rows(cases, model, n_seq, "other")
    before = _finite(attend(student, x, model, layer), x.shape)
    for changed in cases.rng("order").permutation(n_seq):
        mixed = x.copy()
        mixed[changed] = other[changed]
        difference = np.abs(_finite(attend(student, mixed, model, layer), x.shape) - before).max(axis=-1)
        leaked = np.flatnonzero(difference[:changed] > 1e-5)
        if leaked.size:
            what = f"changed row {leaked[0]} of the result by {difference[leaked[0]]:.2g}"
        elif difference[changed] < 1e-3:
            what = f"did not change row {changed} of the result"
        elif changed == 0 and difference[1:].max() < 1e-3:
            what = "changed no later row of the result"
        else:
            continue
        bug = recognize(before, model.reference.attention_layer(x, layer), _suspects(own.ATTENTION, x, model, layer))
        place = f"rows 0 to {n_seq - 1}, block {layer} of {model.about}"
        raise Failure(f"Changing row {changed} of x {what} ({place}).", bug)


@check("Large attention scores do not overflow", points=1)
def attention_large_scores(student: Student, cases: Cases) -> None:
    """The softmax in causal_self_attention stays exact however large the scores are, hidden ones included."""
    layer, n_seq = 0, 11
    for factor in (12.0, 36.0):  # too large for exp in float32, and in float64
        model = _with_large_scores(cases.odd[2], factor)
        x = rows(cases, model, n_seq)
        actual = attend(student, x, model, layer)
        overflows = not _is_finite(actual) and _is_finite(attend(student, x, cases.odd[2], layer))
        bug = own.SOFTMAX_OVERFLOW if overflows else None
        _expect(actual, x, model, layer, " with large scores", (*own.ATTENTION, *own.FINITE_MASKS), bug=bug)
    for flags, sign, scores in (
        ([0] * (n_seq - 1) + [1], 1, f" and a last token whose scores are around {large_scores.LARGE}"),
        ([1] * n_seq, -1, f" and scores around -{large_scores.LARGE}"),
    ):
        x, model = _with_exact_scores(cases, flags, sign)
        _expect(attend(student, x, model, layer), x, model, layer, scores, own.FINITE_MASKS)


def attend(student: Student, x: np.ndarray, model: JudgeModel, layer: int) -> np.ndarray:
    """What the student's causal_self_attention makes of x in this block."""
    return student.array(NAME, x, model.part(f"blocks.{layer}.attn"), model.config.n_head)


def _expect(actual, x, model: JudgeModel, layer: int, what="", suspects=own.ATTENTION, close=expect_close, bug=None):
    close(
        actual,
        model.reference.attention_layer(x, layer),
        name=NAME,
        where=f"for {count(len(x), 'row')}{what}, block {layer} of {model.about}",
        axes=("row", "feature"),
        suspects=_suspects(suspects, x, model, layer),
        bug=bug,
    )


def _suspects(suspects, x: np.ndarray, model: JudgeModel, layer: int):
    return suspects_from(suspects, model.reference, Reference.attention_layer, x, layer)


def _finite(actual: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """actual in float64, when it has the shape and is finite."""
    if actual.shape != shape or not _is_finite(actual):
        raise Failure(f"{NAME} does not return finite numbers of shape {list(shape)}.", _not_finite(actual))
    return actual.astype(np.float64)


def _is_finite(actual: np.ndarray) -> bool:
    return bool(np.isfinite(actual.astype(np.float64)).all())


def _not_finite(actual: np.ndarray) -> Bug | None:
    """What makes rows NaN at ordinary scores: a query that sees no key, or a mask that is NaN itself."""
    nan = np.isnan(actual.astype(np.float64))
    if nan.ndim != 2 or len(nan) < 2 or not nan.any():  # of a single row it cannot be told
        return None
    if nan.all():
        return bugs.MASK_TIMES_INFINITY
    first, last = nan[0].all() and not nan[1:].any(), nan[-1].all() and not nan[:-1].any()
    return own.MASK_STRICT if first else own.MASK_REVERSED if last else None


def _with_large_scores(model: JudgeModel, factor: float) -> JudgeModel:
    """The model with the queries and keys of block 0 made larger, and so their scores by the square of the factor."""
    c_attn = model.weights.blocks[0].attn.c_attn
    spread = np.repeat([factor, factor, 1.0], model.config.n_embd)
    patched = model.patched("h.0.attn.c_attn.weight", c_attn.weight * spread)
    return patched.patched("h.0.attn.c_attn.bias", c_attn.bias * spread)


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
