"""The model: its shape, weights, loader and tokenizer. Each part is imported the first time it is asked for."""

# ruff: noqa: F401 - what is imported for type checkers is there for whoever imports the package

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.toolkit.model.config import GPT2_LARGE, GPT2_MEDIUM, GPT2_SMALL, GPT2_XL, GPT2Config, ModelError
    from autograder.toolkit.model.load import load_model
    from autograder.toolkit.model.random_weights import random_model
    from autograder.toolkit.model.tokenizer import Tokenizer, load_both, load_tokenizer
    from autograder.toolkit.model.weights import Weights, fingerprint, replace_tensor, tensors_of, weights_from_tensors

_NAMES = {
    "config": ("GPT2_LARGE", "GPT2_MEDIUM", "GPT2_SMALL", "GPT2_XL", "GPT2Config", "ModelError"),
    "load": ("load_model",),
    "random_weights": ("random_model",),
    "tokenizer": ("Tokenizer", "load_both", "load_tokenizer"),
    "weights": ("Weights", "fingerprint", "replace_tensor", "tensors_of", "weights_from_tensors"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'autograder.toolkit.model' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"autograder.toolkit.model.{_HOME[name]}"), name)
    globals()[name] = value
    return value
