"""What the checks of the forward pass say beyond the table in test_samples.py."""

import functools

import numpy as np
import pytest

from autograder.judge.framework import checks_of
from autograder.stages import sample_tests

STAGE = "forward-pass"
FUNCTIONS = ("gelu", "layer_norm", "causal_self_attention", "transformer_block", "forward", "generate_recompute")
ALL = {check.id for check in checks_of(STAGE)}
changed = functools.partial(sample_tests.changed, STAGE)
results = functools.partial(sample_tests.results, STAGE)
lost = functools.partial(sample_tests.lost, STAGE)


def test_the_stage_has_14_points_in_9_checks():
    checks = checks_of("forward-pass")
    assert (len(checks), sum(c.points for c in checks)) == (9, 14)


@pytest.mark.parametrize(
    "make",
    [
        np.zeros,
        np.ones,
        lambda shape: np.full(shape, np.nan),
        lambda shape: np.full(shape, np.inf),
        lambda shape: np.random.default_rng().normal(size=shape),
        lambda shape: np.random.default_rng(0).normal(size=shape),
    ],
    ids=["zeros", "ones", "nan", "inf", "noise", "the same noise"],
)
def test_garbage_of_the_right_shape_earns_nothing(make):
    def forward(token_ids, weights):
        if not 1 <= len(token_ids) <= weights.config.n_ctx:
            raise ValueError("length")
        return make((len(token_ids), weights.config.n_vocab))

    def generate_recompute(prompt_ids, n_new, weights):
        if len(prompt_ids) + n_new - 1 > weights.config.n_ctx:
            raise ValueError("length")
        return [0] * n_new

    like_x = dict.fromkeys(FUNCTIONS[:4], lambda x, *args, **kwargs: make(x.shape))
    assert lost({**like_x, "forward": forward, "generate_recompute": generate_recompute}) == ALL


def test_an_identity_earns_nothing():
    assert lost(dict.fromkeys(FUNCTIONS, lambda x, *args, **kwargs: x)) == ALL


def test_a_sweep_lists_every_failing_length():
    some = "    if n_seq in (4, 8, 9, 10): return np.zeros((n_seq, config.n_vocab))\n    x = weights.wte"
    namespace = changed(("forward", "    x = weights.wte", some))
    message = results(namespace, only="forward-recompute")["forward-recompute"].message
    assert "Failing lengths: 4, 8 to 10 (of 1 to 19)." in message
    assert "for 4 tokens on a 2-layer random model" in message


MASK = "np.where(np.tri(n_seq, dtype=bool), scores, -np.inf)"


@pytest.mark.parametrize(
    ("mark", "old", "new", "check", "bug"),
    [
        ("attention-weights", "np.tri(n_seq, dtype=bool)", "np.triu(np.ones((n_seq, n_seq), bool))",
         "attention-causal", "mask-reversed"),
        ("attention-weights", "scores, -np.inf", "-np.inf, scores", "attention-causal", "mask-reversed"),
        ("attention-weights", "head_dim**0.5", "len(q) ** 0.5", "attention-heads", "scores-scaled-by-n-head"),
        ("attention-weights", "head_dim**0.5", "n_seq**0.5", "attention-heads", None),
        ("causal-self-attention", "split_heads(part, n_head)", "split_heads(part, 1)", "attention-heads", None),
        ("split-heads", "(n_seq, n_head, n_embd", "(n_head, n_seq, n_embd", "forward-limits", None),  # runs for 3 ids
        ("transformer-block", "x = x + causal", "x = causal", "block-pre-norm", "no-residual"),
        ("transformer-block", "return x + feed", "return feed", "block-pre-norm", "no-residual"),
        ("gelu", "x * x * x", "x * x", "gelu-tanh", "gelu-power"),
        ("layer-norm", "x - x.mean(axis=-1, keepdims=True)", "x - x.mean()", "layer-norm-rows", "norm-wrong-axis"),
        ("forward", "in weights.blocks", "in weights.blocks[::-1]", "forward-recompute", None),
        ("forward", "in weights.blocks", "in weights.blocks[:1]", "forward-recompute", None),
        ("forward", "weights.wpe[:n_seq]", "weights.wpe[-n_seq:]", "forward-recompute", None),
        ("forward", "np.asarray(token_ids)", "np.asarray(token_ids) % config.n_vocab", "forward-limits", None),
        ("generate-recompute", "forward(token_ids,", "forward(prompt_ids,", "generate-greedy", None),
        ("generate-recompute", "range(n_new)", "range(n_new - 1)", "generate-greedy", None),
        ("generate-recompute", "range(n_new)", "range(max(1, n_new))", "generate-greedy", None),
    ],
)  # fmt: skip
def test_a_name_is_given_where_the_numbers_are_those_of_the_mistake(mark, old, new, check, bug):
    result = results(changed((mark, old, new)), only=check)[check]
    assert not result.passed
    assert (result.bug.key if result.bug else None) == bug


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "hidden",
    [
        *(f"np.where(np.tri(n_seq, dtype=bool), scores, {score})" for score in ("-100", "-5000", "-65504.0", "-1e6")),
        *(f"scores - {score} * (1 - np.tri(n_seq))" for score in ("1e6", "1e4")),
        "scores - np.float32(1e4) * (1 - np.tri(n_seq, dtype=np.float32))",
    ],
)
def test_a_finite_mask_is_found(hidden, seed):
    check = "attention-large-scores"
    result = results(changed(("attention-weights", MASK, hidden)), seed, check)[check]
    assert not result.passed
    assert result.bug.key == "mask-too-small"


@pytest.mark.parametrize(
    ("mark", "old", "new"),
    [
        ("attention-weights", "-np.inf", "np.float32(-1e9)"),
        ("attention-weights", "-np.inf", "np.finfo(np.float32).min"),
        ("attention-weights", MASK, "scores - 1e9 * (1 - np.tri(n_seq))"),
        ("attention-weights", MASK, "scores - np.float32(1e9) * (1 - np.tri(n_seq, dtype=np.float32))"),
        ("attention-weights", "q @ k.transpose(0, 2, 1) / head_dim**0.5",
         "(q / head_dim**0.25) @ (k / head_dim**0.25).transpose(0, 2, 1)"),
        ("forward", "@ weights.wte.T", "@ np.asfortranarray(weights.wte.T).astype(np.longdouble).astype(np.float64)"),
        ("forward", "    return layer_norm(x,", "    return layer_norm(np.ascontiguousarray(x[::-1])[::-1],"),
        ("forward", "weights.wte[np.asarray(token_ids)]",
         "np.eye(config.n_vocab, dtype=np.float32)[token_ids] @ weights.wte"),
        ("generate-recompute", "return token_ids[len(prompt_ids) :]",
         "return tuple(np.int64(i) for i in token_ids[len(prompt_ids) :])"),
        ("generate-recompute", "forward(token_ids, weights)[-1].argmax()",
         "np.argsort(forward(token_ids, weights)[-1], kind='stable')[-1]"),
        ("gelu", "x * x * x", "np.power(x, 3)"),
        ("gelu", "(2 / np.pi) ** 0.5", "0.7978845608"),
        ("gelu", "(2 / np.pi) ** 0.5", "np.sqrt(2 / 3.1416)"),
        ("gelu", "np.tanh(", "(lambda y: 1 - 2 / (np.exp(np.float32(2) * np.clip(y, -40, 40)) + 1))("),
    ],
)  # fmt: skip
def test_odd_but_honest_ways_pass(mark, old, new):
    assert lost(changed((mark, old, new))) == set()
