"""Measures work other than time: tokens that go through the model, and memory."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class Work:
    """A count of tokens, which grows while `counting` is on."""

    tokens = 0


@contextlib.contextmanager
def counting(namespace: dict[str, Any], *names: str) -> Iterator[Work]:
    """Count the tokens given to the functions of these names in a namespace, such as globals().

    Each takes a token id, or a list of them, as its first argument. The functions are restored afterwards.
    """
    work, plain = Work(), {name: namespace[name] for name in names}

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(tokens: Any, *rest: Any, **named: Any) -> Any:
            work.tokens += np.size(tokens)
            return function(tokens, *rest, **named)

        return run

    namespace.update({name: counted(function) for name, function in plain.items()})
    try:
        yield work
    finally:
        namespace.update(plain)


def bytes_held(job: Callable[[], Any]) -> int:
    """How much more memory is in use after a call, while its result exists. NumPy's arrays are counted."""
    tracemalloc.start()
    try:
        result = job()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del result
    return held
