"""Keys of blocks for a store to be checked with: of as few bits as is asked for, whatever the student's are like."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable


def keys_of_bits(bits: int) -> Callable[[list[int], int, dict[str, str]], list[str]]:
    """A function like block_keys, of which only the given number of bits is left."""

    def keys(token_ids: list[int], block_size: int, context: dict[str, str]) -> list[str]:
        digest, cut = hashlib.sha256(json.dumps(context, sort_keys=True).encode()), []
        for end in range(block_size, len(token_ids) + 1, block_size):
            digest.update(repr(list(token_ids[end - block_size : end])).encode())
            cut.append(format(int.from_bytes(digest.digest(), "big") >> (256 - bits), "x"))
        return cut

    return keys
