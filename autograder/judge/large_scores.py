"""Queries and keys whose attention scores are about four million in magnitude, and exact in float32.

All numbers are sums of few powers of two, and so are their products, whatever the order of addition; head_dim is 16, so
that its root and the root of that are exact too. In each row one visible score is far above the others, so no rounding,
such as that of a logarithm next to so large a number, can change a weight.
"""

from __future__ import annotations

import numpy as np

SIZE = 2048  # of the first number of a flagged key, and a quarter of that of a query: the score is its square
HEAD_DIM = 16
SPREAD = 2048  # of the other numbers of a query
CLEAR = 40.0
LARGE = f"{SIZE**2:,}"  # the score of a flagged key, in words


def draw(rng: np.random.Generator, n_head: int, flags: list[int], sign: int) -> tuple[np.ndarray, np.ndarray]:
    """q and k, each [n_head, n_seq, 16]: the scores of a key that is flagged are sign * 2048**2, and some thousands.

    k[:, :, 1:] are numbers from -2 to 2, and q[:, :, 1:] the same, moved on by one and multiplied by SPREAD.
    """
    n_seq = len(flags)
    while True:
        rest = rng.integers(-4, 5, (n_head, n_seq, HEAD_DIM - 1)) / 2
        first = np.broadcast_to(SIZE * np.array(flags, float)[:, None], (n_head, n_seq, 1))
        k = np.concatenate([first, rest], axis=-1)
        q = np.concatenate([np.full_like(first, sign * 4 * SIZE), SPREAD * np.roll(rest, 1, axis=-1)], axis=-1)
        scores = np.where(np.tri(n_seq, dtype=bool), q @ k.swapaxes(1, 2) / 4, -np.inf)
        best = np.sort(scores, axis=-1)[:, 1:, -2:]  # the first row has only one score
        if (best[..., 1] - best[..., 0]).min() > CLEAR:
            return q.astype(np.float32), k.astype(np.float32)
