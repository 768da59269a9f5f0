"""Live comparison of the Llama parts with `transformers`, where PyTorch is installed (`make test-peers`)."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.numpy import save_file  # noqa: E402

from autograder.stages.chat_model.llama import LlamaReference  # noqa: E402
from autograder.toolkit.chat.config import LlamaConfig, config_to_hf  # noqa: E402
from autograder.toolkit.chat.load import load_llama  # noqa: E402
from autograder.toolkit.chat.random_weights import random_llama  # noqa: E402
from autograder.toolkit.chat.weights import tensors_of  # noqa: E402

# By n_head / n_kv_head; the figures of a shape all differ
SHAPES = {
    1: LlamaConfig(n_layer=3, n_head=3, n_kv_head=3, n_embd=30, n_inner=44, n_ctx=64, n_vocab=71, rope_theta=1e4),
    2: LlamaConfig(n_layer=2, n_head=4, n_kv_head=2, n_embd=40, n_inner=56, n_ctx=64, n_vocab=73, rope_theta=1e5),
    3: LlamaConfig(n_layer=4, n_head=9, n_kv_head=3, n_embd=36, n_inner=50, n_ctx=64, n_vocab=79, tied=False),
}


def logits_of(model, ids):
    """[n_seq, n_vocab]"""
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().numpy()


@pytest.mark.parametrize("ratio", SHAPES)
def test_transformers_reads_our_random_models_alike(tmp_path, ratio):
    weights = random_llama(SHAPES[ratio], seed=ratio)
    (tmp_path / "config.json").write_text(json.dumps(config_to_hf(weights.config)))
    tensors = {name: np.array(array) for name, array in tensors_of(weights).items()}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    ids = np.random.default_rng(ratio).integers(0, weights.config.n_vocab, weights.config.n_ctx).tolist()
    np.testing.assert_allclose(LlamaReference(weights).logits(ids), logits_of(model, ids), atol=1e-4, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_transformers_saves_is_read_alike(tmp_path, monkeypatch, dtype):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    torch.manual_seed(1)
    settings = {**config_to_hf(SHAPES[3]), "initializer_range": 0.3}
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**settings)).to(dtype).save_pretrained(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    weights = load_llama(tmp_path)
    assert weights.config == SHAPES[3]
    ids = list(range(60))
    np.testing.assert_allclose(LlamaReference(weights).logits(ids), logits_of(model, ids), atol=1e-3, rtol=0)
