"""What a spreadsheet would take for more than a text."""

from __future__ import annotations

from autograder.plain_text import one_line


def as_text(cell: str) -> str:
    """The text on one line, and never what a spreadsheet would take for a formula."""
    line = one_line(cell, 2000)
    return f"'{line}" if line.lstrip().startswith(("=", "+", "-", "@")) else line
