"""Stage 6: a block found under another beginning."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from autograder.toolkit.play.choice import Question

STORY = (
    "A store of blocks finds more than it should, and some answers are wrong. function(token_ids, block_size) gives\n"
    "the keys of the full blocks of a prompt, each cut to 6 characters."
)


def broken(token_ids: Sequence[int], block_size: int) -> list[str]:
    """The keys of the full blocks of a prompt."""
    blocks = [token_ids[i : i + block_size] for i in range(0, len(token_ids), block_size)]
    full = (block for block in blocks if len(block) == block_size)
    return [hashlib.sha256(repr(list(block)).encode()).hexdigest()[:6] for block in full]


def numbers() -> str:
    prompts = ([11, 12, 21, 22, 31, 32], [11, 12, 41, 42, 31, 32])
    lines = (f"  {ids!s:28} {' '.join(broken(ids, 2))}" for ids in prompts)
    return "Two prompts in blocks of 2:\n" + "\n".join(lines)


CAUSE = Question(
    "What is wrong with the keys?",
    "A key says nothing about the blocks before",
    {
        "A key says nothing about the blocks before": "both prompts end with the ids 31 and 32, and these get the same "
        "key. But their keys and values depend on everything before. Each key has to be made of the one before it.",
        "The last block is not full": "six ids make three full blocks of two.",
        "Two blocks collide by chance": "the ids in these blocks are equal, so no chance is needed.",
        "The keys are cut too short": "six characters are short, and yet the second blocks of the two prompts differ.",
    },
)

QUESTIONS = (
    Question(
        "The store is full. Which block may go?",
        "A block that no other stored block continues",
        {
            "A block that no other stored block continues": "a leaf. Blocks after a lost one can never be found again.",
            "The oldest one, whichever it is": "it is often the first block of a prefix that everybody uses.",
            "The first block of the longest prompt": "everything after it would be kept and never found.",
        },
    ),
    Question(
        "A prompt has exactly as many tokens as four blocks. All four are stored. How many can be used?",
        "Three",
        {
            "Three": "one token has to be left to compute, and blocks are used whole.",
            "Four": "then no token would be left, and the logits are not in the store.",
            "None": "the first three blocks are as good as ever.",
        },
    ),
)
