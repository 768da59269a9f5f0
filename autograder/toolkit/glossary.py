"""The course's glossary. It is part of the package, so a notebook finds it wherever it was copied."""

from __future__ import annotations

import re
from pathlib import Path


class Glossary(dict[str, str]):
    """Terms and their meanings, in Markdown; the last line of a cell shows them as a table."""

    def __str__(self) -> str:
        return "\n".join(f"{term}: {meaning}" for term, meaning in self.items())

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        rows = (f"| **{term}** | {meaning} |" for term, meaning in self.items())
        return "\n".join(("| term | meaning |", "|---|---|", *rows))


def glossary(word: str = "") -> Glossary:
    """The terms that contain a word, or all terms; raises ValueError if there is none."""
    text = _syllabus().read_text(encoding="utf-8")
    terms = dict(re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", text, re.MULTILINE))
    found = Glossary({term: terms[term] for term in terms if word.strip().lower() in term.lower()})
    if not found:
        raise ValueError(f"no term of the glossary contains {word!r}; autograder.glossary() shows all")
    return found


def _syllabus() -> Path:
    package = Path(__file__).resolve().parents[1]
    installed, checkout = package / "data" / "syllabus.md", package.parent / "course" / "README.md"
    return checkout if checkout.is_file() else installed
