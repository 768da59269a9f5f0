"""Reading a safetensors file without copying it: each tensor is a view of the mapped file.

The format (https://huggingface.co/docs/safetensors): 8 bytes with the header's length, little-endian; the header,
JSON, `{"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}`; the tensors' bytes.
The safetensors library's own NumPy reader copies each tensor, which would cost a second copy of the model.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autograder.toolkit.model.config import ModelError

_DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
_ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_MAX_HEADER = 100_000_000  # the format's own limit


def map_tensors(
    path: Path, wanted: Callable[[str], bool] = lambda name: True, widen_bfloat16: bool = False
) -> dict[str, np.ndarray]:
    """The wanted tensors of a safetensors file, as read-only arrays that lie in the file: float32 or float16.

    widen_bfloat16: copy bfloat16, which NumPy does not have, to float32; otherwise it is an error.
    Raises ModelError if the file is incomplete, or if a wanted tensor has another dtype.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < 8:
                raise ModelError(f"{path}: ends after {size} bytes, so it is not a whole safetensors file")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from None
    begin = 8 + int.from_bytes(mapped[:8], "little")
    if begin > min(size, _MAX_HEADER):
        if mapped[:8].startswith(b"version"):
            raise ModelError(f"{path}: is a Git LFS pointer and not the model itself; run `git lfs pull`")
        raise ModelError(f"{path}: has no whole safetensors header, so it is damaged or of another format")
    try:
        header = json.loads(mapped[8:begin].decode())
        header.pop("__metadata__", None)
        entries = {name: _entry(entry) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ModelError(f"{path}: its safetensors header cannot be read, so it is damaged") from None
    end = begin + max((entry[3] for entry in entries.values()), default=0)
    if end > size:
        raise ModelError(f"{path}: ends after {size:,} of {end:,} bytes, so it was not copied or downloaded whole")

    tensors = {}
    for name, (dtype, shape, first, last) in entries.items():
        n_item = math.prod(shape)
        if not wanted(name):
            continue
        if dtype == "BF16" and not widen_bfloat16:
            raise ModelError(
                f"{path}: {name} is bfloat16, which NumPy cannot read; with transformers and PyTorch, save the model "
                "again as float32: AutoModelForCausalLM.from_pretrained(FOLDER).float().save_pretrained(NEW_FOLDER)"
            )
        if dtype not in _DTYPES and dtype != "BF16":
            raise ModelError(f"{path}: {name} has dtype {dtype}, and only F32 and F16 can be read")
        if last - first != n_item * _ITEM_BYTES[dtype]:
            raise ModelError(f"{path}: {name} has {last - first} bytes, which do not fit its shape {list(shape)}")
        if dtype == "BF16":  # the upper half of a float32
            halves = np.frombuffer(mapped, "<u2", count=n_item, offset=begin + first)
            array = (halves.astype("<u4") << 16).view("<f4")
        else:
            array = np.frombuffer(mapped, _DTYPES[dtype], count=n_item, offset=begin + first)
        tensors[name] = array.reshape(shape)
    return tensors


def _entry(entry: dict[str, Any]) -> tuple[str, tuple[int, ...], int, int]:
    """(dtype, shape, begin, end) of one tensor's header entry; ValueError where a number is not a plain count."""
    shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
    if not all(type(n) is int and n >= 0 for n in (*shape, begin, end)) or begin > end:
        raise ValueError("not a count")
    return str(entry["dtype"]), shape, begin, end
