"""The course's own functions, as a namespace to measure."""

from __future__ import annotations

import sys
import types
from types import SimpleNamespace

from autograder.notebooks.given import given_source
from autograder.notebooks.marks import read_script
from autograder.notebooks.regions import without_markers
from autograder.places import SOLUTIONS
from autograder.stages import find_stage


def solved(stage_name: str = "save-and-reuse", sharing: bool = False) -> SimpleNamespace:
    """Everything that the stage's solution and the solutions before it define.

    With `sharing` also the shared prefix of save-and-reuse's last section: SharedCache, generate_sharing.
    """
    stage = find_stage(stage_name)
    given = types.ModuleType("given")
    outer = sys.modules.get("given")
    sys.modules["given"] = given
    try:
        exec(given_source(stage) or "", given.__dict__)
        namespace = dict(given.__dict__)
        for cell in read_script(SOLUTIONS / f"{stage.module}.py"):
            shares = "class SharedCache" in cell.source or "def generate_sharing" in cell.source
            if cell.kind in ("setup", "solution") or (sharing and shares):
                exec(without_markers(cell.source), namespace)
    finally:
        if outer is None:
            del sys.modules["given"]
        else:
            sys.modules["given"] = outer
    return SimpleNamespace(**{name: value for name, value in namespace.items() if not name.startswith("__")})
