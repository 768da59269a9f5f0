"""The checks of what match finds."""

from __future__ import annotations

from collections.abc import Callable

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student
from autograder.judge.words import count
from autograder.stages.block_cache import bugs
from autograder.stages.block_cache.plain_store import Rules
from autograder.stages.block_cache.shared import (
    STAGE,
    WEAK,
    Call,
    Run,
    blocks_of,
    context_of,
    draw_prompts,
    expect_as_plain,
    kv_of,
    make_cache,
    make_store,
    same_rows,
)
from autograder.worker.block_keys import keys_of_bits


@check(stage=STAGE, id="match-longest-run", points=2, title="match finds the longest run of blocks, and leaves a token")
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


@check(stage=STAGE, id="match-compares-ids", points=1, title="match compares the ids: a key alone proves nothing")
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
    tenant = next(name for name in map(str, range(10_000)) if keys(a, name) == keys(a))
    for what, bug, puts, wanted, owner in (
        ("ids of another block", bugs.TRUSTS_THE_KEY, [a], b, "a"),
        ("ids that differ in the last alone", None, [a], a[:1] + last[1:], "a"),
        ("the same ids after another block", None, [a + x, c], c + x, "a"),
        ("the same ids of another tenant", bugs.TENANTS_SHARE, [a], a, tenant),
    ):
        store = make_store(student, 20, size, key=WEAK)
        for ids in puts:
            student.method(store, "put", ids, context_of("a"), make_cache(student, kv_of(ids, "a")), returns="none")
        run = student.method(store, "match", [*wanted, 7], context_of(owner))
        if not _right_as_far_as_it_goes(run, wanted, owner, size):
            raise Failure(None, f"A prompt with {what} and an equal key was given the stored rows.", bug)
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
            raise Failure(None, f"After {count(i, 'prompt')}, match gave rows that belong to another prompt.")


def _right_as_far_as_it_goes(run: object, ids: list[int], owner: str, size: int) -> bool:
    """Whether match gave right rows, of however many blocks."""
    return isinstance(run, list) and same_rows(run, blocks_of(kv_of(ids, owner), size, min(len(run), len(ids) // size)))
