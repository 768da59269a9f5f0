"""GPT-2s of any shape with random weights, for checks and for timing at the real sizes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from autograder.toolkit.model.config import GPT2Config
from autograder.toolkit.model.weights import Weights, immutable, tensor_shapes, weights_from_tensors

BATCH = 2**17  # numbers that are drawn at once


def random_model(config: GPT2Config, seed: int) -> Weights:
    """Weights that depend on the config and the seed alone, to the bit, on every platform.

    Trained models hide many mistakes; these weights are drawn so that every mistake shows. Position and
    token embeddings have the same size, so a wrong position changes a logit as much as a wrong token. Attention
    scores spread by about 2, so it matters which keys are seen. Each block adds about as much to the
    residual stream as the embeddings brought. No bias is 0 and no layer norm the identity, so that one
    left out shows. Logits spread by about 2.
    """
    # Uniform float32 draws are exact multiples of 2**-24 and get one multiplication: no library function is involved
    # whose last bit could differ between machines.
    rng = np.random.Generator(np.random.PCG64(seed))
    tensors: dict[str, np.ndarray] = {}
    for batch in _batches(config):
        drawn = rng.random(batch[-1].end, dtype=np.float32)  # uniform in [0, 1): spread 1 / sqrt(12)
        drawn -= np.float32(0.5)
        for t in batch:
            array = drawn[t.begin : t.end]
            array *= t.factor
            if t.center:
                array += t.center
        drawn = immutable(drawn)
        for t in batch:
            tensors[t.name] = drawn[t.begin : t.end].reshape(t.shape)
    return weights_from_tensors(config, tensors, note=f"random, seed {seed}")


class _Tensor(NamedTuple):
    """The range of a tensor's numbers among those drawn together, and how they are transformed."""

    name: str
    shape: tuple[int, ...]
    begin: int
    end: int
    factor: np.float32
    center: np.float32


@lru_cache(maxsize=64)
def _batches(config: GPT2Config) -> list[list[_Tensor]]:
    """The tensors in order, in batches that are drawn at once: a whole small model, or one large tensor."""
    batches: list[list[_Tensor]] = [[]]
    for name, shape in tensor_shapes(config).items():
        begin = batches[-1][-1].end if batches[-1] else 0
        if begin and begin + math.prod(shape) > BATCH:
            batches.append([])
            begin = 0
        spread, center = _spread_and_center(config, name)
        factor = np.float32(spread * 12.0**0.5)
        batches[-1].append(_Tensor(name, shape, begin, begin + math.prod(shape), factor, np.float32(center)))
    return batches


def _spread_and_center(config: GPT2Config, name: str) -> tuple[float, float]:
    width = float(config.n_embd) ** 0.5
    embedding = 2.0 / width  # the spread of an embedding's elements, and of the residual stream at first
    part, kind = name.rsplit(".", 1)
    if part in ("wte", "wpe"):
        return embedding, 0.0
    if part.rsplit(".", 1)[-1] in ("ln_1", "ln_2", "ln_f"):
        return 0.25, 1.0 if kind == "weight" else 0.0
    if part.endswith("c_proj"):  # what a block adds to the residual stream
        n_in = config.n_embd if "attn" in part else 4 * config.n_embd
        return embedding if kind == "bias" else 1.5 * embedding / float(n_in) ** 0.5, 0.0
    return 0.3 if kind == "bias" else 1.3 / width, 0.0
