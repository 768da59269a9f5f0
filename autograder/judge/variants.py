"""GPT-2 with one common mistake: the reference with one of its parts or weights replaced.

`variant(reference, "no-causal-mask")` is such a model; its results are those of a student with this mistake.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.judge import reference as right
from autograder.judge.bugs import BUGS, Bug, positions_shifted
from autograder.judge.reference import KV, Reference, softmax

Suspect = tuple[Bug, str]  # a bug, and the name of the variant that has it


def variant(reference: Reference, name: str) -> Reference:
    """The reference with the mistake of this name; the weights that do not change are shared."""
    wrong = copy.copy(reference)
    wrong._runs, wrong.causal = OrderedDict(), False
    for part, changed in VARIANTS[name].items():
        setattr(wrong, part, changed(reference.weights) if part == "weights" else changed)
    return wrong


def suspects(*names: str, bug: str = "") -> tuple[Suspect, ...]:
    """The variants of these names, each with the bug of the key `bug`, or else of the key that is its own name."""
    return tuple((BUGS[bug or name], name) for name in names)


def wrong_positions(reference: Reference, ids: Sequence[int], past: KV | None) -> Iterator[tuple[Bug, Callable]]:
    """Passes over ids that follow `past`, at other positions than those after it, with the bug of each."""
    n_past, last = past[0][0].shape[1] if past else 0, reference.config.n_ctx - len(ids)
    starts = [(BUGS["positions-reset"], 0), (BUGS["positions-counted-twice"], 2 * n_past)] if past else []
    starts += [(positions_shifted(k), n_past + k) for n in range(1, 9) for k in (n, -n)]
    for bug, start in starts:
        if 0 <= start <= last:
            positions = range(start, start + len(ids))
            yield bug, lambda positions=positions: reference.run(ids, past=past, positions=positions)


def suspects_from(
    suspects: Sequence[Suspect], reference: Reference, method: Callable, *args: Any
) -> Iterator[tuple[Bug, Callable[[], Any]]]:
    """The result of a method such as Reference.logits with each mistake, computed on demand."""
    for bug, name in suspects:
        yield bug, lambda name=name: method(variant(reference, name), *args)


# Attention: functions of q [n_head, n_query, head_dim], and k and v [n_head, n_seq, head_dim].


def _scores(q, k):
    return np.asarray(q, np.float64) @ np.asarray(k, np.float64).swapaxes(1, 2) / math.sqrt(q.shape[2])


def _visible(q, k, offset=0):
    n_query, n_seq = q.shape[1], k.shape[1]
    return np.tri(n_query, n_seq, n_seq - n_query + offset, dtype=bool)


def _masked(visible):
    """Attention with another mask; visible(q, k) is [n_query, n_seq]."""
    return lambda q, k, v: softmax(np.where(visible(q, k), _scores(q, k), -np.inf)) @ v


def _hidden(score):
    """Attention with another value for hidden scores, score(scores)."""
    return lambda q, k, v: softmax(np.where(_visible(q, k), _scores(q, k), score(_scores(q, k)))) @ v


def _scaled(divisor):
    """Attention with scores divided by another number than sqrt(head_dim)."""
    return lambda q, k, v: right.attention(np.asarray(q, np.float64) * (math.sqrt(q.shape[2]) / divisor(q)), k, v)


def _over_queries(q, k, v):
    return softmax(np.where(_visible(q, k), _scores(q, k), -np.inf), axis=-2) @ v


ATTENTION = {
    "no-causal-mask": _masked(lambda q, k: True),
    "mask-without-offset": _masked(lambda q, k: np.tri(q.shape[1], k.shape[1], dtype=bool)),
    "mask-sees-next": _masked(lambda q, k: _visible(q, k, 1)),
    "mask-strict": _masked(lambda q, k: _visible(q, k, -1) | (np.arange(k.shape[1]) == 0)),  # the first sees itself
    "mask-reversed": _masked(lambda q, k: ~_visible(q, k, -1)),
    "mask-zeros": _hidden(lambda scores: 0.0),
    "softmax-over-queries": _over_queries,
    "scores-unscaled": _scaled(lambda q: 1.0),
    "scores-no-root": _scaled(lambda q: q.shape[2]),
    "scores-scaled-by-n-embd": _scaled(lambda q: math.sqrt(q.shape[0] * q.shape[2])),
    "scores-scaled-by-n-head": _scaled(lambda q: math.sqrt(q.shape[0])),
    "keys-summed": lambda q, k, v: right.attention(q, k, k),
    "keys-values-exchanged": lambda q, k, v: right.attention(q, v, k),
}
# Hidden scores set to a number or lowered by one, neither of which is enough.
MASK_TOO_SMALL = {
    name: _hidden(score)
    for size in (1e4, 1e2, 1e3, 5e3)
    for name, score in (
        (f"hidden-scores-{size:g}", lambda scores, size=size: -size),
        (f"hidden-scores-lowered-by-{size:g}", lambda scores, size=size: scores - size),
    )
}

# Heads: replacements for split_heads and merge_heads.


def _split_by_reshape(qkv, n_head):
    return [part.reshape(n_head, len(part), -1) for part in np.split(qkv, 3, axis=-1)]


def _split_by_heads(qkv, n_head):
    """Each head's part of [n_seq, 3 * n_embd] cut in three."""
    return qkv.reshape(len(qkv), n_head, 3, -1).transpose(2, 1, 0, 3)


def _split_by_features(qkv, n_head):
    """Each head's part of [n_seq, 3 * n_embd] as features of q, k and v in turn."""
    return qkv.reshape(len(qkv), n_head, -1, 3).transpose(3, 1, 0, 2)


def _split_in_order(order):
    return lambda qkv, n_head: [right.split_heads(qkv, n_head)[order.index(part)] for part in "qkv"]


def _merge_in_order(order):
    return lambda heads: heads.transpose(order).reshape(heads.shape[1], -1)


HEADS = {
    **{f"qkv-{order}": {"split_heads": _split_in_order(order)} for order in ("qvk", "kqv", "kvq", "vqk", "vkq")},
    "qkv-by-heads": {"split_heads": _split_by_heads},
    "qkv-by-features": {"split_heads": _split_by_features},
    "heads-split-wrong": {"split_heads": _split_by_reshape},
    **{
        f"heads-merged-{order}": {"merge_heads": _merge_in_order(order)}
        for order in itertools.permutations(range(3))
        if order != (1, 0, 2)
    },
}

# Blocks: each half is a function of x, of attention or the MLP, and of its layer norm.


HALVES = {
    "right": lambda x, part, norm: x + part(norm(x)),
    "post": lambda x, part, norm: norm(x + part(x)),
    "normed": lambda x, part, norm: norm(x) + part(norm(x)),
    "replaced": lambda x, part, norm: part(norm(x)),
    "bare": lambda x, part, norm: x + part(x),
}


def _block(first, second):
    return lambda x, attend, mlp, ln_1, ln_2: HALVES[second](HALVES[first](x, attend, ln_1), mlp, ln_2)


BLOCKS = {
    "post-norm": _block("post", "post"),
    "normed-residual": _block("normed", "normed"),
    "normed-attention": _block("normed", "right"),
    "no-residual-attention": _block("replaced", "right"),
    "no-residual-mlp": _block("right", "replaced"),
    "no-residual": _block("replaced", "replaced"),
    "no-ln-1": _block("bare", "right"),
    "no-ln-2": _block("right", "bare"),
    "mlp-of-old-x": lambda x, attend, mlp, ln_1, ln_2: x + attend(ln_1(x)) + mlp(ln_2(x)),
    "ln-1-twice": lambda x, attend, mlp, ln_1, ln_2: right.pre_norm(x, attend, mlp, ln_1, ln_1),
}


def _gelu_last(x, attend, mlp, ln_1, ln_2):
    return right.pre_norm(x, attend, lambda x: right.gelu(mlp(x)), ln_1, ln_2)


def _with(node, **changes):
    return SimpleNamespace(**{**vars(node), **changes})


def _without_positions(weights):
    return _with(weights, wpe=np.zeros_like(weights.wpe))


def _in_blocks(change):
    """Weights with every block changed."""
    return lambda weights: _with(weights, blocks=tuple(map(change, weights.blocks)))


def _without_biases(block):
    def bare(part):
        return _with(part, **{name: _with(layer, bias=0.0) for name, layer in vars(part).items()})

    return _with(block, attn=bare(block.attn), mlp=bare(block.mlp))


def _with_c_proj_bias(times):
    def changed(block):
        c_proj = block.attn.c_proj
        return _with(block, attn=_with(block.attn, c_proj=_with(c_proj, bias=times * c_proj.bias)))

    return changed


def _without_c_proj(block):
    nothing = SimpleNamespace(weight=np.eye(len(block.attn.c_proj.weight)), bias=0.0)
    return _with(block, attn=_with(block.attn, c_proj=nothing))


def _layers_as_text(weights):
    return _with(weights, blocks=[weights.blocks[i] for i in sorted(range(len(weights.blocks)), key=str)])


VARIANTS: dict[str, dict[str, Callable]] = {  # parts of the reference, and their replacements
    **{name: {"attention": function} for name, function in {**ATTENTION, **MASK_TOO_SMALL}.items()},
    **HEADS,
    **{name: {"block_of": function} for name, function in BLOCKS.items()},
    "gelu-missing": {"gelu": lambda x: x},
    "gelu-last": {"gelu": lambda x: x, "block_of": _gelu_last},
    "final-norm-twice": {"logits_of": lambda x, ln_f, wte: ln_f(ln_f(x)) @ wte.T},
    "no-final-layer-norm": {"logits_of": lambda x, ln_f, wte: x @ wte.T},
    "positions-missing": {"weights": _without_positions},
    "layers-sorted-as-text": {"weights": _layers_as_text},
    "biases-missing": {"weights": _in_blocks(_without_biases)},
    **{f"c-proj-bias-{times}": {"weights": _in_blocks(_with_c_proj_bias(times))} for times in (0, 2)},
    "c-proj-missing": {"weights": _in_blocks(_without_c_proj)},
    "norm-parts-exchanged": {"layer_norm": lambda x, weight, bias: right.layer_norm(x, bias, weight)},
}
