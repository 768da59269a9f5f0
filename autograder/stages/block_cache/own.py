"""The check that a store shares nothing with its callers, and keeps nothing of what was evicted."""

from __future__ import annotations

import contextlib

import numpy as np

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Handle, Student, StudentError
from autograder.stages.block_cache import bugs
from autograder.stages.block_cache.shared import STAGE, blocks_of, context_of, kv_of, make_cache, make_store, same_rows

SIZE, N_BLOCKS = 4, 3
SHAPE = (2, 2, 64)  # n_layer, n_head, head_dim: the rows of a block are far larger than what else belongs to it


@check(
    stage=STAGE,
    id="store-keeps-its-own",
    points=1,
    title="What is stored belongs to the store alone",
    watches=("put", "match"),
)
def store_keeps_its_own(student: Student, cases: Cases) -> None:
    """Writing into a cache that was put in, or into rows that match gave, changes no block; nothing evicted is kept."""
    ids = cases.rng("ids").integers(0, 1000, N_BLOCKS * SIZE + 1).tolist()
    asked = ids, context_of("a")
    rows = kv_of(ids, "a", SHAPE)
    expected = blocks_of(rows, SIZE, N_BLOCKS)

    store = make_store(student, 8, SIZE)
    cache = make_cache(student, rows)
    student.method(store, "put", *asked, cache, returns="none")
    if not same_rows(student.method(store, "match", *asked), expected):
        raise Failure(None, "match gives other rows than those that were put in.")
    layers = student.attribute(cache, "layers", returns="handle")
    for i in range(SHAPE[0]):
        layer = student.method(layers, "__getitem__", i, returns="handle")
        for part in ("keys", "values"):
            _write_into(student, student.attribute(layer, part, returns="handle"))
    if not same_rows(student.method(store, "match", *asked), expected):
        detail = "The caller wrote into the cache after put, and match gives other rows than before."
        raise Failure(None, detail, bugs.SHARES_THE_CACHE)
    run = student.method(store, "match", *asked, returns="handle")
    for i in range(N_BLOCKS):
        _write_into(student, student.method(run, "__getitem__", i, returns="handle"))
    if not same_rows(student.method(store, "match", *asked), expected):
        detail = "The caller wrote into the rows that match gave, and the next match gives what was written."
        raise Failure(None, detail)
    _expect_flat(student, cases)


def _write_into(student: Student, array: Handle) -> None:
    with contextlib.suppress(StudentError):  # some are write-protected
        student.method(array, "fill", -1.0, returns="none")


def _held(student: Student, cases: Cases, n_prompts: int, shape: tuple[int, int, int]) -> list[int]:
    """The bytes that a store of 2 prompts holds after each of n_prompts, whose caches are longer than they are."""
    store, held = make_store(student, 2 * N_BLOCKS, SIZE), []
    for i in range(n_prompts):
        ids = cases.rng("flat", i).integers(0, 1000, N_BLOCKS * SIZE).tolist()
        cache = make_cache(student, kv_of(ids * 4, "a", shape))
        student.method(store, "put", ids, context_of("a"), cache, returns="none")
        held.append(student.bytes_held(store))
    return held


def _expect_flat(student: Student, cases: Cases) -> None:
    """A full store holds its blocks alone, and stays as large as it is, however many prompts come and go."""
    full = 2 * N_BLOCKS * 2 * int(np.prod(SHAPE)) * SIZE * 4
    held = _held(student, cases, 4, SHAPE)[-1]
    if held > 2 * full + 16_000:  # float64 is twice that
        detail = f"A full store keeps {held:,} bytes from being freed; its rows take {full:,} in float32."
        raise Failure(None, detail, bugs.KEEPS_WHOLE_CACHES)
    grows = _held(student, cases, 60, (1, 1, 4))
    if grows[-1] > 1.25 * max(grows[4:10]):
        detail = f"It held {max(grows[4:10]):,} bytes when it was full, and {grows[-1]:,} after {len(grows)} prompts."
        raise Failure(None, detail)
