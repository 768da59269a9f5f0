"""Converts values on their way in and out of a student's process, and detects changed arguments."""

from __future__ import annotations

import operator

import numpy as np

MAX_IDS = 10_000
MAX_DEPTH = 20  # of lists in lists
PLAIN = frozenset({int, float, str, bool, bytes, type(None)})  # immutable, so returned as they are


class BadResult(Exception):
    """The student's function returned something of the wrong kind."""


class Entry:
    """What `lookup` ranks: an object with token_ids, as in a store of saved prefixes.

    It has the attributes of the notebook's Entry, with the default cache and name.
    """

    def __init__(self, token_ids: list[int]):
        self.token_ids = token_ids
        self.cache = None
        self.name = ""

    def __repr__(self) -> str:
        return f"Entry({len(self.token_ids)} token_ids)"


class _EntryBefore:
    """An entry's content before a call, to compare with."""

    def __init__(self, entry):
        self._token_ids = list(entry.token_ids)

    def __eq__(self, other):
        return isinstance(other, Entry) and other.token_ids == self._token_ids

    __hash__ = None


def which_entry(result, given):
    """The index of the returned entry among all entries in the arguments; None for None."""
    if result is None:
        return None
    entries = [e for a in given if isinstance(a, (list, tuple)) for e in a if isinstance(e, Entry)]
    for i, entry in enumerate(entries):
        if entry is result:
            return i
    raise BadResult(f"the result is neither one of the entries nor None but of type {type(result).__name__}")


def snapshot(value):
    """A copy to compare an argument with after the call; None for a student's object, whatever it inherits from.

    A cache may be a list with its own constructor and clone().
    """
    if type(value) is np.ndarray:
        return value.copy()
    if type(value) in (list, tuple, dict):
        return _copy_plain(value)
    return None


def _copy_plain(value):
    if type(value) in PLAIN:
        return value
    if type(value) is list and PLAIN.issuperset(map(type, value)):
        return list(value)
    if type(value) in (list, tuple):
        return type(value)(_copy_plain(v) for v in value)
    if isinstance(value, Entry):
        return _EntryBefore(value)
    if type(value) is dict:
        return {k: _copy_plain(v) for k, v in value.items()}
    return value


def unchanged(value, before):
    if isinstance(before, np.ndarray):
        return value.shape == before.shape and value.tobytes() == before.tobytes()
    if isinstance(before, (list, tuple, dict)):
        return value == before
    return True


def array_of(value, what):
    try:
        array = np.array(value, copy=True, subok=False)
    except Exception:
        raise BadResult(f"{what} is not an array but of type {type(value).__name__}") from None
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)  # a longdouble is a float like any other
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        kind, why = type(value).__name__, ""
        if value is None:
            why = " (a function without a return gives None)"
        elif callable(value):
            why = " (is the line @property missing above it?)"
        raise BadResult(f"{what} is not an array of numbers but {kind} of dtype {array.dtype}{why}")
    return array


def ids_of(value):
    ids = []
    for item in _iterated(value):
        one = item.item() if isinstance(item, (np.ndarray, np.generic)) and item.size == 1 else item
        try:
            ids.append(operator.index(one))
        except TypeError:
            shape = f" and shape {list(item.shape)}" if isinstance(item, np.ndarray) else ""
            kind = f"of type {type(item).__name__}{shape}"
            raise BadResult(f"the result is not a list of token ids: its element {len(ids)} is {kind}") from None
        if len(ids) > MAX_IDS:
            raise BadResult(f"the result has more than {MAX_IDS:,} ids")
    return ids


def _iterated(value):
    try:
        return iter(value)
    except TypeError:
        raise BadResult(f"the result is not a list of token ids but {type(value).__name__}") from None


def plain(value, depth):
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadResult("the result has half of a surrogate pair, which is no character") from None
        return str(value) if type(value) is not str else value
    if depth > MAX_DEPTH:
        raise BadResult("the result is nested too deeply")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise BadResult("the result is a whole number of more than 64 bits")
    if value is None or isinstance(value, (bool, int, float, bytes)):
        for kind in (bool, int, float, bytes):  # a subclass is reduced to its base
            if isinstance(value, kind):
                return kind(value)
        return None
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return array_of(value, "the result")
    if isinstance(value, (list, tuple)):
        return [plain(v, depth + 1) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(v, depth + 1) for v in value), key=repr)
    if isinstance(value, dict):
        return {plain(str(k), depth): plain(v, depth + 1) for k, v in value.items()}
    begin = "holds an object" if depth else "is"
    raise BadResult(f"the result {begin} of type {type(value).__name__}, which is no number, string or array")
