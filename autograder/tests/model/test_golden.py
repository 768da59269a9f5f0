"""The committed model gives the logits of `transformers`, which data/make/make_golden.py recorded."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from autograder.judge.reference import Reference
from autograder.places import ROOT
from autograder.toolkit.model import load_model, load_tokenizer

DATA = ROOT / "data"
GOLDEN = json.loads((DATA / "golden" / "golden.json").read_text())
LOGITS = load_file(DATA / "golden" / "logits.safetensors")
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def weights():
    return load_model("tiny")


def test_the_golden_logits_are_those_of_the_committed_weights():
    model = (DATA / "tiny-gpt2" / "model.safetensors").read_bytes()
    assert hashlib.sha256(model).hexdigest() == GOLDEN["model_sha256"], "run data/make/make_golden.py again"


def test_they_reach_from_one_token_to_the_context_limit(weights):
    lengths = sorted(len(case["token_ids"]) for case in GOLDEN["cases"])
    assert lengths[0] == 1 and lengths[-2:] == [weights.config.n_ctx] * 2 and weights.config.n_ctx - 1 in lengths


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_recompute_agrees_with_transformers(weights, case):
    expected = LOGITS[case["name"]]
    actual = Reference(weights).logits(case["token_ids"])
    assert actual.dtype == np.float64 and actual.shape == (len(case["token_ids"]), weights.config.n_vocab)
    np.testing.assert_allclose(actual[case["rows"]], expected, atol=TOLERANCE, rtol=0)


def test_greedy_text_agrees_with_transformers(weights):
    greedy = GOLDEN["greedy"]
    new_ids, gaps = Reference(weights).greedy(greedy["token_ids"], len(greedy["new_ids"]))
    assert min(gaps) > TOLERANCE, "a tie that rounding could break either way"
    assert new_ids == greedy["new_ids"]


def test_the_token_ids_are_the_tokenizers():
    (case,) = (case for case in GOLDEN["cases"] if case["name"] == "a speech")
    assert load_tokenizer("tiny").decode(case["token_ids"]) == "ROMEO:\nBut soft, what light"
