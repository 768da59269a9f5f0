"""The checks of LayerCache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from autograder.judge.bugs import HALF_PRECISION, KEYS_VALUES_SWAPPED, Bug
from autograder.judge.compare import Sweep, expect_close
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.student import StudentError
from autograder.stages.kv_cache import bugs as own
from autograder.stages.kv_cache.shared import EXACT, configs, draw_kv, equal, normal, read_layer, rows_if_any
from autograder.toolkit.model import GPT2Config

# The sizes of buffers that people choose, one less and one more, then a single row and the same again; and big leaps.
# MANY rows come in three appends, in two small heads: past any room that is made once for all, and soon copied.
CHUNKS = (
    *((size + d, 1, size + d) for size in (4, 8, 16, 32, 64, 128, 256) for d in (-1, 0, 1)),
    (1, 90),
    (2, 3, 77),
)
MANY, FEW_NUMBERS = (1100, 1, 1000), GPT2Config(n_layer=1, n_head=2, n_embd=6, n_ctx=16, n_vocab=16)
MANY_HEADS = GPT2Config(n_layer=1, n_head=40, n_embd=120, n_ctx=16, n_vocab=16)  # more of them than rows, for long


@check("A LayerCache counts its positions", points=1)
def layer_cache_length(student, cases):
    """len() of a LayerCache is 0 before the first append and then the number of positions appended so far."""
    for config in configs(cases):
        rng = cases.rng("sizes", config.n_head)
        sizes = [int(rng.integers(4, 7)), *rng.permutation([1, 2, 3]).tolist(), *[1] * 40]
        layer = student.handle("LayerCache")
        lengths = [student.length(layer)]
        for i, n_new in enumerate(sizes):
            student.method(layer, "append", *draw_kv(cases, config, n_new, "length", i), returns="none")
            lengths.append(student.length(layer))
        right = np.cumsum([0, *sizes]).tolist()
        if lengths != right:
            first = next(i for i, (a, b) in enumerate(zip(lengths, right, strict=True)) if a != b)
            when = f"after {_appends(sizes[:first])}" if first else "before the first append"
            detail = f"len() is {lengths[first]} {when} ({config.n_head} heads of {config.head_dim})."
            pair = rows_if_any(student, layer)
            rows_are_there = pair is not None and all(a.shape[1:2] == (right[-1],) for a in pair)  # another check's
            suspects = {
                own.LENGTH_COUNTS_HEADS: [config.n_head] * len(sizes),
                own.LENGTH_COUNTS_APPENDS: list(range(1, len(sizes) + 1)),
                own.LENGTH_OF_LAST_APPEND: sizes,
            }
            named = (bug for bug, wrong in suspects.items() if rows_are_there and wrong == lengths[1:])
            raise Failure(detail, next(named, None))
        second = student.length(student.handle("LayerCache"))
        if second != 0:
            detail = f"len() of a second, new LayerCache is {second}, with {right[-1]} positions in the first."
            raise Failure(detail, own.CACHES_SHARE_STATE if second == right[-1] else None)


@check("keys and values hold every appended row, in order", points=2, watches=("append",))
def layer_cache_rows(student, cases):
    """keys and values are [n_head, n_seq, head_dim] and hold every appended row in order, in appends of any size."""
    sweep = Sweep()
    filling = Filling(student, MANY_HEADS, cases.rng("filling", "one at a time"))
    for n_seq in range(1, 70):
        with sweep.at(n_seq):
            filling.append(1)
        if filling.broken:
            break
    sweep.finish()

    sweep = Sweep("sizes of the first chunk")
    for sizes in (*CHUNKS, MANY):
        config = FEW_NUMBERS if sizes == MANY else configs(cases)[1]
        filling = Filling(student, config, cases.rng("filling", *sizes))
        with sweep.at(sizes[0]):
            for n_new in sizes:
                filling.append(n_new)
    sweep.finish()

    filling.append_rows(*filling.chunks[-1])  # rows that are there already
    filling.append_rows(*(np.zeros_like(a) for a in filling.chunks[1]))


class Filling:
    """A LayerCache of the student's that is filled and read back after each append."""

    def __init__(self, student, config, rng: np.random.Generator):
        self.student, self.config, self._rng = student, config, rng
        self.layer = student.handle("LayerCache")
        self.chunks: list[list[np.ndarray]] = []
        self.broken = False

    def append(self, n_new: int) -> None:
        """Append n_new random rows and compare all that are there; raises Failure."""
        rows = [normal(self._rng, self.config.n_head, n_new, self.config.head_dim) for _ in range(2)]
        self.append_rows(*rows, _suspects)

    def append_rows(self, k: np.ndarray, v: np.ndarray, suspects: Callable = lambda *_: ()) -> None:
        """The same with given rows. suspects: none by default, since rows that are there twice fit several bugs."""
        self.chunks.append([k, v])
        where = f"after {_appends([chunk[0].shape[1] for chunk in self.chunks])}"
        try:
            self.student.method(self.layer, "append", k, v, returns="none")
            got = read_layer(self.student, self.layer)
        except StudentError as error:
            self.broken = True
            raise Failure(f"{error.sentence[:-1]}, {where}.") from None
        right = [np.concatenate(parts, axis=1) for parts in zip(*self.chunks, strict=True)]
        if equal(got, right):
            return
        bug = next((bug for bug, wrong in suspects(got, right, self.chunks) if equal(got, wrong)), None)
        for name, actual, expected in zip(("keys", "values"), got, right, strict=True):
            axes = ("head", "position", "element")
            expect_close(actual, expected, name=name, where=where, axes=axes, bug=bug, **EXACT)


def _suspects(got: list, right: list, chunks: list) -> Iterator[tuple[Bug, list[np.ndarray]]]:
    """Common wrong keys and values, each with its bug."""
    yield KEYS_VALUES_SWAPPED, right[::-1]
    yield from ((own.ONE_ARRAY_FOR_BOTH, [one, one]) for one in right)
    if len({chunk[0].shape for chunk in chunks}) == 1 < len(chunks):
        for axis in (0, 2):
            yield own.JOINED_ALONG_WRONG_AXIS, [np.concatenate(parts, axis=axis) for parts in zip(*chunks, strict=True)]
    yield HALF_PRECISION, [a.astype(np.float16).astype(np.float64) for a in right]
    if len(chunks) > 1:
        yield own.ONLY_NEWEST_KEPT, chunks[-1]
    if all(a.ndim == 3 and a.shape[::2] == b.shape[::2] for a, b in zip(got, right, strict=True)):
        rows, n_seq = got[0].shape[1], right[0].shape[1]
        yield (
            own.SPARE_ROWS_RETURNED,
            [np.concatenate([a, b[:, n_seq:]], axis=1) for a, b in zip(right, got, strict=True)],
        )
        if rows != 1:  # which may be the first of a chunk
            yield own.ROWS_CUT_OFF, [a[:, :rows] for a in right]


def _appends(sizes: Sequence[int]) -> str:
    if set(sizes) == {1}:
        return f"{count(len(sizes), 'append')} of one row"
    if len(sizes) == 1:
        return f"an append of {sizes[0]} rows"
    return f"appends of {', '.join(map(str, sizes[:-1]))} and {sizes[-1]} rows"
