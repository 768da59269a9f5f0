"""Stage 2: a clone that is none."""

from __future__ import annotations

import numpy as np

from autograder.toolkit.play.choice import Question

STORY = (
    "Somebody wrote a cache with room to spare, so that append seldom copies. Two tests pass: a clone has the same\n"
    "rows, and what a clone appends leaves the length of the original as it is. function() gives an empty one,\n"
    "with append(k), keys, clone() and len."
)


class broken:
    """Keys [n_head, n_seq, head_dim] of one layer, in a buffer with room for 16 rows."""

    def __init__(self) -> None:
        self._buffer, self._length = np.zeros((1, 16, 2)), 0

    def append(self, k: np.ndarray) -> None:
        end = self._length + k.shape[1]
        self._buffer[:, self._length : end] = k
        self._length = end

    @property
    def keys(self) -> np.ndarray:
        return self._buffer[:, : self._length]

    def clone(self) -> broken:
        copy = broken()
        copy._buffer, copy._length = self._buffer, self._length
        return copy

    def __len__(self) -> int:
        return self._length


def numbers() -> str:
    saved = broken()
    saved.append(np.full((1, 5, 2), 1.0))
    first, second = saved.clone(), saved.clone()
    first.append(np.full((1, 2, 2), 2.0))
    before = first.keys[0, :, 0].tolist()
    second.append(np.full((1, 2, 2), 3.0))
    after = first.keys[0, :, 0].tolist()
    return (
        f"saved has 5 rows of 1. A first clone appends two rows of 2: {before}\n"
        f"Then a second clone appends two rows of 3. The first one now: {after}"
    )


CAUSE = Question(
    "What is wrong with it?",
    "The clones write into one buffer",
    {
        "The clones write into one buffer": "clone copies the length and not the array. Both clones append at row 5 "
        "of the same buffer, and the later one wins. The lengths are right, so a test of lengths sees nothing.",
        "append keeps a view of k": "it copies k's numbers into the buffer; changing k later would change nothing.",
        "keys shows rows that are not there": "the slice ends at the length, as it should.",
        "The second clone has the first one's rows": "it has the five of `saved`, which is what it was made of.",
    },
)

QUESTIONS = (
    Question(
        "Which of these are not needed for the next token?",
        "The queries of earlier tokens",
        {
            "The queries of earlier tokens": "a query is used once, for its own row, and that row is computed already.",
            "The keys of earlier tokens": "the new query is compared with each of them.",
            "The values of earlier tokens": "they are what the new row is mixed from.",
        },
    ),
    Question(
        "The prompt is twice as long. How does the memory of the cache change?",
        "It doubles",
        {
            "It doubles": "each position takes the same number of bytes, in every layer.",
            "It grows fourfold": "that is the table of scores, which is not kept.",
            "Not at all": "that is the memory of the weights.",
        },
    ),
)
