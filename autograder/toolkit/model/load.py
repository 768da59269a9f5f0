"""load_model: loads weights from a name or a folder, without a second copy of the file in memory."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np

from autograder.toolkit.memory import keep_freed_memory
from autograder.toolkit.model.config import PUBLISHED, ModelError, chosen_model, config_from_hf
from autograder.toolkit.model.safetensors_file import map_tensors
from autograder.toolkit.model.weights import Weights, plain_name, weights_from_tensors
from autograder.toolkit.threads import suit_threads

log = logging.getLogger("autograder")

SHAPES = {f"{name}-shape": config for name, config in PUBLISHED.items()}


def load_model(name_or_path: str | Path | None = None) -> Weights:
    """The weights of "tiny", of a published model that was fetched ("gpt2", ...), or of a Hugging Face folder.

    Without an argument it is the model named by the environment variable AUTOGRADER_MODEL, else "tiny".
    "gpt2-shape" (and so on) are random weights of the published shape, for timing without a download.

    After a small model is loaded, NumPy uses one thread, unless the environment says how many: the matrices are too
    small to divide among threads, and times would depend on other work on the machine.
    """
    name = resolve_name(name_or_path)
    if name in SHAPES:
        from autograder.toolkit.model.random_weights import random_model

        weights = random_model(SHAPES[name], seed=0)
    else:
        weights = load_folder(model_folder(name))
    suit_threads(weights.config.n_embd)
    keep_freed_memory()
    return weights


def resolve_name(name_or_path: str | Path | None) -> str:
    """The given name or path, or the default."""
    if name_or_path is None:
        name_or_path = chosen_model()
    return os.fspath(name_or_path)


def absolute_name(name_or_path: str | Path | None) -> str:
    """A name of the model for a process with another folder and home directory: a path, if the model has a folder."""
    name = resolve_name(name_or_path)
    return name if name == "tiny" or name in SHAPES else str(model_folder(name).resolve())


def model_folder(name: str) -> Path:
    """The folder of a model given by name or path; raises ModelError, with the remedy, if there is none."""
    if name == "tiny":
        return _tiny_folder()
    if name in PUBLISHED:
        folder = fetched_folder(name)
        if not is_fetched(name):
            raise ModelError(f"{name} is not on this machine (looked in {folder}); run `autograder fetch {name}`")
        return folder
    try:
        folder = Path(name).expanduser()
    except RuntimeError:  # of an account that there is not
        folder = Path(name)
    if folder.is_file():
        raise ModelError(f"{folder} is a file; give the folder that holds config.json and model.safetensors")
    if not folder.is_dir():
        known = ", ".join(("tiny", *PUBLISHED, *SHAPES))
        raise ModelError(f"{name} is neither a folder nor the name of a model ({known})")
    return folder


def fetched_folder(name: str) -> Path:
    """Where `autograder fetch` puts a published model: in the user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("autograder") / "models" / name


def is_fetched(name: str) -> bool:
    """Whether a published model is complete: its config.json is written last."""
    return (fetched_folder(name) / "config.json").is_file()


def _tiny_folder() -> Path:
    package = Path(__file__).resolve().parents[2]
    installed, checkout = (root / "data" / "tiny-gpt2" for root in (package, package.parent))
    for folder in (installed, checkout):
        if (folder / "config.json").is_file():
            return folder
    raise ModelError(f"the course's own model is missing (looked in {checkout} and {installed}); install it again")


def load_folder(folder: Path) -> Weights:
    """The weights of a Hugging Face GPT-2 folder; every failure is a ModelError that names the file."""
    path = folder / "config.json"
    config = config_from_hf(read_json(path), source=str(path))
    paths = weight_files(folder)
    tensors = read_tensors(paths, wanted=lambda name: plain_name(name) is not None)
    where = paths[0] if len(paths) == 1 else folder
    widened = sum(array.dtype == np.float16 for array in tensors.values())
    note = f"{widened} of {len(tensors)} tensors widened from float16" if widened else ""
    try:
        weights = weights_from_tensors(config, tensors, note)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
    if note:
        log.info("%s: %s", where, note)
    return weights


def read_tensors(paths: list[Path], **options: Any) -> dict[str, np.ndarray]:
    """The tensors of all files; options: of map_tensors."""
    tensors: dict[str, np.ndarray] = {}
    for path in paths:
        for name, array in map_tensors(path, **options).items():
            if name in tensors:
                raise ModelError(f"{path}: {name} is also in another file of the model")
            tensors[name] = array
    return tensors


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; raises ModelError if the file is missing or holds something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path} is missing") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise ModelError(f"{path}: is not JSON, so it is damaged") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path}: holds no JSON object")
    return content


def weight_files(folder: Path) -> list[Path]:
    """model.safetensors, or the files that model.safetensors.index.json lists for a large model."""
    path, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if path.exists():
        return [path]
    if index.exists():
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
            raise ModelError(f"{index}: has no weight_map, so it is damaged")
        return [folder / name for name in sorted(set(weight_map.values()))]
    if (folder / "pytorch_model.bin").exists():
        raise ModelError(f"{path} is missing, and pytorch_model.bin is not read; save the model as safetensors")
    raise ModelError(f"{path} is missing")
