"""The bugs that the checks of forward-pass name, as constants, and the variants of the reference that have them.

Those of attention are named in kv-cache as well.
"""

from __future__ import annotations

from autograder.judge import variants
from autograder.judge.bugs import read
from autograder.judge.variants import suspects

globals().update(read(__file__))

SCORES = suspects(  # of attention as a function of q, k and v
    *("mask-sees-next", "no-causal-mask"),  # in this order: with two rows, both are the same
    *("mask-strict", "mask-reversed", "mask-zeros", "softmax-over-queries"),
    *("scores-unscaled", "scores-scaled-by-n-embd", "scores-scaled-by-n-head", "scores-no-root"),
)
FINITE_MASKS = suspects(*variants.MASK_TOO_SMALL, bug="mask-too-small")
ATTENTION = (
    *SCORES,
    *suspects("qkv-qvk", bug="keys-values-swapped"),
    *suspects("qkv-kqv", "qkv-kvq", "qkv-vqk", "qkv-vkq", bug="qkv-order"),
    *suspects("qkv-by-heads", "qkv-by-features", bug="qkv-by-heads"),
    *suspects("heads-split-wrong"),
    *suspects(*(name for name in variants.HEADS if name.startswith("heads-merged")), bug="heads-merged-wrong"),
    *suspects("c-proj-missing"),
    *suspects("c-proj-bias-0", "c-proj-bias-2", bug="c-proj-bias"),
    *suspects("biases-missing"),
)
BLOCK = (
    *suspects("post-norm"),
    *suspects("normed-residual", "normed-attention", bug="normed-residual"),
    *suspects("no-residual-attention", "no-residual-mlp", "no-residual", bug="no-residual"),
    *suspects("no-ln-1", "no-ln-2", "ln-1-twice", "mlp-of-old-x", "norm-parts-exchanged"),
    *suspects("gelu-missing", "gelu-last", bug="gelu-place"),
    *ATTENTION,
)
FORWARD = (*suspects("positions-missing", "no-final-layer-norm", "final-norm-twice", "layers-sorted-as-text"), *BLOCK)
