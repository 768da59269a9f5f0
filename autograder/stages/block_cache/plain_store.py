"""What a store of blocks has to do, in the plainest form: no keys and no rows, only which blocks are there.

The rules of a wrong store are the same with one changed, so that a student's store can be recognized by what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

BlockId = tuple[str, tuple[int, ...]]  # whose block it is, and all ids up to its end


@dataclass(frozen=True)
class Rules:
    """How a store decides. The default is right."""

    evicts: str = "least recently used"  # "first in", "most recently used", "shortest"
    leaves_first: bool = True
    match_is_use: bool = True
    put_is_use: bool = True
    spares_its_run: bool = True  # the blocks of the prompt that is put in
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
        self._use(ends[:n], self.rules.match_is_use)
        return n

    def put(self, token_ids: list[int], owner: str) -> None:
        blocks = self._blocks(token_ids, owner)
        own = []
        for block in blocks:
            if block not in self.used:
                if len(self) >= self.capacity and not self._evict(own):
                    break
                self.used[block] = self._time
            own.append(block)
        self._use(own, self.rules.put_is_use)

    def _blocks(self, token_ids: list[int], owner: str) -> list[BlockId]:
        size = self.block_size
        return [(owner, tuple(token_ids[:end])) for end in range(size, len(token_ids) + 1, size)]

    def _use(self, blocks: list[BlockId], counts: bool) -> None:
        self._time += 1
        for block in blocks if counts else ():
            self.used[block] = self._time

    def _evict(self, own: list[BlockId]) -> bool:
        before = {(owner, ids[: -self.block_size]) for owner, ids in self.used}
        free = [
            block
            for block in self.used
            if not (self.rules.leaves_first and block in before) and not (self.rules.spares_its_run and block in own)
        ]
        if not free:
            return False
        order = {
            "least recently used": lambda block: self.used[block],
            "first in": lambda block: 0,
            "most recently used": lambda block: -self.used[block],
            "shortest": lambda block: len(block[1]),
        }[self.rules.evicts]
        del self.used[min(free, key=order)]
        return True
