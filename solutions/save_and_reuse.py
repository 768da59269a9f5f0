# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 4. Save and reuse a prefix cache

# %% setup="imports"
import numpy as np
from given import LayerCache, ModelCache, advance, decode_step, prefill
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import autograder

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()


# %% solution="save-prefix-cache"
def save_prefix_cache(prefix_ids, weights):
    """Run the prefix once and return the ModelCache that holds it: exactly len(prefix_ids) rows in every layer.

    ValueError when the prefix is empty, longer than n_ctx, or has an id outside the vocabulary.
    """
    ### BEGIN SOLUTION
    saved = ModelCache(weights.config.n_layer)
    prefill(prefix_ids, weights, saved)
    return saved
    ### END SOLUTION


# %% solution="generate-with-prefix"
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    """Logits [n_vocab] after the last suffix token; suffix token i stands at position prefix_len + i.

    `saved` holds the prefix and is not changed, also not when an error is raised.
    ValueError when the suffix is empty, prefix_len is negative, the last position is n_ctx or more, or an id lies
    outside the vocabulary.
    """
    ### BEGIN SOLUTION
    if len(suffix_ids) == 0:
        raise ValueError("the suffix is empty: keep back at least one token of the prompt")
    cache = saved.clone()  # the suffix's rows go here
    return advance(suffix_ids, prefix_len, weights, cache)
    ### END SOLUTION


# %% solution="cache-facts"
def cache_facts(prefix_ids, weights):
    """What must agree before a cache file may be used, as text: {"fingerprint": ..., "prefix_len": ..., ...}."""
    ### BEGIN SOLUTION
    return {
        "fingerprint": autograder.model_fingerprint(weights),
        "prefix_len": str(len(prefix_ids)),
        "dtype": "float32",
        "layout": "n_head, n_seq, head_dim",
    }
    ### END SOLUTION


# %% solution="check-tensors"
def check_tensors(tensors, weights):
    """ValueError, naming the tensor, unless `tensors` is a whole cache of this model: ids, keys and values that fit."""
    ### BEGIN SOLUTION
    config, prefix_ids = weights.config, tensors["prefix_ids"]
    if prefix_ids.ndim != 1 or prefix_ids.dtype != np.int64 or not 1 <= len(prefix_ids) <= config.n_ctx:
        raise ValueError(f"prefix_ids: {prefix_ids.dtype} {list(prefix_ids.shape)} is no list of 1 to n_ctx ids")
    if prefix_ids.min() < 0 or prefix_ids.max() >= config.n_vocab:
        raise ValueError("prefix_ids: there are ids outside the vocabulary")
    shape = (config.n_head, len(prefix_ids), config.n_embd // config.n_head)
    for name in (f"layers.{i}.{part}" for i in range(config.n_layer) for part in ("keys", "values")):
        array = tensors.get(name)
        if array is None or array.dtype != np.float32 or array.shape != shape:
            found = "missing" if array is None else f"{array.dtype} {list(array.shape)}"
            raise ValueError(f"{name}: {found} instead of float32 {list(shape)}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: there are values that are not finite")
    ### END SOLUTION


# %% solution="write-prefix-cache"
def write_prefix_cache(path, saved, prefix_ids, weights):
    """Write `saved` and the ids it was made of to exactly `path`; ValueError when they do not fit each other."""
    ### BEGIN SOLUTION
    tensors = {"prefix_ids": np.asarray(prefix_ids, np.int64)}
    for i, layer in enumerate(saved.layers):
        tensors[f"layers.{i}.keys"] = np.ascontiguousarray(layer.keys)
        tensors[f"layers.{i}.values"] = np.ascontiguousarray(layer.values)
    check_tensors(tensors, weights)
    save_file(tensors, path, cache_facts(prefix_ids, weights))
    ### END SOLUTION


# %% solution="read-prefix-cache"
def read_prefix_cache(path, weights):
    """(saved, prefix_ids) as they were written; ValueError, naming the field, when the file does not fit `weights`."""
    ### BEGIN SOLUTION
    try:
        with safe_open(path, framework="np") as file:
            facts, names = file.metadata() or {}, file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, TypeError) as error:
        raise ValueError(f"file: {path} is not a whole cache file ({error})") from error
    prefix_ids = tensors.setdefault("prefix_ids", np.empty(0, np.int64)).tolist()
    for field, expected in cache_facts(prefix_ids, weights).items():
        if facts.get(field) != expected:
            raise ValueError(f"{field}: the file says {facts.get(field)}, and {expected} is needed")
    check_tensors(tensors, weights)
    saved = ModelCache(weights.config.n_layer)
    for i, layer in enumerate(saved.layers):
        layer.append(tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"])
    return saved, prefix_ids
    ### END SOLUTION
