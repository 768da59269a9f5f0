"""Stage 1: attention weights that do not add up."""

from __future__ import annotations

import numpy as np

from autograder.toolkit.play.choice import Question

STORY = (
    "Somebody wrote attention_weights and looked at the last row only, which is right. Call function(q, k) with\n"
    "q and k of shape [n_head, n_seq, head_dim] to see more of it."
)


def broken(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Attention weights [n_head, n_seq, n_seq], or so it says."""
    n_seq, head_dim = q.shape[1:]
    scores = q @ k.transpose(0, 2, 1) / head_dim**0.5
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return np.where(np.tri(n_seq, dtype=bool), weights, 0.0)


def numbers() -> str:
    q, k = np.random.default_rng(3).standard_normal((2, 1, 4, 8))
    sums = broken(q, k)[0].sum(axis=-1)
    return "The rows of its result add up to " + ", ".join(f"{total:.2f}" for total in sums) + "."


CAUSE = Question(
    "What is wrong with it?",
    "The mask comes after the softmax",
    {
        "The mask comes after the softmax": "each row is divided by a sum that still counts the hidden keys. Only the "
        "last row has no hidden key, so only that one adds up to 1.",
        "The scores are not divided by sqrt(head_dim)": "the weights would be sharper, and each row would still add "
        "up to 1.",
        "The softmax runs over the queries": "then columns would add up to 1, and the last row would be wrong too.",
        "The largest score is not subtracted": "without an overflow that changes nothing at all.",
    },
)

QUESTIONS = (
    Question(
        "The text grows by one token. Which rows of x, in any block, change?",
        "None of the earlier ones",
        {
            "None of the earlier ones": "the mask hides the new token from them, and all other steps work row by row.",
            "All of them": "that would be so without a mask.",
            "The last one before it": "no row sees a later one, not even its neighbor.",
        },
    ),
    Question(
        "Two models differ in n_head alone: 4 and 8, with the same n_embd. Which has more weights?",
        "Neither",
        {
            "Neither": "c_attn and c_proj have the same shapes. The heads only share out the features among them.",
            "The one with 8 heads": "each of its heads is half as wide.",
            "The one with 4 heads": "its heads are twice as wide, and there are half as many.",
        },
    ),
)
