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
from given import ModelCache, decode_step, prefill
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import autograder

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()


# %% solution="save-prefix-cache"
def save_prefix_cache(prefix_ids, weights):
    """Prefill the prefix once; the ModelCache holds exactly len(prefix_ids) positions."""
    ### BEGIN SOLUTION
    saved = ModelCache(weights.config.n_layer)
    prefill(prefix_ids, weights, saved)
    return saved
    ### END SOLUTION


# %% solution="generate-with-prefix"
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    """Logits [n_vocab] after the suffix, whose token i stands at position prefix_len + i; `saved` is not changed."""
    ### BEGIN SOLUTION
    if len(suffix_ids) == 0:
        raise ValueError("the suffix is empty: keep back at least one token of the prompt")
    cache = saved.clone()
    for i, token_id in enumerate(suffix_ids):
        logits = decode_step(token_id, prefix_len + i, weights, cache)
    return logits
    ### END SOLUTION


# %% solution="write-prefix-cache"
def write_prefix_cache(path, saved, prefix_ids, weights):
    """Write the cache to exactly `path`, as safetensors with the facts that make it safe to read back."""
    ### BEGIN SOLUTION
    tensors = {"prefix_ids": np.asarray(prefix_ids, np.int64)}
    for i, layer in enumerate(saved.layers):
        tensors[f"layers.{i}.keys"] = np.ascontiguousarray(layer.keys)
        tensors[f"layers.{i}.values"] = np.ascontiguousarray(layer.values)
    metadata = {
        "prefix_len": str(len(prefix_ids)),
        "fingerprint": autograder.model_fingerprint(weights),
        "dtype": str(saved.layers[0].keys.dtype),
        "layout": "n_head, n_seq, head_dim",
    }
    save_file(tensors, path, metadata)
    ### END SOLUTION


# %% solution="read-prefix-cache"
def read_prefix_cache(path, weights):
    """(saved, prefix_ids) as written; ValueError naming the field that does not fit."""
    ### BEGIN SOLUTION
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise ValueError(f"file: {path} cannot be read as safetensors: {error}") from error
    if metadata.get("fingerprint") != autograder.model_fingerprint(weights):
        raise ValueError("fingerprint: this cache was made with another model")
    prefix_ids = tensors["prefix_ids"].tolist()
    if metadata.get("prefix_len") != str(len(prefix_ids)):
        raise ValueError(f"prefix_len: {metadata.get('prefix_len')} recorded, {len(prefix_ids)} ids stored")
    saved = ModelCache(weights.config.n_layer)
    for i, layer in enumerate(saved.layers):
        keys, values = tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"]
        for name, array in (("keys", keys), ("values", values)):
            if array.shape[1] != len(prefix_ids):
                raise ValueError(f"layers.{i}.{name}: {array.shape[1]} rows for {len(prefix_ids)} prefix ids")
            if not np.isfinite(array).all():
                raise ValueError(f"layers.{i}.{name}: not finite")
        layer.append(keys, values)
    return saved, prefix_ids
    ### END SOLUTION
