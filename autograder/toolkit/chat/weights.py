"""The weights of a Llama as a small tree of frozen dataclasses, read-only as GPT-2's are.

Matrices are [n_out, n_in], as Llama files hold them, so y = x @ weight.T. There are no biases. Matrices that multiply
the same rows lie one below the other, so that one product does for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from autograder.toolkit.chat.config import LlamaConfig
from autograder.toolkit.model.config import ModelError
from autograder.toolkit.model.weights import Node, named_tensors, read_only


@dataclass(frozen=True, eq=False, repr=False)
class Attention(Node):
    q_proj: np.ndarray  # [n_embd, n_embd]
    k_proj: np.ndarray  # [n_kv_head * head_dim, n_embd]
    v_proj: np.ndarray  # [n_kv_head * head_dim, n_embd]
    o_proj: np.ndarray  # [n_embd, n_embd]
    qkv_proj: np.ndarray  # q_proj, k_proj and v_proj, one below the other


@dataclass(frozen=True, eq=False, repr=False)
class Mlp(Node):
    gate_proj: np.ndarray  # [n_inner, n_embd]
    up_proj: np.ndarray  # [n_inner, n_embd]
    down_proj: np.ndarray  # [n_embd, n_inner]
    gate_up_proj: np.ndarray  # gate_proj and up_proj, one below the other


@dataclass(frozen=True, eq=False, repr=False)
class Block(Node):
    norm_1: np.ndarray  # [n_embd]
    attn: Attention
    norm_2: np.ndarray  # [n_embd]
    mlp: Mlp


@dataclass(frozen=True, eq=False, repr=False)
class LlamaWeights(Node):
    config: LlamaConfig
    wte: np.ndarray  # [n_vocab, n_embd]
    blocks: tuple[Block, ...]
    norm_f: np.ndarray  # [n_embd]
    head: np.ndarray  # [n_vocab, n_embd]; wte itself where the model is tied

    def __repr__(self) -> str:
        c = self.config
        n_million = sum(array.size for array in tensors_of(self).values()) / 1e6
        return (
            f"LlamaWeights(n_layer={c.n_layer}, n_head={c.n_head}, n_kv_head={c.n_kv_head}, n_embd={c.n_embd}, "
            f"n_ctx={c.n_ctx}, n_vocab={c.n_vocab}: {n_million:.1f} million parameters)"
        )


def tensor_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """The Hugging Face name and the shape of every tensor, in the order of the forward pass."""
    e, kv, inner = config.n_embd, config.n_kv_head * config.head_dim, config.n_inner
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config.n_vocab, e)}
    for i in range(config.n_layer):
        block = {
            "input_layernorm": (e,),
            "self_attn.q_proj": (e, e),
            "self_attn.k_proj": (kv, e),
            "self_attn.v_proj": (kv, e),
            "self_attn.o_proj": (e, e),
            "post_attention_layernorm": (e,),
            "mlp.gate_proj": (inner, e),
            "mlp.up_proj": (inner, e),
            "mlp.down_proj": (e, inner),
        }
        shapes |= {f"model.layers.{i}.{part}.weight": shape for part, shape in block.items()}
    shapes["model.norm.weight"] = (e,)
    if not config.tied:
        shapes["lm_head.weight"] = (config.n_vocab, e)
    return shapes


def tensors_of(weights: LlamaWeights) -> dict[str, np.ndarray]:
    """Every array under its Hugging Face name, in the order of tensor_shapes; a tied head is not listed again."""
    arrays = [weights.wte]
    for b in weights.blocks:
        arrays += [b.norm_1, b.attn.q_proj, b.attn.k_proj, b.attn.v_proj, b.attn.o_proj]
        arrays += [b.norm_2, b.mlp.gate_proj, b.mlp.up_proj, b.mlp.down_proj]
    arrays += [weights.norm_f] if weights.config.tied else [weights.norm_f, weights.head]
    return dict(zip(tensor_shapes(weights.config), arrays, strict=True))


def plain_name(name: str) -> str | None:
    """A tensor's name in a file as this package has it; None for the rotary frequencies that old files carry along."""
    if name.endswith("rotary_emb.inv_freq"):
        return None
    return name if name.startswith(("model.", "lm_head.")) else f"model.{name}"


def weights_from_tensors(config: LlamaConfig, tensors: Mapping[str, np.ndarray]) -> LlamaWeights:
    """The tree from named arrays, with or without the `model.` prefix; immutable float32 arrays are copied only where
    is_copied says so.

    Everything that is missing, unknown, twice there or mis-shaped is named in one ModelError.
    """
    if config.n_layer > len(tensors):  # before a name is made for each of what may be any number
        raise ModelError(f"there are {len(tensors)} tensors, too few for n_layer = {config.n_layer}")
    tie = ("lm_head.weight", "model.embed_tokens.weight") if config.tied else None
    arrays = iter(named_tensors(tensor_shapes(config), tensors, plain_name, tie).values())
    wte = next(arrays)
    layers = [[next(arrays) for _ in range(9)] for _ in range(config.n_layer)]
    blocks = []
    for (n1, q, k, _, _, n2, _, _, down), rows in zip(layers, _together(layers), strict=True):
        qkv, o, gate_up = np.split(rows, [len(q) + 2 * len(k), 2 * (len(q) + len(k))])
        attention = Attention(*np.split(qkv, [len(q), len(q) + len(k)]), o, qkv)
        blocks.append(Block(n1, attention, n2, Mlp(*np.split(gate_up, 2), down, gate_up)))
    norm_f = next(arrays)
    return LlamaWeights(config, wte, tuple(blocks), norm_f, wte if config.tied else next(arrays))


def is_copied(name: str) -> bool:
    """Whether weights_from_tensors copies a tensor of this name: a block's matrices of n_embd columns."""
    return name.endswith("_proj.weight") and not name.endswith("down_proj.weight")


def _together(layers: list[list[np.ndarray]]) -> list[np.ndarray]:
    """For each layer, q_proj, k_proj, v_proj, o_proj, gate_proj and up_proj, one below the other, in immutable memory.

    All layers are in one array: for a large one NumPy asks the system for large pages, which are read faster.
    """
    matrices = [matrix for _, q, k, v, o, _, gate, up, _ in layers for matrix in (q, k, v, o, gate, up)]
    whole = np.concatenate(matrices, dtype=np.float32)
    return np.split(read_only(whole), len(layers))


def replace_tensor(weights: LlamaWeights, name: str, array: np.ndarray) -> LlamaWeights:
    """The same weights with one array replaced, named as in tensors_of; what is_copied names is copied."""
    tensors = tensors_of(weights)
    if name not in tensors:
        raise ModelError(f"{name} is not a tensor of this model")
    return weights_from_tensors(weights.config, {**tensors, name: np.asarray(array)})
