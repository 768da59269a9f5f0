"""A GPT-2's shape, and which config.json files are read or refused."""

from __future__ import annotations

import dataclasses

import pytest

from autograder.toolkit.model import GPT2_LARGE, GPT2_MEDIUM, GPT2_SMALL, GPT2_XL, GPT2Config, ModelError
from autograder.toolkit.model.config import config_from_hf, config_to_hf
from autograder.toolkit.model.weights import tensor_shapes

HF = {"model_type": "gpt2", "n_layer": 2, "n_head": 3, "n_embd": 12, "n_positions": 16, "vocab_size": 50}


def n_parameters(config: GPT2Config) -> int:
    total = 0
    for shape in tensor_shapes(config).values():
        size = 1
        for n in shape:
            size *= n
        total += size
    return total


@pytest.mark.parametrize(
    ("config", "millions"), [(GPT2_SMALL, 124.4), (GPT2_MEDIUM, 354.8), (GPT2_LARGE, 774.0), (GPT2_XL, 1557.6)]
)
def test_published_shapes_have_the_published_number_of_parameters(config, millions):
    assert round(n_parameters(config) / 1e6, 1) == millions
    assert config.head_dim == 64


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        GPT2_SMALL.n_layer = 1


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "12", None])
def test_every_size_is_a_positive_integer(value):
    with pytest.raises(ModelError, match="n_layer must be a positive integer"):
        GPT2Config(n_layer=value, n_head=1, n_embd=8, n_ctx=8, n_vocab=8)


def test_heads_divide_the_width():
    with pytest.raises(ModelError, match=r"n_embd \(10\) must be divisible by n_head \(3\)"):
        GPT2Config(n_layer=1, n_head=3, n_embd=10, n_ctx=8, n_vocab=8)


def test_hugging_face_round_trip():
    for config in (GPT2_SMALL, GPT2Config(1, 1, 8, 16, 11)):
        assert config_from_hf(config_to_hf(config)) == config


def test_a_config_with_the_sizes_alone_is_enough():
    assert config_from_hf(HF) == GPT2Config(2, 3, 12, 16, 50)


def test_n_positions_is_what_counts_and_old_files_have_n_ctx_alone():
    assert config_from_hf({**HF, "n_ctx": 99}).n_ctx == 16
    old = {key: value for key, value in HF.items() if key != "n_positions"}
    assert config_from_hf({**old, "n_ctx": 99}).n_ctx == 99


def test_settings_that_leave_the_numbers_alone_are_ignored():
    others = {"resid_pdrop": 0.3, "use_cache": False, "n_inner": 48, "reorder_and_upcast_attn": True}
    assert config_from_hf({**HF, **others}) == config_from_hf(HF)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "llama"}, "model_type is 'llama', and only 'gpt2' can be read"),
        ({"model_type": None}, "model_type is None"),
        ({"activation_function": "gelu"}, "activation_function is 'gelu'"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon is 1e-06"),
        ({"scale_attn_weights": False}, "scale_attn_weights is False"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ({"add_cross_attention": True}, "add_cross_attention is True"),
        ({"n_inner": 24}, r"n_inner is 24, and GPT-2 has 4 \* n_embd = 48"),
        ({"n_head": 5}, r"n_embd \(12\) must be divisible by n_head \(5\)"),
        ({"n_layer": None}, "n_layer is missing"),
        ({"n_positions": None}, "n_positions is missing"),
        ({"vocab_size": "many"}, "n_vocab must be a positive integer, not 'many'"),
    ],
)
def test_anything_that_changes_the_numbers_is_refused_in_one_sentence(change, message):
    with pytest.raises(ModelError, match=f"^folder/config.json: {message}[^\n]*$"):
        config_from_hf({**HF, **change}, source="folder/config.json")
