"""Prompts of an exact length: filler prose that brings a text to a given number of tokens."""

from __future__ import annotations

import random
from collections.abc import Callable

_SENTENCES = (
    "You answer the questions of the company and of those who come to see the play.",
    "If you do not know, say so, and name the one who may know it.",
    "Give the hour of the play and the place, and say who is to come on first.",
    "Do not speak of what was said to you by another man or woman.",
    "The king comes on at the second bell, and his lords stand by the door.",
    "When a lord asks for his part, send him the whole scene and not his lines alone.",
    "No word of the last act is to be told before the last night.",
    "Speak to all alike, to the duke as to the man who keeps the gate.",
    "Keep it short: two lines will do where ten would be too much.",
    "A part that is given to one may not be given to another on the same day.",
    "The swords are counted before the fight and after it.",
    "Let none into the house when the first scene has begun.",
    "If it should rain, the play is done in the hall, and the doors are open an hour before.",
    "The crown, the letter and the ring are kept by the queen's woman.",
    "He that comes late shall have his word with the master of the house.",
    "Say at the end what is yet to be done, and by whom.",
)
_ONE_TOKEN = (" and", " the", " to", " of", " you", " so", " on", ",", ".")
_MOST_WORDS = 60_000


def filler(n_tokens: int, count: Callable[[str], int], seed: int = 0) -> str:
    """Plain sentences for which count(sentences) is exactly n_tokens.

    count returns the number of tokens of the text that contains the sentences, so it includes a template's markers and
    any merges with the words at their edges:

        text = filler(200, lambda text: len(tokenizer.encode(f"SYSTEM: {text} END")))

    The same seed gives the same sentences. Raises ValueError if no text has that count.
    """
    rng = random.Random(seed)
    words: list[str] = []

    def first(n: int) -> str:
        while len(words) < n:
            words.extend(_SENTENCES[rng.randrange(len(_SENTENCES))].split())
        return " ".join(words[:n])

    if count(first(1)) > n_tokens:
        raise ValueError(f"{n_tokens} tokens are too few: the text around the filler needs as many or more.")
    few, many = 1, 2  # words; count(first(few)) <= n_tokens < count(first(many))
    while count(first(many)) <= n_tokens:
        few, many = many, 2 * many
        if many > _MOST_WORDS:
            raise ValueError(f"The count does not grow with the text: {n_tokens} tokens were not reached.")
    while many - few > 1:
        middle = (few + many) // 2
        if count(first(middle)) <= n_tokens:
            few = middle
        else:
            many = middle
    text = first(few)
    have = count(text)
    while have < n_tokens:
        for word in _ONE_TOKEN:
            if (more := count(text + word)) == have + 1:
                text, have = text + word, more
                break
        else:
            raise ValueError(f"No text of exactly {n_tokens} tokens was found.")
    return text
