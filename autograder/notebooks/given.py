"""given.py: the earlier stages' functions, taken from their solution cells, as one tidy module."""

from __future__ import annotations

import ast
import builtins
import hashlib
import sys
import textwrap
from itertools import groupby
from pathlib import Path

from autograder.notebooks.errors import BuildError
from autograder.notebooks.marks import ScriptCell, read_script
from autograder.notebooks.parity import names_of
from autograder.notebooks.regions import without_markers
from autograder.places import SOLUTIONS
from autograder.stages import Stage, earlier_stages

GIVEN = Path(__file__).with_name("given.txt")  # made by the build: each stage's module, and the hash of its given.py

_ABOUT = (
    "The functions of the earlier stages ({titles}), as the course solved them. Made from the course's solutions, so "
    "that a stage can be solved and graded for itself, whatever became of the ones before. Changes made here count for "
    "nothing: the file is replaced when the work is graded. To build on functions of your own, load your notebook: "
    'mine = autograder.load_notebook("{path}").'
)


def given_hash(text: str) -> str:
    """The hash that identifies a given.py, whatever its line ends."""
    return hashlib.sha256("\n".join(text.splitlines()).encode()).hexdigest()[:16]


def is_courses_own(text: str, stage: Stage) -> bool:
    """Whether this is the given.py with which the stage is graded."""
    return f"{stage.module} {given_hash(text)}" in GIVEN.read_text(encoding="utf-8").splitlines()


def given_source(stage: Stage, solutions: Path = SOLUTIONS) -> str | None:
    """The text of a stage's given.py; None for a stage that needs no earlier one."""
    earlier = earlier_stages(stage)
    if not earlier:
        return None
    imports: dict[str, _Import] = {}
    sections: list[str] = []
    defined_in: dict[str, str] = {}
    used: dict[str, str] = {}
    future = False
    for before in earlier:
        script = f"{before.module}.py"
        cells = read_script(solutions / script)
        for cell in cells:
            if cell.kind == "setup":
                found, has_future = _imports(cell, script)
                imports |= found
                future |= has_future
        solved = [c for c in cells if c.kind == "solution" or (c.kind == "setup" and _only_defines(_parse(c, script)))]
        for cell in solved:
            _parse(cell, script)  # or BuildError
            names = names_of(cell.source)
            for name in sorted(names.bound):
                if name in defined_in:
                    raise BuildError(
                        f"{script} defines {name} in the cell {cell.name!r}, and {defined_in[name]} does too; "
                        "given.py needs a name for each."
                    )
                defined_in[name] = script
            for name in sorted(names.read - names.bound - set(dir(builtins))):
                used.setdefault(name, f"{script}, cell {cell.name!r}")
        title = f"# {before.number}. {before.title}"
        sections.append("\n\n\n".join([title, *(without_markers(c.source).strip("\n") for c in solved)]))
    for name, place in used.items():
        if name not in imports and name not in defined_in:
            raise BuildError(f"{place} uses {name}, which is neither defined in a solution cell nor imported by setup.")
    needed = sorted({imports[n] for n in used if n in imports and n not in defined_in})
    last = earlier[-1]
    about = _ABOUT.format(titles=", ".join(s.title for s in earlier), path=f"../{last.assignment}/{last.module}.ipynb")
    head = '"""' + textwrap.fill(about, 117, break_long_words=False, break_on_hyphens=False) + '\n"""\n'
    text = "\n".join([head, *_import_lines(needed, future)]) + "\n\n" + "\n\n\n".join(sections) + "\n"
    compile(text, "given.py", "exec")
    return text


# (group, whether it is a "from" import, module, imported name): sorts in the order in which imports are written
_Import = tuple[int, bool, str, str]


def _imports(cell: ScriptCell, script: str) -> tuple[dict[str, _Import], bool]:
    """The names that the imports of a setup cell bind, except those from given; whether it has a __future__ import."""
    found: dict[str, _Import] = {}
    future = False
    for node in ast.walk(_parse(cell, script)):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        module = node.module or "" if isinstance(node, ast.ImportFrom) else None
        future |= module == "__future__"
        for alias in node.names if module not in ("__future__", "given") else ():
            root = (module or alias.name).split(".")[0]
            group = 0 if root in sys.stdlib_module_names else 2 if root == "autograder" else 1
            bound = alias.asname or alias.name.split(".")[0]
            found[bound] = group, module is not None, module or alias.name, ast.unparse(alias)
    return found, future


def _import_lines(imports: list[_Import], future: bool) -> list[str]:
    groups = ["from __future__ import annotations"] if future else []
    for _, group in groupby(imports, key=lambda found: found[0]):
        lines = []
        for (is_from, module), same in groupby(group, key=lambda found: found[1:3]):
            names = [name for *_, name in same]
            lines += [f"from {module} import {', '.join(names)}"] if is_from else [f"import {name}" for name in names]
        groups.append("\n".join(lines))
    return "\n\n".join(groups).split("\n")


def _parse(cell: ScriptCell, script: str) -> ast.Module:
    try:
        return ast.parse(cell.source)
    except SyntaxError as error:
        raise BuildError(f"{script}, cell {cell.name!r} is not valid Python: {error}.") from None


def _only_defines(tree: ast.Module) -> bool:
    """Whether a setup cell holds functions, classes and constants for the student to use, and nothing else."""
    return all(isinstance(node, (ast.FunctionDef, ast.ClassDef)) or _is_constant(node) for node in tree.body)


def _is_constant(node: ast.stmt) -> bool:
    """Whether a statement assigns a constant, such as START = "..."."""
    return isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) and t.id.isupper() for t in node.targets)
