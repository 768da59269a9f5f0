"""Counts the memory that a student's object keeps in use."""

from __future__ import annotations

import gc
import sys
import types
from typing import Any

import numpy as np

_NOT_ITS_OWN = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def bytes_held(root: Any) -> int:
    """The bytes of an object and everything reachable from it, except code. A view counts as its whole array."""
    seen: set[int] = set()
    waiting, total = [root], 0
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, _NOT_ITS_OWN):
            continue
        seen.add(id(item))
        total += sys.getsizeof(item)
        waiting += [item.base] if isinstance(item, np.ndarray) and item.base is not None else gc.get_referents(item)
    return total
