"""load_llama and random_llama: which folders are read, and the sentence that refuses every other."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from autograder.toolkit.chat import load as load_module
from autograder.toolkit.chat.config import SMOLLM2, LlamaConfig, config_from_hf, config_to_hf
from autograder.toolkit.chat.load import load_llama
from autograder.toolkit.chat.random_weights import random_llama
from autograder.toolkit.chat.weights import replace_tensor, tensors_of
from autograder.toolkit.model import ModelError

SHAPE = LlamaConfig(
    n_layer=2, n_head=6, n_kv_head=2, n_embd=24, n_inner=40, n_ctx=32, n_vocab=61, rope_theta=5000.0, norm_eps=1e-4
)


@pytest.fixture(autouse=True)
def kept(monkeypatch, tmp_path):
    """Where float32 copies are kept."""
    monkeypatch.setattr(load_module, "fetched_folder", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "float32"


@pytest.fixture
def write_folder(tmp_path):
    """write_folder(config, change, **settings) -> a folder with random weights, changed in that way."""

    def write(config=SHAPE, change=dict, **settings):
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({**config_to_hf(config), **settings}))
        tensors = {name: np.array(array) for name, array in tensors_of(random_llama(config, 7)).items()}
        save_file(change(tensors), folder / "model.safetensors")
        return folder

    return write


def same(a, b):
    return a.config == b.config and all(
        np.array_equal(x, y) for x, y in zip(tensors_of(a).values(), tensors_of(b).values(), strict=True)
    )


def without_prefix(tensors):
    return {name.removeprefix("model."): array for name, array in tensors.items()}


def with_tied_head(tensors):
    return tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"].copy()}


def with_frequencies(tensors):
    return tensors | {"model.layers.0.self_attn.rotary_emb.inv_freq": np.zeros(2, np.float32)}


@pytest.mark.parametrize("change", [dict, without_prefix, with_tied_head, with_frequencies])
def test_all_good_files_load_alike_and_lie_in_the_file(write_folder, change):
    weights = load_llama(write_folder(change=change))
    assert same(weights, random_llama(SHAPE, 7))
    assert weights.head is weights.wte
    for array in tensors_of(weights).values():
        assert not array.flags.owndata and not array.flags.writeable


def test_a_head_of_its_own(write_folder):
    config = replace(SHAPE, tied=False)
    weights = load_llama(write_folder(config))
    assert same(weights, random_llama(config, 7))
    assert not np.array_equal(weights.head, weights.wte)


def widened(path):
    """A float32 file rewritten as bfloat16, by hand: the upper halves of its numbers."""
    tensors = load_file(path)
    header, body = {}, b""
    for name, array in tensors.items():
        data = (array.view("<u4") >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": array.shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return {name: (array.view("<u4") >> 16 << 16).view("<f4") for name, array in tensors.items()}


def test_bfloat16_is_made_float32_once_and_kept(write_folder, kept):
    folder = write_folder()
    expected = widened(folder / "model.safetensors")
    first = load_llama(folder)
    (copy,) = kept.rglob("*.*")
    assert copy.name == "model.safetensors"
    made = os.stat(copy).st_mtime_ns
    for weights in (first, load_llama(folder)):
        assert all(np.array_equal(a, expected[name]) for name, a in tensors_of(weights).items())
        assert not weights.wte.flags.writeable and not weights.wte.flags.owndata
    assert os.stat(copy).st_mtime_ns == made


def test_another_file_in_the_same_place_is_another_copy(write_folder):
    folder = write_folder(change=lambda tensors: {name: a.astype(np.float16) for name, a in tensors.items()})
    before = load_llama(folder)
    write_folder(change=lambda tensors: {name: (-a).astype(np.float16) for name, a in tensors.items()})
    assert np.array_equal(load_llama(folder).wte, -before.wte)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {n: a for n, a in t.items() if "k_proj" not in n}, "missing model.layers.0.self_attn.k_proj.weight"),
        (lambda t: t | {"model.extra": np.zeros(1, np.float32)}, "unknown model.extra"),
        (
            lambda t: t | {"model.norm.weight": np.zeros(23, np.float32)},
            r"model.norm.weight has shape \[23\] and should have \[24\]",
        ),
        (lambda t: t | {"lm_head.weight": 2 * t["model.embed_tokens.weight"]}, "lm_head.weight differs from"),
    ],
)
def test_every_wrong_tensor_is_named(write_folder, change, message):
    with pytest.raises(ModelError, match=message):
        load_llama(write_folder(change=change))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_type": "mistral"}, "model_type is 'mistral'"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "type 'linear'"),
        ({"head_dim": 8}, "head_dim is 8"),
        ({"num_key_value_heads": 4}, "n_head .6. must be divisible by n_kv_head .4."),
        ({"hidden_size": 18}, "times an even number"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"num_hidden_layers": 0}, "n_layer must be a positive integer"),
    ],
)
def test_anything_but_a_plain_llama_is_refused(write_folder, settings, message):
    with pytest.raises(ModelError, match=f"config.json: .*{message}"):
        load_llama(write_folder(**settings))


def test_the_config_survives_the_file():
    assert config_from_hf(config_to_hf(SMOLLM2)) == SMOLLM2
    assert config_from_hf({**config_to_hf(SHAPE), "rope_parameters": {"rope_theta": 7.0}}).rope_theta == 7.0


def test_a_model_that_was_not_fetched_is_reported_with_the_command(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ModelError, match="run `autograder fetch smollm2`"):
        load_module.chat_folder("smollm2")
    with pytest.raises(ModelError, match="neither a folder nor the name of a chat model"):
        load_llama("smollm3")


@pytest.mark.parametrize("load", [lambda folder: load_llama(folder), lambda folder: random_llama(SHAPE, 7)])
def test_matrices_of_the_same_rows_lie_in_one_array_that_cannot_be_written(write_folder, load):
    for block in load(write_folder()).blocks:
        attn, mlp = block.attn, block.mlp
        for whole, parts in (
            (attn.qkv_proj, (attn.q_proj, attn.k_proj, attn.v_proj)),
            (mlp.gate_up_proj, (mlp.gate_proj, mlp.up_proj)),
        ):
            assert np.array_equal(whole, np.concatenate(parts))
            for array in (whole, *parts):
                assert np.shares_memory(array, whole)
                with pytest.raises(ValueError, match="WRITEABLE"):
                    array.setflags(write=True)


def test_random_weights_depend_on_config_and_seed_alone():
    assert same(random_llama(SHAPE, 1), random_llama(SHAPE, 1))
    assert not same(random_llama(SHAPE, 1), random_llama(SHAPE, 2))


def test_one_tensor_is_replaced():
    weights = random_llama(SHAPE, 1)
    other = replace_tensor(weights, "model.norm.weight", np.ones(24))
    assert other.norm_f.sum() == 24 and other.blocks[0].mlp.down_proj is weights.blocks[0].mlp.down_proj
    with pytest.raises(ModelError, match=r"model\.nothing is not a tensor"):
        replace_tensor(weights, "model.nothing", np.ones(24))
