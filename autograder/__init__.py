"""The prefix cache course: what its notebooks use, each part loaded the first time it is asked for.

``import autograder`` itself imports nothing, so a notebook or a command starts at once.
"""

# ruff: noqa: F401 - what is imported for type checkers is there for whoever imports the package

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder import lab
    from autograder.notebooks.check_cell import check
    from autograder.notebooks.load import load_notebook
    from autograder.toolkit import attention_charts, block_charts, charts, chat, cost_charts, timing, traces
    from autograder.toolkit.glossary import glossary
    from autograder.toolkit.model.config import GPT2_LARGE, GPT2_MEDIUM, GPT2_SMALL, GPT2_XL, GPT2Config
    from autograder.toolkit.model.load import load_model
    from autograder.toolkit.model.random_weights import random_model
    from autograder.toolkit.model.tokenizer import load_both, load_tokenizer, tokenizer_fingerprint
    from autograder.toolkit.model.weights import fingerprint as model_fingerprint
    from autograder.toolkit.play.guess import guess
    from autograder.toolkit.play.live import live_table, race, stream
    from autograder.toolkit.play.puzzle import puzzle, question

    __version__: str

# What the package offers, by the module that it is in
_NAMES = {
    "notebooks.check_cell": ("check",),
    "notebooks.load": ("load_notebook",),
    "toolkit.glossary": ("glossary",),
    "toolkit.model": (
        "GPT2Config", "GPT2_SMALL", "GPT2_MEDIUM", "GPT2_LARGE", "GPT2_XL", "load_both", "load_model", "load_tokenizer",
        "random_model",
    ),
    "toolkit.model.tokenizer": ("tokenizer_fingerprint",),
    "toolkit.play.guess": ("guess",),
    "toolkit.play.live": ("live_table", "race", "stream"),
    "toolkit.play.puzzle": ("puzzle", "question"),
}  # fmt: skip
_MODULES = ("lab", "toolkit.attention_charts", "toolkit.block_charts", "toolkit.charts", "toolkit.chat",
            "toolkit.cost_charts", "toolkit.timing", "toolkit.traces")  # fmt: skip
# name here -> (module, name there); no name there means the module itself
_LAZY: dict[str, tuple[str, str | None]] = {"model_fingerprint": ("toolkit.model", "fingerprint")}
_LAZY |= {name: (module, name) for module, names in _NAMES.items() for name in names}
_LAZY |= {module.rpartition(".")[2]: (module, None) for module in _MODULES}
__all__ = sorted(_LAZY)

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
        module = importlib.import_module(f"autograder.{module_name}")
        value = module if attribute is None else getattr(module, attribute)
    else:
        raise AttributeError(f"module 'autograder' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "__version__"})
