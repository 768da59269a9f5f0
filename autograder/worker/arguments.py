"""Arguments that are not plain values: a request names them, and the process that runs the student's code makes them.

Each is one class for both sides: `wire` puts it into a request, and `arrive` returns the argument that it stands for.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.worker import values
from autograder.worker.block_keys import keys_of_bits
from autograder.worker.hashing import string_of_form
from autograder.worker.values import PLAIN


@dataclass(frozen=True)
class Handle:
    """Stands for an object of the student's."""

    number: int

    def arrive(self, runtime):
        return runtime.handles[self.number]


@dataclass(frozen=True)
class Entry:
    """Arrives as an object with .token_ids, such as `lookup` ranks."""

    token_ids: list[int]

    def arrive(self, runtime):
        return values.Entry(list(self.token_ids))


@dataclass(frozen=True)
class AsTuple:
    """Arrives as a tuple (a plain list or tuple arrives as a list)."""

    items: Sequence[Any]

    def arrive(self, runtime):
        return tuple(arrived(item, runtime) for item in self.items)


@dataclass(frozen=True)
class AsString:
    """Arrives as a string: an object of its own, the one object of all equal ones, or one with another process's hash.

    form: "own", "one", or a number that changes the hash.
    """

    string: str
    form: str | int

    def arrive(self, runtime):
        return string_of_form(self.string, self.form)


@dataclass(frozen=True)
class ByteTokenizer:
    """Arrives as the tokenizer of random chat models, one token for each byte."""

    turned: bool = False

    def arrive(self, runtime):
        from autograder.toolkit.chat import byte_tokenizer

        return byte_tokenizer(self.turned)


@dataclass(frozen=True)
class PlainRender:
    """Arrives as a function like render_chatml that writes another format than ChatML."""

    def arrive(self, runtime):
        return plain_render


def plain_render(messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
    lines = [f"{message['role']}> {message['content']}\n" for message in messages]
    return "".join(lines) + ("assistant> " if add_generation_prompt else "")


@dataclass(frozen=True)
class KeysOfBits:
    """Arrives as a function like block_keys whose keys have only this many bits (worker/block_keys.py)."""

    bits: int

    def arrive(self, runtime):
        return keys_of_bits(self.bits)


@dataclass(frozen=True)
class NotesWork:
    """Arrives as a function of an id that notes how many tokens have gone through the model when it is called.

    pause: the seconds that a call takes.
    """

    pause: float = 0.0

    def arrive(self, runtime):
        def note(token_id):
            runtime.noted.append(runtime.meter.tokens)
            time.sleep(self.pause)

        return note


@dataclass(frozen=True)
class Function:
    """Arrives as the student's function of this name."""

    name: str

    def arrive(self, runtime):
        return runtime.namespace[self.name]


@dataclass(frozen=True)
class Model:
    """Arrives as the weights of the specified model, with tensors replaced, or a part such as "blocks.1.attn"."""

    spec: dict[str, Any]
    patches: dict[str, np.ndarray]
    part: str = ""

    def arrive(self, runtime):
        if self.part == "config" and "config" in self.spec:  # without the weights, which may be large
            from autograder.toolkit.model import GPT2Config

            return GPT2Config(**self.spec["config"])
        weights = runtime.model(self.spec, self.patches)
        for name in self.part.split(".") if self.part else ():
            weights = weights[int(name)] if name.isdigit() else getattr(weights, name)
        return weights


_KIND = "__kind__"
_CLASSES = (Handle, Entry, AsTuple, AsString, ByteTokenizer, PlainRender, KeysOfBits, NotesWork, Function, Model)
_KINDS = {c.__name__: c for c in _CLASSES}


def wire(value: Any) -> Any:
    """The form of an argument in a request."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, (list, tuple)):  # most are token ids
        return value if PLAIN.issuperset(map(type, value)) else [wire(v) for v in value]
    if isinstance(value, dict):
        return {key: wire(v) for key, v in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "as_argument"):
        value = value.as_argument()
    if type(value).__name__ in _KINDS:
        return {_KIND: type(value).__name__, **{name: wire(v) for name, v in vars(value).items()}}
    return value


def arrived(value: Any, runtime: Any) -> Any:
    """The argument that a student's function gets: always an object of its own."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, dict):
        if _KIND in value:
            return _KINDS[value[_KIND]](**{name: v for name, v in value.items() if name != _KIND}).arrive(runtime)
        return {key: arrived(v, runtime) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return list(value) if PLAIN.issuperset(map(type, value)) else [arrived(v, runtime) for v in value]
    return value.copy() if isinstance(value, np.ndarray) else value
