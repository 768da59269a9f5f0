"""What an attack is: a submission as a student could hand it in, and what it must come to."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.stages.samples import solved_cells
from autograder.tests.course import own_cell

SOLVED = solved_cells("save-and-reuse")
FUNCTIONS = {mark: mark.replace("-", "_") for mark in SOLVED}
NOTHING, EVERYTHING = "nothing", "everything"


@dataclass(frozen=True)
class Attack:
    """One hostile submission. What it finds it tells in an error that reaches the page of feedback: FOUND, and what."""

    name: str
    about: str
    cells: dict[str, str] = field(default_factory=dict)  # sources of solution cells; the others stay unsolved
    own: str = ""  # a code cell before all others
    change: Callable[[dict[str, Any]], None] | None = None  # to the notebook
    files: dict[str, str] = field(default_factory=dict)  # name and content, beside the notebook
    earns: str = NOTHING
    loses: tuple[str, ...] = ()  # where it earns everything but these checks

    @property
    def looks(self) -> bool:
        return any("FOUND" in source for source in self.cells.values())

    @property
    def programs(self) -> list[str]:
        """All that could be run of it."""
        return [source for source in (*self.cells.values(), self.own, *self.files.values()) if source]

    def hand_in(self, course, canary: Path) -> None:
        """Put the submission into a course, told where the canary is."""

        def told(source):
            return f"CANARY = {str(canary)!r}\n{source}" if "CANARY" in source else source

        def change(notebook):
            if self.own:
                own_cell(told(self.own))(notebook)
            if self.change:
                self.change(notebook)

        course.hand_in(self.name, {mark: told(source) for mark, source in self.cells.items()}, change)
        for name, content in self.files.items():
            (course.path(self.name).parent / name).write_text(content, encoding="utf-8")


def every(body: str, setup: str = "") -> dict[str, str]:
    """Solution cells whose functions all have this body."""
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    cells = {mark: f"def {name}(*args, **kwargs):\n{body}\n" for mark, name in FUNCTIONS.items()}
    first = next(iter(cells))
    return cells | {first: textwrap.dedent(setup).lstrip() + cells[first]}


def probe(body: str) -> dict[str, str]:
    """Functions that try something: `found` is a list of texts, and is told in an error."""
    indented = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    setup = f"import contextlib, functools, os, sys\n\n@functools.cache\ndef look():\n    found = []\n{indented}\n    return found\n\n"  # noqa: E501
    return every("raise RuntimeError('FOUND ' + (' '.join(map(str, look()))[:300] or 'nothing'))", setup)


# Functions of the right form that compute nothing
ZEROS = {
    "save-prefix-cache": "def save_prefix_cache(prefix_ids, weights):\n    return ModelCache(weights.config.n_layer)\n",
    "generate-with-prefix": (
        "def generate_with_prefix(saved, prefix_len, suffix_ids, weights):\n"
        "    return np.zeros(weights.config.n_vocab, np.float32)\n"
    ),
    "write-prefix-cache": "def write_prefix_cache(path, saved, prefix_ids, weights):\n    open(path, 'wb').close()\n",
    "read-prefix-cache": "def read_prefix_cache(path, weights):\n    raise ValueError('no')\n",
}
