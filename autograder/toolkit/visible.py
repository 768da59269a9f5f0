"""The printable form of a token's text, for charts and labs."""

from __future__ import annotations


def visible(token: str) -> str:
    """The text with its blanks made visible: a space as an open box, a newline as an arrow."""
    return token.replace(" ", "␣").replace("\\n", "↵").replace("\n", "↵").replace("\t", "→") or "∅"
