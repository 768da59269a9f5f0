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
# # 2. The KV cache

# %% setup="imports"
import numpy as np

import autograder

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()


# %% solution="layer-cache"
class LayerCache:
    """The keys and values of one layer."""

    def __init__(self):
        """An empty cache."""
        ### BEGIN SOLUTION
        self._keys = self._values = None  # buffers [n_head, capacity, head_dim], made at the first append
        self._length = 0
        ### END SOLUTION

    def append(self, k, v):
        """Add n_new >= 1 positions after those already there; k and v are [n_head, n_new, head_dim]."""
        ### BEGIN SOLUTION
        if k.shape != v.shape or k.ndim != 3:
            raise ValueError(f"append needs k and v of one shape [n_head, n_new, head_dim], got {k.shape}, {v.shape}")
        end = self._length + k.shape[1]
        if self._keys is None or end > self._keys.shape[1]:
            capacity = max(16, 2 * end)  # twice what is needed, so that growing is rare
            self._keys, self._values = self._grown(self._keys, k, capacity), self._grown(self._values, v, capacity)
        self._keys[:, self._length : end] = k
        self._values[:, self._length : end] = v
        self._length = end

    def _grown(self, old, like, capacity):
        new = np.empty((like.shape[0], capacity, like.shape[2]), np.float32)
        if old is not None:
            new[:, : self._length] = old[:, : self._length]
        return new
        ### END SOLUTION

    @property
    def keys(self):
        """All keys so far, [n_head, n_seq, head_dim]; before the first append it may be anything."""
        ### BEGIN SOLUTION
        return None if self._keys is None else self._keys[:, : self._length]
        ### END SOLUTION

    @property
    def values(self):
        """All values so far, [n_head, n_seq, head_dim]; before the first append it may be anything."""
        ### BEGIN SOLUTION
        return None if self._values is None else self._values[:, : self._length]
        ### END SOLUTION

    def __len__(self):
        """How many positions are cached: n_seq, and 0 before the first append."""
        ### BEGIN SOLUTION
        return self._length
        ### END SOLUTION


# %% solution="model-cache"
class ModelCache:
    """One LayerCache for each of a model's layers."""

    def __init__(self, n_layer):
        """n_layer empty LayerCaches in self.layers, a sequence."""
        ### BEGIN SOLUTION
        self.layers = [LayerCache() for _ in range(n_layer)]
        ### END SOLUTION

    def __len__(self):
        """How many positions are cached, the same in every layer."""
        ### BEGIN SOLUTION
        return len(self.layers[0]) if self.layers else 0
        ### END SOLUTION

    def clone(self):
        """A cache with the same rows in every layer. What either appends later does not show in the other."""
        ### BEGIN SOLUTION
        copy = ModelCache(len(self.layers))
        for layer, new_layer in zip(self.layers, copy.layers, strict=True):
            if len(layer):
                new_layer.append(layer.keys, layer.values)
        return copy
        ### END SOLUTION


# %% solution="attend"
def attend(q, layer_cache):
    """Attention of the last n_query cached positions; q and the result are [n_head, n_query, head_dim]."""
    ### BEGIN SOLUTION
    keys, values = layer_cache.keys, layer_cache.values
    n_query, n_seq, head_dim = q.shape[1], keys.shape[1], q.shape[2]
    scores = q @ keys.transpose(0, 2, 1) / np.float32(np.sqrt(head_dim))  # [n_head, n_query, n_seq]
    if n_query > 1:  # query i stands at position n_seq - n_query + i and sees the keys up to itself
        visible = np.tri(n_query, n_seq, n_seq - n_query, dtype=bool)
        scores = np.where(visible, scores, -np.inf)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (scores / scores.sum(axis=-1, keepdims=True)) @ values
    ### END SOLUTION


# %% solution="kv-cache-bytes"
def kv_cache_bytes(config, n_seq, n_bytes=4):
    """Bytes of the keys and values of n_seq positions, with n_bytes a number."""
    ### BEGIN SOLUTION
    return 2 * config.n_layer * config.n_embd * n_seq * n_bytes
    ### END SOLUTION
