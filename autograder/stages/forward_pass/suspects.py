"""The mistakes that the checks of the forward pass recognize by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autograder.judge import bugs
from autograder.judge.bugs import Bug
from autograder.judge.recompute import Mistakes
from autograder.stages.forward_pass import bugs as own

Suspect = tuple[Bug, Mistakes]


ATTENTION: tuple[Suspect, ...] = (
    (bugs.MASK_SEES_NEXT, Mistakes(mask="next")),  # with two rows it is the same as no mask
    (bugs.NO_CAUSAL_MASK, Mistakes(mask="none")),
    (own.MASK_STRICT, Mistakes(mask="strict")),
    (own.MASK_REVERSED, Mistakes(mask="reversed")),
    (own.MASK_ZEROS, Mistakes(mask="zeros")),
    (own.MASK_AFTER_SOFTMAX, Mistakes(mask="after-softmax")),
    (own.SOFTMAX_QUERIES, Mistakes(softmax="queries")),
    (bugs.KEYS_VALUES_SWAPPED, Mistakes(qkv="qvk")),
    *((bugs.QKV_ORDER, Mistakes(qkv=order)) for order in ("kqv", "kvq", "vqk", "vkq")),
    (own.HEADS_INTERLEAVED, Mistakes(split="interleaved")),
    (own.HEADS_STRIDED, Mistakes(split="strided")),
    (bugs.HEADS_SPLIT_WRONG, Mistakes(split="reshape")),
    (bugs.HEADS_SPLIT_WRONG, Mistakes(split="reshape", merge="reshape")),
    (bugs.HEADS_MERGED_WRONG, Mistakes(merge="reshape")),
    (bugs.SCORES_UNSCALED, Mistakes(scale="none")),
    (bugs.SCORES_SCALED_BY_EMBD, Mistakes(scale="n_embd")),
    (bugs.SCORES_SCALED_BY_LENGTH, Mistakes(scale="n_seq")),
    (own.SCORES_NO_ROOT, Mistakes(scale="no-root")),
    (own.SCORES_SCALED_BY_HEADS, Mistakes(scale="n_head")),
    (own.ONE_HEAD, Mistakes(heads="one")),
    (own.OUTPUT_MISSING, Mistakes(output=False)),
    (own.BIASES_MISSING, Mistakes(biases=False)),
    *((own.BIAS_MISSING[name], Mistakes(missing_bias=name)) for name in ("attn.c_attn", "attn.c_proj")),
)
MASK_TOO_SMALL: tuple[Suspect, ...] = (
    *((own.MASK_TOO_SMALL, Mistakes(hidden_score=-size)) for size in (1e4, 1e2, 1e3, 5e3)),
    *((own.MASK_TOO_SMALL, Mistakes(hidden_penalty=-size)) for size in (1e4, 1e2, 1e3, 5e3)),
)
BLOCK: tuple[Suspect, ...] = (
    (own.POST_NORM, Mistakes(order="post-norm")),
    (own.PARALLEL, Mistakes(order="parallel")),
    (bugs.NORMED_RESIDUAL, Mistakes(order="normed-residual")),
    (bugs.NORMED_RESIDUAL, Mistakes(order="normed-attention")),
    (bugs.NO_RESIDUAL_ATTENTION, Mistakes(residual="no-attention")),
    (bugs.NO_RESIDUAL_MLP, Mistakes(residual="no-mlp")),
    (bugs.NO_RESIDUAL, Mistakes(residual="none")),
    (own.RESIDUAL_INPUT_ONLY, Mistakes(residual="input-only")),
    (own.NO_LN_1, Mistakes(order="no-ln_1")),
    (own.NO_LN_2, Mistakes(order="no-ln_2")),
    (bugs.LN_1_TWICE, Mistakes(order="ln_1-twice")),
    (own.GELU_SIGMOID, Mistakes(gelu="sigmoid")),
    (own.GELU_RELU, Mistakes(gelu="relu")),
    (own.GELU_NONE, Mistakes(gelu="none")),
    (own.GELU_NO_HALF, Mistakes(gelu="double")),
    (own.NORM_SAMPLE, Mistakes(norm="sample")),
    (own.NORM_NO_ROOT, Mistakes(norm="no-root")),
    (own.NORM_NO_MEAN, Mistakes(norm="no-mean")),
    (own.NORM_WHOLE, Mistakes(norm="whole")),
    (own.NORM_NO_WEIGHT, Mistakes(norm="no-weight")),
    (own.NORM_NO_BIAS, Mistakes(norm="no-bias")),
    *((own.BIAS_MISSING[name], Mistakes(missing_bias=name)) for name in ("mlp.c_fc", "mlp.c_proj")),
    *ATTENTION,
)
PARTS: tuple[Suspect, ...] = (  # written out in a block otherwise than in the functions, which shows there only
    (own.GELU_EXACT, Mistakes(gelu="exact")),
    *((own.NORM_EPS_SMALL, Mistakes(eps=eps)) for eps in (1e-6, 1e-8)),
    *((own.NORM_EPS_LARGE, Mistakes(eps=eps)) for eps in (1e-4, 1e-3)),
)
FORWARD: tuple[Suspect, ...] = (
    (bugs.POSITIONS_MISSING, Mistakes(positions="missing")),
    (own.WTE_SCALED, Mistakes(embedding="scaled")),
    (bugs.NO_FINAL_LAYER_NORM, Mistakes(final_norm=False)),
    (own.PROBABILITIES, Mistakes(head="probabilities")),
    (bugs.LAYERS_AS_TEXT, Mistakes(layers_as_text=True)),
    (own.BLOCKS_LEFT_OUT, Mistakes(blocks="not-last")),
    (own.BLOCKS_LEFT_OUT, Mistakes(blocks="first-only")),
    (own.BLOCKS_NOT_CHAINED, Mistakes(blocks="last-only")),
    (own.BLOCKS_REVERSED, Mistakes(blocks="reversed")),
    *BLOCK,
)


def suspects_from(mistakes: tuple[Suspect, ...], function: Callable, *args) -> Iterator[tuple[Bug, Callable]]:
    """What the reference gives with each mistake."""
    for bug, mistake in mistakes:
        yield bug, lambda m=mistake: function(*args, mistakes=m)
