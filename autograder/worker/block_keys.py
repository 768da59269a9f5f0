"""Block keys with a chosen number of bits, to check a store independently of the student's block_keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable


def keys_of_bits(bits: int) -> Callable[[list[int], int, dict[str, str]], list[str]]:
    """A function like block_keys whose keys have only the given number of bits."""

    def keys(token_ids: list[int], block_size: int, context: dict[str, str]) -> list[str]:
        digest, cut = hashlib.sha256(json.dumps(context, sort_keys=True).encode()), []
        for end in range(block_size, len(token_ids) + 1, block_size):
            digest.update(repr(list(token_ids[end - block_size : end])).encode())
            cut.append(format(int.from_bytes(digest.digest(), "big") >> (256 - bits), "x"))
        return cut

    return keys
