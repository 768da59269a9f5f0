"""The checks of serve."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import POSITIONS_RESET
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.compare import Suspects, expect_close
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import tokens
from autograder.judge.student import Handle, Student
from autograder.stages.block_cache import bugs
from autograder.stages.block_cache.plain_store import PlainStore
from autograder.stages.block_cache.shared import (
    STRONG,
    blocks_of,
    context_of,
    make_cache,
    make_store,
    same_rows,
)

AXES = ("id",)


@check("serve gives the logits of recomputing, for the fewest tokens", points=2, watches=("serve",))
def serve_equals_recompute(student: Student, cases: Cases) -> None:
    """The logits are those of the whole prompt, and only tokens after the longest run of blocks are computed."""
    small, _, large = cases.odd
    for model, size in ((small, 3), (large, 4), (large, 1), (cases.long, 16), (cases.trained, 16)):
        n_ctx = min(model.config.n_ctx, 66)
        ids, other = cases.ids(model, n_ctx, "ids", size), cases.ids(model, n_ctx, "other", size)
        # The store has the student's own keys where chance makes no two blocks alike.
        key = {} if model is cases.trained else {"key": STRONG}
        store, plain = student.handle("BlockStore", 300, size, **key), PlainStore(300, size)
        prompts = [ids[: 2 * size + 1], ids[: 2 * size + 1]]
        if model is not cases.trained:  # its 12 layers take long
            lengths = sorted({n for k in range(1, 4) for n in (k * size - 1, k * size, k * size + 1) if 0 < n <= n_ctx})
            prompts += [ids[:n] for n in lengths] + [(ids[:n] + other)[: n + 5] for n in lengths if n + 5 <= n_ctx]
        prompts += [ids, ids]  # up to n_ctx
        for prompt in prompts:
            _expect_served(student, model, store, plain, prompt)


def _expect_served(student: Student, model: JudgeModel, store: Handle, plain: PlainStore, prompt: list[int]) -> None:
    n_reused = plain.match(prompt, "a") * plain.block_size
    plain.put(prompt, "a")
    answer, n_run = student.counted_array("serve", store, prompt, model, context_of("a"))
    where = f"for a prompt of {tokens(len(prompt))}, {n_reused} of them in blocks of {plain.block_size}, {model.about}"
    past, rest = model.reference.run(prompt[:n_reused]).kv if n_reused else None, prompt[n_reused:]
    from_0 = POSITIONS_RESET, lambda: model.reference.run(rest, past=past, positions=range(len(rest))).logits[-1]
    again = [
        (bugs.RUN_FED_AGAIN, lambda n=n: model.reference.run(prompt[n:], past=past).logits[-1])
        for n in (0, n_reused // plain.block_size)
        if n < n_reused and n_reused + len(prompt) - n <= model.config.n_ctx
    ]
    expected = model.reference.logits(prompt)[-1]
    expect_close(answer, expected, name="serve", axes=AXES, where=where, suspects=[from_0, *again] if past else ())
    if n_run is not None and n_run > len(prompt) - n_reused + 0.5:
        detail = f"{n_run:.0f} tokens went through the model where {len(prompt) - n_reused} are enough ({where})."
        raise Failure(detail)


@check("Requests, tenants and failing requests do not disturb each other", points=1)
def serve_keeps_apart(student: Student, cases: Cases) -> None:
    """Each request is served from its own tenant's blocks, in any order; one that fails changes no block."""
    for model, size in ((cases.odd[0], 3), (cases.odd[2], 4)):
        prompts = [cases.ids(model, 3 * size + 1, name) for name in ("one", "two", "three")]
        prompts.append(prompts[0][: 2 * size] + prompts[1][:2])
        store = make_store(student, 5, size)
        for i in (0, 1, 0, 3, 2, 1, 3, 0, 0, 2):  # A, B, A and others, more blocks than there is room for
            answer = student.array("serve", store, prompts[i], model, context_of("a"))
            where = f"requests in turn, in a store of 5 blocks of {size}, {model.about}"
            expect_close(answer, model.reference.logits(prompts[i])[-1], name="serve", axes=AXES, where=where)
        _expect_own_blocks(student, cases, model, size)
        _expect_refused(student, cases, model, size)


def _expect_own_blocks(student: Student, cases: Cases, model: JudgeModel, size: int) -> None:
    """Tenant a's blocks of a prompt hold other rows than the model's: a's answer shows them, and b's does not.

    So it does for other weights, and once these blocks are evicted and such with still other rows stored.
    """
    ids, last = cases.ids(model, 2 * size + 1, "own"), 2 * size
    rng = cases.rng("altered")
    store = make_store(student, 20, size)

    def altered() -> np.ndarray:
        rows = np.array(model.reference.run(ids[:last]).kv, np.float32)
        return rows + rows.std() * rng.normal(size=rows.shape).astype(np.float32)

    def put(token_ids: list[int], rows: np.ndarray) -> None:
        student.method(store, "put", token_ids, context_of("a"), make_cache(student, rows), returns="none")

    def expect_answer(weights: JudgeModel, tenant: str, rows: np.ndarray | None, where: str, other: Suspects) -> None:
        answer = student.array("serve", store, ids, weights, context_of(tenant))
        expected = _after(weights, ids[last:], rows) if rows is not None else weights.reference.logits(ids)[-1]
        expect_close(answer, expected, name="serve", axes=AXES, where=f"{where}, {model.about}", suspects=other)

    rows = altered()
    put(ids[:last], rows)
    of_a = [(bugs.TENANTS_SHARE, lambda: _after(model, ids[last:], rows))]
    unused = [(bugs.BLOCKS_UNUSED, lambda: model.reference.logits(ids)[-1])]
    expect_answer(model, "b", None, "with the prompt stored for another tenant", of_a)
    expect_answer(model, "a", rows, "with other rows in the tenant's own blocks", unused)
    twin = random_judge_model(model.config, cases.number("twin", size))
    expect_answer(twin, "a", rows, "with the same blocks and prompt, and other weights", ())
    again = altered()
    put(cases.ids(model, 20 * size, "evicts"), np.repeat(again, 10, axis=-2))
    put(ids[:last], again)
    if same_rows(student.method(store, "match", ids, context_of("a")), blocks_of(again, size, 2)):
        expect_answer(model, "a", again, "with still other rows in the same blocks", ())


def _after(model: JudgeModel, ids: list[int], rows: np.ndarray) -> np.ndarray:
    """The logits after ids that follow these rows."""
    return model.reference.run(ids, past=[(k, v) for k, v in rows.astype(np.float64)]).logits[-1]


def _expect_refused(student: Student, cases: Cases, model: JudgeModel, size: int) -> None:
    """A request that fails leaves every block of a full store where it is."""
    ids, other = cases.ids(model, 2 * size + 1, "kept"), cases.ids(model, 3 * size, "refused")
    store = make_store(student, 3, size)
    student.array("serve", store, ids, model, context_of("a"))
    student.array("serve", store, other[: size + 1], model, context_of("a"))
    stored = [(prompt, context_of("a")) for prompt in (ids, other)]
    before, n_held = [student.method(store, "match", *asked) for asked in stored], student.length(store)
    n_vocab, n_ctx = model.config.n_vocab, model.config.n_ctx
    for what, prompt in (
        ("an empty prompt", []),
        ("a prompt with an id outside the vocabulary at its end", [*other[:-1], n_vocab]),
        ("a prompt with an id below 0 in its second block", [*other[:size], -1, *other[size:]]),
        ("a prompt longer than n_ctx", (other * n_ctx)[: n_ctx + 1]),
    ):
        student.expect_error("serve", store, prompt, model, context_of("a"), what=what)
        after = [student.method(store, "match", *asked) for asked in stored]
        if student.length(store) != n_held or not all(map(same_rows, after, before)):
            raise Failure(f"After {what}, the store holds other blocks than before.")
