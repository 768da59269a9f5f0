"""The mistakes that the checks of the forward pass recognize by their numbers."""

from __future__ import annotations

from autograder.judge import bugs
from autograder.judge.variants import MASK_TOO_SMALL as MASKS_TOO_SMALL
from autograder.judge.variants import Suspect
from autograder.stages.forward_pass import bugs as own

ATTENTION: tuple[Suspect, ...] = (
    (bugs.MASK_SEES_NEXT, "mask-sees-next"),  # with two rows it is the same as no mask
    (bugs.NO_CAUSAL_MASK, "no-causal-mask"),
    (own.MASK_STRICT, "mask-strict"),
    (own.MASK_REVERSED, "mask-reversed"),
    (own.MASK_ZEROS, "mask-zeros"),
    (own.SOFTMAX_QUERIES, "softmax-over-queries"),
    (bugs.KEYS_VALUES_SWAPPED, "qkv-qvk"),
    *((bugs.QKV_ORDER, f"qkv-{order}") for order in ("kqv", "kvq", "vqk", "vkq")),
    (bugs.HEADS_SPLIT_WRONG, "heads-split-wrong"),
    (bugs.HEADS_MERGED_WRONG, "heads-merged-wrong"),
    (bugs.SCORES_UNSCALED, "scores-unscaled"),
    (bugs.SCORES_SCALED_BY_EMBD, "scores-scaled-by-n-embd"),
    (own.SCORES_NO_ROOT, "scores-no-root"),
    (own.OUTPUT_MISSING, "no-output-projection"),
    (own.BIASES_MISSING, "biases-missing"),
)
HIDDEN_ROWS: tuple[Suspect, ...] = (  # a query that sees no key has a row of NaN
    (own.MASK_STRICT, "mask-strict-nan"),
    (own.MASK_REVERSED, "mask-inverted"),
)
MASK_TOO_SMALL: tuple[Suspect, ...] = tuple((own.MASK_TOO_SMALL, name) for name in MASKS_TOO_SMALL)
BLOCK: tuple[Suspect, ...] = (
    (own.POST_NORM, "post-norm"),
    (bugs.NORMED_RESIDUAL, "normed-residual"),
    (bugs.NORMED_RESIDUAL, "normed-attention"),
    (bugs.NO_RESIDUAL_ATTENTION, "no-residual-attention"),
    (bugs.NO_RESIDUAL_MLP, "no-residual-mlp"),
    (bugs.NO_RESIDUAL, "no-residual"),
    (own.NO_LN_1, "no-ln-1"),
    (own.NO_LN_2, "no-ln-2"),
    (bugs.LN_1_TWICE, "ln-1-twice"),
    (own.GELU_PLACE, "gelu-missing"),
    (own.GELU_PLACE, "gelu-last"),
    (own.NORM_SAMPLE, "norm-sample-variance"),
    (own.NORM_AXIS, "norm-whole"),
    *ATTENTION,
)
FORWARD: tuple[Suspect, ...] = (
    (bugs.POSITIONS_MISSING, "positions-missing"),
    (bugs.NO_FINAL_LAYER_NORM, "no-final-layer-norm"),
    (own.PROBABILITIES, "probabilities"),
    (bugs.LAYERS_AS_TEXT, "layers-sorted-as-text"),
    *BLOCK,
)
