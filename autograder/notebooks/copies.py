"""Decides which copy of a solution cell counts if a student copied, pasted or split the cell.

The first solved copy counts. The rest of a split cell belongs to it; any other copy that defines the same functions is
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autograder.notebooks.regions import is_unsolved
from autograder.worker.naming import defined_names


@dataclass(frozen=True)
class Choice:
    """What was done with the copies of one cell; numbers are indices in the list of copies."""

    chosen: int
    source: str  # the chosen copy, with the continuations joined to it
    joined: tuple[int, ...] = ()  # continuations: they begin inside the function in which the cell was split
    kept: tuple[int, ...] = ()  # parts that define other things; they run as cells of their own
    dropped: tuple[int, ...] = ()


def choose(copies: Sequence[str]) -> Choice:
    """Choose among the sources of the cells that carry one name, in the notebook's order."""
    chosen = next((i for i, source in enumerate(copies) if not is_unsolved(source)), 0)
    source = copies[chosen]
    joined, kept, dropped = [], [], [i for i in range(chosen) if copies[i].strip()]
    names = set(defined_names(source))
    for i in range(chosen + 1, len(copies)):
        part = copies[i]
        if not part.strip():
            continue
        same = part.strip() == copies[chosen].strip() or names & set(defined_names(part))
        if _starts_indented(part) and i == chosen + 1 + len(joined):
            source += "\n" + part
            joined.append(i)
        elif same or _starts_indented(part) or is_unsolved(part):
            dropped.append(i)
        else:
            kept.append(i)
    return Choice(chosen, source, tuple(joined), tuple(kept), tuple(dropped))


def _starts_indented(source: str) -> bool:
    first = next((line for line in source.split("\n") if line.strip()), "")
    return first[:1] in (" ", "\t")
