"""Stage 7: query heads that read the wrong keys."""

from __future__ import annotations

from autograder.toolkit.play.choice import Question

STORY = (
    "Somebody wrote grouped attention. With one key head, and with as many as query heads, all is right. Between\n"
    "the two the text is nonsense. function(n_head, n_kv_head) says which key head each query head reads."
)


def broken(n_head: int, n_kv_head: int) -> list[int]:
    """The key head that each query head reads."""
    return [head % n_kv_head for head in range(n_head)]


def numbers() -> str:
    return "\n".join(f"{n} key head{'s' * (n > 1)} for 6 query heads: {broken(6, n)}" for n in (1, 2, 3, 6))


CAUSE = Question(
    "What is wrong with it?",
    "Neighbors do not form a group",
    {
        "Neighbors do not form a group": "with 6 query heads and 2 key heads, the heads 0, 1 and 2 read key head 0 and "
        "the others key head 1. Keys have to be repeated one by one, not as a whole list.",
        "A key head is left out": "each of them is read, and equally often.",
        "There are too few query heads": "all six are there.",
        "Values are grouped in another way than keys": "nothing here tells them apart.",
    },
)

QUESTIONS = (
    Question(
        "Rotary positions turn keys by their position. Can a saved prefix be used at another place in a prompt?",
        "No",
        {
            "No": "its keys are kept turned for the positions they had, and its values depend on what stood before.",
            "Yes, positions are relative now": "scores depend on distances, and the kept keys have fixed positions.",
            "Yes, after a shift of the table of positions": "there is no such table here, and the context differs.",
        },
    ),
    Question(
        "What do grouped heads do for the prefix cache?",
        "Each cached token takes less memory",
        {
            "Each cached token takes less memory": "there are fewer heads of keys and values to keep.",
            "Longer prefixes match": "matching compares ids, whatever the heads.",
            "Reuse no longer needs an exact match": "it does, as before.",
        },
    ),
)
