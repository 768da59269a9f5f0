"""load_llama: from a name or a folder to weights that lie in a mapped file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from autograder.toolkit.chat.config import SMOLLM2, LlamaConfig, config_from_hf
from autograder.toolkit.chat.weights import LlamaWeights, is_copied, plain_name, weights_from_tensors
from autograder.toolkit.memory import keep_freed_memory
from autograder.toolkit.model.config import ModelError
from autograder.toolkit.model.load import fetched_folder, is_fetched, read_json, read_tensors, weight_files
from autograder.toolkit.threads import suit_threads

CHAT_MODELS = {"smollm2": SMOLLM2}


def load_llama(name_or_path: str | Path = "smollm2") -> LlamaWeights:
    """The weights of a chat model that was fetched ("smollm2"), or of any Hugging Face folder of a Llama.

    Where the files hold bfloat16 or float16, float32 copies are made once and kept in the user's cache. So loading
    again maps a file, of which only what weights_from_tensors copies is read at once.
    ModelError names what is missing or wrong.
    """
    folder = chat_folder(name_or_path)
    config = config_from_hf(read_json(folder / "config.json"), source=str(folder / "config.json"))
    paths = weight_files(folder)
    tensors = _tensors(paths)
    if any(array.dtype != np.float32 or array.flags.writeable for array in tensors.values()):
        tensors = _kept_as_float32(config, paths, tensors)
    try:
        weights = weights_from_tensors(config, tensors)
    except ModelError as error:
        raise ModelError(f"{paths[0] if len(paths) == 1 else folder}: {error}") from None
    suit_threads(config.n_embd)
    keep_freed_memory()
    return weights


def chat_folder(name_or_path: str | Path) -> Path:
    """The folder of a chat model given by name or path; ModelError says what to do when it is not there."""
    name = os.fspath(name_or_path)
    if name in CHAT_MODELS:
        if not is_fetched(name):
            raise ModelError(f"{name} is not on this machine; run `autograder fetch {name}`")
        return fetched_folder(name)
    folder = Path(name)
    if not folder.is_dir():
        raise ModelError(f"{name} is neither a folder nor the name of a chat model ({', '.join(CHAT_MODELS)})")
    return folder


def _tensors(paths: list[Path]) -> dict[str, np.ndarray]:
    """The tensors in the files. Those that will be copied are in a mapping of their own, which ends with them, so that
    the pages they were read from do not stay in this process's memory.
    """
    copied = read_tensors(paths, wanted=is_copied, widen_bfloat16=True)
    return copied | read_tensors(paths, wanted=_is_mapped, widen_bfloat16=True)


def _is_mapped(name: str) -> bool:
    return plain_name(name) is not None and not is_copied(name)


def _kept_as_float32(config: LlamaConfig, paths: list[Path], tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same tensors from a float32 file in the user's cache, which is made if it is not there yet."""
    about = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    kept = fetched_folder("float32") / hashlib.sha256(repr(about).encode()).hexdigest()[:16] / "model.safetensors"
    if not kept.is_file():
        weights_from_tensors(config, tensors)  # nothing wrong is kept
        write_float32(kept, tensors)
    return _tensors([kept])


def write_float32(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """A safetensors file of the tensors as float32; it is there whole or not at all."""
    from safetensors.numpy import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        arrays = {name: np.ascontiguousarray(array, np.float32) for name, array in tensors.items()}
        save_file(arrays, part, metadata={"format": "pt"})
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
