"""Files that only a program other than the writer makes: one in the course's format, with one thing wrong in it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from autograder.toolkit.model import GPT2Config

OTHER_FACTS = {"prefix_len": "1", "dtype": "float16", "layout": "n_seq, n_head, head_dim"}  # fingerprints: by models


def spoiled_files(data: bytes, config: GPT2Config) -> Iterator[tuple[str, bytes]]:
    """(what is wrong, the file) for each; none where the data is not in the course's format."""
    read = _in_the_courses_format(data, config.n_layer)
    if read is None:
        return
    tensors, facts = read
    last = f"layers.{config.n_layer - 1}.values"
    for name in ("prefix_ids", "layers.0.keys", last):
        yield f"a file without {name}", save({n: a for n, a in tensors.items() if n != name}, facts)
    for what, changed in _other_arrays(tensors, config, last):
        yield f"a file with {what}", save({**tensors, **changed}, facts)
    if facts:
        yield "a file without metadata", save(tensors)
    for field in facts:
        rest = {f: text for f, text in facts.items() if f != field}
        if field in (*OTHER_FACTS, "fingerprint"):
            yield f"a file without the fact {field}", save(tensors, rest)
        if field in OTHER_FACTS:
            yield f"a file with another {field}", save(tensors, {**rest, field: OTHER_FACTS[field]})
    many = config.n_ctx + 1
    long = {n: np.resize(a, (many,) if a.ndim == 1 else (*a.shape[:1], many, *a.shape[2:])) for n, a in tensors.items()}
    yield "a file with more than n_ctx ids", save(long, {**facts, "prefix_len": str(many)} if facts else None)
    yield "a file with an array of bfloat16, which NumPy does not have", _with_bfloat16(data, last)


def _other_arrays(
    tensors: dict[str, np.ndarray], config: GPT2Config, last: str
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    ids, keys, values = tensors["prefix_ids"], tensors["layers.0.keys"], tensors[last]
    yield "prefix_ids of float64", {"prefix_ids": ids.astype(np.float64)}
    yield "prefix_ids of two axes", {"prefix_ids": ids[:, None]}
    for outside in (-1, config.n_vocab, 2 * config.n_vocab):
        yield f"the prefix id {outside}", {"prefix_ids": np.where(np.arange(len(ids)) == 1, outside, ids)}
    for dtype in (np.float16, np.float64):
        yield f"keys of {np.dtype(dtype)}", {"layers.0.keys": keys.astype(dtype)}
    yield "keys whose first two axes are exchanged", {"layers.0.keys": np.ascontiguousarray(keys.swapaxes(0, 1))}
    yield "values that are one row short", {last: np.ascontiguousarray(values[:, 1:])}
    for number in (np.nan, np.inf):
        spoiled = values.copy()
        spoiled[-1, 0, 1] = number
        yield f"{number:g} among the values", {last: spoiled}


def _in_the_courses_format(data: bytes, n_layer: int) -> tuple[dict[str, np.ndarray], dict[str, str]] | None:
    """(the arrays, the metadata)."""
    try:
        tensors = load(data)
    except (SafetensorError, TypeError):
        return None
    if set(tensors) != {"prefix_ids", *(f"layers.{i}.{part}" for i in range(n_layer) for part in ("keys", "values"))}:
        return None
    return tensors, _header(data)[0].get("__metadata__", {})


def _header(data: bytes) -> tuple[dict, bytes]:
    """(the header, what follows it)."""
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def _with_bfloat16(data: bytes, name: str) -> bytes:
    """The same bytes, of which twice as many numbers are read."""
    header, rest = _header(data)
    header[name]["dtype"] = "BF16"
    header[name]["shape"][-1] *= 2
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + rest
