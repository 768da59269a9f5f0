"""load_model: which folders are read, and the sentence that refuses every other."""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from autograder.toolkit.model import (
    GPT2_SMALL,
    GPT2Config,
    ModelError,
    fingerprint,
    load_model,
    random_model,
    tensors_of,
)
from autograder.toolkit.model import load as load_module
from autograder.toolkit.model.config import config_to_hf


def add_prefix(tensors):
    return {f"transformer.{name}": array for name, array in tensors.items()}


def add_masks(tensors):
    masks = {f"h.{i}.attn.bias": np.tri(32, dtype=np.uint8)[None, None] for i in range(3)}
    return tensors | masks | {"h.0.attn.masked_bias": np.array(-1e4, np.float16)}


def add_head(tensors):
    return tensors | {"lm_head.weight": tensors["wte.weight"].copy()}


@pytest.mark.parametrize(
    "change",
    [None, add_prefix, add_masks, add_head, lambda t: add_prefix(add_masks(t)) | {"lm_head.weight": t["wte.weight"]}],
)
def test_all_good_files_load_alike(write_folder, weights, change):
    folder = write_folder(change)
    assert fingerprint(load_model(folder)) == fingerprint(load_model(str(folder))) == fingerprint(weights)


def test_tensors_are_views_of_the_mapped_file(write_folder):
    for array in tensors_of(load_model(write_folder())).values():
        base = array
        while isinstance(base, np.ndarray):
            base = base.base
        assert isinstance(base.obj, mmap.mmap)
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_a_file_whose_tensors_are_not_aligned_still_loads(write_folder, weights):
    path = write_folder() / "model.safetensors"
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    path.write_bytes(struct.pack("<Q", length + 1) + content[8 : 8 + length] + b" " + content[8 + length :])
    assert fingerprint(load_model(path.parent)) == fingerprint(weights)


def test_float16_is_widened_with_a_note(write_folder, weights, caplog, capfd):
    folder = write_folder(lambda tensors: {name: array.astype(np.float16) for name, array in tensors.items()})
    with caplog.at_level("INFO", "autograder"):
        loaded = load_model(folder)
    assert loaded.note == "40 of 40 tensors widened from float16"
    assert "widened from float16" in caplog.text
    assert all(array.dtype == np.float32 for array in tensors_of(loaded).values())
    assert np.array_equal(loaded.wte, weights.wte.astype(np.float16))
    assert capfd.readouterr() == ("", "")


def test_a_mixed_file_says_how_much_was_widened(write_folder):
    loaded = load_model(write_folder(lambda t: t | {"wte.weight": t["wte.weight"].astype(np.float16)}))
    assert loaded.note == "1 of 40 tensors widened from float16"


def test_a_model_in_several_files_is_read_through_its_index(write_folder, weights):
    folder = write_folder()
    tensors = add_prefix(tensors_of(weights))
    names = sorted(tensors)
    parts = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
    for part, some in parts.items():
        save_file({name: tensors[name].copy() for name in some}, folder / part)
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {name: part for part, some in parts.items() for name in some}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert fingerprint(load_model(folder)) == fingerprint(weights)
    (folder / "model-00002-of-00002.safetensors").unlink()
    refused(folder, "model-00002-of-00002.safetensors: cannot be read (No such file or directory)")
    (folder / "model.safetensors.index.json").write_text("{}")
    refused(folder, "model.safetensors.index.json: has no weight_map, so it is damaged")


# Names


def test_the_default_is_the_courses_own_model(monkeypatch):
    monkeypatch.delenv("AUTOGRADER_MODEL", raising=False)
    assert load_model().config == load_model("tiny").config == GPT2Config(12, 4, 128, 512, 1024)


def test_the_environment_changes_the_default_only(monkeypatch, write_folder, weights):
    monkeypatch.setenv("AUTOGRADER_MODEL", str(write_folder()))
    assert fingerprint(load_model()) == fingerprint(weights)
    assert load_model("tiny").config.n_layer == 12


def test_an_unknown_home_directory_is_not_a_model():
    refused("~nobody-has-this-name/model", "~nobody-has-this-name/model is neither a folder nor the name of a model")


def test_an_installed_package_finds_the_model_inside_itself(monkeypatch, tmp_path, write_folder, weights):
    inside = tmp_path / "site-packages" / "autograder"
    (inside / "toolkit" / "model").mkdir(parents=True)
    monkeypatch.setattr(load_module, "__file__", str(inside / "toolkit" / "model" / "load.py"))
    refused("tiny", f"the course's own model is missing (looked in {tmp_path}")
    (inside / "data").mkdir()
    write_folder().rename(inside / "data" / "tiny-gpt2")
    assert fingerprint(load_model("tiny")) == fingerprint(weights)


def test_a_published_model_is_looked_for_in_the_users_cache(monkeypatch, tmp_path, write_folder, weights):
    monkeypatch.setattr(load_module, "fetched_folder", lambda name: tmp_path / "cache" / name)
    refused("gpt2-medium", "run `autograder fetch gpt2-medium`")
    (tmp_path / "cache").mkdir()
    write_folder().rename(tmp_path / "cache" / "gpt2-medium")
    assert fingerprint(load_model("gpt2-medium")) == fingerprint(weights)


def test_a_published_shape_needs_no_download(monkeypatch):
    monkeypatch.setitem(load_module.SHAPES, "gpt2-shape", GPT2Config(1, 1, 8, 16, 11))  # the real one takes a second
    assert fingerprint(load_model("gpt2-shape")) == fingerprint(random_model(GPT2Config(1, 1, 8, 16, 11), seed=0))
    monkeypatch.undo()
    assert load_module.SHAPES["gpt2-shape"] == GPT2_SMALL


# One sentence for every folder that cannot be read


def refused(folder: object, message: str) -> None:
    """Loading fails with a ModelError whose one line holds the message and hides no library's traceback."""
    with pytest.raises(ModelError, match=re.escape(message)) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_no_such_folder():
    refused("gpt3", "gpt3 is neither a folder nor the name of a model (tiny, gpt2, gpt2-medium,")


def test_a_file_instead_of_its_folder(write_folder):
    refused(write_folder() / "model.safetensors", "is a file; give the folder that holds config.json")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file(write_folder, name):
    folder = write_folder()
    (folder / name).unlink()
    refused(folder, f"{folder / name} is missing")


def test_only_pytorch_weights(write_folder):
    folder = write_folder()
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(folder, "model.safetensors is missing, and pytorch_model.bin is not read; save the model as safetensors")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{", "is not JSON, so it is damaged"), (b"[]", "holds no JSON object"), (b"\xff\xfe", "is not JSON")],
)
def test_a_damaged_config(write_folder, content, message):
    folder = write_folder()
    (folder / "config.json").write_bytes(content)
    refused(folder, f"{folder / 'config.json'}: {message}")


def test_another_architecture(write_folder):
    folder = write_folder(model_type="opt")
    refused(folder, f"{folder / 'config.json'}: model_type is 'opt', and only 'gpt2' can be read")


@pytest.mark.parametrize("n_layer", [50, 10**7, 10**20])
def test_more_layers_than_tensors_are_refused_at_once(write_folder, n_layer):
    refused(write_folder(n_layer=n_layer), f"model.safetensors: there are 40 tensors, too few for n_layer = {n_layer}")


def test_a_config_that_belongs_to_another_file(write_folder):
    refused(write_folder(n_layer=2), "unknown h.2.attn.c_attn.bias, h.2.attn.c_attn.weight, ")
    refused(write_folder(n_positions=64), "wpe.weight has shape [32, 24] and should have [64, 24]")


def test_a_separate_output_head(write_folder):
    refused(
        write_folder(lambda t: t | {"lm_head.weight": t["wte.weight"] * 2}), "lm_head.weight differs from wte.weight"
    )


def rewrite_header(path: Path, change) -> None:
    """Change the header of a safetensors file, which its library would not write."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


def test_bfloat16_gives_an_instruction(write_folder):
    folder = write_folder(lambda t: t | {"wpe.weight": t["wpe.weight"].astype(np.float16)})
    rewrite_header(folder / "model.safetensors", lambda header: header["wpe.weight"].update(dtype="BF16"))
    refused(
        folder, f"{folder / 'model.safetensors'}: wpe.weight is bfloat16, which NumPy cannot read; with transformers"
    )


def test_another_dtype(write_folder):
    folder = write_folder(lambda t: t | {"wpe.weight": t["wpe.weight"].astype(np.float64)})
    refused(folder, f"{folder / 'model.safetensors'}: wpe.weight has dtype F64, and only F32 and F16 can be read")


def test_a_truncated_file_at_any_length(write_folder):
    path = write_folder() / "model.safetensors"
    whole = path.read_bytes()
    for length in (0, 7, 8, 9, 500, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError) as caught:
            load_model(path.parent)
        assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)
    assert f"ends after {len(whole) - 1:,} of {len(whole):,} bytes" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda h: h["wpe.weight"].update(shape=[33, 24]),
            "wpe.weight has 3072 bytes, which do not fit its shape [33, 24]",
        ),
        (lambda h: h["wpe.weight"].update(shape=[-32, -24]), "header cannot be read, so it is damaged"),
        (lambda h: h["wpe.weight"].update(shape=["32", 24]), "header cannot be read, so it is damaged"),
        (lambda h: h["wpe.weight"].update(data_offsets=[8]), "header cannot be read, so it is damaged"),
        (lambda h: h["wpe.weight"].update(data_offsets=[3072, 0]), "header cannot be read, so it is damaged"),
        (lambda h: h["wpe.weight"].pop("dtype"), "header cannot be read, so it is damaged"),
        (lambda h: h.update(more=3), "header cannot be read, so it is damaged"),
    ],
)
def test_a_damaged_header(write_folder, change, message):
    folder = write_folder()
    rewrite_header(folder / "model.safetensors", change)
    refused(folder, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "is a Git LFS pointer"),
        (b"<html>404 Not Found</html>", "has no whole safetensors header, so it is damaged or of another format"),
        (b"\x02\0\0\0\0\0\0\0[]", "its safetensors header cannot be read, so it is damaged"),
        (b"\x02\0\0\0\0\0\0\0{}", "there are 0 tensors, too few for n_layer = "),
    ],
)
def test_a_file_that_is_something_else(write_folder, content, message):
    folder = write_folder()
    (folder / "model.safetensors").write_bytes(content)
    refused(folder, message)


# Cost

MEASURE = """
import re, sys
import numpy as np
from autograder.toolkit.model import load_model, tensors_of
import autograder.toolkit.model.load, autograder.toolkit.model.safetensors_file

def peak():  # of this process since it began, in bytes
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

before = peak()
weights = load_model(sys.argv[1])
assert all(np.isfinite(array[..., 0]).all() for array in tensors_of(weights).values())
total = sum(float(array.sum()) for array in tensors_of(weights).values())  # every page has been read now
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's account of memory")
def test_peak_memory_is_that_of_one_copy(tmp_path):
    config = GPT2Config(n_layer=2, n_head=8, n_embd=1024, n_ctx=64, n_vocab=1000)
    save_file(
        {name: array.copy() for name, array in tensors_of(random_model(config, 0)).items()},
        tmp_path / "model.safetensors",
    )
    (tmp_path / "config.json").write_text(json.dumps(config_to_hf(config)))
    size = (tmp_path / "model.safetensors").stat().st_size
    assert size > 100e6
    command = [sys.executable, "-c", MEASURE, str(tmp_path)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ).stdout)
    assert 0.9 * size < grown < 1.15 * size
