"""What the course relies on in its own model: it was trained, its positions matter, and it fits into the repository."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.judge.reference import Reference
from autograder.places import ROOT
from autograder.toolkit.model import load_model, load_tokenizer, tensors_of

DATA = ROOT / "data"


@pytest.fixture(scope="module")
def weights():
    return load_model("tiny")


@pytest.fixture(scope="module")
def reference(weights):
    return Reference(weights)


@pytest.fixture(scope="module")
def held_out_ids():
    text = (DATA / "tinyshakespeare.txt").read_text(encoding="utf-8")
    return load_tokenizer("tiny").encode(text[len(text) * 9 // 10 :])


def losses(logits: np.ndarray, targets: list[int]) -> np.ndarray:
    """Cross-entropy in nats, [n_seq]."""
    top = logits.max(axis=-1, keepdims=True)
    log_sum = np.log(np.exp(logits - top).sum(axis=-1)) + top[:, 0]
    return log_sum - logits[np.arange(len(targets)), targets]


def test_the_folder_fits_into_the_repository():
    assert (DATA / "tiny-gpt2" / "model.safetensors").stat().st_size < 12e6


def test_the_model_card_has_the_right_number_of_parameters(weights):
    n_parameter = sum(array.size for array in tensors_of(weights).values())
    assert f"{n_parameter:,}, float32" in (DATA / "tiny-gpt2" / "README.md").read_text()


def test_held_out_text_is_predicted_at_every_position(reference, held_out_ids):
    """A quick part of what data/make/evaluate.py measures in full: 3.33 nats a token."""
    n_ctx = reference.config.n_ctx
    starts = range(0, len(held_out_ids) - n_ctx, len(held_out_ids) // 4)
    rows = [losses(reference.logits(held_out_ids[i : i + n_ctx]), held_out_ids[i + 1 : i + n_ctx + 1]) for i in starts]
    assert np.mean(rows) < 3.6
    assert np.mean(rows, axis=0).reshape(-1, 64).mean(axis=1).max() < 4.0  # also beyond the first hundreds


@pytest.mark.parametrize("n_prefix", [8, 200])
def test_a_wrong_position_changes_every_row(reference, held_out_ids, n_prefix):
    n_suffix = 16
    ids = held_out_ids[1000 : 1000 + n_prefix + n_suffix]
    right = reference.logits(ids)[n_prefix:]
    for first, least in ((0, 0.2), (n_prefix + 1, 0.05), (n_prefix - 1, 0.05)):
        positions = [*range(n_prefix), *range(first, first + n_suffix)]
        wrong = reference.logits(ids, positions=positions)[n_prefix:]
        assert abs(wrong - right).max(axis=-1).min() > least, first


def test_no_two_positions_are_alike(weights):
    norms = np.linalg.norm(weights.wpe, axis=1)
    cosines = (weights.wpe @ weights.wpe.T) / np.outer(norms, norms)
    assert norms.min() > 0.2
    assert (cosines - np.eye(len(norms))).max() < 0.95
