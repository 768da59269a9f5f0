"""Stage 4: undoing what was not done."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.toolkit.play.choice import Question

STORY = (
    "To avoid the copy, somebody lets each request append to the saved cache itself and cuts its rows off again in\n"
    "a `finally`, which also runs after an error. function(prefix_len, requests) gives the rows of the saved cache\n"
    "after each request; a request is (suffix length, whether it is refused before anything is computed)."
)


def broken(prefix_len: int, requests: Sequence[tuple[int, bool]]) -> list[int]:
    """The rows of the saved cache after each request."""
    rows, after = prefix_len, []
    for suffix_len, refused in requests:
        if not refused:
            rows += suffix_len
        rows = max(rows - suffix_len, 0)
        after.append(rows)
    return after


def numbers() -> str:
    requests = [(4, False), (9, False), (3, True), (4, False)]
    told = [f"{n} tokens{', refused' if refused else ''}" for n, refused in requests]
    lines = (f"  {what:18} {rows} rows" for what, rows in zip(told, broken(12, requests), strict=True))
    return "A saved prefix of 12 tokens:\n" + "\n".join(lines)


CAUSE = Question(
    "What is wrong with it?",
    "A refused request cuts rows that it never appended",
    {
        "A refused request cuts rows that it never appended": "its rows were never added, so the rows of the prefix "
        "go. From then on every answer is wrong, and nothing says so. A clone has nothing to undo.",
        "Long suffixes overwrite the prefix": "after the suffix of 9 there were still 12 rows.",
        "The prefix is one token short from the start": "the first two requests leave 12 rows.",
        "Requests run at the same time": "here they come one after the other, and that was not needed for the loss.",
    },
)

QUESTIONS = (
    Question(
        "The whole prompt is in the cache. What is needed for the next token?",
        "One token of the prompt has to be computed again",
        {
            "One token of the prompt has to be computed again": "the cache holds keys and values, not logits. So one "
            "token is kept back.",
            "Nothing": "the logits of the last token are not kept, and nobody could choose without them.",
            "The whole prompt has to be computed again": "only the logits after its last token are missing.",
        },
    ),
    Question(
        "What do the keys and values of a prefix depend on?",
        "Its ids, their positions and the model",
        {
            "Its ids, their positions and the model": "the mask hides everything that comes later.",
            "Also on the suffix": "no row sees a later one.",
            "On its ids alone": "the same ids at other positions, or in another model, give other rows.",
        },
    ),
)
