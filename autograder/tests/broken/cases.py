"""The broken class: submissions as they come in from people who meant well.

All hold the solution, and something happened to them on the way. What must come of each: every point, or every point
but those of the checks in `loses`, or a sentence on why it cannot be graded.
"""

# ruff: noqa: E501 - one line a case, as far as that goes

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.stages.samples import solved_cells
from autograder.tests.course import CHECKS, NAME, STAGE, Course, own_cell

SOLVED = solved_cells(STAGE.name)
FILE_CHECKS = ("cache-file-round-trip", "cache-file-refusals")
SAVING = "save-prefix-cache"
REUSING = "generate-with-prefix"


@dataclass(frozen=True)
class Case:
    """One broken submission, and what the assistant reads about it."""

    name: str  # the student's
    note: str | None = None  # part of a note in the table; None: there is none
    reason: str | None = None  # why it cannot be graded
    loses: tuple[str, ...] = ()
    sources: dict[str, str] = field(default_factory=lambda: SOLVED)
    change: Callable[[dict[str, Any]], Any] | None = None  # to the notebook
    file: Callable[[Path], Any] | None = None  # to the file, or to what lies beside it

    def hand_in(self, course: Course) -> None:
        course.hand_in(self.name, self.sources, self.change)
        if self.file:
            self.file(course.path(self.name))


# Changes to the notebook


def cell(notebook, name):
    found = next(c for c in notebook["cells"] if c["id"] == name)
    found["source"] = "".join(found["source"])
    return found


def without(*names):
    def change(notebook):
        notebook["cells"] = [c for c in notebook["cells"] if c["id"] not in names]

    return change


def pasted(name, source=None, at=None):
    """A copy of a cell with all its metadata, at the end or where `at` says."""

    def change(notebook):
        original = cell(notebook, name)
        copy = {**original, "id": f"{name}-2", "source": original["source"] if source is None else source}
        notebook["cells"].insert(len(notebook["cells"]) if at is None else at, copy)

    return change


def split(name, line):
    """The cell cut in two before the line that holds this text; both parts keep the metadata, as JupyterLab does."""

    def change(notebook):
        original = cell(notebook, name)
        lines = original["source"].splitlines()
        where = next(i for i, text in enumerate(lines) if line in text)
        original["source"] = "\n".join(lines[:where])
        second = {**original, "id": "second-part", "source": "\n".join(lines[where:])}
        notebook["cells"].insert(notebook["cells"].index(original) + 1, second)

    return change


def retyped(name, kind):
    def change(notebook):
        original = cell(notebook, name)
        original["cell_type"] = kind
        original.pop("outputs", None), original.pop("execution_count", None)

    return change


def without_metadata(notebook):
    for c in notebook["cells"]:
        c["metadata"] = {}
        c.pop("id")
    notebook["metadata"] = {}
    notebook["nbformat_minor"] = 4


def of_vs_code(notebook):
    for number, c in enumerate(notebook["cells"]):
        c.pop("id")
        c["metadata"]["vscode"] = {"languageId": "python"}
        if c["cell_type"] == "code":
            c["execution_count"] = number
    notebook["metadata"] = {"language_info": {"name": "python", "version": "3.13.0"}, "orig_nbformat": 4}
    notebook["nbformat_minor"] = 2


def of_colab(notebook):
    for number, c in enumerate(notebook["cells"]):
        c["metadata"] = {"id": f"aB3{number}", "colab": {"base_uri": "https://localhost:8080/"}}
        c.pop("id")
        c["source"] = c["source"].splitlines(keepends=True) if isinstance(c["source"], str) else c["source"]
    notebook["metadata"] = {"colab": {"provenance": [], "gpuType": "T4"}, "accelerator": "GPU",
                            "kernelspec": {"name": "python3", "display_name": "Python 3"}}  # fmt: skip
    notebook["nbformat_minor"] = 0


def of_version_3(notebook):
    cells = [{"input": c.pop("source"), **c} if c["cell_type"] == "code" else c for c in notebook["cells"]]
    notebook.clear()
    notebook.update(worksheets=[{"cells": cells}], nbformat=3, nbformat_minor=0, metadata={"name": ""})


def kernel(spec):
    def change(notebook):
        notebook["metadata"].pop("language_info", None)
        notebook["metadata"]["kernelspec"] = spec

    return change


def odd_metadata(notebook):
    for c in notebook["cells"]:
        if "nbgrader" in c["metadata"]:
            c["metadata"]["nbgrader"] |= {"schema_version": 1, "checksum": "x", "points": "many", "grade_id": c["id"]}
        c["metadata"] |= {"tags": "none", "collapsed": 7, "slideshow": None}
    notebook["cells"] += [None, 3, {"cell_type": "code"}, {"source": ["x = 1\n", 2]}]


def moved_into_own_cells(notebook):
    """Code that the solution needs stands in a cell of the student's own, and in an import added to the setup."""
    reuse = cell(notebook, REUSING)
    reuse["source"] = reuse["source"].replace(
        "advance(suffix_ids", "my_own_advance(collections.Counter() or suffix_ids"
    )
    own_cell("from given import advance as my_own_advance\nanswer = 42")(notebook)
    setup = cell(notebook, "imports")
    setup["source"] = "import collections\n" + setup["source"]


def needs_a_helper(notebook):
    """The solution uses a function of the student's own; the caller puts it somewhere."""
    reuse = cell(notebook, REUSING)
    reuse["source"] = reuse["source"].replace("advance(suffix_ids", "my_own_advance(suffix_ids")


HELPER = "from given import advance as my_own_advance"


def helper_in_a_cell_of(kind):
    """Instead of the course's text or chart, in its cell, which keeps its id."""

    def change(notebook):
        needs_a_helper(notebook)
        theirs = next(c for c in notebook["cells"] if c["id"].startswith(f"{kind}-"))
        theirs.update(cell_type="code", source=HELPER, metadata={}, outputs=[], execution_count=None)

    return change


def helper_below_a_split_setup(notebook):
    needs_a_helper(notebook)
    setup = cell(notebook, "imports")
    below = {**setup, "id": "second-part", "source": HELPER}
    notebook["cells"].insert(notebook["cells"].index(setup) + 1, below)


# Changes to the file


def rewritten(change):
    """The text of the file put through a function that gives bytes."""
    return lambda path: path.write_bytes(change(path.read_text(encoding="utf-8")))


def renamed(name):
    return lambda path: path.rename(path.parent / name)


def huge(path):
    with path.open("r+b") as file:
        file.truncate(200 * 2**20)


def with_outputs_of_20_mb(notebook):
    text = {"output_type": "stream", "name": "stdout", "text": "x" * 79 + "\n"}
    cell(notebook, REUSING)["outputs"] = [text] * 100_000


def with_other_files(path):
    for folder in (".ipynb_checkpoints", "__MACOSX", "__pycache__"):
        (path.parent / folder).mkdir()
        (path.parent / folder / path.name).write_text("{}")
    for name in ("Thumbs.db", ".DS_Store", "résumé.pdf", "save_and_reuse.py", "feedback.html"):
        (path.parent / name).write_bytes(b"\0\1\2")


def two_notebooks(path):
    (path.parent / "scratch.ipynb").write_text(json.dumps({"cells": [], "nbformat": 4, "metadata": {}}))


def two_that_can_be_meant(path):
    path.rename(path.parent / "final.ipynb")
    (path.parent / "final2.ipynb").write_bytes((path.parent / "final.ipynb").read_bytes())


def a_folder_of_its_name(path):
    path.unlink()
    path.mkdir()


LOOP = "import time\nwhile True:\n    try:\n        time.sleep(9)\n    except KeyboardInterrupt: pass"
OLDER = "def generate_with_prefix(saved, prefix_len, suffix_ids, weights):\n    return older.version"
STAR = "from numpy import *\nfrom math import *\nfrom given import *\nimport given, numpy as np"

CASES = [
    # A deleted cell
    Case("deleted-first-check", f"Put back the missing cell {next(iter(CHECKS))}.", change=without(next(iter(CHECKS)))),
    Case("deleted-last-check", f"Put back the missing cell {list(CHECKS)[-1]}.", change=without(list(CHECKS)[-1])),
    Case("deleted-all-checks", f"Put back the missing cells {', '.join(CHECKS)}.", change=without(*CHECKS)),
    Case("deleted-setup", "Put back the missing cell imports.", change=without("imports")),
    Case("deleted-solution", "The solution cell write-prefix-cache was not in the notebook.", loses=FILE_CHECKS,
         change=without("write-prefix-cache")),
    # A duplicated, split, retyped or moved cell
    Case("pasted-older-copy-last", "The cell generate-with-prefix was there 2 times; the first solved copy counts",
         change=pasted(REUSING, OLDER)),
    Case("pasted-stub-first", "The cell generate-with-prefix was there 2 times; the first solved copy counts",
         change=pasted(REUSING, "# YOUR CODE HERE\nraise NotImplementedError()", at=0)),
    Case("pasted-check", change=pasted(next(iter(CHECKS)))),
    Case("split", "The cell generate-with-prefix was split; its parts were put together",
         change=split(REUSING, "cache = saved.clone()")),
    Case("markdown-solution", "The cell save-prefix-cache was a markdown cell; run as code.",
         change=retyped(SAVING, "markdown")),
    Case("raw-solution", "The cell generate-with-prefix was a raw cell; run as code.", change=retyped(REUSING, "raw")),
    Case("markdown-check", change=retyped(next(iter(CHECKS)), "markdown")),
    Case("helper-in-text", change=helper_in_a_cell_of("prose")),
    Case("helper-in-chart", change=helper_in_a_cell_of("chart")),
    Case("helper-below-split-setup", "The cell imports was changed; it ran after the course's own.",
         change=helper_below_a_split_setup),
    Case("reversed", "Moved back to the course's order", change=lambda nb: nb["cells"].reverse()),
    # What other tools leave
    Case("no-metadata", "The notebook came without nbgrader's metadata.", change=without_metadata),
    Case("vs-code", change=of_vs_code),
    Case("colab", "The notebook came without nbgrader's metadata.", change=of_colab),
    Case("odd-metadata", "entries of the cell list are not cells.",
         change=odd_metadata),
    Case("nbformat-3", change=of_version_3),
    Case("nbformat-5", change=lambda nb: nb.update(nbformat=5, nbformat_minor=99, extra={"a": 1})),
    Case("kernel-absent", change=kernel({"name": "conda-env-ml-py", "display_name": "Python [conda env:ml]", "language": "python"})),
    Case("kernel-root", change=kernel({"name": "Python [Root]", "display_name": "Python [Root]"})),
    Case("kernel-r", "The notebook names a kernel for R; it was run as Python.", change=kernel({"name": "ir", "language": "R"})),
    Case("kernel-none", change=lambda nb: nb.update(metadata={})),
    Case("byte-order-mark", file=rewritten(lambda text: b"\xef\xbb\xbf" + text.encode())),
    Case("utf-16", file=rewritten(lambda text: text.encode("utf-16"))),
    Case("windows-lines", file=rewritten(lambda text: text.replace("\n", "\r\n").encode())),
    Case("other-files", file=with_other_files),
    Case("large-outputs", change=with_outputs_of_20_mb),
    # Names
    Case("renamed-copy", f"The notebook was named {STAGE.module} (1).ipynb.", file=renamed(f"{STAGE.module} (1).ipynb")),
    Case("renamed-smith", "The notebook was named smith_save-and-reuse_FINAL.ipynb.", file=renamed("smith_save-and-reuse_FINAL.ipynb")),
    Case("renamed-untitled", "The notebook was named Untitled7.IPYNB.", file=renamed("Untitled7.IPYNB")),
    Case("two-notebooks", f"{NAME} was graded; there was also scratch.ipynb.", file=two_notebooks),
    Case("Łukasz Żółć-名前", change=own_cell("naïve_größe = 'Ünïcödé 🙂'\n" + unicodedata.normalize("NFD", "é = 1"))),
    Case("name with spaces, and a dot.", file=None),
    # Left-overs in the code
    Case("input", "EOFError: EOF when reading a line (line 1 of cell 1: name = input('Your name? '))", change=own_cell("name = input('Your name? ')\nnever = 1")),
    Case("breakpoint", change=own_cell("breakpoint()\nimport pdb")),
    Case("magics", change=own_cell("%matplotlib inline\n%load_ext autoreload\n%autoreload 2\n%debug\n%timeit 1 + 1")),
    Case("cell-magic", change=own_cell("%%time\nx = sum(range(10))")),
    Case("shell", change=own_cell("!pip --version\nfiles = !ls\n%pip --version\n?print\nprint?")),
    Case("star-imports", sources={**SOLVED, SAVING: STAR + "\n" + SOLVED[SAVING]}),
    Case("scratch-error", "AssertionError: scratch (line 2 of cell 1: assert False, 'scratch')",
         change=own_cell("x = 1\nassert False, 'scratch'")),
    Case("syntax-error", "SyntaxError", change=own_cell("for i in range(3) print(i)")),
    Case("needs-own-cells", "The cell imports was changed; it ran after the course's own.", change=moved_into_own_cells),
    Case("warns", sources={m: "import sys, warnings\nwarnings.warn('w')\nprint('e', file=sys.stderr)\n" + s for m, s in SOLVED.items()}),
    # Loops, memory and crashes
    Case("loop-in-scratch", "Cell 1 was left out: no answer within", change=own_cell(LOOP)),
    Case("memory-in-scratch", "MemoryError", change=own_cell("import numpy\nx = numpy.zeros(2**34)")),
    Case("exit-in-scratch", "Cell 1 was left out: the process ended while running cell 1 (exit status 0).",
         change=own_cell("import os\nos._exit(0)")),
    Case("loop-in-one-function", "In the check cache-file-round-trip: no answer within", loses=FILE_CHECKS,
         sources={**SOLVED, "write-prefix-cache": "def write_prefix_cache(*args):\n    while True: __import__('time').sleep(9)"}),
    Case("exit-in-one-function", f"In the checks {', '.join(sorted(FILE_CHECKS, reverse=True))}: the process ended while running write_prefix_cache",
         loses=FILE_CHECKS, sources={**SOLVED, "write-prefix-cache": "def write_prefix_cache(*args):\n    import os; os._exit(0)"}),
    Case("growing-list", loses=FILE_CHECKS,
         sources={**SOLVED, "write-prefix-cache": "def write_prefix_cache(*args):\n    x = []\n    for _ in range(1024): x.append(np.zeros(2**20))"}),
    # What cannot be graded
    Case("invalid-json", reason=f"{NAME} is not valid JSON (line 3)", file=lambda path: path.write_text('{\n "cells": [\n  {"cell_type": oops')),
    Case("cut-off", reason=f"{NAME} is not valid JSON", file=rewritten(lambda text: text.encode()[: len(text) // 2])),
    Case("merge-conflict", reason="it holds the markers of a merge conflict",
         file=rewritten(lambda text: ("<<<<<<< HEAD\n" + text + "\n=======\n>>>>>>> main\n").encode())),
    Case("empty-file", reason=f"{NAME} is empty; save the notebook again.", file=lambda path: path.write_text("")),
    Case("not-a-notebook", reason=f"{NAME} is not a text file in UTF-8", file=lambda path: path.write_bytes(b"%PDF-1.7\xff\xfe\x00")),
    Case("a-list", reason=f"{NAME} is not a notebook", file=lambda path: path.write_text("[1, 2]")),
    Case("nested", reason=f"{NAME} is not a notebook", file=lambda path: path.write_text("[" * 100_000)),
    Case("huge", reason="is 200 MB, more than 64 MB; clear the outputs", file=huge),
    Case("no-notebook", reason=f"There is no notebook in the submission; {NAME} is needed (found: {NAME}.txt).", file=renamed(f"{NAME}.txt")),
    Case("a-folder", reason="There is no notebook in the submission", file=a_folder_of_its_name),
    Case("two-meant", reason=f"None of the notebooks is named {NAME} (final.ipynb, final2.ipynb); rename the one", file=two_that_can_be_meant),
    Case("bad-time", reason="timestamp.txt does not hold a time", file=lambda path: (path.parent / "timestamp.txt").write_text("??")),
]  # fmt: skip
