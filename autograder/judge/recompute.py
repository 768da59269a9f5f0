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
    embedding: str = "right"  # "right", "scaled" (wte times sqrt(n_embd))
    mask: str = "causal"  # "causal", "none", "no-offset", "strict", "next", "reversed", "zeros", "after-softmax"
    hidden_score: float = -math.inf  # what a hidden key's score becomes
    hidden_penalty: float | None = None  # what is added to a hidden key's score instead
    softmax: str = "keys"  # "keys", "queries": the axis it runs over
    qkv: str = "qkv"  # the order in which c_attn's three parts are taken
    split: str = "right"  # "right", "reshape", "interleaved" (each head's q, k, v side by side), "strided"
    merge: str = "right"  # "right", "reshape"
    scale: str = "head_dim"  # "head_dim", "none", "n_embd", "n_head", "n_seq", "no-root" (head_dim itself)
    heads: str = "n_head"  # "n_head", "one"
    output: bool = True  # whether c_proj follows the heads
    gelu: str = "tanh"  # "tanh", "exact", "sigmoid", "relu", "none", "double"
    eps: float = 1e-5
    norm: str = "right"  # see layer_norm
    final_norm: bool = True
    order: str = "pre-norm"  # see Reference._block
    residual: str = "both"  # "both", "no-attention", "no-mlp", "none", "input-only" (the MLP is added to the input)
    biases: bool = True
    missing_bias: str = ""  # the one left out: "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"
    head: str = "tied"  # "tied", "probabilities" (softmax of the logits)
    layers_as_text: bool = False  # layer 10 before layer 2
    blocks: str = "all"  # "all", "not-last", "first-only", "last-only", "reversed"

    def with_(self, **changes) -> Mistakes:
        return replace(self, **changes)


RIGHT = Mistakes()
REMEMBERED_TOKENS = 2048  # of all passes a Reference keeps; about 60 MB for the trained model


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

    def forget(self) -> None:
        """Let go of the passes that are remembered."""
        self._runs.clear()

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
        if mistakes.embedding == "scaled":
            x = x * math.sqrt(self.config.n_embd)
        if mistakes.positions == "right":
            x = x + self._array(self._weights.wpe)[positions]
        blocks = list(range(self.config.n_layer))
        if mistakes.layers_as_text:
            blocks.sort(key=str)
        if mistakes.blocks != "all":
            blocks = {
                "not-last": blocks[:-1],
                "first-only": blocks[:1],
                "last-only": blocks[-1:],
                "reversed": blocks[::-1],
            }[mistakes.blocks]
        kv: KV = []
        for i, index in enumerate(blocks):
            x, layer = self._block(x, self._weights.blocks[index], past[i] if past else None, mistakes)
            kv.append(layer)
        if mistakes.final_norm:
            x = self._norm(x, self._weights.ln_f, mistakes)
        logits = x @ self._array(self._weights.wte).T
        run = Run(softmax(logits) if mistakes.head == "probabilities" else logits, kv)
        if key is not None:
            self._runs[key] = run
            while sum(len(token_ids) for token_ids, *_ in self._runs) > REMEMBERED_TOKENS and len(self._runs) > 1:
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

    def attention_layer(self, x: np.ndarray, layer: int, *, mistakes: Mistakes = RIGHT) -> np.ndarray:
        """What blocks[layer].attn makes of x [n_seq, n_embd], which is normalized already."""
        return self._attention(np.asarray(x, np.float64), self._weights.blocks[layer].attn, None, mistakes)[0]

    def block(self, x: np.ndarray, layer: int, *, mistakes: Mistakes = RIGHT) -> np.ndarray:
        """What blocks[layer] makes of x [n_seq, n_embd]."""
        return self._block(np.asarray(x, np.float64), self._weights.blocks[layer], None, mistakes)[0]

    def _linear(self, x, linear, mistakes, name=None):
        y = x @ self._array(linear.weight)
        return y + self._array(linear.bias) if mistakes.biases and mistakes.missing_bias != name else y

    def _norm(self, x, norm, mistakes):
        return layer_norm(x, self._array(norm.weight), self._array(norm.bias), mistakes.eps, mistakes.norm)

    def _block(self, x, block, past, mistakes):
        """mistakes.order: "pre-norm" (right), "post-norm", "parallel" (attention and MLP read the same x),
        "normed-residual" (added to the normalized x), "normed-attention" (the same of attention alone), "no-ln_1",
        "no-ln_2", "ln_1-twice" (ln_2 never used)."""
        if mistakes.order == "post-norm":
            attended, kv = self._attention(x, block.attn, past, mistakes)
            x = self._norm(x + attended, block.ln_1, mistakes)
            return self._norm(x + self._mlp(x, block.mlp, mistakes), block.ln_2, mistakes), kv
        normed = x if mistakes.order == "no-ln_1" else self._norm(x, block.ln_1, mistakes)
        attended, kv = self._attention(normed, block.attn, past, mistakes)
        if mistakes.order in ("normed-residual", "normed-attention"):
            x = normed
        middle = attended if mistakes.residual in ("no-attention", "none") else x + attended
        mlp_input = x if mistakes.order == "parallel" else middle
        if mistakes.order != "no-ln_2":
            ln_2 = block.ln_1 if mistakes.order == "ln_1-twice" else block.ln_2
            mlp_input = self._norm(mlp_input, ln_2, mistakes)
        if mistakes.order == "normed-residual":
            middle = mlp_input
        out = self._mlp(mlp_input, block.mlp, mistakes)
        if mistakes.residual in ("no-mlp", "none"):
            return out, kv
        return (x if mistakes.residual == "input-only" else middle) + out, kv

    def _mlp(self, x, mlp, mistakes):
        hidden = gelu(self._linear(x, mlp.c_fc, mistakes, "mlp.c_fc"), mistakes.gelu)
        return self._linear(hidden, mlp.c_proj, mistakes, "mlp.c_proj")

    def _attention(self, x, attn, past, mistakes):
        n_new, n_embd = x.shape
        n_head = self.config.n_head if mistakes.heads == "n_head" else 1
        qkv = self._linear(x, attn.c_attn, mistakes, "attn.c_attn")
        parts = dict(zip(mistakes.qkv, np.split(qkv, 3, axis=-1), strict=True))
        if mistakes.split == "right":
            q, k, v = (parts[p].reshape(n_new, n_head, -1).swapaxes(0, 1) for p in "qkv")
        elif mistakes.split == "strided":  # head h has every n_head-th feature
            q, k, v = (parts[p].reshape(n_new, -1, n_head).transpose(2, 0, 1) for p in "qkv")
        elif mistakes.split == "interleaved":
            q, k, v = np.split(qkv.reshape(n_new, n_head, -1).swapaxes(0, 1), 3, axis=-1)
        else:
            q, k, v = (parts[p].reshape(n_head, n_new, -1) for p in "qkv")
        if past is not None:
            k, v = np.concatenate([past[0], k], axis=1), np.concatenate([past[1], v], axis=1)
        heads = attention(q, k, v, mistakes)
        merged = (heads.swapaxes(0, 1) if mistakes.merge == "right" else heads).reshape(n_new, n_embd)
        return self._linear(merged, attn.c_proj, mistakes, "attn.c_proj") if mistakes.output else merged, (k, v)


def part_of_rows(kv: KV, begin: int, end: int) -> KV:
    """Rows begin to end - 1 of every layer."""
    return [(k[:, begin:end], v[:, begin:end]) for k, v in kv]


def recompute(token_ids: Sequence[int], weights) -> np.ndarray:
    """Logits [n_seq, n_vocab] in float64, of the token that follows each position; the judge of all checks."""
    return Reference(weights).logits(token_ids)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mistakes: Mistakes = RIGHT) -> np.ndarray:
    """Attention of the last n_query of n_seq positions; q is [n_head, n_query, head_dim], k and v are full."""
    n_head, n_query, head_dim = q.shape
    n_seq = k.shape[1]
    scale = {
        "head_dim": math.sqrt(head_dim),
        "none": 1.0,
        "n_embd": math.sqrt(n_head * head_dim),
        "n_head": math.sqrt(n_head),
        "n_seq": math.sqrt(n_seq),
        "no-root": head_dim,
    }[mistakes.scale]
    scores = q @ k.swapaxes(1, 2) / scale  # [n_head, n_query, n_seq]
    query = np.arange(n_query)[:, None] + (0 if mistakes.mask == "no-offset" else n_seq - n_query)
    hidden = np.arange(n_seq)[None, :] > query
    if mistakes.mask == "strict":  # a token does not see itself; the first one has nothing else
        hidden = (np.arange(n_seq)[None, :] >= query) & (np.arange(n_seq) > 0)
    if mistakes.mask == "next":  # a token sees itself and the one after it
        hidden = np.arange(n_seq)[None, :] > query + 1
    if mistakes.mask == "reversed":  # a token sees itself and the later ones
        hidden = np.arange(n_seq)[None, :] < query
    if mistakes.mask not in ("none", "after-softmax"):
        instead = 0.0 if mistakes.mask == "zeros" else mistakes.hidden_score
        if mistakes.hidden_penalty is not None:
            instead = scores + mistakes.hidden_penalty
        scores = np.where(hidden, instead, scores)
    shares = softmax(scores, axis=-1 if mistakes.softmax == "keys" else -2)
    if mistakes.mask == "after-softmax":  # the rows no longer add up to 1
        shares = np.where(hidden, 0.0, shares)
    return shares @ v


def softmax(x, axis=-1):
    """exp(x) as shares of its sum over an axis; the largest x is taken off first, so nothing overflows."""
    shares = np.exp(x - x.max(axis=axis, keepdims=True))
    return shares / shares.sum(axis=axis, keepdims=True)


def layer_norm(x, weight, bias, eps=1e-5, kind="right"):
    """Layer normalization over the last axis, or a common wrong one.

    kind: "right", "sample" (n - 1), "eps-outside" (of the root), "no-root" (divided by the variance), "no-mean" (not
    centered), "whole" (one mean and variance for all of x), "no-weight", "no-bias".
    """
    x = np.asarray(x, np.float64)
    axes = None if kind == "whole" else -1
    centered = x if kind == "no-mean" else x - x.mean(axis=axes, keepdims=True)
    variance = (centered**2).mean(axis=axes, keepdims=True)
    if kind == "sample":
        variance = variance * x.shape[-1] / (x.shape[-1] - 1)
    scale = np.sqrt(variance) + eps if kind == "eps-outside" else np.sqrt(variance + eps)
    y = centered / (variance + eps if kind == "no-root" else scale)
    if kind != "no-weight":
        y = y * np.asarray(weight, np.float64)
    return y if kind == "no-bias" else y + np.asarray(bias, np.float64)


def gelu(x, kind="tanh"):
    """GELU in GPT-2's tanh form (Hendrycks and Gimpel 2016), or a function often taken for it."""
    x = np.asarray(x, np.float64)
    if kind in ("tanh", "double"):
        return (0.5 if kind == "tanh" else 1.0) * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    if kind == "exact":
        return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))
    if kind == "sigmoid":
        return x / (1 + np.exp(-1.702 * x))
    if kind == "none":
        return x
    return np.maximum(x, 0)
