"""GPT-2 in float64: the reference every check compares with, and the same model with one mistake at a time.

Written from the model's definition (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners":
pre-norm blocks, tanh GELU, learned positions, output tied to wte) and independent of solutions/. It favors being
obviously right over speed, and keeps its own float64 copy of the weights.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

KV = list[tuple[np.ndarray, np.ndarray]]  # one (keys, values) a layer, each [n_head, n_seq, head_dim]


@dataclass(frozen=True)
class Mistakes:
    """What a wrong implementation does otherwise. The default is the right model."""

    positions: str = "right"  # "right", "missing"
    mask: str = "causal"  # "causal", "none", "no-offset", "strict"
    qkv: str = "qkv"  # the order in which c_attn's three parts are taken
    split: str = "right"  # "right", "reshape"
    merge: str = "right"  # "right", "reshape"
    scale: str = "head_dim"  # "head_dim", "none", "n_embd"
    gelu: str = "tanh"  # "tanh", "exact", "sigmoid", "relu"
    eps: float = 1e-5
    norm: str = "right"  # "right", "sample" (n - 1), "eps-outside", "no-bias", "no-weight"
    final_norm: bool = True
    order: str = "pre-norm"  # "pre-norm", "post-norm", "parallel"
    residual: str = "both"  # "both", "no-attention", "no-mlp"
    biases: bool = True
    head: str = "tied"  # "tied"
    layers_as_text: bool = False  # layer 10 before layer 2

    def with_(self, **changes) -> Mistakes:
        return replace(self, **changes)


RIGHT = Mistakes()


@dataclass(frozen=True)
class Run:
    """The logits [n_seq, n_vocab] of a pass, and the K/V of all its positions, the past ones included."""

    logits: np.ndarray
    kv: KV


class Reference:
    """One model's weights in float64, and passes over it."""

    def __init__(self, weights):
        self.config = weights.config
        self._weights = weights
        self._float64: dict[int, np.ndarray] = {}
        self._runs: OrderedDict[tuple, Run] = OrderedDict()

    def _array(self, array: np.ndarray) -> np.ndarray:
        """The float64 copy of one weight, made once."""
        key = id(array)
        if key not in self._float64:
            self._float64[key] = np.array(array, dtype=np.float64)
        return self._float64[key]

    def run(
        self,
        token_ids: Sequence[int],
        *,
        past: KV | None = None,
        positions: Sequence[int] | None = None,
        mistakes: Mistakes = RIGHT,
    ) -> Run:
        """One pass over token_ids, continuing `past`; `positions` default to those after the past."""
        start = past[0][0].shape[1] if past else 0
        positions = list(range(start, start + len(token_ids))) if positions is None else list(positions)
        key = (tuple(token_ids), tuple(positions), mistakes) if past is None else None
        if key in self._runs:
            self._runs.move_to_end(key)
            return self._runs[key]
        x = self._array(self._weights.wte)[list(token_ids)]
        if mistakes.positions == "right":
            x = x + self._array(self._weights.wpe)[positions]
        blocks = list(range(self.config.n_layer))
        if mistakes.layers_as_text:
            blocks.sort(key=str)
        kv: KV = []
        for i, index in enumerate(blocks):
            x, layer = self._block(x, self._weights.blocks[index], past[i] if past else None, mistakes)
            kv.append(layer)
        if mistakes.final_norm:
            x = self._norm(x, self._weights.ln_f, mistakes)
        run = Run(x @ self._array(self._weights.wte).T, kv)
        if key is not None:
            self._runs[key] = run
            while len(self._runs) > 64:
                self._runs.popitem(last=False)
        return run

    def logits(self, token_ids: Sequence[int], **options) -> np.ndarray:
        """All logits [n_seq, n_vocab] of a pass."""
        return self.run(token_ids, **options).logits

    def greedy(
        self, prompt_ids: Sequence[int], n_new: int, *, mistakes: Mistakes = RIGHT
    ) -> tuple[list[int], list[float]]:
        """The n_new greedy next ids, and at each step the gap between the best logit and the second best."""
        run = self.run(prompt_ids, mistakes=mistakes)
        new_ids, gaps = [], []
        while len(new_ids) < n_new:
            second, best = np.sort(run.logits[-1])[-2:]
            new_ids.append(int(run.logits[-1].argmax()))
            gaps.append(float(best - second))
            if len(new_ids) < n_new:
                run = self.run([new_ids[-1]], past=run.kv, mistakes=mistakes)
        return new_ids, gaps

    def _linear(self, x, linear, mistakes):
        y = x @ self._array(linear.weight)
        return y + self._array(linear.bias) if mistakes.biases else y

    def _norm(self, x, norm, mistakes):
        return layer_norm(x, self._array(norm.weight), self._array(norm.bias), mistakes.eps, mistakes.norm)

    def _block(self, x, block, past, mistakes):
        if mistakes.order == "post-norm":
            attended, kv = self._attention(x, block.attn, past, mistakes)
            x = self._norm(x + attended, block.ln_1, mistakes)
            return self._norm(x + self._mlp(x, block.mlp, mistakes), block.ln_2, mistakes), kv
        attended, kv = self._attention(self._norm(x, block.ln_1, mistakes), block.attn, past, mistakes)
        middle = attended if mistakes.residual == "no-attention" else x + attended
        mlp_input = x if mistakes.order == "parallel" else middle
        out = self._mlp(self._norm(mlp_input, block.ln_2, mistakes), block.mlp, mistakes)
        return (out if mistakes.residual == "no-mlp" else middle + out), kv

    def _mlp(self, x, mlp, mistakes):
        return self._linear(gelu(self._linear(x, mlp.c_fc, mistakes), mistakes.gelu), mlp.c_proj, mistakes)

    def _attention(self, x, attn, past, mistakes):
        n_new, n_embd = x.shape
        n_head = self.config.n_head
        parts = dict(zip(mistakes.qkv, np.split(self._linear(x, attn.c_attn, mistakes), 3, axis=-1), strict=True))
        if mistakes.split == "right":
            q, k, v = (parts[p].reshape(n_new, n_head, -1).swapaxes(0, 1) for p in "qkv")
        else:
            q, k, v = (parts[p].reshape(n_head, n_new, -1) for p in "qkv")
        if past is not None:
            k, v = np.concatenate([past[0], k], axis=1), np.concatenate([past[1], v], axis=1)
        heads = attention(q, k, v, mistakes)
        merged = (heads.swapaxes(0, 1) if mistakes.merge == "right" else heads).reshape(n_new, n_embd)
        return self._linear(merged, attn.c_proj, mistakes), (k, v)


def recompute(token_ids: Sequence[int], weights) -> np.ndarray:
    """Logits [n_seq, n_vocab] in float64, of the token that follows each position; the judge of all checks."""
    return Reference(weights).logits(token_ids)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mistakes: Mistakes = RIGHT) -> np.ndarray:
    """Attention of the last n_query of n_seq positions; q is [n_head, n_query, head_dim], k and v are full."""
    n_head, n_query, head_dim = q.shape
    n_seq = k.shape[1]
    scale = {"head_dim": math.sqrt(head_dim), "none": 1.0, "n_embd": math.sqrt(n_head * head_dim)}[mistakes.scale]
    scores = q @ k.swapaxes(1, 2) / scale  # [n_head, n_query, n_seq]
    query = np.arange(n_query)[:, None] + (0 if mistakes.mask == "no-offset" else n_seq - n_query)
    hidden = np.arange(n_seq)[None, :] > query
    if mistakes.mask == "strict":  # a token does not see itself; the first one has nothing else
        hidden = (np.arange(n_seq)[None, :] >= query) & (query > 0)
    if mistakes.mask != "none":
        scores = np.where(hidden, -np.inf, scores)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ v


def layer_norm(x, weight, bias, eps=1e-5, kind="right"):
    """Layer normalization over the last axis, or a common wrong one (see Mistakes.norm)."""
    x = np.asarray(x, np.float64)
    centered = x - x.mean(axis=-1, keepdims=True)
    count = x.shape[-1] - (1 if kind == "sample" else 0)
    variance = (centered**2).sum(axis=-1, keepdims=True) / count
    scale = np.sqrt(variance) + eps if kind == "eps-outside" else np.sqrt(variance + eps)
    y = centered / scale
    if kind != "no-weight":
        y = y * np.asarray(weight, np.float64)
    return y if kind == "no-bias" else y + np.asarray(bias, np.float64)


def gelu(x, kind="tanh"):
    """GELU in GPT-2's tanh form (Hendrycks and Gimpel 2016), or a function often taken for it."""
    x = np.asarray(x, np.float64)
    if kind == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    if kind == "exact":
        return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))
    if kind == "sigmoid":
        return x / (1 + np.exp(-1.702 * x))
    return np.maximum(x, 0)
