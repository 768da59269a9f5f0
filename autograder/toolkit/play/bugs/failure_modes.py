"""Stage 5: a prefix that ends in the middle of a word."""

from __future__ import annotations

from collections.abc import Callable

from autograder.toolkit.model import load_tokenizer
from autograder.toolkit.play.choice import Question

STORY = (
    "A server saves the cache of a fixed text and reuses it for every prompt that begins with that text. Some\n"
    "prompts never hit, although they do begin with it, letter by letter. function(saved_text, prompt, encode)\n"
    "gives (ids saved, ids that saved text and prompt have in common from the start)."
)


def broken(saved_text: str, prompt: str, encode: Callable[[str], list[int]]) -> tuple[int, int]:
    """How many ids were saved, and how many of them begin the prompt. encode: such as tokenizer.encode."""
    saved, live = encode(saved_text), encode(prompt)
    common = next((i for i, (a, b) in enumerate(zip(saved, live, strict=False)) if a != b), min(len(saved), len(live)))
    return len(saved), common


def numbers() -> str:
    encode = load_tokenizer().encode
    saved = "You are a king. Answer the"
    lines = []
    for rest in (" queen.", " man.", "m all.", "re is none."):
        n, common = broken(saved, saved + rest, encode)
        lines.append(f"  {saved + rest!r:40} common={common} of {n}")
    return f"Saved: {saved!r}\n" + "\n".join(lines)


CAUSE = Question(
    "Why do some miss?",
    "The text was cut where a token goes on",
    {
        "The text was cut where a token goes on": "with other letters after it, the tokenizer cuts its last word "
        "differently, so the last saved id is not the same. Save up to a border that no token crosses, or compare ids.",
        "Something at the beginning changes": "then next to nothing would be shared, and here all but one id are.",
        "Another tokenizer was used": "the first ids agree, and two of the prompts hit.",
        "The longer entry was ranked first": "there is one entry.",
    },
)

QUESTIONS = (
    Question(
        "A question is asked in other words. What can a prefix cache reuse?",
        "The ids up to the first word that differs",
        {
            "The ids up to the first word that differs": "it compares ids, and knows nothing of meaning.",
            "Its answer": "a prefix cache keeps no answers. A cache of answers is another thing, with other risks.",
            "All of it, as the meaning is the same": "the ids differ, and with them all keys and values after them.",
        },
    ),
    Question(
        "A long conversation is summarized, and goes on from the summary. What becomes of its cache?",
        "It is of no use after the system prompt",
        {
            "It is of no use after the system prompt": "the ids after it are all new, so they are computed again. It "
            "is a price to pay once, for shorter prompts from then on.",
            "It shrinks with the text": "rows cannot be summarized: each belongs to one id at one position.",
            "It stays valid": "only as far as the ids stay the same.",
        },
    ),
)
