"""Stage 3: a position that nobody stands at."""

from __future__ import annotations

from autograder.toolkit.play.choice import Question

STORY = (
    "A generate gives a first token that is always right, and then the text slowly goes astray. function(n_prompt,\n"
    "n_new) gives its passes, each as (tokens fed, position of the first, rows in the cache afterwards)."
)


def broken(n_prompt: int, n_new: int) -> list[tuple[int, int, int]]:
    """The passes of a generate, as (tokens fed, position of the first, rows in the cache afterwards)."""
    passes = [(n_prompt, 0, n_prompt)]
    new_ids = 1  # prefill gave the first
    while new_ids < n_new:
        passes.append((1, n_prompt + new_ids, n_prompt + new_ids))
        new_ids += 1
    return passes


def numbers() -> str:
    rows = "\n".join(f"  {fed} at {at:2}, then {rows} rows" for fed, at, rows in broken(6, 5))
    return f"A prompt of 6 tokens and 5 new ones:\n{rows}"


CAUSE = Question(
    "What is wrong with it?",
    "Each new token stands one position too far",
    {
        "Each new token stands one position too far": "after a prompt of 6, the first new token stands at 6, which is "
        "len(cache) when it is fed. Here it was counted after the token had been added to the list, and 6 is left out.",
        "The last new token is fed": "5 new tokens take 4 decode steps, and there are 4.",
        "The prompt is fed twice": "6 rows after prefill, and one more with each step: nothing is there twice.",
        "Prefill begins at the wrong position": "an empty cache begins at 0, and the first new token is right.",
    },
)

QUESTIONS = (
    Question(
        "A prompt of 30 tokens and a single new one. How many rows does the cache hold at the end?",
        "30",
        {
            "30": "prompt + generated - 1: prefill gives the new token, which is returned and never fed.",
            "31": "that would count the new token, which has no keys and values yet.",
            "29": "each token of the prompt is fed, the last one too: its row decides the new token.",
        },
    ),
    Question(
        "What does a KV cache do for the time of prefill?",
        "Nothing",
        {
            "Nothing": "all of the prompt is computed anyway. It is decode that the cache makes cheap.",
            "It halves it": "there is nothing in the cache yet that prefill could use.",
            "It makes it constant": "that holds, nearly, for a decode step.",
        },
    ),
)
