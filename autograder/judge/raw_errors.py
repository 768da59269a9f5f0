"""Explains terse errors of Python and NumPy in the terms of this course."""

from __future__ import annotations

import functools
import re

_SHORTER = (  # NumPy's messages, rewritten without its internal terms
    (
        r"matmul: Input operand 1 has a mismatch in its core dimension 0, .* \(size (\d+) is different from (\d+)\)",
        r"in a product a @ b, a's last axis is \2 long, and b's last but one is \1 long",
    ),
    (
        r"matmul: Input operand 0 does not have enough dimensions .*",
        r"in a product a @ b, a has no axis",
    ),
    (
        r"matmul: Input operand 1 does not have enough dimensions .*",
        r"in a product a @ b, b has no axis",
    ),
    (
        r"operands could not be broadcast together with remapped shapes \[original->remapped\]: "
        r"(\(.*?\))->.*? (\(.*?\))->.* and requested shape .*",
        r"in a product a @ b, the axes before the last two do not fit: \1 and \2",
    ),
)
_MEANINGS = (
    (
        "'NoneType'",
        "a value is None there, such as the result of a function without return, or keys before the first append",
    ),
    (
        "could not be broadcast",
        "the shapes must agree from the last axis on, or be 1 there: a mean or sum keeps its axis with keepdims=True, "
        "and a mask has a row for each query and a column for each key",
    ),
    ("could not broadcast input array", "the array does not fit into the place that it is assigned to"),
    ("has no axis", "a number or None is used there, such as the result of a function without return"),
    ("the axes before the last two", "these axes must agree, or be 1 in one of the two"),
    (
        "in a product a @ b",
        "a @ b needs a's last axis to be as long as b's last but one; .T reverses all axes, swapaxes(1, 2) two",
    ),
    (
        "except for the concatenation axis",
        "concatenate joins along one axis, the first unless axis= says another, and the other axes must agree",
    ),
    ("all input arrays must have the same shape", "stack makes a new axis; concatenate joins along one that is there"),
    ("equal division", "split cuts the first axis unless axis= says another, and its length must be a multiple"),
    (
        "truth value of an array",
        "an array is neither true nor false: ask `is None`, or for its .any(), .all() or .size",
    ),
    ("not aligned", "a product needs a's last axis to be as long as b's last but one"),
    (
        "can be converted to Python scalars",
        "math's functions take one number; NumPy's functions of the same names take arrays",
    ),
    ("cannot reshape array", "the numbers of a shape, multiplied, must give the number of elements"),
    ("axes don't match array", "transpose needs each axis of the array once"),
    ("'method' object", "a method is used without being called: parentheses or the line @property are missing"),
    ("'function' object", "a function is used without being called: parentheses or the line @property are missing"),
    ("has no setter", "a property is computed when it is read: store the array under another name"),
    ("can't set attribute", "a property is computed when it is read: store the array under another name"),
    ("takes 0 positional arguments but 1", "a method's first parameter is self"),
    ("'numpy.ndarray' object is not callable", "an array is not called: keys and values are read without parentheses"),
    ("cannot be interpreted as an integer", "a shape or a range takes ints: / gives a float, and // an int"),
    ("only integers, slices", "an index or an id is an int: argmax gives one, and max the number itself"),
    ("arg is an empty sequence", "nothing is left to choose from: max and min take a default"),
    ("iterable argument is empty", "nothing is left to choose from: max and min take a default"),
    ("must be encoded before hashing", "a hash is made of bytes, which text.encode() gives"),
    ("StopIteration", "next() has come to the end: give it a second argument, for where nothing is found"),
    ("KeyError", "the dict has no such key, or no longer"),
    ("maximum recursion depth", "a function calls itself, and Python allows about 1,000 such calls: use a loop"),
    ("read-only", "the weights and what a check passes are not to be changed: make a new array"),
)


def shorter(message: str) -> str:
    """The message, rewritten if _SHORTER has a simpler form."""
    return functools.reduce(lambda text, pair: re.sub(*pair, text), _SHORTER, message)


def meaning(message: str) -> str:
    """A phrase that explains an error's message; empty if there is none."""
    return next((phrase for part, phrase in _MEANINGS if part in message), "")
