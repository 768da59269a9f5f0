"""The prefix cache course: what its notebooks use, each part loaded the first time it is asked for.

``import autograder`` itself imports nothing, so a notebook or a command starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder import lab
    from autograder.notebooks import load_notebook
    from autograder.notebooks.check_cell import check
    from autograder.toolkit import attention_charts, block_charts, charts, chat, cost_charts, timing, traces
    from autograder.toolkit.glossary import glossary
    from autograder.toolkit.model import (
        GPT2_LARGE,
        GPT2_MEDIUM,
        GPT2_SMALL,
        GPT2_XL,
        GPT2Config,
        load_both,
        load_model,
        load_tokenizer,
        random_model,
    )
    from autograder.toolkit.model.tokenizer import tokenizer_fingerprint
    from autograder.toolkit.model.weights import fingerprint as model_fingerprint
    from autograder.toolkit.play.guess import guess
    from autograder.toolkit.play.live import live_table, race, stream
    from autograder.toolkit.play.puzzle import puzzle, question

    __version__: str

# name here -> (module, name there); no name there means the module itself
_LAZY = {
    "GPT2Config": ("autograder.toolkit.model", "GPT2Config"),
    "GPT2_SMALL": ("autograder.toolkit.model", "GPT2_SMALL"),
    "GPT2_MEDIUM": ("autograder.toolkit.model", "GPT2_MEDIUM"),
    "GPT2_LARGE": ("autograder.toolkit.model", "GPT2_LARGE"),
    "GPT2_XL": ("autograder.toolkit.model", "GPT2_XL"),
    "load_both": ("autograder.toolkit.model", "load_both"),
    "load_model": ("autograder.toolkit.model", "load_model"),
    "load_tokenizer": ("autograder.toolkit.model", "load_tokenizer"),
    "random_model": ("autograder.toolkit.model", "random_model"),
    "model_fingerprint": ("autograder.toolkit.model.weights", "fingerprint"),
    "tokenizer_fingerprint": ("autograder.toolkit.model.tokenizer", "tokenizer_fingerprint"),
    "check": ("autograder.notebooks.check_cell", "check"),
    "load_notebook": ("autograder.notebooks", "load_notebook"),
    "chat": ("autograder.toolkit.chat", None),
    "timing": ("autograder.toolkit.timing", None),
    "attention_charts": ("autograder.toolkit.attention_charts", None),
    "block_charts": ("autograder.toolkit.block_charts", None),
    "cost_charts": ("autograder.toolkit.cost_charts", None),
    "charts": ("autograder.toolkit.charts", None),
    "traces": ("autograder.toolkit.traces", None),
    "lab": ("autograder.lab", None),
    "glossary": ("autograder.toolkit.glossary", "glossary"),
    "guess": ("autograder.toolkit.play.guess", "guess"),
    "puzzle": ("autograder.toolkit.play.puzzle", "puzzle"),
    "question": ("autograder.toolkit.play.puzzle", "question"),
    "stream": ("autograder.toolkit.play.live", "stream"),
    "race": ("autograder.toolkit.play.live", "race"),
    "live_table": ("autograder.toolkit.play.live", "live_table"),
}

__all__ = [
    "GPT2_LARGE",
    "GPT2_MEDIUM",
    "GPT2_SMALL",
    "GPT2_XL",
    "GPT2Config",
    "attention_charts",
    "block_charts",
    "charts",
    "chat",
    "check",
    "cost_charts",
    "glossary",
    "guess",
    "lab",
    "live_table",
    "load_both",
    "load_model",
    "load_notebook",
    "load_tokenizer",
    "model_fingerprint",
    "puzzle",
    "question",
    "race",
    "random_model",
    "stream",
    "timing",
    "tokenizer_fingerprint",
    "traces",
]

_in_worker = False  # set by autograder.worker: there the checks are run by the parent, never by a cell


def _nothing(_: str = "") -> None:
    """Stands in a grading worker for `check`, as the score is decided elsewhere, and for what is there to be read."""


def __getattr__(name: str) -> Any:
    if name in ("check", "glossary") and _in_worker:
        return _nothing
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("prefix-cache-course")
    elif name in _LAZY:
        module_name, attribute = _LAZY[name]
        module = importlib.import_module(module_name)
        value = module if attribute is None else getattr(module, attribute)
    else:
        raise AttributeError(f"module 'autograder' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "__version__"})
