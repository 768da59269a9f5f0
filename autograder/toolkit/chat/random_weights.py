"""Llamas of any shape with random weights, for checks, and for a notebook without the download."""

from __future__ import annotations

import math

import numpy as np

from autograder.toolkit.chat.config import LlamaConfig
from autograder.toolkit.chat.weights import LlamaWeights, tensor_shapes, weights_from_tensors
from autograder.toolkit.model.weights import immutable


def random_llama(config: LlamaConfig, seed: int) -> LlamaWeights:
    """Weights that depend on the config and the seed alone, to the bit, on every platform.

    They are drawn so that no mistake is forgiven: attention scores and logits spread by about 2, no norm is the
    identity, and each block adds about as much to the residual stream as the embeddings brought.
    """
    rng = np.random.Generator(np.random.PCG64(seed))  # uniform float32 draws are exact on every machine
    width = config.n_embd**0.5
    tensors = {}
    for name, shape in tensor_shapes(config).items():
        if len(shape) == 1:
            spread, center = 0.25, 1.0
        elif name.endswith(("embed_tokens.weight", "lm_head.weight")):
            spread, center = 2.0 / width, 0.0
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            spread, center = 3.0 / width / shape[1] ** 0.5, 0.0
        else:
            spread, center = 1.3 / width, 0.0
        array = rng.random(math.prod(shape), dtype=np.float32) - np.float32(0.5)  # spread 1 / sqrt(12)
        array *= np.float32(spread * 12.0**0.5)
        tensors[name] = immutable((array + np.float32(center)).reshape(shape))
    return weights_from_tensors(config, tensors)
