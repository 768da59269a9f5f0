"""How much memory a reuse adds, as NumPy allocates it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any


@dataclass(frozen=True)
class Held:
    """Bytes that stay in use after a request while its cache is kept; `suffix` is what its own rows take."""

    clone: int
    shared: int
    suffix: int


def measure_held(functions: SimpleNamespace, weights: Any, n_prefix: int, n_suffix: int) -> Held:
    """A reuse on a clone, and one on a shared prefix; `functions` are those of `solved(sharing=True)`."""
    saved = functions.save_prefix_cache([1] * n_prefix, weights)
    ids = [2] * n_suffix

    def on_a_clone() -> Any:
        cache = saved.clone()
        functions.advance(ids, n_prefix, weights, cache)
        return cache

    def sharing() -> Any:
        cache = functions.SharedCache(saved)
        functions.generate_sharing(cache, n_prefix, ids, weights)
        return cache

    return Held(bytes_held(on_a_clone), bytes_held(sharing), functions.kv_cache_bytes(weights.config, n_suffix))


def bytes_held(request: Callable[[], Any]) -> int:
    """What the cache that a request returns keeps allocated."""
    request()  # whatever is imported or remembered at the first call is not the request's
    tracemalloc.start()
    try:
        cache = request()
        held, _ = tracemalloc.get_traced_memory()
        del cache
        return held
    finally:
        tracemalloc.stop()
