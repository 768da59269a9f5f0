"""What a spreadsheet would take for more than a text."""

from __future__ import annotations


def as_text(cell: str) -> str:
    """The text on one line, and never what a spreadsheet would take for a formula."""
    line = "".join(c if c.isprintable() else " " for c in cell)
    return f"'{line}" if line.lstrip().startswith(("=", "+", "-", "@")) else line
