"""GPT-2s of any shape with random weights, for checks and for timing at the real sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np

from autograder.toolkit.model.config import GPT2Config
from autograder.toolkit.model.weights import Weights, read_only, tensor_shapes, weights_from_tensors


def random_model(config: GPT2Config, seed: int) -> Weights:
    """Weights that depend on the config and the seed alone, to the bit, on every platform.

    Trained models hide many mistakes; these weights are drawn so that every mistake shows. Position and
    token embeddings have the same size, so a wrong position changes a logit as much as a wrong token. Attention
    scores spread by about 2, so it matters which keys are seen. Each block adds about as much to the
    residual stream as the embeddings brought. No bias is 0 and no layer norm the identity, so that one
    left out shows. Logits spread by about 2.
    """
    return weights_from_tensors(config, draw(seed, _tensors(config)), note=f"random, seed {seed}")


@lru_cache(maxsize=64)
def _tensors(config: GPT2Config) -> list[tuple[str, tuple[int, ...], float, float]]:
    return [(name, shape, *_spread_and_center(config, name)) for name, shape in tensor_shapes(config).items()]


def draw(seed: int, tensors: Sequence[tuple[str, tuple[int, ...], float, float]]) -> dict[str, np.ndarray]:
    """Random float32 arrays by name, each (name, shape, spread, center), read-only, the same on every platform.

    Uniform draws are exact multiples of 2**-24 and get one multiplication: no library function is involved whose last
    bit could differ between machines.
    """
    ends = list(accumulate(math.prod(shape) for _, shape, _, _ in tensors))
    drawn = np.random.Generator(np.random.PCG64(seed)).random(ends[-1], dtype=np.float32)  # spread 1 / sqrt(12)
    drawn -= np.float32(0.5)
    fixed = read_only(drawn)
    arrays, begin = {}, 0
    for (name, shape, spread, center), end in zip(tensors, ends, strict=True):
        part = drawn[begin:end]
        part *= np.float32(spread * 12.0**0.5)
        if center:
            part += np.float32(center)
        arrays[name] = fixed[begin:end].reshape(shape)
        begin = end
    return arrays


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
