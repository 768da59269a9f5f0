"""The wrong results of attend that the checks recognize."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import (
    HALF_PRECISION,
    KEYS_VALUES_SWAPPED,
    MASK_SEES_NEXT,
    MASK_WITHOUT_OFFSET,
    NO_CAUSAL_MASK,
    SCORES_SCALED_BY_EMBD,
    SCORES_UNSCALED,
)
from autograder.judge.reference import attention
from autograder.judge.variants import ATTENTION
from autograder.stages.kv_cache import bugs as own


def attend_suspects(q, k, v):
    """Common wrong results of attend, each with its bug."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    n_query, n_seq = q.shape[1], k.shape[1]
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2])
    seen = np.tri(n_query, n_seq, n_seq - n_query, dtype=bool)
    masked = np.where(seen, scores, -np.inf)
    peak = masked.max(axis=-1, keepdims=True)

    def mistake(name):
        return lambda: ATTENTION[name](q, k, v)

    def over_heads():
        shares = np.exp(masked - peak.max(axis=0, keepdims=True))
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(shares / shares.sum(axis=0, keepdims=True)) @ v

    return [
        *([(MASK_SEES_NEXT, mistake("mask-sees-next"))] if n_query > 2 else []),  # with two it is the same as no mask
        (NO_CAUSAL_MASK, mistake("no-causal-mask")),
        (MASK_WITHOUT_OFFSET, mistake("mask-without-offset")),
        (own.MASK_HIDES_SELF, mistake("mask-strict")),
        (own.MASK_AS_ZERO, mistake("mask-zeros")),
        (own.MASK_AFTER_SOFTMAX, mistake("mask-after-softmax")),
        (SCORES_UNSCALED, mistake("scores-unscaled")),
        (SCORES_SCALED_BY_EMBD, mistake("scores-scaled-by-n-embd")),
        (own.SCORES_NO_ROOT, mistake("scores-no-root")),
        (KEYS_VALUES_SWAPPED, mistake("keys-values-exchanged")),
        (HALF_PRECISION, lambda: attention(q, *(a.astype(np.float16).astype(np.float64) for a in (k, v)))),
        (own.NO_SOFTMAX, lambda: np.where(seen, scores, 0.0) @ v),
        (own.SOFTMAX_SUM, lambda: np.exp(masked) @ v),
        (own.SOFTMAX_SUM, lambda: np.exp(masked - peak) @ v),
        (own.SOFTMAX_AXIS, mistake("softmax-over-queries")),
        (own.SOFTMAX_OVER_HEADS, over_heads),
    ]
