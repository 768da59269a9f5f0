"""The tree of weights: names, refusals, and that it is read-only. Permitted differences: test_load.py."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from autograder.toolkit.model import (
    GPT2_SMALL,
    ModelError,
    fingerprint,
    replace_tensor,
    tensors_of,
    weights_from_tensors,
)
from autograder.toolkit.model.weights import LayerNorm, immutable


def test_names_are_gpt2s_own(weights):
    tensors = tensors_of(weights)
    assert tensors["wte.weight"] is weights.wte
    assert tensors["h.2.attn.c_attn.weight"] is weights.blocks[2].attn.c_attn.weight
    assert tensors["h.0.attn.c_proj.bias"] is weights.blocks[0].attn.c_proj.bias
    assert tensors["h.1.mlp.c_fc.weight"].shape == (24, 96)
    assert tensors["h.1.mlp.c_proj.weight"].shape == (96, 24)
    assert tensors["ln_f.bias"] is weights.ln_f.bias
    assert len(tensors) == 4 + 12 * 3


def test_tensors_round_trip_and_share_the_arrays(weights):
    again = weights_from_tensors(weights.config, tensors_of(weights))
    assert all(a is b for a, b in zip(tensors_of(again).values(), tensors_of(weights).values(), strict=True))


# What is refused


def test_every_problem_is_named_in_one_sentence(weights):
    tensors = tensors_of(weights)
    del tensors["wpe.weight"], tensors["h.1.mlp.c_fc.bias"]
    tensors["h.3.ln_1.weight"] = tensors["score.weight"] = np.ones(24, np.float32)
    tensors["h.0.attn.c_attn.weight"] = tensors["h.0.attn.c_attn.weight"].T
    tensors["h.2.ln_2.bias"] = np.zeros(24, np.int64)
    with pytest.raises(ModelError) as caught:
        weights_from_tensors(weights.config, tensors)
    message = str(caught.value)
    assert message == (
        "missing wpe.weight, h.1.mlp.c_fc.bias; unknown h.3.ln_1.weight, score.weight; "
        "h.0.attn.c_attn.weight has shape [72, 24] and should have [24, 72]; "
        "h.2.ln_2.bias has dtype int64 and should have float32"
    )


def test_a_tensor_with_and_without_the_prefix_is_refused(weights):
    with pytest.raises(ModelError, match=r"wte\.weight is there twice"):
        weights_from_tensors(weights.config, tensors_of(weights) | {"transformer.wte.weight": weights.wte})


# Nobody can write


def test_no_array_can_be_written_or_made_writeable(weights):
    for name, array in tensors_of(weights).items():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
        assert array.dtype == np.float32 and array.flags.c_contiguous, name


def test_a_view_or_the_base_of_an_array_cannot_be_written_either(weights):
    base = weights.wpe
    while isinstance(base, np.ndarray):
        with pytest.raises(ValueError, match="WRITEABLE"):
            base[:1].flags.writeable = True
        base = base.base
    assert memoryview(base).readonly


def test_no_field_can_be_replaced(weights):
    with pytest.raises(dataclasses.FrozenInstanceError):
        weights.wte = weights.wpe
    with pytest.raises(dataclasses.FrozenInstanceError):
        weights.blocks[0].attn.c_attn.bias = weights.wpe


def test_weights_made_by_hand_are_copied_out_of_reach():
    mine = np.ones(4, np.float32)
    norm = LayerNorm(mine, mine)
    mine[:] = 5
    assert norm.weight.tolist() == [1, 1, 1, 1]


def test_an_array_only_marked_read_only_is_copied():
    mine = np.ones(4, np.float32)
    marked = mine[:]
    marked.flags.writeable = mine.flags.writeable = False
    safe = immutable(marked)
    mine.flags.writeable = True
    mine[:] = 5
    assert safe.tolist() == [1, 1, 1, 1]
    assert immutable(safe) is safe


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_copies_and_pickles_are_read_only_too(weights, duplicate):
    again = duplicate(weights)
    assert fingerprint(again) == fingerprint(weights)
    with pytest.raises(ValueError, match="WRITEABLE"):
        again.blocks[0].attn.c_attn.weight.flags.writeable = True


# replace_tensor


def test_replace_tensor_shares_everything_else(weights):
    spoiled = replace_tensor(weights, "wpe.weight", np.full_like(weights.wpe, np.nan))
    assert np.isnan(spoiled.wpe).all() and not np.isnan(weights.wpe).any()
    before, after = tensors_of(weights), tensors_of(spoiled)
    assert [name for name in before if before[name] is not after[name]] == ["wpe.weight"]


def test_replace_tensor_takes_the_prefix_and_refuses_what_does_not_fit(weights):
    spoiled = replace_tensor(weights, "transformer.h.1.attn.c_attn.bias", np.zeros(72, np.float32))
    assert not spoiled.blocks[1].attn.c_attn.bias.any()
    with pytest.raises(ModelError, match=r"wpe.weight has shape \[3, 3\] and should have \[32, 24\]"):
        replace_tensor(weights, "wpe.weight", np.zeros((3, 3)))
    for name in ("nothing.weight", "h.0.attn.bias", "lm_head.weight"):
        with pytest.raises(ModelError, match=f"{name} is not a tensor of this model"):
            replace_tensor(weights, name, weights.wte)


# The fingerprint


def test_one_changed_bit_anywhere_changes_the_fingerprint(weights):
    original = fingerprint(weights)
    assert len(original) == 64 and fingerprint(weights) == original
    for name, array in tensors_of(weights).items():
        bits = array.copy().view(np.uint32)
        bits[(-1,) * array.ndim] ^= 1
        assert fingerprint(replace_tensor(weights, name, bits.view(np.float32))) != original, name


def test_the_config_is_part_of_the_fingerprint(weights):
    other = dataclasses.replace(weights.config, n_head=4)  # no tensor has another shape
    assert fingerprint(weights_from_tensors(other, tensors_of(weights))) != fingerprint(weights)


def test_the_note_is_not(weights):
    assert fingerprint(dataclasses.replace(weights, note="from somewhere else")) == fingerprint(weights)


def test_a_remembered_fingerprint_is_not_carried_to_other_weights(weights):
    original = fingerprint(weights)
    changed = dataclasses.replace(weights, wpe=weights.wpe + 1)
    assert fingerprint(changed) != original
    object.__setattr__(weights, "wpe", changed.wpe)  # against the rules, and noticed all the same
    assert fingerprint(weights) == fingerprint(changed)


def test_printing_shows_the_shape_and_no_numbers(weights):
    assert repr(weights) == (
        "Weights(n_layer=3, n_head=3, n_embd=24, n_ctx=32, n_vocab=61: 0.0 million parameters, random, seed 7)"
    )
    assert repr(weights.blocks[0].attn.c_attn) == "Linear(weight [24, 72], bias [72])"
    assert repr(weights.blocks[0]) == "Block(ln_1, attn, ln_2, mlp)"


def test_the_published_shape_is_spelled_out():
    assert "n_ctx=1024" in repr(GPT2_SMALL)
