"""Keeps a spreadsheet from reading text as a formula."""

from __future__ import annotations

from autograder.plain_text import one_line


def as_text(cell: str) -> str:
    """The text on one line, quoted if a spreadsheet would read it as a formula."""
    line = one_line(cell, 2000)
    return f"'{line}" if line.lstrip().startswith(("=", "+", "-", "@")) else line
