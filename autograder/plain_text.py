"""Makes strangers' text, such as error messages and file names, safe to show anywhere."""

from __future__ import annotations

import unicodedata

JOINERS = "\u200c\u200d"  # invisible, and part of how some languages and emoji are written
_MAX_PILED = 3  # marks on one character, as accents; no language piles up more
_NOT_SHOWN = "\ufffd"


def one_line(text: str, most: int = 600) -> str:
    """The text on one line of at most `most` characters, with no effect on a terminal or a page.

    White space of any kind becomes one space; an invisible character, or one that changes the writing direction,
    becomes U+FFFD.
    """
    text = text[: 4 * most]  # enough of it, also where it has much white space
    line = visible(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: max(most - 4, 0)]} ..."


def visible(text: str, keep: str = "") -> str:
    """The text with invisible characters replaced, except those to keep, and few accents on each character."""
    if text.isascii() and (text.isprintable() or all(c.isprintable() or c in keep for c in set(text))):
        return text
    shown, piled = [], 0
    for character in text:
        piled = piled + 1 if unicodedata.category(character)[0] == "M" else 0
        if piled > _MAX_PILED:
            continue
        if not (character.isprintable() or character in keep):
            character = " " if character.isspace() else _NOT_SHOWN
        shown.append(character)
    return "".join(shown)
