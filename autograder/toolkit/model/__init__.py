"""The model: its shape, weights, loader and tokenizer. Each part is imported the first time it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.toolkit.model.config import GPT2_LARGE, GPT2_MEDIUM, GPT2_SMALL, GPT2_XL, GPT2Config, ModelError
    from autograder.toolkit.model.load import load_model
    from autograder.toolkit.model.random_weights import random_model
    from autograder.toolkit.model.tokenizer import Tokenizer, load_both, load_tokenizer
    from autograder.toolkit.model.weights import Weights, fingerprint, replace_tensor, tensors_of, weights_from_tensors

_HOME = {
    "GPT2_LARGE": "config",
    "GPT2_MEDIUM": "config",
    "GPT2_SMALL": "config",
    "GPT2_XL": "config",
    "GPT2Config": "config",
    "ModelError": "config",
    "Tokenizer": "tokenizer",
    "Weights": "weights",
    "fingerprint": "weights",
    "load_both": "tokenizer",
    "load_model": "load",
    "load_tokenizer": "tokenizer",
    "random_model": "random_weights",
    "replace_tensor": "weights",
    "tensors_of": "weights",
    "weights_from_tensors": "weights",
}

__all__ = [
    "GPT2_LARGE",
    "GPT2_MEDIUM",
    "GPT2_SMALL",
    "GPT2_XL",
    "GPT2Config",
    "ModelError",
    "Tokenizer",
    "Weights",
    "fingerprint",
    "load_both",
    "load_model",
    "load_tokenizer",
    "random_model",
    "replace_tensor",
    "tensors_of",
    "weights_from_tensors",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'autograder.toolkit.model' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"autograder.toolkit.model.{_HOME[name]}"), name)
    globals()[name] = value
    return value
