"""The shape of a GPT-2: five numbers, the published sizes, and the config.json of a Hugging Face folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from autograder.toolkit.errors import UserError

MODEL_VARIABLE = "AUTOGRADER_MODEL"  # environment variable: the default model


def chosen_model() -> str:
    """The name or path of the default model: "tiny", unless the environment names one."""
    return os.environ.get(MODEL_VARIABLE) or "tiny"


class ModelError(UserError, ValueError):
    """A model or tokenizer that cannot be used; the message is one sentence that names the file and the tensor."""


@dataclass(frozen=True)
class GPT2Config:
    n_layer: int
    n_head: int
    n_embd: int
    n_ctx: int
    n_vocab: int

    layer_norm_epsilon: ClassVar[float] = 1e-5  # the same in every GPT-2

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ModelError(f"{field.name} must be a positive integer, not {value!r}")
        if self.n_embd % self.n_head:
            raise ModelError(f"n_embd ({self.n_embd}) must be divisible by n_head ({self.n_head})")

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head


def _published(n_layer: int, n_head: int, n_embd: int) -> GPT2Config:
    return GPT2Config(n_layer, n_head, n_embd, n_ctx=1024, n_vocab=50257)


GPT2_SMALL = _published(12, 12, 768)  # 124 million parameters
GPT2_MEDIUM = _published(24, 16, 1024)  # 355 million
GPT2_LARGE = _published(36, 20, 1280)  # 774 million
GPT2_XL = _published(48, 25, 1600)  # 1,558 million

PUBLISHED = {"gpt2": GPT2_SMALL, "gpt2-medium": GPT2_MEDIUM, "gpt2-large": GPT2_LARGE, "gpt2-xl": GPT2_XL}

# Settings that change the numbers, and the values that can be computed; the first is assumed where one is absent.
_FIXED: dict[str, tuple[Any, ...]] = {
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
}


def expect_settings(settings: Mapping[str, Any], source: str, model_type: str, fixed: Mapping[str, tuple]) -> None:
    """Raise ModelError if a config.json is of another type of model, or has a setting that cannot be computed."""
    found = settings.get("model_type")
    if found != model_type:
        raise ModelError(f"{source}: model_type is {found!r}, and only {model_type!r} can be read")
    for key, allowed in fixed.items():
        value = settings.get(key, allowed[0])
        if value not in allowed:
            raise ModelError(f"{source}: {key} is {value!r}, and only {allowed[0]!r} can be computed")


def config_from_hf(settings: Mapping[str, Any], source: str = "config.json") -> GPT2Config:
    """The config in a Hugging Face config.json; raises ModelError if it describes anything but a plain GPT-2."""
    expect_settings(settings, source, "gpt2", _FIXED)
    sizes = {}
    for name, keys in {
        "n_layer": ("n_layer",),
        "n_head": ("n_head",),
        "n_embd": ("n_embd",),
        "n_ctx": ("n_positions", "n_ctx"),  # transformers reads n_positions; old files have n_ctx alone
        "n_vocab": ("vocab_size",),
    }.items():
        sizes[name] = next((settings[key] for key in keys if settings.get(key) is not None), None)
        if sizes[name] is None:
            raise ModelError(f"{source}: {keys[0]} is missing")
    try:
        config = GPT2Config(**sizes)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from None
    if settings.get("n_inner") not in (None, 4 * config.n_embd):
        raise ModelError(
            f"{source}: n_inner is {settings['n_inner']!r}, and GPT-2 has 4 * n_embd = {4 * config.n_embd}"
        )
    return config


def config_to_hf(config: GPT2Config) -> dict[str, Any]:
    """The config.json from which `transformers` and config_from_hf make the same model."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_embd": config.n_embd,
        "n_positions": config.n_ctx,
        "vocab_size": config.n_vocab,
        "layer_norm_epsilon": config.layer_norm_epsilon,
        "tie_word_embeddings": True,
    }
