"""The checks of stage 1, the forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from autograder.judge import bugs
from autograder.judge.bugs import Bug, define
from autograder.judge.bugs import forward_pass as own
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.compare import Sweep, expect_close, matches, recognize
from autograder.judge.framework import Failure, check
from autograder.judge.recompute import Mistakes, gelu, layer_norm
from autograder.judge.student import Student, StudentError
from autograder.model import GPT2Config

STAGE = "forward-pass"


def _bias_missing(name: str) -> Bug:
    key = f"bias-missing-{name.replace('.', '-')}"
    return bugs.BUGS.get(key) or define(
        key, f"no bias in {name}", f"It looks as if {name}.bias were not added after the product with {name}.weight."
    )


Suspect = tuple[Bug, Mistakes]

_ATTENTION: tuple[Suspect, ...] = (
    (bugs.NO_CAUSAL_MASK, Mistakes(mask="none")),
    (own.MASK_STRICT, Mistakes(mask="strict")),
    (own.MASK_REVERSED, Mistakes(mask="reversed")),
    (own.MASK_ZEROS, Mistakes(mask="zeros")),
    (own.MASK_AFTER_SOFTMAX, Mistakes(mask="after-softmax")),
    (own.SOFTMAX_QUERIES, Mistakes(softmax="queries")),
    (bugs.KEYS_VALUES_SWAPPED, Mistakes(qkv="qvk")),
    *((bugs.QKV_ORDER, Mistakes(qkv=order)) for order in ("kqv", "kvq", "vqk", "vkq")),
    (own.HEADS_INTERLEAVED, Mistakes(split="interleaved")),
    (own.HEADS_STRIDED, Mistakes(split="strided")),
    (bugs.HEADS_SPLIT_WRONG, Mistakes(split="reshape")),
    (bugs.HEADS_SPLIT_WRONG, Mistakes(split="reshape", merge="reshape")),
    (bugs.HEADS_MERGED_WRONG, Mistakes(merge="reshape")),
    (bugs.SCORES_UNSCALED, Mistakes(scale="none")),
    (bugs.SCORES_SCALED_BY_EMBD, Mistakes(scale="n_embd")),
    (bugs.SCORES_SCALED_BY_LENGTH, Mistakes(scale="n_seq")),
    (own.SCORES_NO_ROOT, Mistakes(scale="no-root")),
    (own.SCORES_SCALED_BY_HEADS, Mistakes(scale="n_head")),
    (own.ONE_HEAD, Mistakes(heads="one")),
    (own.OUTPUT_MISSING, Mistakes(output=False)),
    (own.BIASES_MISSING, Mistakes(biases=False)),
    *((_bias_missing(name), Mistakes(missing_bias=name)) for name in ("attn.c_attn", "attn.c_proj")),
)
_BLOCK: tuple[Suspect, ...] = (
    (own.POST_NORM, Mistakes(order="post-norm")),
    (own.PARALLEL, Mistakes(order="parallel")),
    (bugs.NORMED_RESIDUAL, Mistakes(order="normed-residual")),
    (bugs.NORMED_RESIDUAL, Mistakes(order="normed-attention")),
    (bugs.NO_RESIDUAL_ATTENTION, Mistakes(residual="no-attention")),
    (bugs.NO_RESIDUAL_MLP, Mistakes(residual="no-mlp")),
    (bugs.NO_RESIDUAL, Mistakes(residual="none")),
    (own.RESIDUAL_INPUT_ONLY, Mistakes(residual="input-only")),
    (own.NO_LN_1, Mistakes(order="no-ln_1")),
    (own.NO_LN_2, Mistakes(order="no-ln_2")),
    (bugs.LN_1_TWICE, Mistakes(order="ln_1-twice")),
    (own.GELU_SIGMOID, Mistakes(gelu="sigmoid")),
    (own.GELU_RELU, Mistakes(gelu="relu")),
    (own.GELU_NONE, Mistakes(gelu="none")),
    (own.GELU_NO_HALF, Mistakes(gelu="double")),
    (own.NORM_SAMPLE, Mistakes(norm="sample")),
    (own.NORM_NO_ROOT, Mistakes(norm="no-root")),
    (own.NORM_NO_MEAN, Mistakes(norm="no-mean")),
    (own.NORM_WHOLE, Mistakes(norm="whole")),
    (own.NORM_NO_WEIGHT, Mistakes(norm="no-weight")),
    (own.NORM_NO_BIAS, Mistakes(norm="no-bias")),
    *((_bias_missing(name), Mistakes(missing_bias=name)) for name in ("mlp.c_fc", "mlp.c_proj")),
    *_ATTENTION,
)
_FORWARD: tuple[Suspect, ...] = (
    (bugs.POSITIONS_MISSING, Mistakes(positions="missing")),
    (own.WTE_SCALED, Mistakes(embedding="scaled")),
    (bugs.NO_FINAL_LAYER_NORM, Mistakes(final_norm=False)),
    (own.PROBABILITIES, Mistakes(head="probabilities")),
    (bugs.LAYERS_AS_TEXT, Mistakes(layers_as_text=True)),
    (own.BLOCKS_LEFT_OUT, Mistakes(blocks="not-last")),
    (own.BLOCKS_LEFT_OUT, Mistakes(blocks="first-only")),
    (own.BLOCKS_NOT_CHAINED, Mistakes(blocks="last-only")),
    (own.BLOCKS_REVERSED, Mistakes(blocks="reversed")),
    *_BLOCK,
)


@check(stage=STAGE, id="gelu-tanh", points=1, title="gelu is GPT-2's tanh form", watches=("gelu",))
def gelu_tanh(student: Student, cases: Cases) -> None:
    """gelu computes the tanh form of GELU, element by element, for an array of any shape and numbers of any size."""
    rng = cases.rng()
    n, m = (int(i) for i in rng.permutation(np.arange(3, 8))[:2])
    for shape in ((64,), (n, m), (2, m, n)):
        x = rng.uniform(-5, 5, shape).astype(np.float32)
        expect_close(
            student.array("gelu", x),
            gelu(x),
            name="gelu",
            where=f"for {_axes(shape)} between -5 and 5",
            axes={1: ("element",), 2: ("row", "column"), 3: ("table", "row", "column")}[len(shape)],
            suspects=(
                (own.GELU_EXACT, lambda x=x: gelu(x, "exact")),
                (own.GELU_SIGMOID, lambda x=x: gelu(x, "sigmoid")),
                (own.GELU_RELU, lambda x=x: gelu(x, "relu")),
                (own.GELU_SQUARE, lambda x=x: _tanh_gelu(x, power=2)),
                (own.GELU_NO_ROOT, lambda x=x: _tanh_gelu(x, factor=2 / np.pi)),
                (own.GELU_NO_ROOT, lambda x=x: _tanh_gelu(x, factor=np.sqrt(2) / np.pi)),
                (own.GELU_NO_HALF, lambda x=x: gelu(x, "double")),
                (own.GELU_CUBE_OF_SUM, lambda x=x: _tanh_gelu(x, whole=True)),
            ),
            atol=5e-5,  # the exact GELU is up to 5e-4 away, float32 less than 1e-6
            rtol=1e-5,
        )
    x = (rng.uniform(20, 1000, 8) * np.array([-1, 1] * 4)).astype(np.float32)
    y = student.array("gelu", x)
    bug = None if np.isfinite(y.astype(np.float64)).all() else own.GELU_OVERFLOW
    expect_close(
        y, gelu(x), name="gelu", where="for x as large as 1000", axes=("element",), bug=bug, atol=5e-5, rtol=1e-5
    )


def _tanh_gelu(x: np.ndarray, factor: float = np.sqrt(2 / np.pi), power: int = 3, whole: bool = False) -> np.ndarray:
    x = x.astype(np.float64)
    inner = (x + 0.044715 * x) ** power if whole else x + 0.044715 * x**power
    return 0.5 * x * (1 + np.tanh(factor * inner))


@check(stage=STAGE, id="layer-norm-rows", points=2, title="layer_norm normalizes every row", watches=("layer_norm",))
def layer_norm_rows(student: Student, cases: Cases) -> None:
    """layer_norm brings each row to mean 0 and variance 1, with eps inside the root, then applies weight and bias."""
    rng = cases.rng()
    n_embd = int(rng.integers(6, 12))
    weight = rng.uniform(0.5, 2, n_embd).astype(np.float32)
    bias = rng.uniform(-1, 1, n_embd).astype(np.float32)

    def suspects(x, given_eps):
        eps = given_eps or 1e-5
        yield own.NORM_EPS_OUTSIDE, lambda: layer_norm(x, weight, bias, eps, "eps-outside")
        if given_eps:
            yield own.NORM_EPS_FIXED, lambda: layer_norm(x, weight, bias)
        else:
            for bug, others in ((own.NORM_EPS_SMALL, (1e-12, 1e-8, 1e-6)), (own.NORM_EPS_LARGE, (1e-4, 1e-3, 1e-2))):
                for other in others:
                    yield bug, lambda other=other: layer_norm(x, weight, bias, other)
        for bug, mistakes in _BLOCK:
            if mistakes.norm != "right":
                yield bug, lambda kind=mistakes.norm: layer_norm(x, weight, bias, eps, kind)
        for axis in range(x.ndim - 1):
            yield own.NORM_AXIS, lambda axis=axis: _norm_along(x, weight, bias, eps, axis)

    def compare(x, where, given_eps=None):
        x = x.astype(np.float32)
        options = {} if given_eps is None else {"eps": given_eps}
        expect_close(
            student.array("layer_norm", x, weight, bias, **options),
            layer_norm(x, weight, bias, **options),
            name="layer_norm",
            where=where,
            axes=("sequence", "row", "feature")[-x.ndim :],
            suspects=suspects(x, given_eps),
            atol=1e-4,
            rtol=1e-3,
        )

    def rows(*shape):
        return rng.normal(0, 1, (*shape, n_embd)) * rng.uniform(0.5, 3, (*shape, 1)) + rng.uniform(-2, 2, (*shape, 1))

    compare(rows(4), f"for 4 rows of {n_embd}")
    for shape in ((), (2, 3)):
        compare(rows(*shape), f"for x of {_axes((*shape, n_embd))}")
    for size in (0.001, 0.003, 0.01, 0.05):
        compare(rows(3) * size, f"for rows whose values differ by about {size:g}, where eps matters")
    flat = np.full((2, n_embd), rng.choice([0.25, 0.5, -0.5]))
    compare(flat, "for rows of equal values, whose variance is 0")
    compare(rows(3), "with eps=0.1 passed to it", given_eps=0.1)


def _norm_along(x, weight, bias, eps, axis):
    x = x.astype(np.float64)
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps) * weight + bias


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
        for n_seq in _row_counts(model):
            x = _rows(cases, model, n_seq)
            expected = model.reference.attention_layer(x, layer)
            with sweep.at(n_seq):
                actual = _attend(student, x, model, layer)
                sweep.close(
                    actual,
                    expected,
                    name="causal_self_attention",
                    where=f"for {_count(n_seq, 'row')}, block {layer} of {_about(model)}",
                    axes=("row", "feature"),
                    suspects=_suspects(_ATTENTION, model.reference.attention_layer, x, layer),
                    bug=_not_finite(actual),
                )
        _finish(sweep, lambda: _right_on_trained(student, cases, "attention"))


@check(stage=STAGE, id="attention-causal", points=1, title="No token sees a later one")
def attention_causal(student: Student, cases: Cases) -> None:
    """In causal_self_attention a row depends on itself and on the rows before it, and on no later row."""
    model, layer = cases.odd[0], 1
    n_seq = 9
    x, other = _rows(cases, model, n_seq), _rows(cases, model, n_seq, "other")
    before = _attend(student, x, model, layer)
    before = _expect_shape(before, x.shape, "causal_self_attention", _not_finite(before))
    for changed in range(n_seq):
        mixed = x.copy()
        mixed[changed] = other[changed]
        after = _expect_shape(_attend(student, mixed, model, layer), x.shape, "causal_self_attention")
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
        suspects = _suspects(_ATTENTION, model.reference.attention_layer, x, layer)
        bug = recognize(before, model.reference.attention_layer(x, layer), suspects)
        place = f"rows 0 to {n_seq - 1}, block {layer} of {_about(model)}"
        raise Failure(None, f"Changing row {changed} of x {what} ({place}).", bug)


@check(stage=STAGE, id="attention-large-scores", points=1, title="Large attention scores do not overflow")
def attention_large_scores(student: Student, cases: Cases) -> None:
    """The softmax in causal_self_attention stays exact when scores are in the hundreds and more, of either sign."""
    layer, n_seq = 0, 11
    for factor in (12.0, 36.0):  # too large for exp in float32, and in float64
        model = _with_large_scores(cases.odd[2], factor)
        x = _rows(cases, model, n_seq)
        actual, expected = _attend(student, x, model, layer), model.reference.attention_layer(x, layer)
        bug = None
        if actual.shape == expected.shape and not np.isfinite(actual.astype(np.float64)).all():
            bug = _not_finite(_attend(student, x, cases.odd[2], layer)) or _overflow(student, cases)
        expect_close(
            actual,
            expected,
            name="causal_self_attention",
            where=f"for {n_seq} rows, block {layer} of {_about(model)} with weights that make large scores",
            axes=("row", "feature"),
            suspects=_suspects(_ATTENTION, model.reference.attention_layer, x, layer),
            bug=bug,
        )


def _with_large_scores(model: JudgeModel, factor: float) -> JudgeModel:
    """The model with the queries and keys of block 0 made larger, and so their scores by the square of the factor."""
    c_attn = model.weights.blocks[0].attn.c_attn
    spread = np.repeat([factor, factor, 1.0], model.config.n_embd)
    return model.patched("h.0.attn.c_attn.weight", c_attn.weight * spread).patched(
        "h.0.attn.c_attn.bias", c_attn.bias * spread
    )


def _overflow(student: Student, cases: Cases) -> Bug | None:
    """The way of computing a softmax that gives values that are not finite in the rows where the student's does.

    Seen on a model with a single head, because each row of the result mixes all heads. Scores that have become
    float64, as division by np.sqrt(head_dim) makes them, overflow only where they are larger still.
    """
    small = cases.random_model(GPT2Config(n_layer=1, n_head=1, n_embd=12, n_ctx=16, n_vocab=29))
    for factor, limit in ((12.0, 100), (36.0, 740)):  # where exp overflows or vanishes, roughly: float32, float64
        model = _with_large_scores(small, factor)
        for n_seq in (1, 8):  # a single row has no other to take its maximum from
            for attempt in range(400):
                x = _rows(cases, model, n_seq, attempt)
                exponents = _largest_exponents(x, model)
                told_apart = len({(np.abs(e) > limit).tobytes() for e in exponents.values()}) == len(exponents)
                if told_apart and all(_is_clear(e, limit) for e in exponents.values()):
                    break
            else:
                continue
            bad_rows = ~np.isfinite(_attend(student, x, model, 0).astype(np.float64)).all(axis=-1)
            for bug, largest in exponents.items():
                if bad_rows.any() and np.array_equal(np.abs(largest) > limit, bad_rows):
                    return bug
    return None


def _largest_exponents(x: np.ndarray, model: JudgeModel) -> dict[Bug, np.ndarray]:
    """The largest visible exponent of each row, when that is taken off which the bug takes off."""
    n_seq, c_attn = len(x), model.weights.blocks[0].attn.c_attn
    q, k, _ = np.split(x.astype(np.float64) @ c_attn.weight + c_attn.bias, 3, axis=-1)
    scores = q @ k.T / np.sqrt(model.config.head_dim)
    largest = np.where(np.tri(n_seq, dtype=bool), scores, -np.inf).max(axis=-1)
    if n_seq == 1:
        return {own.SOFTMAX_OVERFLOW: largest}
    return {
        own.SOFTMAX_OVERFLOW: largest,
        own.SOFTMAX_HIDDEN_MAXIMUM: largest - scores.max(axis=-1),
        own.SOFTMAX_ONE_MAXIMUM: largest - largest.max(),
    }


def _is_clear(exponents: np.ndarray, limit: float) -> bool:
    """Whether some exponent is far beyond the limit of exp, and none is near it, or near that of a wider type."""
    size = np.abs(exponents)
    near = (size > 0.8 * limit) & (size < 1.2 * limit) | (size > 6 * limit)
    return bool((size > 1.2 * limit).any() and not near.any())


def _not_finite(actual: np.ndarray) -> Bug | None:
    """What makes values NaN at ordinary scores; with a single row it cannot be told.

    A first row of NaN alone comes from a softmax over nothing: the first token did not even see itself.
    """
    bad = ~np.isfinite(actual.astype(np.float64))
    if actual.ndim != 2 or len(actual) < 2 or not bad[0].all():
        return None
    return bugs.MASK_TIMES_INFINITY if bad.all() else own.MASK_STRICT if not bad[1:].any() else None


@check(
    stage=STAGE,
    id="block-pre-norm",
    points=2,
    title="transformer_block is a pre-norm block",
    watches=("transformer_block",),
)
def block_pre_norm(student: Student, cases: Cases) -> None:
    """transformer_block adds attention of ln_1(x) to x, then the MLP of ln_2 of that sum to the sum."""
    for model in cases.odd:
        layer = int(cases.rng("layer", model.config.n_layer).integers(model.config.n_layer))
        sweep = Sweep("numbers of rows")
        for n_seq in _row_counts(model):
            x = _rows(cases, model, n_seq) * np.float32(0.7)
            expected = model.reference.block(x, layer)
            with sweep.at(n_seq):
                sweep.close(
                    student.array("transformer_block", x, model.part(f"blocks.{layer}"), model.config.n_head),
                    expected,
                    name="transformer_block",
                    where=f"for {_count(n_seq, 'row')}, block {layer} of {_about(model)}",
                    axes=("row", "feature"),
                    suspects=_suspects(_BLOCK, model.reference.block, x, layer),
                )
        _finish(sweep, lambda: _right_on_trained(student, cases, "block"))


@check(
    stage=STAGE,
    id="forward-recompute",
    points=2,
    title="forward gives GPT-2's logits at every length",
    watches=("forward",),
)
def forward_recompute(student: Student, cases: Cases) -> None:
    """forward gives the logits of a from-scratch GPT-2 in float64, for every position and every length up to n_ctx."""
    for model in cases.odd:
        _compare_lengths(student, cases, model, range(1, model.config.n_ctx + 1))
    # 12 blocks of a shape on which the exact gelu or another eps, which have checks of their own, stay well inside the
    # tolerance. On the trained model they graze it; its 12 blocks are seen in its greedy ids, which are clear.
    deep = cases.random_model(GPT2Config(n_layer=12, n_head=3, n_embd=15, n_ctx=17, n_vocab=41))
    _compare_lengths(student, cases, deep, (1, 9, 17))
    _compare_lengths(student, cases, cases.long, (1, 32, 33, 65, 150))
    model = cases.odd[1]
    twin, ids = random_judge_model(model.config, cases.number("twin")), cases.ids(model, 6)
    student.array("forward", ids, model)
    expect_close(
        student.array("forward", ids, twin),
        twin.reference.logits(ids),
        name="forward",
        where="for tokens that another model of the same shape has just been given",
        axes=("position", "token id"),
        suspects=[(own.LOGITS_REMEMBERED, lambda: model.reference.logits(ids))],
    )


def _compare_lengths(student: Student, cases: Cases, model: JudgeModel, lengths) -> None:
    ids = cases.ids(model, max(lengths))
    expected = model.reference.logits(ids)  # causal, so its first n rows are the logits of the first n tokens
    sweep = Sweep("lengths")
    for n_seq in lengths:
        with sweep.at(n_seq):
            actual = student.array("forward", ids[:n_seq], model)
            if actual.shape in (expected.shape[1:], (1, expected.shape[1])) and n_seq > 1:
                detail = f"forward has shape {list(actual.shape)} for {n_seq} tokens of {_about(model)}."
                raise Failure(None, detail, own.ONLY_LAST_ROW)
            sweep.close(
                actual,
                expected[:n_seq],
                name="forward",
                where=f"for {_count(n_seq, 'token')} on {_about(model)}",
                axes=("position", "token id"),
                suspects=_forward_suspects(cases, model, ids[:n_seq]),
                bug=own.LOGITS_TRANSPOSED if actual.shape == expected[:n_seq].T.shape else None,
            )
    _finish(sweep, lambda: _right_on_trained(student, cases, "forward"))


def _forward_suspects(
    cases: Cases, model: JudgeModel, ids: list[int]
) -> Iterator[tuple[Bug, Callable[[], np.ndarray]]]:
    for shift in (1, -1):
        positions = [(i + shift) % model.config.n_ctx for i in range(len(ids))]
        yield bugs.positions_shifted(shift), lambda p=positions: model.reference.logits(ids, positions=p)
    yield from _suspects(_FORWARD, model.reference.logits, ids)
    yield own.NOTEBOOK_WEIGHTS, lambda: cases.trained.reference.logits(ids)


@check(stage=STAGE, id="forward-limits", points=1, title="forward takes 1 to n_ctx tokens and refuses others")
def forward_limits(student: Student, cases: Cases) -> None:
    """forward takes up to n_ctx tokens; no token, or one more than n_ctx, is a ValueError."""
    for model in cases.odd[:2]:
        n_ctx, n_vocab = model.config.n_ctx, model.config.n_vocab
        ids = cases.ids(model, n_ctx + 1)
        try:
            full = student.array("forward", ids[:n_ctx], model)
        except StudentError as error:
            if not error.loud:
                raise
            bug = own.LIMIT_TOO_LOW if _right_at(student, model, ids[:3]) else None
            raise Failure(None, f"For exactly n_ctx = {n_ctx} tokens, {error.sentence}", bug) from None
        _expect_shape(full, (n_ctx, n_vocab), "forward")
        again = student.array("forward", ids[:n_ctx], model)
        changed = student.array("forward", [(ids[0] + 1) % n_vocab, *ids[1:n_ctx]], model)
        if not matches(again, full.astype(np.float64)) or matches(changed[-1:], full[-1:].astype(np.float64)):
            raise Failure(
                None,
                f"For exactly n_ctx = {n_ctx} tokens, the last row of forward is not decided by the tokens: equal "
                "calls must agree, and another first token must change it.",
            )
        student.expect_error("forward", [], model, what="an empty list of tokens", bug=own.EMPTY_ACCEPTED)
        student.expect_error(
            "forward", ids, model, what=f"{n_ctx + 1} tokens with n_ctx = {n_ctx}", bug=own.LIMIT_IGNORED
        )


@check(
    stage=STAGE,
    id="generate-greedy",
    points=2,
    title="generate_recompute returns the greedy ids",
    watches=("generate_recompute",),
)
def generate_greedy(student: Student, cases: Cases) -> None:
    """generate_recompute returns exactly n_new ids, each the one with the largest logit after all tokens before it."""
    for model in cases.odd:
        n_ctx = model.config.n_ctx
        _compare_ids(student, cases, model, n_prompt=4, n_new=5)
        _compare_ids(student, cases, model, n_prompt=8, n_new=4)
        _compare_ids(student, cases, model, n_prompt=n_ctx - 2, n_new=3, exact_limit=True)
    _compare_ids(student, cases, cases.trained, n_prompt=7, n_new=4)
    model = cases.odd[1]
    n_ctx = model.config.n_ctx
    prompt = cases.ids(model, n_ctx)
    _expect_ids(student, cases, model, prompt[:3], [], "3 prompt tokens and 0 new ones")
    student.expect_error(
        "generate_recompute",
        prompt[:-2],
        4,
        model,
        what=f"{n_ctx - 2} prompt tokens and 4 new ones with n_ctx = {n_ctx}, one too many",
        bug=own.WINDOW_SLID if _refuses(student, model, n_ctx + 1) else own.LIMIT_IGNORED,
    )


def _right_at(student: Student, model: JudgeModel, ids: list[int]) -> bool:
    """Whether the student's forward gives the right logits of these tokens."""
    return matches(student.array("forward", ids, model), model.reference.logits(ids))


def _refuses(student: Student, model: JudgeModel, n_seq: int) -> bool:
    """Whether the student's forward refuses n_seq tokens."""
    try:
        student.array("forward", [0] * n_seq, model)
    except StudentError as error:
        return error.loud
    return False


def _compare_ids(student, cases, model, n_prompt, n_new, exact_limit=False):
    prompt, expected = _clear_prompt(cases, model, n_prompt, n_new)
    where = f"{n_prompt} prompt tokens and {n_new} new ones on {_about(model)}"
    if exact_limit:
        where += f", which just fit into n_ctx = {model.config.n_ctx}"
    try:
        _expect_ids(student, cases, model, prompt, expected, where)
    except StudentError as error:
        if error.type == "IndexError" and f"index {_argmax_of_all(model, prompt)} " in error.message:
            raise Failure(None, f"For {where}, {error.sentence}", own.ARGMAX_OF_ALL_ROWS) from None
        if not (exact_limit and error.loud):
            raise
        bug = own.GENERATE_LIMIT_TOO_LOW
        if _refuses(student, model, model.config.n_ctx):
            bug = own.LIMIT_TOO_LOW if _right_at(student, model, prompt[:3]) else None
        raise Failure(None, f"For {where}, {error.sentence}", bug) from None


def _argmax_of_all(model: JudgeModel, prompt: list[int]) -> int:
    """The first id outside the vocabulary when ids are chosen by argmax of all rows of the logits at once, or -1."""
    ids = list(prompt)
    while len(ids) <= model.config.n_ctx:
        ids.append(int(model.reference.logits(ids).argmax()))
        if ids[-1] >= model.config.n_vocab:
            return ids[-1]
    return -1


def _clear_prompt(cases: Cases, model: JudgeModel, n_prompt: int, n_new: int) -> tuple[list[int], list[int]]:
    """A prompt and its greedy ids, each ahead of the second best by more than any honest rounding.

    On 12 blocks, another order of the blocks gives other ids.
    """
    greedy = model.reference.greedy
    for attempt in range(40):
        prompt = cases.ids(model, n_prompt, n_new, attempt)
        ids, gaps = greedy(prompt, n_new)
        if min(gaps) > 0.15 and not (
            _is_trained(model) and ids == greedy(prompt, n_new, mistakes=Mistakes(layers_as_text=True))[0]
        ):
            break
    return prompt, ids


def _expect_ids(student, cases, model, prompt, expected, where):
    name, n_new = "generate_recompute", len(expected)
    try:
        actual = student.ids(name, prompt, n_new, model)
    except Failure as failure:
        if failure.bug is bugs.INPUT_CHANGED:
            raise Failure(failure.prop, f"{name} changed the prompt it was given.", own.PROMPT_GROWN) from None
        raise
    if actual == expected:
        return
    if len(actual) != n_new:
        bug = None
        if actual == prompt + expected:
            bug = own.PROMPT_RETURNED
        elif abs(len(actual) - n_new) == 1 and all(a == b for a, b in zip(actual, expected, strict=False)):
            bug = own.ONE_TOO_MANY if len(actual) > n_new else own.ONE_TOO_FEW
        raise Failure(None, f"{name} returned {_count(len(actual), 'id')} for {where}.", bug)
    wrong = next(i for i, (a, b) in enumerate(zip(actual, expected, strict=True)) if a != b)
    detail = f"{name} chose another id at new token {wrong}, counted from 0 ({where})."
    if student.ids(name, prompt, n_new, model) != actual:
        raise Failure(None, detail, own.SAMPLED)
    seen = prompt + expected[:wrong]
    if not _right_at(student, model, seen):
        raise Failure(None, f"{detail} The logits of forward are wrong there too, so look at its checks first.")
    raise Failure(None, detail, _recognize_ids(student, cases, model, prompt, actual))


def _recognize_ids(
    student: Student, cases: Cases, model: JudgeModel, prompt: list[int], actual: list[int]
) -> Bug | None:
    """How the wrong ids were chosen from right logits: what explains them, and those of other prompts as well.

    A short run of ids may agree with anything by chance.
    """
    logits, trained_logits = model.reference.logits, cases.trained.reference.logits
    answers = [(prompt, actual)]
    for n_prompt in (3, 5, 7):
        other = cases.ids(model, n_prompt, "recognize")
        try:
            answers.append((other, student.ids("generate_recompute", other, 4, model)))
        except (Failure, StudentError):
            return None
    for bug, choose in (
        (own.LAST_TOKEN_ALONE, lambda ids, n: logits(ids[-1:])[-1].argmax()),
        (own.FIRST_ROW_CHOSEN, lambda ids, n: logits(ids)[0].argmax()),
        (own.SEQUENCE_NOT_GROWN, lambda ids, n: logits(ids[:n])[-1].argmax()),
        (own.SMALLEST_CHOSEN, lambda ids, n: logits(ids)[-1].argmin()),
        (own.NOTEBOOK_WEIGHTS, lambda ids, n: trained_logits(ids)[-1].argmax()),
    ):
        if all(_chosen(choose, prompt, len(ids)) == ids for prompt, ids in answers):
            return bug
    return None


def _chosen(choose: Callable[[list[int], int], int], prompt: list[int], n_new: int) -> list[int]:
    ids = list(prompt)
    for _ in range(n_new):
        ids.append(int(choose(ids, len(prompt))))
    return ids[len(prompt) :]


# What the checks share


def _suspects(mistakes: tuple[Suspect, ...], function: Callable, *args) -> Iterator[tuple[Bug, Callable]]:
    """What the reference gives with each mistake."""
    for bug, mistake in mistakes:
        yield bug, lambda m=mistake: function(*args, mistakes=m)


def _row_counts(model: JudgeModel) -> list[int]:
    """Numbers of rows that equal a figure of the model, where a wrong reshape goes unnoticed, and some that do not."""
    if _is_trained(model):
        return [17]
    return sorted({1, 2, model.config.n_head, model.config.head_dim, model.config.head_dim + 2})


def _rows(cases: Cases, model: JudgeModel, n_seq: int, *label: object) -> np.ndarray:
    rng = cases.rng("rows", model.config.n_embd, n_seq, *label)
    return rng.standard_normal((n_seq, model.config.n_embd)).astype(np.float32)


def _expect_shape(actual: np.ndarray, shape: tuple[int, ...], name: str, bug: Bug | None = None) -> np.ndarray:
    """actual in float64, when it has the shape and is finite. bug: what it is when it is not finite."""
    if actual.shape != shape:
        raise Failure(None, f"{name} has shape {list(actual.shape)} where {list(shape)} is expected.")
    actual = actual.astype(np.float64)
    if not np.isfinite(actual).all():
        raise Failure(None, f"{name} has values that are not finite.", bug)
    return actual


def _finish(sweep: Sweep, right_on_trained: Callable[[], bool]) -> None:
    """Finish a sweep over lengths; when the code does not even run there, see whether it runs on the trained model."""
    try:
        sweep.finish()
    except Failure as failure:
        if failure.bug is None and sweep.ran_nowhere and right_on_trained():
            raise Failure(failure.prop, failure.detail, own.FIXED_SIZES) from None
        raise


def _right_on_trained(student: Student, cases: Cases, what: str) -> bool:
    model = cases.trained
    x, ids = _rows(cases, model, 3), cases.ids(model, 3)
    part = {"attention": "blocks.0.attn", "block": "blocks.0"}.get(what)
    try:
        if what == "attention":
            actual, expected = _attend(student, x, model, 0), model.reference.attention_layer(x, 0)
        elif what == "block":
            actual = student.array("transformer_block", x, model.part(part), model.config.n_head)
            expected = model.reference.block(x, 0)
        else:
            actual, expected = student.array("forward", ids, model), model.reference.logits(ids)
    except (Failure, StudentError):
        return False
    return matches(actual, expected)


def _is_trained(model: JudgeModel) -> bool:
    return "name" in model.spec


def _about(model: JudgeModel) -> str:
    config = model.config
    if _is_trained(model):
        return "the trained model"
    return f"a random model with {config.n_layer} blocks, {config.n_head} heads and n_embd {config.n_embd}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _axes(shape: tuple[int, ...]) -> str:
    return f"shape {list(shape)}"


def _attend(student: Student, x: np.ndarray, model: JudgeModel, layer: int) -> np.ndarray:
    return student.array("causal_self_attention", x, model.part(f"blocks.{layer}.attn"), model.config.n_head)
