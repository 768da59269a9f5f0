"""The checks of BlockStore: what match finds, which blocks are held and evicted, and that they are the store's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.student import Handle, Student, StudentError
from autograder.stages.block_cache import bugs
from autograder.stages.block_cache.plain_store import Rules
from autograder.stages.block_cache.shared import (
    WEAK,
    Call,
    Run,
    blocks_of,
    context_of,
    draw_prompts,
    expect_arrays,
    expect_as_plain,
    kv_of,
    make_cache,
    make_store,
    same_rows,
)
from autograder.worker.block_keys import keys_of_bits

ONE_MORE = [7]  # so that what match leaves is no question here
WRONG_ORDERS = [
    (bugs.FIRST_IN_EVICTED, Rules(first_in=True)),
    (bugs.MATCH_IS_NO_USE, Rules(match_is_use=False)),
    (bugs.ROOT_EVICTED, Rules(leaves_first=False)),
]
SIZE, N_BLOCKS = 4, 3
SHAPE = (2, 2, 64)  # n_layer, n_head, head_dim: the rows of a block are far larger than what else belongs to it


@check("match finds the longest run of blocks, and leaves a token", points=2)
def match_longest_run(student: Student, cases: Cases) -> None:
    """match gives the rows of the longest run of blocks that begins the prompt, and leaves at least one token."""
    runs = []
    for size in (1, 3, 4, 16):
        ids = cases.rng("ids", size).integers(0, 1000, 5 * size + 1).tolist()
        other = cases.rng("other", size).integers(1000, 2000, 5 * size).tolist()
        lengths = sorted({n for k in range(6) for n in (k * size - 1, k * size, k * size + 1) if n > 0})
        calls = [Call("match", ids), Call("put", ids[: 4 * size])]
        calls += [Call("match", ids[:n]) for n in lengths]
        calls += [Call("match", ids[:n] + other) for n in lengths]  # leaves the stored prompt after n ids
        calls += [Call("match", ids[size:]), Call("match", ids[: 2 * size] + ids[size:]), Call("match", other)]
        calls += [Call("match", ids, "b"), Call("put", ids[: 2 * size] + other), Call("put", ids[:size], "b")]
        calls += [Call("match", ids, tenant) for tenant in "ab"] + [Call("match", ids[: 2 * size] + other)]
        runs.append(Run(calls, 100, size, shape=(2, 2, 3)))
    expect_as_plain(student, runs, [(bugs.WHOLE_PROMPT_MATCHED, Rules(leaves_a_token=False))])


@check("match compares the ids: a key alone proves nothing", points=1)
def match_compares_ids(student: Student, cases: Cases) -> None:
    """With keys of four bits, often equal by chance, match never gives rows of other ids or another tenant."""
    size = 2
    keys_of = keys_of_bits(WEAK.bits)

    def keys(ids: list[int], tenant: str = "a") -> list[str]:
        return keys_of(ids, size, context_of(tenant))

    rng = cases.rng("ids")
    a = rng.integers(0, 500, size).tolist()

    def draw(fits: Callable[[list[int]], bool]) -> list[int]:
        while True:
            ids = rng.integers(500, 1000, size).tolist()
            if fits(ids):
                return ids

    x = draw(lambda ids: keys(a + ids)[0] != keys(a + ids)[1])
    b = draw(lambda ids: keys(ids) == keys(a))
    last = draw(lambda ids: keys(a[:1] + ids[1:]) == keys(a))
    c = draw(lambda ids: keys(ids)[0] not in keys(a + x) and keys(ids + x)[1] == keys(a + x)[1] != keys(ids)[0])

    y = draw(lambda ids: len({*keys(a + ids + x)}) == 3)
    far = draw(
        lambda ids: (
            keys(ids + y + x)[2] == keys(a + y + x)[2] and len({*keys(a + y + x), *keys(ids + y)}) == 5
        )  # so that all these blocks are held
    )

    def large(ids: list[int], more: int = 0) -> list[int]:
        return [40_000 + ids[0] + more, ids[1]]

    wrapped = {  # ids that are one in 8 bits, in 16 bits, and in half precision
        more: draw(lambda ids, more=more: ids[0] % 32 < 8 and keys(large(ids)) == keys(large(ids, more)))
        for more in (256, 2**16, 1)
    }
    turned = draw(lambda ids: ids[0] != ids[1] and keys(ids) == keys(ids[::-1]))
    tenant = next(name for name in map(str, range(10_000)) if keys(a, name) == keys(a))
    own = context_of("a")
    models = ({**own, "model": str(i)} for i in range(10_000))
    other_model = next(context for context in models if keys_of(a, size, context) == keys(a))
    for what, bug, puts, wanted, owner, context in (
        ("ids of another block", bugs.TRUSTS_THE_KEY, [a], b, "a", own),
        ("ids that differ in the last alone", None, [a], a[:1] + last[1:], "a", own),
        *((f"an id that differs by {n:,}", None, [large(ids)], large(ids, n), "a", own) for n, ids in wrapped.items()),
        ("the same ids in another order", None, [turned], turned[::-1], "a", own),
        ("the same ids after another block", bugs.OWN_IDS_ALONE, [a + x, c], c + x, "a", own),
        ("the same ids after an equal block after another one", None, [a + y + x, far + y], far + y + x, "a", own),
        ("the same ids of another tenant", bugs.TENANTS_SHARE, [a], a, tenant, context_of(tenant)),
        ("the same ids of another model", None, [a], a, "another model", other_model),
    ):
        store = make_store(student, 20, size, key=WEAK)
        for ids in puts:
            student.method(store, "put", ids, own, make_cache(student, kv_of(ids, "a")), returns="none")
        run = student.method(store, "match", [*wanted, 7], context)
        expect_arrays(run)
        if not _right_as_far_as_it_goes(run, wanted, owner, size):
            raise Failure(f"A prompt with {what} and an equal key was given the stored rows.", bug)
    # Many prompts in one store: nobody gets another's rows.
    store, questions = make_store(student, 100, size, key=WEAK), []
    prompts = [(ids, "ab"[i % 2]) for i, ids in enumerate(draw_prompts(cases, size, 41, "weak") * 2)]
    for ids, tenant in prompts:
        arguments = (ids, context_of(tenant))
        put = ("put", (*arguments, make_cache(student, kv_of(ids, tenant))))
        questions += [("match", arguments), put, ("match", arguments)]
    answers = student.each_method(store, questions)
    for i, ((ids, tenant), before, after) in enumerate(zip(prompts, answers[::3], answers[2::3], strict=True)):
        if not all(_right_as_far_as_it_goes(run, ids, tenant, size) for run in (before, after)):
            raise Failure(f"After {count(i, 'prompt')}, match gave rows that belong to another prompt.")


def _right_as_far_as_it_goes(run: object, ids: list[int], owner: str, size: int) -> bool:
    """Whether match gave right rows, of however many blocks."""
    return isinstance(run, list) and same_rows(run, blocks_of(kv_of(ids, owner), size, min(len(run), len(ids) // size)))


@check("A store holds its capacity and no more, also 0 and 1 block", points=1)
def store_capacity(student: Student, cases: Cases) -> None:
    """A store holds at most capacity blocks: of a prompt too long for it the first ones, and of equal prompts one."""
    size = 3
    ids = cases.rng("ids").integers(0, 1000, 6 * size + 1).tolist()
    other = cases.rng("other").integers(1000, 2000, 3 * size).tolist()
    runs = []
    for capacity in (0, 1, 2, 5, 6, 7):
        calls = [Call(name, ids) for name in ("put", "match", "put", "match")]  # the same prompt twice
        calls += [Call("put", ids[:n]) for n in (1, size - 1, size)]
        calls += [Call("put", other), Call("match", other + ONE_MORE), Call("match", ids)]
        calls += [Call("put", ids), Call("match", ids)]
        runs.append(Run(calls, capacity, size))
    expect_as_plain(student, runs)


@check("The least recently used leaf is evicted, never the run in use", points=2)
def eviction_order(student: Student, cases: Cases) -> None:
    """After thousands of calls the store holds what is left when the least recently used leaf is evicted each time."""
    runs = []
    for capacity, size in ((1, 1), (3, 2), (4, 1), (7, 4), (12, 2), (20, 1)):
        prompts = draw_prompts(cases, size, 8 + capacity, capacity)
        rng = cases.rng("calls", capacity)
        which = rng.integers(len(prompts), size=270)
        tenants = np.where(rng.random(270) < 0.2, "b", "a").tolist()
        names = rng.choice(["match put", "match", "put"], 270, p=(0.5, 0.3, 0.2)).tolist()
        calls = [
            Call(name, prompts[i] + ONE_MORE * (name == "match"), tenant)
            for i, tenant, both in zip(which, tenants, names, strict=True)
            for name in both.split()
        ]
        runs.append(Run(calls, capacity, size))
    expect_as_plain(student, runs, WRONG_ORDERS)


@check("What is stored belongs to the store alone", points=1, watches=("put", "match"))
def store_keeps_its_own(student: Student, cases: Cases) -> None:
    """Writing into a cache that was put in, or into rows that match gave, changes no block; nothing evicted is kept."""
    ids = cases.rng("ids").integers(0, 1000, N_BLOCKS * SIZE + 1).tolist()
    asked = ids, context_of("a")
    rows = kv_of([*ids, *ids], "a", SHAPE)  # the cache holds more than the prompt
    expected = blocks_of(rows, SIZE, N_BLOCKS)

    store, other = (make_store(student, 8, SIZE) for _ in range(2))
    cache = make_cache(student, rows)
    student.method(store, "put", *asked, cache, returns="none")
    if student.length(other):
        raise Failure("What was put into one store is in another one, too.", bugs.STORES_SHARE)
    if not same_rows(student.method(store, "match", *asked), expected):
        raise Failure("match gives other rows than those that were put in.")
    for layer in student.layers(cache, SHAPE[0]):
        for part in ("keys", "values"):
            _write_into(student, student.attribute(layer, part, returns="handle"))
    if not same_rows(student.method(store, "match", *asked), expected):
        detail = "The caller wrote into the cache after put, and match gives other rows than before."
        raise Failure(detail, bugs.SHARES_THE_CACHE)
    run = student.method(store, "match", *asked, returns="handle")
    for i in range(N_BLOCKS):
        _write_into(student, student.method(run, "__getitem__", i, returns="handle"))
    if not same_rows(student.method(store, "match", *asked), expected):
        detail = "The caller wrote into the rows that match gave, and the next match gives what was written."
        raise Failure(detail)
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
        student.method(store, "match", ids + ONE_MORE, context_of("a"), returns="none")
        held.append(student.bytes_held(store))
    return held


def _expect_flat(student: Student, cases: Cases) -> None:
    """A full store holds its blocks alone, and stays as large as it is, however many prompts come and go."""
    full = 2 * N_BLOCKS * 2 * int(np.prod(SHAPE)) * SIZE * 4
    held = _held(student, cases, 4, SHAPE)[-1]
    if held > 2 * full + 16_000:  # float64 is twice that
        detail = f"A full store keeps {held:,} bytes from being freed; its rows take {full:,} in float32."
        raise Failure(detail, bugs.KEEPS_WHOLE_CACHES)
    grows = _held(student, cases, 60, (1, 1, 4))
    if grows[-1] > 1.25 * max(grows[4:10]):
        detail = f"It held {max(grows[4:10]):,} bytes when it was full, and {grows[-1]:,} after {len(grows)} prompts."
        raise Failure(detail)
