"""The Llama architecture in float64, to compare with.

Written from the definitions: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models" (the block);
Zhang and Sennrich 2019, "Root Mean Square Layer Normalization"; Su et al. 2021, "RoFormer" (rotary positions);
Ainslie et al. 2023, "GQA" (grouped heads); Shazeer 2020, "GLU Variants Improve Transformer" (SwiGLU).
Independent of solutions/. It favors being obviously right over speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autograder.judge.reference import KV, attention
from autograder.toolkit.chat.weights import LlamaWeights


@dataclass(frozen=True)
class Run:
    """A pass: logits [n_seq, n_vocab], the K/V of all positions, past ones included, and x [n_seq, n_embd], what the
    last norm gets.
    """

    logits: np.ndarray
    kv: KV
    x: np.ndarray


def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """x: [..., n_embd]"""
    x = np.asarray(x, np.float64)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


def rotate(x: np.ndarray, positions: Sequence[int], theta: float) -> np.ndarray:
    """Elements i and i + d / 2 of [n_head, n_seq, d], as one complex number, turned by position * theta^(-2i / d)."""
    half = x.shape[-1] // 2
    angles = np.outer(positions, theta ** (-np.arange(half) / half))  # [n_seq, half]
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def attend(q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Causal attention of [n_head, n_query, head_dim], the last n_query positions, on [n_kv_head, n_seq, head_dim]."""
    kv = [for_each_query_head(a, len(q)) for a in (keys, values)]
    heads = range(len(q))  # one at a time: the scores of a long prompt take much memory
    return np.concatenate([attention(*(a[h : h + 1] for a in (q, *kv))) for h in heads])


def for_each_query_head(rows: np.ndarray, n_head: int) -> np.ndarray:
    """Keys or values [n_kv_head, n_seq, head_dim] as [n_head, n_seq, head_dim]: neighbors share them."""
    return rows.repeat(n_head // len(rows), axis=0)


def silu(z: np.ndarray) -> np.ndarray:
    """z / (1 + exp(-z))"""
    return z * 0.5 * (1 + np.tanh(z / 2))  # which never overflows


def swiglu(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    """x: [..., n_embd]"""
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


class LlamaReference:
    """One model's weights, and passes over them in float64."""

    def __init__(self, weights: LlamaWeights):
        self.config = weights.config
        self._weights = weights

    def run(self, token_ids: Sequence[int], past: KV | None = None, positions: Sequence[int] | None = None) -> Run:
        """One pass over token_ids, continuing `past`; `positions` default to those after the past."""
        c, w = self.config, self._weights
        start = past[0][0].shape[1] if past else 0
        positions = range(start, start + len(token_ids)) if positions is None else positions
        x = w.wte[list(token_ids)].astype(np.float64)
        kv: KV = []
        for i, block in enumerate(w.blocks):
            normed = rms_norm(x, block.norm_1, c.norm_eps)
            q, k, v = (
                (normed @ matrix.T.astype(np.float64)).reshape(len(x), -1, c.head_dim).swapaxes(0, 1)
                for matrix in (block.attn.q_proj, block.attn.k_proj, block.attn.v_proj)
            )
            q, k = rotate(q, positions, c.rope_theta), rotate(k, positions, c.rope_theta)
            if past:
                k, v = (np.concatenate(pair, axis=1) for pair in zip(past[i], (k, v), strict=True))
            kv.append((k, v))
            heads = attend(q, k, v).swapaxes(0, 1).reshape(len(x), -1)
            x = x + heads @ block.attn.o_proj.T.astype(np.float64)
            mlp = (m.astype(np.float64) for m in (block.mlp.gate_proj, block.mlp.up_proj, block.mlp.down_proj))
            x = x + swiglu(rms_norm(x, block.norm_2, c.norm_eps), *mlp)
        return Run(rms_norm(x, w.norm_f, c.norm_eps) @ w.head.T.astype(np.float64), kv, x)

    def logits(self, token_ids: Sequence[int]) -> np.ndarray:
        """[n_seq, n_vocab]"""
        return self.run(token_ids).logits
