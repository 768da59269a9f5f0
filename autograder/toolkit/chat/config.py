"""The shape of a Llama, and the config.json of a Hugging Face folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from autograder.toolkit.model.config import ModelError, expect_settings


@dataclass(frozen=True)
class LlamaConfig:
    n_layer: int
    n_head: int  # heads of queries
    n_kv_head: int  # heads of keys and values; each serves n_head / n_kv_head heads of queries
    n_embd: int
    n_inner: int  # width of the MLP
    n_ctx: int
    n_vocab: int
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    tied: bool = True  # whether the output head is wte

    def __post_init__(self) -> None:
        for field in fields(self):
            value, whole = getattr(self, field.name), field.name.startswith("n_")
            if field.name == "tied":
                good = isinstance(value, bool)
            else:
                good = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool) and value > 0
            if not good:
                kind = "true or false" if field.name == "tied" else f"a positive {'integer' if whole else 'number'}"
                raise ModelError(f"{field.name} must be {kind}, not {value!r}")
        if self.n_embd % self.n_head or self.head_dim % 2:
            raise ModelError(f"n_embd ({self.n_embd}) must be n_head ({self.n_head}) times an even number")
        if self.n_head % self.n_kv_head:
            raise ModelError(f"n_head ({self.n_head}) must be divisible by n_kv_head ({self.n_kv_head})")

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head


SMOLLM2 = LlamaConfig(
    n_layer=30, n_head=9, n_kv_head=3, n_embd=576, n_inner=1536, n_ctx=8192, n_vocab=49152, rope_theta=100000.0
)  # 135 million parameters

# The keys of config.json, and what `transformers` assumes where one is absent.
_KEYS: dict[str, tuple[str, Any]] = {
    "n_layer": ("num_hidden_layers", None),
    "n_head": ("num_attention_heads", None),
    "n_kv_head": ("num_key_value_heads", None),
    "n_embd": ("hidden_size", None),
    "n_inner": ("intermediate_size", None),
    "n_ctx": ("max_position_embeddings", 2048),
    "n_vocab": ("vocab_size", None),
    "norm_eps": ("rms_norm_eps", 1e-6),
    "tied": ("tie_word_embeddings", False),
}

# Settings that change the numbers, and the one value of each that is computed here.
_FIXED = {"hidden_act": "silu", "attention_bias": False, "mlp_bias": False}


def config_from_hf(settings: Mapping[str, Any], source: str = "config.json") -> LlamaConfig:
    """The config of a Hugging Face config.json; ModelError where the file describes anything but a plain Llama."""
    expect_settings(settings, source, "llama", {key: (only,) for key, only in _FIXED.items()})
    rope = settings.get("rope_parameters") or settings.get("rope_scaling") or {}  # the new name, and the old one
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise ModelError(f"{source}: rotary positions are of type {kind!r}, and only 'default' can be computed")
    sizes = {name: settings.get(key, default) for name, (key, default) in _KEYS.items()}
    sizes["n_kv_head"] = sizes["n_kv_head"] or sizes["n_head"]
    sizes["rope_theta"] = rope.get("rope_theta", settings.get("rope_theta", 10000.0))
    for name, (key, _) in _KEYS.items():
        if sizes[name] is None:
            raise ModelError(f"{source}: {key} is missing")
    try:
        config = LlamaConfig(**sizes)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from None
    if (settings.get("head_dim") or config.head_dim) != config.head_dim:
        raise ModelError(f"{source}: head_dim is {settings['head_dim']!r}, and only {config.head_dim} can be computed")
    return config


def config_to_hf(config: LlamaConfig) -> dict[str, Any]:
    """The config.json from which `transformers` and config_from_hf make the same model."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **_FIXED,
        **{key: getattr(config, name) for name, (key, _) in _KEYS.items()},
        "rope_theta": config.rope_theta,
    }
