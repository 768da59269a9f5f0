"""The weights of a GPT-2 as a small tree of frozen dataclasses under GPT-2's own names.

Every array is float32 in read-only memory (a file mapped read-only, or bytes), so ``weights.wpe[0] = 0`` raises, and so
does an attempt to make the array writeable first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import numpy as np

from autograder.toolkit.model.config import GPT2Config, ModelError


def immutable(array: np.ndarray) -> np.ndarray:
    """The array as float32 in read-only memory; the same object if it is that already."""
    array = np.asarray(array)
    good = array.dtype == np.float32 and array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned
    if good and _in_immutable_memory(array):
        return array
    return np.frombuffer(np.asarray(array, np.float32).tobytes(), np.float32).reshape(array.shape)


def read_only(array: np.ndarray) -> np.ndarray:
    """A view of the array that nobody can make writable; through the array itself the numbers can still change."""
    return np.asarray(memoryview(array).toreadonly())


def _in_immutable_memory(array: np.ndarray) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is not None and memoryview(owner).readonly


class Node:
    """The base of the parts of the tree: makes their arrays immutable, also after a copy or a pickle."""

    def __post_init__(self) -> None:
        for name, value in tuple(self.__dict__.items()):
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, immutable(value))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        parts = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            parts.append(f"{field.name} {list(value.shape)}" if isinstance(value, np.ndarray) else field.name)
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, eq=False, repr=False)
class LayerNorm(Node):
    weight: np.ndarray  # [n_embd]
    bias: np.ndarray  # [n_embd]


@dataclass(frozen=True, eq=False, repr=False)
class Linear(Node):
    """GPT-2's layout: y = x @ weight + bias."""

    weight: np.ndarray  # [n_in, n_out]
    bias: np.ndarray  # [n_out]


@dataclass(frozen=True, eq=False, repr=False)
class Attention(Node):
    c_attn: Linear  # [n_embd, 3 * n_embd]: queries, keys and values side by side
    c_proj: Linear  # [n_embd, n_embd]


@dataclass(frozen=True, eq=False, repr=False)
class Mlp(Node):
    c_fc: Linear  # [n_embd, 4 * n_embd]
    c_proj: Linear  # [4 * n_embd, n_embd]


@dataclass(frozen=True, eq=False, repr=False)
class Block(Node):
    ln_1: LayerNorm
    attn: Attention
    ln_2: LayerNorm
    mlp: Mlp


@dataclass(frozen=True, eq=False, repr=False)
class Weights(Node):
    config: GPT2Config
    wte: np.ndarray  # [n_vocab, n_embd]; also the output head
    wpe: np.ndarray  # [n_ctx, n_embd]
    blocks: tuple[Block, ...]
    ln_f: LayerNorm
    note: str = ""  # where they come from, for people; no number depends on it

    def __repr__(self) -> str:
        c = self.config
        n_million = sum(array.size for array in tensors_of(self).values()) / 1e6
        return (
            f"Weights(n_layer={c.n_layer}, n_head={c.n_head}, n_embd={c.n_embd}, n_ctx={c.n_ctx}, "
            f"n_vocab={c.n_vocab}: {n_million:.1f} million parameters{', ' + self.note if self.note else ''})"
        )


def tensor_shapes(config: GPT2Config) -> dict[str, tuple[int, ...]]:
    """The name and shape of every tensor of a GPT-2, in the order of the forward pass."""
    e = config.n_embd
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (config.n_vocab, e), "wpe.weight": (config.n_ctx, e)}
    for i in range(config.n_layer):
        for part, n_in, n_out in (
            ("ln_1", None, e),
            ("attn.c_attn", e, 3 * e),
            ("attn.c_proj", e, e),
            ("ln_2", None, e),
            ("mlp.c_fc", e, 4 * e),
            ("mlp.c_proj", 4 * e, e),
        ):
            shapes[f"h.{i}.{part}.weight"] = (n_out,) if n_in is None else (n_in, n_out)
            shapes[f"h.{i}.{part}.bias"] = (n_out,)
    shapes["ln_f.weight"] = shapes["ln_f.bias"] = (e,)
    return shapes


def tensors_of(weights: Weights) -> dict[str, np.ndarray]:
    """Every array under its Hugging Face name, without the `transformer.` prefix, in the order of tensor_shapes."""
    tensors = {"wte.weight": weights.wte, "wpe.weight": weights.wpe}
    for i, block in enumerate(weights.blocks):
        for part in ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"):
            node = attrgetter(part)(block)
            tensors[f"h.{i}.{part}.weight"], tensors[f"h.{i}.{part}.bias"] = node.weight, node.bias
    tensors["ln_f.weight"], tensors["ln_f.bias"] = weights.ln_f.weight, weights.ln_f.bias
    return tensors


_MASK_BUFFER = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # constants that old files carry along


def plain_name(name: str) -> str | None:
    """A tensor's name in a file as this package has it; None for a mask buffer, which holds no weight."""
    name = name.removeprefix("transformer.")
    return None if _MASK_BUFFER.fullmatch(name) else name


def _listed(parts: Sequence[str], between: str = ", ", most: int = 3) -> str:
    return between.join([*parts[:most], *([f"and {len(parts) - most} more"] if len(parts) > most else [])])


def named_tensors(
    expected: Mapping[str, tuple[int, ...]],
    tensors: Mapping[str, np.ndarray],
    plain_name: Callable[[str], str | None],
    tie: tuple[str, str] | None,
) -> dict[str, np.ndarray]:
    """The expected tensors, in order; one ModelError names all that are missing, unknown, duplicated or mis-shaped.

    plain_name: converts a file's name for a tensor to the one in `expected`; None for anything but a weight.
    tie: the name of an output head that a file may also hold, and of the tensor that it must equal.
    """
    found: dict[str, np.ndarray] = {}
    problems: list[str] = []
    unknown = []
    for name, array in tensors.items():
        plain = name if name in expected else plain_name(name)
        if plain is None:
            continue
        if plain in found:
            problems.append(f"{plain} is there twice, with and without the prefix")
        elif plain in expected or (tie and plain == tie[0]):
            found[plain] = array
        else:
            unknown.append(name)
    missing = [name for name in expected if name not in found]
    if missing:
        problems.insert(0, f"missing {_listed(missing)}")
    if unknown:
        problems.append(f"unknown {_listed(unknown)}")
    for name, shape in expected.items():
        array = found.get(name)
        if array is None:
            continue
        if array.shape != shape:
            problems.append(f"{name} has shape {list(array.shape)} and should have {list(shape)}")
        elif array.dtype.kind != "f":
            problems.append(f"{name} has dtype {array.dtype} and should have float32")
    if tie and tie[0] in found and tie[1] in found and not np.array_equal(found[tie[0]], found[tie[1]]):
        problems.append(f"{tie[0]} differs from {tie[1]}, which is this model's output head")
    if problems:
        raise ModelError(_listed(problems, "; ", 5))
    return {name: found[name] for name in expected}


def weights_from_tensors(config: GPT2Config, tensors: Mapping[str, np.ndarray], note: str = "") -> Weights:
    """The tree from named arrays, with or without the `transformer.` prefix; immutable float32 arrays are not copied.

    Mask buffers are left out, and `lm_head.weight` may be there when it equals `wte.weight`. Everything
    that is missing, unknown, twice there or mis-shaped is named in one ModelError, of many only the first.
    """
    if config.n_layer > len(tensors):  # before a name is made for each of what may be any number
        raise ModelError(f"there are {len(tensors)} tensors, too few for n_layer = {config.n_layer}")
    found = named_tensors(tensor_shapes(config), tensors, plain_name, ("lm_head.weight", "wte.weight"))

    def pair(part: str) -> tuple[np.ndarray, np.ndarray]:
        return found[f"{part}.weight"], found[f"{part}.bias"]

    blocks = tuple(
        Block(
            LayerNorm(*pair(f"h.{i}.ln_1")),
            Attention(Linear(*pair(f"h.{i}.attn.c_attn")), Linear(*pair(f"h.{i}.attn.c_proj"))),
            LayerNorm(*pair(f"h.{i}.ln_2")),
            Mlp(Linear(*pair(f"h.{i}.mlp.c_fc")), Linear(*pair(f"h.{i}.mlp.c_proj"))),
        )
        for i in range(config.n_layer)
    )
    return Weights(config, found["wte.weight"], found["wpe.weight"], blocks, LayerNorm(*pair("ln_f")), note)


def replace_tensor(weights: Weights, name: str, array: np.ndarray) -> Weights:
    """The same weights with one array replaced, named as in tensors_of; all others are shared, not copied."""
    tensors = tensors_of(weights)
    plain = plain_name(name)
    if plain not in tensors:
        raise ModelError(f"{name} is not a tensor of this model")
    tensors[plain] = np.asarray(array)
    return weights_from_tensors(weights.config, tensors, weights.note)


def fingerprint(weights: Weights) -> str:
    """A SHA-256, in hex, of the config and of the name, shape and bytes of every weight.

    Computed once for an object: the arrays cannot change, and whether they are still the same ones is looked at.
    """
    tensors = tensors_of(weights)
    arrays = (weights.config, *tensors.values())
    cached, digest = weights.__dict__.get("_fingerprint", ((), ""))
    if len(cached) == len(arrays) and all(a is b for a, b in zip(cached, arrays, strict=True)):
        return digest
    sha = hashlib.sha256(repr(weights.config).encode())
    for name, array in tensors.items():
        sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(array.data)
    object.__setattr__(weights, "_fingerprint", (arrays, sha.hexdigest()))
    return sha.hexdigest()
