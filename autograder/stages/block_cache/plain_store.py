"""What a store of blocks has to do, in the plainest form: no keys and no rows, only which blocks are there.

The rules of a wrong store are the same with one changed, so that a student's store can be recognized by what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

BlockId = tuple[str, tuple[int, ...]]  # whose block it is, and all ids up to its end


@dataclass(frozen=True)
class Rules:
    """How a store decides. The default is right."""

    first_in: bool = False  # evicts what came first, not what was used least recently
    leaves_first: bool = True
    match_is_use: bool = True
    leaves_a_token: bool = True


RIGHT = Rules()


class PlainStore:
    """The blocks of a store of `capacity` blocks, after the same calls of match and put."""

    def __init__(self, capacity: int, block_size: int, rules: Rules = RIGHT):
        self.capacity, self.block_size, self.rules = capacity, block_size, rules
        self.used: dict[BlockId, int] = {}  # when it was used last, in the order in which the blocks came
        self._time = 0

    def __len__(self) -> int:
        return len(self.used)

    def match(self, token_ids: list[int], owner: str) -> int:
        """How many blocks are found."""
        ends = self._blocks(token_ids, owner)
        if self.rules.leaves_a_token:
            ends = ends[: (len(token_ids) - 1) // self.block_size]
        n = next((i for i, block in enumerate(ends) if block not in self.used), len(ends))
        self._use(ends[:n] if self.rules.match_is_use else [])
        return n

    def put(self, token_ids: list[int], owner: str) -> None:
        own: list[BlockId] = []
        for block in self._blocks(token_ids, owner):
            if block not in self.used:
                if len(self) >= self.capacity and not self._evict(own):
                    break
                self.used[block] = self._time
            own.append(block)
        self._use(own)

    def _blocks(self, token_ids: list[int], owner: str) -> list[BlockId]:
        size = self.block_size
        return [(owner, tuple(token_ids[:end])) for end in range(size, len(token_ids) + 1, size)]

    def _use(self, blocks: list[BlockId]) -> None:
        self._time += 1
        self.used |= dict.fromkeys(blocks, self._time)

    def _evict(self, own: list[BlockId]) -> bool:
        """Whether there was a block to evict, which is none of the prompt's own."""
        before = {(owner, ids[: -self.block_size]) for owner, ids in self.used}
        free = [b for b in self.used if b not in own and not (self.rules.leaves_first and b in before)]
        if free:
            del self.used[free[0] if self.rules.first_in else min(free, key=self.used.__getitem__)]
        return bool(free)
