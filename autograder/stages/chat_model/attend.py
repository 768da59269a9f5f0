"""The check of grouped_attend."""

from __future__ import annotations

import numpy as np

from autograder.judge import large_scores
from autograder.judge.bugs import MASK_WITHOUT_OFFSET, NO_CAUSAL_MASK, SCORES_UNSCALED
from autograder.judge.compare import Sweep, expect_close
from autograder.judge.framework import check
from autograder.judge.plurals import count
from autograder.judge.variants import MASK_TOO_SMALL
from autograder.stages.chat_model import bugs as own
from autograder.stages.chat_model import llama
from autograder.stages.chat_model.llama_cases import deep_llama, llamas
from autograder.stages.chat_model.shared import CLOSE
from autograder.stages.forward_pass.bugs import FINITE_MASKS


@check("Several heads of queries share one of keys", points=1, watches=("grouped_attend",))
def grouped_heads(student, cases):
    """Query head h attends, causally, to key head h // (n_head // n_kv_head)."""
    sweep = Sweep()
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
            cache = student.make_cache(model, [tuple(kv)] * c.n_layer)
            layers = student.attribute(cache, "layers", returns="handle")
            layer = student.method(layers, "__getitem__", 1, returns="handle")
            sweep.close(
                student.array("grouped_attend", q, layer), llama.attend(q.astype(np.float64), *kv),
                name="grouped_attend", axes=("head", "query", "element"), suspects=suspects(q, *kv),
                where=f"for {c.n_head} heads on {c.n_kv_head}, {asked} and {cached}", **CLOSE,
            )  # fmt: skip
    sweep.finish()
    expect_large(student, cases)


def expect_large(student, cases):
    """Scores around four million in size: hidden ones beside small visible ones, and all very negative."""
    n_seq, n_query = 6, 3
    for flags, sign in (([0] * (n_seq - 2) + [1, 1], 1), ([1] * n_seq, -1)):
        rng = cases.rng("large", sign)
        q, k = large_scores.draw(rng, 2, flags, sign)
        q, v = q[:, -n_query:].repeat(2, axis=0), rng.standard_normal(k.shape).astype(np.float32)
        layers = student.attribute(student.cache_with([(k, v)]), "layers", returns="handle")
        layer = student.method(layers, "__getitem__", 0, returns="handle")
        expect_close(
            student.array("grouped_attend", q, layer), llama.attend(q.astype(np.float64), k, v), name="grouped_attend",
            axes=("head", "query", "element"), where=f"for scores around {large_scores.LARGE} in size", **CLOSE,
            suspects=too_small(q, k.repeat(2, axis=0), v.repeat(2, axis=0)),
        )  # fmt: skip


def too_small(q, k, v):
    return [(bug, lambda name=name: MASK_TOO_SMALL[name](q, k, v)) for bug, name in FINITE_MASKS]


def suspects(q, keys, values):
    n_head, n_query, head_dim = q.shape
    n_seq = keys.shape[1]
    q = q.astype(np.float64)

    def masked(visible, scale=head_dim**0.5):
        k, v = (a.repeat(n_head // len(keys), axis=0) for a in (keys, values))
        scores = np.where(visible, q @ k.swapaxes(1, 2) / scale, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v

    def among(heads):
        return llama.attend(q, keys[heads], values[heads])

    return [
        (own.HEADS_IN_TURN, lambda: among(np.arange(n_head) % len(keys))),
        (own.FIRST_KEY_HEAD, lambda: among(np.zeros(n_head, int))),
        (NO_CAUSAL_MASK, lambda: masked(np.ones((n_query, n_seq), bool))),
        (MASK_WITHOUT_OFFSET, lambda: masked(np.tri(n_query, n_seq, dtype=bool))),
        (SCORES_UNSCALED, lambda: masked(np.tri(n_query, n_seq, n_seq - n_query, dtype=bool), 1.0)),
    ]
