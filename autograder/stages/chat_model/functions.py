"""The checks of rms_norm, rotate, grouped_attend and swiglu."""

from __future__ import annotations

import math

import numpy as np

from autograder.judge import large_scores
from autograder.judge.compare import Sweep, expect_close
from autograder.judge.framework import check
from autograder.judge.plurals import count
from autograder.judge.reference import gelu
from autograder.judge.variants import ATTENTION, MASK_TOO_SMALL, suspects
from autograder.stages.chat_model import bugs as own
from autograder.stages.chat_model import llama
from autograder.stages.chat_model.llama_cases import deep_llama, llamas
from autograder.stages.forward_pass.bugs import FINITE_MASKS

CLOSE = {"atol": 1e-4, "rtol": 1e-3}  # one function in float32
MASKS = suspects("no-causal-mask", "mask-without-offset", "scores-unscaled")


@check("rms_norm divides by the root mean square", points=1, watches=("rms_norm",))
def norm_by_rms(student, cases):
    """rms_norm divides by sqrt(mean(x^2) + eps), leaves the mean alone, and multiplies by the weight."""
    for shape, eps, size in (
        ((3, 9), 1e-5, 1.0),
        ((8,), 1e-3, 0.02),
        ((2, 3, 7), 1e-2, 5.0),
        ((4, 6), 1e-6, 1e-4),
        ((300, 700), 0.1, 1.0),
    ):
        rng = cases.rng("norm", *shape)
        x = (size * (rng.standard_normal(shape) + 0.7)).astype(np.float32)
        weight = rng.uniform(0.5, 1.5, shape[-1]).astype(np.float32)
        expect_close(
            student.array("rms_norm", x, weight, eps), llama.rms_norm(x, weight, eps), name="rms_norm",
            where=f"for x of shape {list(shape)}, of size {size:g}, and eps = {eps:g}",
            suspects=_wrong_norms(x.astype(np.float64), weight, eps), **CLOSE,
        )  # fmt: skip


def _wrong_norms(x, weight, eps):
    square, centered = (x**2).mean(-1, keepdims=True), x - x.mean(-1, keepdims=True)
    variance = (centered**2).mean(-1, keepdims=True)
    return [
        (own.MEAN_SUBTRACTED, lambda: centered / np.sqrt(variance + eps) * weight),
        (own.MEAN_SUBTRACTED, lambda: centered / np.sqrt(square + eps) * weight),
        (own.RMS_EPS_OUTSIDE, lambda: x / (np.sqrt(square) + eps) * weight),
        (own.RMS_EPS_MISSING, lambda: x / np.sqrt(square) * weight),
        (own.RMS_NO_ROOT, lambda: x / (square + eps) * weight),
        (own.RMS_SUM, lambda: x / np.sqrt(square * x.shape[-1] + eps) * weight),
        (own.RMS_NO_WEIGHT, lambda: x / np.sqrt(square + eps)),
    ]


@check("rotate turns each pair by its angle", points=2, watches=("rotate",))
def rotary(student, cases):
    """rotate turns elements i and i + head_dim / 2 by position * theta ** (-2 * i / head_dim)."""
    for n_head, head_dim, theta, positions in (
        (3, 6, 300.0, [4, 5, 6, 7, 8]),
        (2, 10, 1e5, [0, 1, 2]),
        (1, 2, 1e4, [17]),
        (5, 8, 50.0, [9, 2, 30, 2]),
        (2, 16, 1e6, [*range(4000, 4300)]),
    ):
        x = cases.rng("x", n_head, head_dim).standard_normal((n_head, len(positions), head_dim)).astype(np.float32)
        expect_close(
            student.array("rotate", x, np.array(positions), theta), llama.rotate(x, positions, theta), name="rotate",
            axes=("head", "row", "element"), atol=2e-3, rtol=1e-3,
            where=f"for {n_head} heads of {head_dim} elements at {len(positions)} positions, theta = {theta:g}",
            suspects=_wrong_turns(x.astype(np.float64), positions, theta),
        )  # fmt: skip


def _wrong_turns(x, positions, theta):
    half = x.shape[-1] // 2
    order = [*range(0, 2 * half, 2), *range(1, 2 * half, 2)]

    def neighbors():
        return llama.rotate(x[..., order], positions, theta)[..., np.argsort(order)]

    def angles_of_neighbors():
        angles = np.outer(positions, np.repeat(theta ** (-np.arange(half) / half), 2))
        return x * np.cos(angles) + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * np.sin(angles)

    return [
        (own.NOT_TURNED, lambda: x),
        (own.NEIGHBORS_TURNED, neighbors),
        (own.NEIGHBORS_TURNED, lambda: neighbors()[..., order]),
        (own.ANGLES_OF_NEIGHBORS, angles_of_neighbors),
        (own.TURNED_BACK, lambda: llama.rotate(x, [-p for p in positions], theta)),
        (own.ROTARY_FIRST_AT_ZERO, lambda: llama.rotate(x, range(len(positions)), theta)),
        (own.ROTARY_HALF_EXPONENT, lambda: llama.rotate(x, positions, math.sqrt(theta))),
        (own.THETA_FIXED, lambda: llama.rotate(x, positions, 10000.0)),
    ]


@check("Several heads of queries share one of keys", points=1, watches=("grouped_attend",))
def grouped_heads(student, cases):
    """Query head h attends, causally, to key head h // (n_head // n_kv_head)."""
    sweep = Sweep()

    def expect(q, layer, k, v, where, close, wrong):
        close(
            student.array("grouped_attend", q, layer), llama.attend(q, k, v), name="grouped_attend",
            axes=("head", "query", "element"), where=f"for {where}", suspects=wrong, **CLOSE,
        )  # fmt: skip

    for i, (n_seq, n_query) in enumerate(((1, 1), (9, 1), (7, 3), (12, 12), (18, 5), (70, 70), (320, 3), (300, 261))):
        model = deep_llama(cases) if n_seq == 320 else llamas(cases)[i % 3]
        c, rng = model.config, cases.rng("qkv", n_seq, n_query)
        q = rng.standard_normal((c.n_head, n_query, c.head_dim)).astype(np.float32)
        kv = [rng.standard_normal((c.n_kv_head, n_seq, c.head_dim)).astype(np.float32) for _ in range(2)]
        if n_seq == 18:
            q *= 400  # scores of a thousand
        if n_seq == 12:
            q[:, 7] = 0  # scores of exactly 0, which hide nothing
        asked, cached = count(n_query, "query", "queries"), count(n_seq, "cached position")
        with sweep.at(n_seq):
            layer = student.layers(student.make_cache(model, [tuple(kv)] * c.n_layer), 2)[1]
            wrong = [*_other_heads(q, *kv), *_wrong_attention(MASKS, q, *kv)]
            expect(q, layer, *kv, f"{c.n_head} heads on {c.n_kv_head}, {asked} and {cached}", sweep.close, wrong)
    sweep.finish()
    # Scores around four million in size: hidden ones beside small visible ones, and all very negative.
    n_seq, n_query = 6, 3
    for flags, sign in (([0] * (n_seq - 2) + [1, 1], 1), ([1] * n_seq, -1)):
        rng = cases.rng("large", sign)
        q, k = large_scores.draw(rng, 2, flags, sign)
        q, v = q[:, -n_query:].repeat(2, axis=0), rng.standard_normal(k.shape).astype(np.float32)
        layer, wrong = student.layers(student.cache_with([(k, v)]), 1)[0], _wrong_attention(FINITE_MASKS, q, k, v)
        expect(q, layer, k, v, f"scores around {large_scores.LARGE} in size", expect_close, wrong)


def _wrong_attention(names, q, *kv):
    """The attention of these variants, on the keys and values that belong to each head of queries."""
    variants, each = {**ATTENTION, **MASK_TOO_SMALL}, [llama.for_each_query_head(a, len(q)) for a in kv]
    return [(bug, lambda name=name: variants[name](q, *each)) for bug, name in names]


def _other_heads(q, keys, values):
    n_head = len(q)
    choices = (own.HEADS_IN_TURN, np.arange(n_head) % len(keys)), (own.FIRST_KEY_HEAD, np.zeros(n_head, int))
    return [(bug, lambda heads=heads: llama.attend(q, keys[heads], values[heads])) for bug, heads in choices]


@check("swiglu gates one half by the other", points=1, watches=("swiglu",))
def gated_mlp(student, cases):
    """swiglu is down_proj of silu(gate_proj of x) times up_proj of x, for elements of any size."""
    for model in llamas(cases):
        mlp = model.weights.blocks[1].mlp
        matrices = [m.astype(np.float64) for m in (mlp.gate_proj, mlp.up_proj, mlp.down_proj)]
        for size in (1.0, 300.0):
            x = cases.rng("x", model.config.n_embd).standard_normal((5, model.config.n_embd)).astype(np.float32) * size
            x = x.astype(np.float32)
            expect_close(
                student.array("swiglu", x, model.part("blocks.1.mlp")) / size**2,
                llama.swiglu(x.astype(np.float64), *matrices) / size**2, name="swiglu", axes=("row", "element"),
                where=f"for rows of size {size:g} on {model.about}", atol=1e-4, rtol=1e-3,
                suspects=[(bug, lambda f=f, x=x, s=size: f(x) / s**2) for bug, f in _wrong_gates(*matrices)],
            )  # fmt: skip


def _wrong_gates(gate, up, down):
    return [
        (own.GATE_UP_SWAPPED, lambda x: llama.swiglu(x, up, gate, down)),
        (own.GATE_GELU, lambda x: (gelu(x @ gate.T) * (x @ up.T)) @ down.T),
        (own.GATE_SIGMOID, lambda x: (0.5 * (1 + np.tanh(x @ gate.T / 2)) * (x @ up.T)) @ down.T),
        (own.GATE_MISSING, lambda x: (x @ gate.T * (x @ up.T)) @ down.T),
        (own.UP_MISSING, lambda x: llama.silu(x @ gate.T) @ down.T),
    ]
