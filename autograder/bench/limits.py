"""The least arithmetic and memory traffic of a GPT-2 pass, and the least time that this machine needs for them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from autograder.toolkit.model import GPT2Config
from autograder.toolkit.timing import measure


@dataclass(frozen=True)
class Limits:
    """The machine's best rates for a float32 matrix product and for reading memory."""

    flops: float  # floating-point operations a second
    read: float  # bytes a second

    def seconds(self, config: GPT2Config, n_new: int, n_seq: int) -> float:
        """The least seconds for a pass over the last n_new of n_seq tokens: its arithmetic or its reads, if longer."""
        return max(pass_flops(config, n_new, n_seq) / self.flops, pass_bytes(config, n_seq) / self.read)


def pass_flops(config: GPT2Config, n_new: int, n_seq: int) -> int:
    """Multiplications and additions in the matrix products: causal attention, and logits of the last row only."""
    linear = 12 * config.n_layer * config.n_embd**2
    seen = sum(range(n_seq - n_new + 1, n_seq + 1))  # keys that the new tokens see, all together
    return 2 * (n_new * linear + 2 * config.n_layer * config.n_embd * seen + config.n_embd * config.n_vocab)


def pass_bytes(config: GPT2Config, n_seq: int) -> int:
    """Every weight but wpe, of which a pass needs a few rows, and the cache, each once, in float32."""
    block = 12 * config.n_embd**2 + 13 * config.n_embd
    weights = config.n_vocab * config.n_embd + config.n_layer * block + 2 * config.n_embd
    return 4 * (weights + 2 * config.n_layer * config.n_embd * n_seq)


class Machine:
    """Measures the limits, in a process of its own (engine.py)."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def flops(self) -> float:
        """The speed of NumPy's product of large matrices, in operations a second."""
        a, b = np.ones((1024, 3072), np.float32), np.ones((3072, 3072), np.float32)
        return 2 * a.size * b.shape[1] / measure(lambda: a @ b, repeats=5).best

    def read(self) -> float:
        """The speed of reading a large array, in bytes a second: each thread finds the maximum of its part."""
        parts = [np.ones(2**25, np.float32) for _ in range(self._threads)]  # 128 MiB each, more than any cache holds
        with ThreadPoolExecutor(self._threads) as pool:
            return sum(part.nbytes for part in parts) / measure(lambda: list(pool.map(np.max, parts)), repeats=9).best
