"""Four traces of requests as servers receive them, and the tokens that stores other than the student's would compute.

Ids are random: only shared beginnings of prompts matter. All counts are of tokens; a trace is a list of Requests.
"""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Request:
    """One prompt and its tenant. n_common: how many of its first ids a program would save beforehand."""

    token_ids: list[int]
    tenant: str = "a"
    n_common: int = 0


Trace = Sequence[Request]


def shared_prompt(n_vocab: int, n: int = 200, seed: int = 0, n_system: int = 200) -> list[Request]:
    """Many users of one program: a system prompt that all share, and a question of 8 to 40 tokens of their own."""
    ids, rng = _ids(n_vocab, seed)
    system = ids(n_system)
    return [Request(system + ids(rng.integers(8, 41)), n_common=n_system) for _ in range(n)]


def chats(n_vocab: int, n: int = 200, seed: int = 0, n_turns: int = 8) -> list[Request]:
    """Conversations side by side, ten at a time; each turn sends all that was said before, and 20 to 50 tokens more."""
    ids, rng = _ids(n_vocab, seed)
    system = ids(30)
    talks = [list(system) for _ in range(10)]
    requests = []
    while len(requests) < n:
        i = rng.integers(len(talks))
        talks[i] = talks[i] + ids(rng.integers(20, 51))
        requests.append(Request(talks[i], n_common=len(system)))
        if len(talks[i]) > len(system) + 35 * n_turns:
            talks[i] = list(system)  # another conversation begins
    return requests


def documents(n_vocab: int, n: int = 200, seed: int = 0, n_documents: int = 10) -> list[Request]:
    """Short questions about documents of 200 to 400 tokens: every second one about two of them, the others in turn."""
    ids, rng = _ids(n_vocab, seed)
    texts = [ids(rng.integers(200, 401)) for _ in range(n_documents)]
    chosen = [rng.integers(2) if i % 2 else 2 + i // 2 % (n_documents - 2) for i in range(n)]
    return [Request(texts[i] + ids(rng.integers(4, 16)), n_common=len(texts[i])) for i in chosen]


def mixed_tenants(n_vocab: int, n: int = 200, seed: int = 0) -> list[Request]:
    """Three tenants, one of whom sends most; all use one public system prompt, and a third of the prompts none."""
    ids, rng = _ids(n_vocab, seed)
    public = ids(120)
    own = {tenant: public + ids(80) for tenant in "abc"}
    requests = []
    for _ in range(n):
        tenant = str(rng.choice(list("abc"), p=(0.7, 0.2, 0.1)))
        if rng.random() < 1 / 3:
            requests.append(Request(ids(rng.integers(50, 301)), tenant))
        else:
            requests.append(Request(own[tenant] + ids(rng.integers(8, 41)), tenant, n_common=200))
    return requests


TRACES = {
    "one system prompt": shared_prompt,
    "chats": chats,
    "documents": documents,
    "mixed tenants": mixed_tenants,
}


def all_traces(n_vocab: int, n: int = 200) -> dict[str, list[Request]]:
    """The four traces, by their names."""
    return {name: trace(n_vocab, n) for name, trace in TRACES.items()}


def _ids(n_vocab: int, seed: int) -> tuple[Callable[[int], list[int]], np.random.Generator]:
    rng = np.random.default_rng(seed)
    return lambda n: rng.integers(0, n_vocab, n).tolist(), rng


def replay(store: Any, trace: Trace) -> int:
    """The tokens that a student's store leaves to compute; the store is queried and filled, and no model runs."""
    computed = 0
    for request in trace:
        context = {"tenant": request.tenant}
        computed += len(request.token_ids) - store.block_size * len(store.match(request.token_ids, context))
        store.put(request.token_ids, context, _no_rows(len(request.token_ids)))
    return computed


def _no_rows(n: int) -> SimpleNamespace:
    """A cache of one layer, with one number for each of n positions."""
    layer = SimpleNamespace(keys=np.zeros((1, n, 1), np.float32), values=np.zeros((1, n, 1), np.float32))
    return SimpleNamespace(layers=[layer])


def by_capacity(
    make_store: Callable[[int], Any], trace: Trace, capacities: Sequence[int], block_size: int = 16
) -> dict[str, list[int]]:
    """The tokens left to compute at each capacity, by the student's store and by two others."""
    return {
        "your store": [replay(make_store(capacity), trace) for capacity in capacities],
        "first in, first out": [first_in_first_out(trace, capacity, block_size) for capacity in capacities],
        "best possible": [best_possible(trace, capacity, block_size) for capacity in capacities],
    }


def first_token_times(answers: dict[str, Callable[[Request], Any]], trace: Trace) -> dict[str, list[float]]:
    """The seconds that each way of answering takes for each request; the ways take turns."""
    times: dict[str, list[float]] = {name: [] for name in answers}
    for request in trace:
        for name, answer in answers.items():
            start = time.perf_counter()
            answer(request)
            times[name].append(time.perf_counter() - start)
    return times


def n_tokens(trace: Trace) -> int:
    """The tokens of all prompts."""
    return sum(len(request.token_ids) for request in trace)


def first_in_first_out(trace: Trace, capacity: int, block_size: int) -> int:
    """The tokens left to compute by a store that evicts the oldest leaf, however much it is used."""
    held: dict[int, int | None] = {}  # block -> the block before it, in the order in which they came
    computed = 0
    for request, blocks in zip(trace, _numbered(trace, block_size), strict=True):
        computed += len(request.token_ids) - block_size * _run(request, blocks, held, block_size)
        for before, block in zip([None, *blocks], blocks, strict=False):
            if block not in held:
                if len(held) >= capacity:
                    kept = {*held.values(), *blocks}
                    leaf = next((b for b in held if b not in kept), None)
                    if leaf is None:
                        break
                    del held[leaf]
                held[block] = before
    return computed


def best_possible(trace: Trace, capacity: int, block_size: int) -> int:
    """The fewest tokens that any store can leave to compute: it knows the trace, and keeps what is needed soonest.

    Belady 1966, "A study of replacement algorithms for virtual-storage computers". A block is needed no later than
    those that continue it, so whole runs are kept.
    """
    numbered = _numbered(trace, block_size)
    uses: dict[int, list[int]] = defaultdict(list)  # when each block could be reused, the next time last
    for i in reversed(range(len(trace))):
        for block in numbered[i][: _most(trace[i], block_size)]:
            uses[block].append(i)
    held: set[int] = set()
    computed = 0
    for request, blocks in zip(trace, numbered, strict=True):
        computed += len(request.token_ids) - block_size * _run(request, blocks, held, block_size)
        for block in blocks[: _most(request, block_size)]:
            uses[block].pop()
        needed = [(uses[block][-1], block) for block in held.union(blocks) if uses[block]]
        held = {block for _, block in heapq.nsmallest(capacity, needed)}  # numbers grow along a run
    return computed


def with_window(trace: Trace, window: int | None, block_size: int) -> int:
    """The tokens left to compute where attention sees the last `window` tokens, and no more of a prompt is kept.

    A run of k blocks can be continued when the blocks of the last `window` tokens before its end are there. No prompt
    is forgotten. None: no window.
    """
    held: set[int] = set()
    computed = 0
    for request, blocks in zip(trace, _numbered(trace, block_size), strict=True):
        n = len(request.token_ids)
        seen = n if window is None else window
        ends = range(_most(request, block_size), 0, -1)
        fits = (k for k in ends if held.issuperset(blocks[max(0, (k * block_size - seen) // block_size) : k]))
        computed += n - block_size * next(fits, 0)
        held.update(blocks[max(0, (n - seen) // block_size) :])
    return computed


def _numbered(trace: Trace, block_size: int) -> list[list[int]]:
    """Each prompt's full blocks as numbers: equal where all ids up to the block's end and the tenant are."""
    numbers: dict[tuple, int] = {}
    prompts = []
    for request in trace:
        before, blocks = -1, []
        for end in range(block_size, len(request.token_ids) + 1, block_size):
            block = before, request.tenant, tuple(request.token_ids[end - block_size : end])
            before = numbers.setdefault(block, len(numbers))
            blocks.append(before)
        prompts.append(blocks)
    return prompts


def _most(request: Request, block_size: int) -> int:
    """The most blocks of a prompt that can be reused: at least one token must be computed."""
    return (len(request.token_ids) - 1) // block_size


def _run(request: Request, blocks: list[int], held: Any, block_size: int) -> int:
    """How many blocks are held, from the first on."""
    most = _most(request, block_size)
    return next((i for i, block in enumerate(blocks[:most]) if block not in held), most)
