"""Notebooks: building the assignments from solutions/, and reading what students made of them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.notebooks.errors import BuildError, NotebookError
    from autograder.notebooks.load import load_notebook, read_cells

_LAZY = {
    "BuildError": "errors",
    "NotebookError": "errors",
    "load_notebook": "load",
    "read_cells": "load",
}

__all__ = ["BuildError", "NotebookError", "load_notebook", "read_cells"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
