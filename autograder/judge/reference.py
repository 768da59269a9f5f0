"""GPT-2 in float64, with which every check compares.

Written from the model's definition (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners":
pre-norm blocks, tanh GELU, learned positions, output tied to wte) and independent of solutions/. It favors obvious
correctness over speed, and keeps its own float64 copy of the weights. The common mistakes are in variants.py.
"""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

KV = list[tuple[np.ndarray, np.ndarray]]  # one (keys, values) per layer, each [n_head, n_seq, head_dim]
REMEMBERED_TOKENS = 2048  # in all passes that a Reference keeps; about 60 MB for the trained model


@dataclass(frozen=True)
class Run:
    """The logits [n_seq, n_vocab] of a pass, and the K/V of all its positions, the past ones included."""

    logits: np.ndarray
    kv: KV


def gelu(x: np.ndarray) -> np.ndarray:
    """GELU in GPT-2's tanh form (Hendrycks and Gimpel 2016)."""
    x = np.asarray(x, np.float64)
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """Layer normalization over the last axis (Ba et al. 2016)."""
    x = np.asarray(x, np.float64)
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + eps) * weight + bias


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """exp(x) over its sum along an axis; the largest x is subtracted first, so nothing overflows."""
    e = x - x.max(axis=axis, keepdims=True)
    np.exp(e, out=e)  # in place: for a long prompt, memory traffic dominates the time
    e /= e.sum(axis=axis, keepdims=True)
    return e


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Causal attention [n_head, n_query, head_dim] of the last n_query of n_seq positions; k and v have all of them."""
    q, k, v = (np.asarray(a, np.float64) for a in (q, k, v))
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    n_query, n_seq = scores.shape[1:]
    return softmax(np.where(np.tri(n_query, n_seq, n_seq - n_query, dtype=bool), scores, -np.inf)) @ v


def split_heads(qkv: np.ndarray, n_head: int) -> np.ndarray:
    """Split [n_seq, 3 * n_embd] into queries, keys and values, each [n_head, n_seq, head_dim]."""
    return qkv.reshape(len(qkv), 3, n_head, -1).transpose(1, 2, 0, 3)


def merge_heads(heads: np.ndarray) -> np.ndarray:
    """Merge [n_head, n_seq, head_dim] into [n_seq, n_embd]."""
    return heads.swapaxes(0, 1).reshape(heads.shape[1], -1)


def pre_norm(x, attend, mlp, ln_1, ln_2):
    """A block: x [n_seq, n_embd] and its four parts, functions of such an array."""
    x = x + attend(ln_1(x))
    return x + mlp(ln_2(x))


def next_token_logits(x, ln_f, wte):
    """The logits from the last block's output."""
    return ln_f(x) @ wte.T


class Reference:
    """One model's weights in float64, and passes over it, which are remembered."""

    causal = True  # a later token changes nothing of an earlier one, so a pass answers for all its beginnings

    gelu, layer_norm, attention, split_heads, merge_heads, block_of, logits_of = map(
        staticmethod, (gelu, layer_norm, attention, split_heads, merge_heads, pre_norm, next_token_logits)
    )

    def __init__(self, weights):
        self.config = weights.config
        self.weights = _in_float64(weights)
        self._runs: OrderedDict[tuple, Run] = OrderedDict()

    def forget(self) -> None:
        """Forget the remembered passes."""
        self._runs.clear()

    def run(self, token_ids: Sequence[int], *, past: KV | None = None, positions: Sequence[int] | None = None) -> Run:
        """One pass over token_ids, continuing `past`; `positions` default to those after the past."""
        start = past[0][0].shape[1] if past else 0
        positions = list(range(start, start + len(token_ids))) if positions is None else list(positions)
        key = (tuple(token_ids), tuple(positions))
        if past is None and (known := self._remembered(*key)):
            return known
        x = self.weights.wte[list(token_ids)] + self.weights.wpe[positions]
        kv: KV = []
        for i, block in enumerate(self.weights.blocks):
            x, layer = self._block(x, block, past[i] if past else None)
            kv.append(layer)
        run = Run(self.logits_of(x, self._norm(self.weights.ln_f), self.weights.wte), kv)
        if past is None:
            self._runs[key] = run
            while sum(len(ids) for ids, _ in self._runs) > REMEMBERED_TOKENS and len(self._runs) > 1:
                self._runs.popitem(last=False)
        return run

    def _remembered(self, ids: tuple[int, ...], positions: tuple[int, ...]) -> Run | None:
        """An earlier pass over these ids, or the beginning of one over more."""
        if (ids, positions) in self._runs:
            self._runs.move_to_end((ids, positions))
            return self._runs[ids, positions]
        n = len(ids)
        for (more_ids, more_positions), run in self._runs.items() if self.causal else ():
            if more_ids[:n] == ids and more_positions[:n] == positions:
                return Run(run.logits[:n], part_of_rows(run.kv, 0, n))
        return None

    def logits(self, token_ids: Sequence[int], **options) -> np.ndarray:
        """All logits [n_seq, n_vocab] of a pass."""
        return self.run(token_ids, **options).logits

    def greedy(self, prompt_ids: Sequence[int], n_new: int) -> tuple[list[int], list[float]]:
        """The n_new greedy next ids, and at each step the gap between the best logit and the second best."""
        run = self.run(prompt_ids)
        new_ids, gaps = [], []
        while len(new_ids) < n_new:
            second, best = np.sort(run.logits[-1])[-2:]
            new_ids.append(int(run.logits[-1].argmax()))
            gaps.append(float(best - second))
            if len(new_ids) < n_new:
                run = self.run([new_ids[-1]], past=run.kv)
        return new_ids, gaps

    def attention_layer(self, x: np.ndarray, layer: int) -> np.ndarray:
        """The output of blocks[layer].attn for a normalized x [n_seq, n_embd]."""
        return self._attend(np.asarray(x, np.float64), self.weights.blocks[layer].attn, None)[0]

    def block(self, x: np.ndarray, layer: int) -> np.ndarray:
        """The output of blocks[layer] for x [n_seq, n_embd]."""
        return self._block(np.asarray(x, np.float64), self.weights.blocks[layer], None)[0]

    def _block(self, x, block, past):
        kv = None

        def attend(x):
            nonlocal kv
            out, kv = self._attend(x, block.attn, past)
            return out

        def mlp(x):
            return _linear(self.gelu(_linear(x, block.mlp.c_fc)), block.mlp.c_proj)

        return self.block_of(x, attend, mlp, self._norm(block.ln_1), self._norm(block.ln_2)), kv

    def _attend(self, x, attn, past):
        q, k, v = self.split_heads(_linear(x, attn.c_attn), self.config.n_head)
        if past is not None:
            k, v = np.concatenate([past[0], k], axis=1), np.concatenate([past[1], v], axis=1)
        return _linear(self.merge_heads(self.attention(q, k, v)), attn.c_proj), (k, v)

    def _norm(self, norm):
        return lambda x: self.layer_norm(x, norm.weight, norm.bias)


def part_of_rows(kv: KV, begin: int, end: int) -> KV:
    """Rows begin to end - 1 of every layer."""
    return [(k[:, begin:end], v[:, begin:end]) for k, v in kv]


def _linear(x, linear):
    return x @ linear.weight + linear.bias


def _in_float64(node):
    """A copy of a tree of weights as plain objects, with every array in float64."""
    if isinstance(node, np.ndarray):
        return np.array(node, np.float64)
    if isinstance(node, tuple):
        return tuple(map(_in_float64, node))
    if not dataclasses.is_dataclass(node):
        return node
    return SimpleNamespace(**{field.name: _in_float64(getattr(node, field.name)) for field in dataclasses.fields(node)})
