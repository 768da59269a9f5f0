"""The bugs the grader can name.

Each has a key (for tables and tests), a label (for the teaching assistant), a sentence that tells the student the cause
and, for a bug in a certain part of the function, a phrase for where to look. They are written in files bugs.txt: those
of several stages in the one beside this module, those of one stage in its folder's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Bug:
    key: str
    label: str
    sentence: str
    look: str = ""


BUGS: dict[str, Bug] = {}


def read(module_file: str) -> dict[str, Bug]:
    """The bugs in the bugs.txt beside a module, by the names of its constants: POSITIONS_RESET for positions-reset.

    A bug begins with the line `key | label | where to look`; the indented lines after it are its sentence. Keys are
    unique over all files.
    """
    found = {}
    text = Path(module_file).with_name("bugs.txt").read_text(encoding="utf-8")
    for head, sentence in re.findall(r"^([^#\s].*)\n((?: .*\n)*)", text, re.MULTILINE):
        key, label, look = [*head.split(" | "), ""][:3]
        if key in BUGS:
            raise ValueError(f"the bug {key!r} is defined twice")
        found[key.upper().replace("-", "_")] = BUGS[key] = Bug(key, label, " ".join(sentence.split()), look)
    return found


globals().update(read(__file__))
NOTHING_TO_JUDGE = tuple(BUGS[key] for key in ("not-written", "not-defined", "syntax-error", "not-finished"))


def positions_shifted(k: int) -> Bug:
    """The bug of positions that are off by k (k is not 0)."""
    key = f"positions-shifted-{k:+d}"
    sentence = (
        f"The positions look shifted by {k:+d}: every new token uses the row of wpe that is {abs(k)} too "
        f"{'late' if k > 0 else 'early'}."
    )
    return BUGS.setdefault(key, Bug(key, f"positions shifted by {k:+d}", sentence, BUGS["positions-reset"].look))
