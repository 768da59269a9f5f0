"""The checks of serve."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import POSITIONS_RESET
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import expect_close
from autograder.judge.framework import Failure, check
from autograder.judge.student import Handle, Student
from autograder.judge.words import tokens
from autograder.stages.block_cache import bugs
from autograder.stages.block_cache.plain_store import PlainStore
from autograder.stages.block_cache.shared import STAGE, STRONG, context_of, make_cache, make_store, same_rows

AXES = ("id",)


@check(
    stage=STAGE,
    id="serve-equals-recompute",
    points=2,
    title="serve gives the logits of recomputing, for the fewest tokens",
    watches=("serve",),
)
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
    expected = model.reference.logits(prompt)[-1]
    expect_close(answer, expected, name="serve", axes=AXES, where=where, suspects=[from_0] if past else ())
    if n_run is not None and n_run > len(prompt) - n_reused + 0.5:
        detail = f"{n_run:.0f} tokens went through the model where {len(prompt) - n_reused} are enough ({where})."
        raise Failure(None, detail)


@check(
    stage=STAGE,
    id="serve-keeps-apart",
    points=1,
    title="Requests, tenants and failing requests do not disturb each other",
)
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
    """Tenant a's blocks of a prompt hold other rows than the model's: a's answer shows them, and b's does not."""
    ids = cases.ids(model, 2 * size + 1, "own")
    kv = model.reference.run(ids[: 2 * size]).kv
    rng = cases.rng("altered")
    altered = np.array(kv, np.float32)
    altered += altered.std() * rng.normal(size=altered.shape).astype(np.float32)
    expected = model.reference.run(ids[2 * size :], past=[(k, v) for k, v in altered.astype(np.float64)]).logits[-1]
    store = make_store(student, 20, size)
    student.method(store, "put", ids[: 2 * size], context_of("a"), make_cache(student, altered), returns="none")
    answer = student.array("serve", store, ids, model, context_of("b"))
    of_a = [(bugs.TENANTS_SHARE, lambda: expected)]
    where = f"with the prompt stored for another tenant, {model.about}"
    right = model.reference.logits(ids)[-1]
    expect_close(answer, right, name="serve", axes=AXES, where=where, suspects=of_a)
    answer = student.array("serve", store, ids, model, context_of("a"))
    where = f"with other rows in the tenant's own blocks, {model.about}"
    unused = [(bugs.BLOCKS_UNUSED, lambda: right)]
    expect_close(answer, expected, name="serve", axes=AXES, where=where, suspects=unused)


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
            raise Failure(None, f"After {what}, the store holds other blocks than before.")
