"""GPT-2 with one common mistake: the reference with one of its parts or weights replaced.

`variant(reference, "no-causal-mask")` is such a model; what it gives is what a student with this mistake gives.
"""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.judge import reference as right
from autograder.judge.bugs import Bug
from autograder.judge.reference import Reference, softmax

Suspect = tuple[Bug, str]  # a bug, and the name of the variant that has it


def variant(reference: Reference, name: str) -> Reference:
    """The reference with the mistake of this name; the weights that it leaves alone are shared."""
    wrong = copy.copy(reference)
    wrong._runs = OrderedDict()
    for part, changed in VARIANTS[name].items():
        setattr(wrong, part, changed(reference.weights) if part == "weights" else changed)
    return wrong


def suspects_from(
    suspects: Sequence[Suspect], reference: Reference, method: Callable, *args: Any
) -> Iterator[tuple[Bug, Callable[[], Any]]]:
    """What a method such as Reference.logits gives with each mistake; computed when it is called for."""
    for bug, name in suspects:
        yield bug, lambda name=name: method(variant(reference, name), *args)


def _changed(node: SimpleNamespace, **parts) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(node), **parts})


# GELU: functions of x.


def gelu_exact(x):
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(np.asarray(x, np.float64) / math.sqrt(2)))


GELU = {
    "gelu-exact": gelu_exact,
    "gelu-missing": lambda x: x,
}

# Layer normalization: functions of x, weight, bias and eps.


def _norm(axis=-1, ddof=0, scale=lambda variance, eps: np.sqrt(variance + eps)):
    def layer_norm(x, weight, bias, eps=1e-5):
        x = np.asarray(x, np.float64)
        centered = x - x.mean(axis=axis, keepdims=True)
        n = x.size if axis is None else x.shape[axis]
        variance = (centered**2).sum(axis=axis, keepdims=True) / (n - ddof)
        return centered / scale(variance, eps) * weight + bias

    return layer_norm


NORM = {
    "norm-sample-variance": _norm(ddof=1),
    "norm-eps-outside": _norm(scale=lambda variance, eps: np.sqrt(variance) + eps),
    "norm-whole": _norm(axis=None),
    "norm-no-weight": lambda x, weight, bias: right.layer_norm(x, 1.0, bias),
    "norm-no-bias": lambda x, weight, bias: right.layer_norm(x, weight, 0.0),
}

# Attention: functions of q [n_head, n_query, head_dim] and of k and v [n_head, n_seq, head_dim].


def _scores(q, k):
    return np.asarray(q, np.float64) @ np.asarray(k, np.float64).swapaxes(1, 2) / math.sqrt(q.shape[2])


def _visible(q, k, offset=0):
    n_query, n_seq = q.shape[1], k.shape[1]
    return np.tri(n_query, n_seq, n_seq - n_query + offset, dtype=bool)


def _masked(visible):
    """Another mask; visible(q, k) is [n_query, n_seq]."""
    return lambda q, k, v: softmax(np.where(visible(q, k), _scores(q, k), -np.inf)) @ v


def _hidden(score):
    """Another way to hide; score(scores) stands where the mask hides."""
    return lambda q, k, v: softmax(np.where(_visible(q, k), _scores(q, k), score(_scores(q, k)))) @ v


def _scaled(divisor):
    """Scores divided by another number than sqrt(head_dim)."""
    return lambda q, k, v: right.attention(np.asarray(q, np.float64) * (math.sqrt(q.shape[2]) / divisor(q)), k, v)


def _over_queries(q, k, v):
    return softmax(np.where(_visible(q, k), _scores(q, k), -np.inf), axis=-2) @ v


ATTENTION = {
    "no-causal-mask": _masked(lambda q, k: True),
    "mask-without-offset": _masked(lambda q, k: np.tri(q.shape[1], k.shape[1], dtype=bool)),
    "mask-sees-next": _masked(lambda q, k: _visible(q, k, 1)),
    "mask-strict": _masked(lambda q, k: _visible(q, k, -1) | (np.arange(k.shape[1]) == 0)),  # the first sees itself
    "mask-strict-nan": _masked(lambda q, k: _visible(q, k, -1)),
    "mask-inverted": _masked(lambda q, k: ~_visible(q, k)),
    "mask-reversed": _masked(lambda q, k: ~_visible(q, k, -1)),
    "mask-zeros": _hidden(lambda scores: 0.0),
    "mask-after-softmax": lambda q, k, v: np.where(_visible(q, k), softmax(_scores(q, k)), 0.0) @ v,
    "softmax-over-queries": _over_queries,
    "scores-unscaled": _scaled(lambda q: 1.0),
    "scores-no-root": _scaled(lambda q: q.shape[2]),
    "scores-scaled-by-n-embd": _scaled(lambda q: math.sqrt(q.shape[0] * q.shape[2])),
    "keys-values-exchanged": lambda q, k, v: right.attention(q, v, k),
}
# Hidden scores that are set to a number, or lowered by one, which is not enough.
MASK_TOO_SMALL = {
    name: _hidden(score)
    for size in (1e4, 1e2, 1e3, 5e3)
    for name, score in (
        (f"hidden-scores-{size:g}", lambda scores, size=size: -size),
        (f"hidden-scores-lowered-by-{size:g}", lambda scores, size=size: scores - size),
    )
}

# Heads: functions of what split_heads and merge_heads take.


def _split_by_reshape(qkv, n_head):
    return [part.reshape(n_head, len(part), -1) for part in np.split(qkv, 3, axis=-1)]


def _split_in_order(order):
    return lambda qkv, n_head: [right.split_heads(qkv, n_head)[order.index(part)] for part in "qkv"]


def _merge_by_reshape(heads):
    return heads.reshape(heads.shape[1], -1)


# Blocks: functions of x and of the block's parts.


def post_norm(x, attend, mlp, ln_1, ln_2):
    x = ln_1(x + attend(x))
    return ln_2(x + mlp(x))


def gelu_last(x, attend, mlp, ln_1, ln_2):
    return right.pre_norm(x, attend, lambda x: right.gelu(mlp(x)), ln_1, ln_2)


def normed_residual(x, attend, mlp, ln_1, ln_2):
    x = ln_1(x)
    x = ln_2(x + attend(x))
    return x + mlp(x)


def normed_attention(x, attend, mlp, ln_1, ln_2):
    x = ln_1(x)
    return right.pre_norm(x, attend, mlp, lambda x: x, ln_2)


def no_residual_attention(x, attend, mlp, ln_1, ln_2):
    x = attend(ln_1(x))
    return x + mlp(ln_2(x))


def no_residual_mlp(x, attend, mlp, ln_1, ln_2):
    return mlp(ln_2(x + attend(ln_1(x))))


def no_residual(x, attend, mlp, ln_1, ln_2):
    return mlp(ln_2(attend(ln_1(x))))


def no_ln_1(x, attend, mlp, ln_1, ln_2):
    return right.pre_norm(x, attend, mlp, lambda x: x, ln_2)


def no_ln_2(x, attend, mlp, ln_1, ln_2):
    return right.pre_norm(x, attend, mlp, ln_1, lambda x: x)


def ln_1_twice(x, attend, mlp, ln_1, ln_2):
    return right.pre_norm(x, attend, mlp, ln_1, ln_1)


# Weights: functions of the whole tree.


def _blocks(change):
    return lambda weights: _changed(weights, blocks=tuple(change(weights.blocks)))


def _layers_as_text(blocks):
    return [blocks[i] for i in sorted(range(len(blocks)), key=str)]


def _without_biases(*names):
    """Blocks whose linear layers of these names ("attn.c_proj") have no bias."""

    def change(block):
        parts = {}
        for name in names:
            part, linear = name.split(".")
            node = parts.get(part, getattr(block, part))
            parts[part] = _changed(node, **{linear: _changed(getattr(node, linear), bias=0.0)})
        return _changed(block, **parts)

    return _blocks(lambda blocks: map(change, blocks))


def _without_output_projection(block):
    n_embd = len(block.ln_1.weight)
    return _changed(block, attn=_changed(block.attn, c_proj=SimpleNamespace(weight=np.eye(n_embd), bias=0.0)))


LINEAR = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")

VARIANTS: dict[str, dict[str, Callable]] = {
    **{name: {"gelu": function} for name, function in GELU.items()},
    **{name: {"layer_norm": function} for name, function in NORM.items()},
    **{name: {"attention": function} for name, function in {**ATTENTION, **MASK_TOO_SMALL}.items()},
    **{f"qkv-{order}": {"split_heads": _split_in_order(order)} for order in ("qvk", "kqv", "kvq", "vqk", "vkq")},
    "heads-split-wrong": {"split_heads": _split_by_reshape},
    "heads-merged-wrong": {"merge_heads": _merge_by_reshape},
    **{
        name: {"block_of": function}
        for name, function in {
            "post-norm": post_norm,
            "normed-residual": normed_residual,
            "normed-attention": normed_attention,
            "no-residual-attention": no_residual_attention,
            "no-residual-mlp": no_residual_mlp,
            "no-residual": no_residual,
            "no-ln-1": no_ln_1,
            "no-ln-2": no_ln_2,
            "ln-1-twice": ln_1_twice,
        }.items()
    },
    "gelu-last": {"gelu": lambda x: x, "block_of": gelu_last},
    "no-final-layer-norm": {"logits_of": lambda x, ln_f, wte: x @ wte.T},
    "probabilities": {"logits_of": lambda x, ln_f, wte: softmax(right.next_token_logits(x, ln_f, wte))},
    "positions-missing": {"weights": lambda weights: _changed(weights, wpe=np.zeros_like(weights.wpe))},
    "layers-sorted-as-text": {"weights": _blocks(_layers_as_text)},
    "biases-missing": {"weights": _without_biases(*LINEAR)},
    "no-output-projection": {"weights": _blocks(lambda blocks: map(_without_output_projection, blocks))},
}
