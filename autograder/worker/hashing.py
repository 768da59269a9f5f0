"""Finds code whose results depend on hashes, and makes strings and hashes as another process would have them."""

from __future__ import annotations

import dis
import sys
import types

_HASHING = frozenset({"hash", "__hash__", "set", "frozenset", "id"})
_SET_CODES = frozenset(dis.opmap[name] for name in ("BUILD_SET", "SET_ADD", "SET_UPDATE"))


def hashes(code):
    """Whether a function's code, or a function inside it, uses names that hash or make a set."""
    inside = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return (
        not _HASHING.isdisjoint(code.co_names)
        or not _SET_CODES.isdisjoint(code.co_code[::2])
        or any(map(hashes, inside))
    )


class _SaltedString(str):
    """A string with the hash that it might have in another process."""

    salt = 0  # shared by all such strings, because calls run one at a time

    def __hash__(self):
        return hash((self.salt, str(self)))


def string_of_form(string, form):
    """The string as a new object, as the shared object of all equal strings, or with a hash salted by a number."""
    if form == "own":
        return "".join(list(string))
    if form == "one":
        return sys.intern(string)
    _SaltedString.salt = form
    return _SaltedString(string)


def hash_elsewhere(value):
    """hash(), except that strings hash as they might in another process."""
    if isinstance(value, (str, bytes)):
        return hash((1, value))
    if isinstance(value, tuple):
        return hash(tuple(hash_elsewhere(v) for v in value))
    if isinstance(value, frozenset):
        return hash(frozenset(hash_elsewhere(v) for v in value))
    return hash(value)
