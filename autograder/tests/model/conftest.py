"""Model folders in Hugging Face's layout, written for the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from autograder.toolkit.model import GPT2Config, Weights, random_model, tensors_of
from autograder.toolkit.model.config import config_to_hf

SHAPE = GPT2Config(n_layer=3, n_head=3, n_embd=24, n_ctx=32, n_vocab=61)


@pytest.fixture
def weights() -> Weights:
    return random_model(SHAPE, seed=7)


@pytest.fixture
def write_folder(tmp_path: Path, weights: Weights) -> Callable[..., Path]:
    """write_folder(change_tensors=..., **settings) -> a folder with the fixture's weights, changed in that way."""

    def write(change_tensors: Callable[[dict], dict] | None = None, **settings: object) -> Path:
        tensors: dict[str, np.ndarray] = dict(tensors_of(weights))
        if change_tensors:
            tensors = change_tensors(tensors)
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({**config_to_hf(SHAPE), **settings}))
        save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, folder / "model.safetensors")
        return folder

    return write
