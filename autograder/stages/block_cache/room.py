"""The checks of how many blocks a store holds, and which are evicted."""

from __future__ import annotations

from autograder.judge.cases import Cases
from autograder.judge.framework import check
from autograder.judge.student import Student
from autograder.stages.block_cache import bugs
from autograder.stages.block_cache.plain_store import Rules
from autograder.stages.block_cache.shared import STAGE, Call, Run, draw_prompts, expect_as_plain

ONE_MORE = [7]  # so that what match leaves is no question here
WRONG_ORDERS = [
    (bugs.FIRST_IN_EVICTED, Rules(first_in=True)),
    (bugs.MATCH_IS_NO_USE, Rules(match_is_use=False)),
    (bugs.ROOT_EVICTED, Rules(leaves_first=False)),
]


@check(stage=STAGE, id="store-capacity", points=1, title="A store holds its capacity and no more, also 0 and 1 block")
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


@check(
    stage=STAGE,
    id="eviction-order",
    points=2,
    title="The least recently used leaf is evicted, never the run in use",
)
def eviction_order(student: Student, cases: Cases) -> None:
    """After thousands of calls the store holds what is left when the least recently used leaf is evicted each time."""
    runs = []
    for capacity, size in ((1, 1), (3, 2), (4, 1), (7, 4), (12, 2), (20, 1)):
        prompts = draw_prompts(cases, size, 8 + capacity, capacity)
        rng = cases.rng("calls", capacity)
        calls: list[Call] = []
        while len(calls) < 400:
            ids, tenant = prompts[rng.integers(len(prompts))], "ab"[int(rng.random() < 0.2)]
            names = (("match", "put"), ("match",), ("put",))[rng.choice(3, p=(0.5, 0.3, 0.2))]
            calls += [Call(name, ids + ONE_MORE * (name == "match"), tenant) for name in names]
        runs.append(Run(calls, capacity, size))
    expect_as_plain(student, runs, WRONG_ORDERS)
