"""Counts the tokens that go through the model while a function of the student's runs.

The work is the number of rows that are multiplied by the weight matrices of the blocks, however the code is written:
the weights given out here are arrays that record it. If they record nothing, because the code made plain copies of all
of them first, the next best evidence counts, in this order:

1. products: rows times a block's matrices, by @, matmul, dot, einsum, tensordot or inner, whole or in slices;
2. rows: the arguments of the course's functions for a part of a block (gelu, attend, transformer_block, ...);
3. calls: token ids given to prefill, decode_step, forward or advance;
4. lookups: rows taken from wte.

The course's own functions for a whole pass (forward, advance, prefill and decode_step of given.py) and its
transformer_block run every token that they are given. So at least those tokens went through the model, whatever else
was recorded, and whichever weights were passed.

If nothing in this list recorded anything, `tokens` is None, and the caller decides.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np

ROW_FUNCTIONS = ("gelu", "attend", "causal_self_attention", "transformer_block", "cached_block")
ID_FUNCTIONS = ("prefill", "decode_step", "forward", "advance")
OF_A_CHAT_MODEL = ("swiglu",), ("advance_llama",)  # beside these, the names above are helpers of any kind
_PRODUCTS = (np.dot, np.einsum, np.tensordot, np.inner)


class Meter:
    """Counts the tokens of one call. row_functions, id_functions: those that take rows, or ids, of every token."""

    def __init__(
        self,
        n_layer: int = 1,
        row_functions: Sequence[str] = ROW_FUNCTIONS,
        id_functions: Sequence[str] = ID_FUNCTIONS,
    ) -> None:
        self._n_layer = n_layer
        self._row_functions, self._id_functions = row_functions, id_functions
        self._products: dict[tuple[int, str], float] = {}
        self._rows: dict[str, float] = {}
        self._calls = 0.0
        self._lookups = 0.0
        self._given = 0.0
        self._inside_given = False

    @property
    def tokens(self) -> float | None:
        """Tokens through the model, by the best evidence, and at least as many as given.py's functions received."""
        return max(self._best or 0.0, self._given) or None

    @property
    def _best(self) -> float | None:
        seen = [n for n in self._products.values() if n]
        if seen:  # the middle one: x @ W may be written three times for q, k and v, or the last block take one row only
            return median(seen)
        return max(self._rows.values(), default=0.0) / self._n_layer or self._calls or self._lookups or None

    def weights(self, weights: Any) -> Any:
        """The same weights, with arrays that record what is done with them."""
        self._n_layer = len(weights.blocks)
        blocks = tuple(self._block(i, block) for i, block in enumerate(weights.blocks))
        return _with(weights, wte=_watched(weights.wte, _Table, self._look_up), blocks=blocks)

    def _block(self, index: int, block: Any) -> Any:
        attn = _with(block.attn, c_attn=self._linear(index, block.attn, "c_attn"),
                     c_proj=self._linear(index, block.attn, "c_proj"))  # fmt: skip
        mlp = _with(block.mlp, c_fc=self._linear(index, block.mlp, "c_fc"),
                    c_proj=self._linear(index, block.mlp, "c_proj"))  # fmt: skip
        return _with(block, attn=attn, mlp=mlp)

    def _linear(self, index: int, part: Any, name: str) -> Any:
        linear = getattr(part, name)
        key = (index, f"{type(part).__name__}.{name}")
        n_in, n_out = linear.weight.shape

        def multiplied(n_products: float) -> None:
            self._products[key] = self._products.get(key, 0.0) + n_products / (n_in * n_out)

        return _with(linear, weight=_watched(linear.weight, _Matrix, multiplied, n_in))

    def _look_up(self, n_rows: float) -> None:
        self._lookups += n_rows

    @contextlib.contextmanager
    def watching(self, namespace: dict[str, Any]) -> Iterator[None]:
        """While this context is open, count the student's functions that show how many tokens they handle."""
        with self._watching_given(namespace):
            before = {
                name: namespace[name]
                for name in (*self._row_functions, *self._id_functions)
                if callable(namespace.get(name)) and not isinstance(namespace[name], type)
            }
            for name, function in before.items():
                namespace[name] = (self._count_rows if name in self._row_functions else self._count_ids)(name, function)
            try:
                yield
            finally:
                namespace.update(before)

    @contextlib.contextmanager
    def _watching_given(self, namespace: dict[str, Any]) -> Iterator[None]:
        """The same for the functions of given.py, under whatever name: in its module, and where it was imported."""
        module = getattr(sys.modules.get("given"), "__dict__", {})
        counted = {
            id(function): (function, self._count_given(name, function))
            for name in (*ID_FUNCTIONS, "transformer_block")
            if isinstance(function := module.get(name), types.FunctionType) and function.__globals__ is module
        }
        before = [
            (scope, name, value)
            for scope in (module, namespace)
            for name, value in scope.items()
            if id(value) in counted and counted[id(value)][0] is value
        ]
        for scope, name, value in before:
            scope[name] = counted[id(value)][1]
        try:
            yield
        finally:
            for scope, name, value in before:
                scope[name] = value

    def _count_given(self, name: str, function: Callable) -> Callable:
        @functools.wraps(function)
        def counted(*args, **kwargs):
            if self._inside_given:  # prefill calls advance: one pass
                return function(*args, **kwargs)
            self._inside_given = True
            try:
                result = function(*args, **kwargs)
            finally:
                self._inside_given = False
            self._given += (
                np.shape(result)[0] / self._n_layer if name == "transformer_block" else _n_ids(name, args, kwargs)
            )
            return result

        return counted

    def _count_rows(self, name, function):
        @functools.wraps(function)
        def counted(*args, **kwargs):
            rows = next((a for a in (*args, *kwargs.values()) if isinstance(a, np.ndarray)), 0)
            shape = np.shape(rows)  # [..., tokens, width]
            if name == "attend" and (len(shape) == 2 or shape[0] == 1):  # one head: a helper of the student's own
                return function(*args, **kwargs)
            outside, self._rows[name] = self._rows.get(name, 0.0), 0.0
            try:
                return function(*args, **kwargs)
            finally:  # a function may call itself for parts of its rows
                self._rows[name] = outside + max(shape[-2] if len(shape) > 1 else 1, self._rows[name])

        return counted

    def _count_ids(self, name, function):
        @functools.wraps(function)
        def counted(*args, **kwargs):
            given = _n_ids(name, args, kwargs)
            outside, self._calls = self._calls, 0.0
            try:
                return function(*args, **kwargs)
            finally:  # prefill may be made of decode steps, and a decode step hide a whole pass
                self._calls = outside + max(given, self._calls)

        return counted


def _n_ids(name: str, args: tuple, kwargs: dict[str, Any]) -> int:
    """How many token ids a function of this name was given."""
    if name == "decode_step":
        return 1
    given = (*args, *kwargs.values())  # what only inherits from a list may be the cache
    return len(next((a for a in given if type(a) in (list, tuple, np.ndarray)), [0]))


def _with(node: Any, **changes: Any) -> Any:
    """A copy of a node of the weights with some fields replaced, as they are: the constructor would copy them."""
    copy = object.__new__(type(node))
    copy.__dict__.update(node.__dict__, **changes)
    return copy


def _watched(array: np.ndarray, kind: type, note: Any, n_in: int = 0) -> np.ndarray:
    watched = array.view(kind)
    watched.note, watched.n_in = note, n_in
    return watched


class _Watched(np.ndarray):
    """An array that records how it is used. So do its views and copies; results computed from it are plain."""

    __array_priority__ = -1.0
    note: Any = None
    n_in = 0

    def __array_finalize__(self, parent):
        self.note, self.n_in = getattr(parent, "note", None), getattr(parent, "n_in", 0)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if "out" in kwargs:
            kwargs["out"] = tuple(map(_plain, kwargs["out"]))
        result = getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
        if ufunc is np.matmul:
            _note_product(inputs, result)
        return result

    def __array_function__(self, function, types, args, kwargs):
        if function not in _PRODUCTS:
            return super().__array_function__(function, types, args, kwargs)
        result = function(*map(_plain, args), **{key: _plain(a) for key, a in kwargs.items()})
        _note_product(args, result if function is np.dot else None)
        return result

    def dot(self, other, out=None):
        return np.dot(self, other) if out is None else np.dot(self, other, out=out)

    def __reduce__(self):
        return _plain(self).__reduce__()


class _Matrix(_Watched):
    """A block's weight matrix [n_in, n_out]: records the scalar products of each multiplication by it."""


class _Table(_Watched):
    """The token embeddings: records the rows taken from it."""

    def __getitem__(self, index):
        rows = super().__getitem__(index)
        first = index[0] if isinstance(index, tuple) and index else index
        if self.note and not isinstance(first, slice) and first is not Ellipsis and first is not None:
            self.note(rows.size / self.shape[-1])
        return _plain(rows) if not isinstance(first, slice) else rows

    def take(self, indices, axis=None, **kwargs):
        rows = _plain(self).take(indices, axis, **kwargs)
        if self.note:
            self.note(rows.size / self.shape[-1])
        return rows


def _plain(value):
    return value.view(np.ndarray) if isinstance(value, _Watched) else value


def _note_product(operands, result=None) -> None:
    """Count the scalar products of a multiplication by a matrix, or by a part of one.

    matmul and dot contract the last axis of the left operand with the last but one of the right. For einsum and the
    like, the contracted axis is assumed to be the matrix's n_in.
    """
    arrays = [a for a in operands if isinstance(a, np.ndarray)]
    matrix = next((a for a in arrays if isinstance(a, _Matrix)), None)
    if matrix is None or matrix.note is None or len(arrays) != 2 or all(isinstance(a, _Matrix) for a in arrays):
        return
    on_the_right = arrays[1] is matrix
    if result is not None:
        contracted = matrix.shape[-2] if on_the_right and matrix.ndim > 1 else matrix.shape[-1]
        matrix.note(np.size(result) * contracted)
    else:
        matrix.note(arrays[0 if on_the_right else 1].size / matrix.n_in * matrix.size)
