"""Llamas of any shape with random weights, for checks, and for a notebook without the download."""

from __future__ import annotations

from autograder.toolkit.chat.config import LlamaConfig
from autograder.toolkit.chat.weights import LlamaWeights, tensor_shapes, weights_from_tensors
from autograder.toolkit.model.random_weights import draw


def random_llama(config: LlamaConfig, seed: int) -> LlamaWeights:
    """Weights that depend on the config and the seed alone, to the bit, on every platform.

    They are drawn so that no mistake is forgiven: attention scores and logits spread by about 2, no norm is the
    identity, and each block adds about as much to the residual stream as the embeddings brought.
    """
    width = config.n_embd**0.5

    def spread(name: str, shape: tuple[int, ...]) -> float:
        if name.endswith(("embed_tokens.weight", "lm_head.weight")):
            return 2.0 / width
        return 3.0 / width / shape[1] ** 0.5 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.3 / width

    tensors = [
        (name, shape, 0.25, 1.0) if len(shape) == 1 else (name, shape, spread(name, shape), 0.0)
        for name, shape in tensor_shapes(config).items()
    ]
    return weights_from_tensors(config, draw(seed, tensors))
