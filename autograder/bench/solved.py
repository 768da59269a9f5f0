"""The course's own functions, as a namespace to measure.

The notebooks' libraries are not loaded for it, because they would count toward the measured memory.
"""

from __future__ import annotations

import sys
import types
from types import SimpleNamespace

from autograder.notebooks.percent import parse_python
from autograder.notebooks.regions import without_markers
from autograder.places import ROOT, SOLUTIONS
from autograder.stages import find_stage


def solved(stage_name: str = "save-and-reuse", sharing: bool = False) -> SimpleNamespace:
    """Everything that the stage's solution defines, and the given.py that was built with it.

    With `sharing` also the shared prefix of save-and-reuse's last section: SharedCache, generate_sharing.
    """
    stage = find_stage(stage_name)
    given = types.ModuleType("given")
    outer = sys.modules.get("given")
    sys.modules["given"] = given
    try:
        built = ROOT / "course" / "release" / stage.assignment / "given.py"
        exec(built.read_text(encoding="utf-8") if stage.number > 1 else "", given.__dict__)
        namespace = dict(given.__dict__)
        for cell in parse_python((SOLUTIONS / f"{stage.module}.py").read_text(encoding="utf-8")).cells:
            shares = "class SharedCache" in cell.source or "def generate_sharing" in cell.source
            if (cell.grade_id and not cell.is_grade) or (sharing and shares):
                exec(without_markers(cell.source), namespace)
    finally:
        if outer is None:
            del sys.modules["given"]
        else:
            sys.modules["given"] = outer
    return SimpleNamespace(**{name: value for name, value in namespace.items() if not name.startswith("__")})
