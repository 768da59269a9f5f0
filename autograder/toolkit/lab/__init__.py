"""The cache lab of the first notebook: what the KV cache and a shared prefix save, to be played with.

    lab.decode_lab(weights, tokenizer)     # lab 1: prefill once, then decode
    lab.request_lab(weights, tokenizer)    # lab 2: the next request
    lab.steps_picture(16, n_steps=3)       # lab 1's picture alone, for any notebook

The cost model (costs.py) is pure functions; the drawings (drawing.py) make text out of numbers; the measured passes
(passes.py) stand apart from both; widgets.py only connects them to sliders and buttons.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.toolkit.lab.costs import Decoding, NextRequest, attention_units
    from autograder.toolkit.lab.drawing import steps_picture
    from autograder.toolkit.lab.widgets import decode_lab, request_lab

_HOME = {
    "Decoding": "costs",
    "NextRequest": "costs",
    "attention_units": "costs",
    "decode_lab": "widgets",
    "request_lab": "widgets",
    "steps_picture": "drawing",
}

__all__ = ["Decoding", "NextRequest", "attention_units", "decode_lab", "request_lab", "steps_picture"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'autograder.toolkit.lab' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"autograder.toolkit.lab.{_HOME[name]}"), name)
    globals()[name] = value
    return value
