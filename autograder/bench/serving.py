"""The same traces served from stage 6's store of blocks and by transformers, whose users copy whole entries.

Both have room for the same number of tokens and evict what was used least recently. Each is an engine in a process of
its own (engine.py), and they take turns, request by request. On one trace, stores of several block sizes take turns.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.bench.engine import Transformers, seconds_of, timed
from autograder.bench.limits import Limits
from autograder.bench.speed import THREADS, Engine, engines, peer_installed
from autograder.toolkit import traces
from autograder.toolkit.model import load_model
from autograder.toolkit.model.load import SHAPES

ROOM = 8192  # tokens
BLOCKS, BLOCK = (4, 8, 16), 8  # tokens in a block: the sizes compared on one trace, and the size on all others
N_VOCAB = 1000  # every model has these ids
SHARED = "one system prompt"
RUNS = {"tiny": tuple(traces.TRACES), "gpt2-shape": (SHARED,)}  # the traces that each model serves


def trace_of(name: str, n: int) -> list[traces.Request]:
    return traces.TRACES[name](N_VOCAB, n)


class Blocks:
    """The course's own store and serve."""

    def __init__(self, threads: int) -> None:
        from autograder.bench.solved import solved

        self.f = solved("block-cache")
        self.globals = self.f.serve.__globals__
        self.prefill = self.globals["prefill"]

    def begin(self, model: str, trace: str, n: int) -> None:
        self.weights, self.trace = load_model(model), trace_of(trace, n)
        self.stores = {block: self.f.BlockStore(ROOM // block, block) for block in BLOCKS}
        self.computed = dict.fromkeys(BLOCKS, 0)
        self.globals["prefill"] = self._counted

    def _counted(self, token_ids: list[int], *rest: Any) -> np.ndarray:
        self.n_new += len(token_ids)
        seconds, self.logits = timed(lambda: self.prefill(token_ids, *rest))
        self.pass_seconds += seconds
        return self.logits

    def serve(self, i: int, block: int) -> tuple[float, float]:
        request, store = self.trace[i], self.stores[block]
        context = {"tenant": request.tenant}
        self.n_new, self.pass_seconds = 0, 0.0
        seconds = seconds_of(lambda: self.f.serve(store, request.token_ids, self.weights, context))
        self.computed[block] += self.n_new
        return seconds, self.pass_seconds

    def end(self, block: int) -> dict[str, Any]:
        from autograder.worker.holding import bytes_held

        n_bytes = bytes_held(self.stores[block])
        return {"computed": self.computed[block], "bytes": n_bytes, "logits": self.logits[:50].tolist()}


class Entries(Transformers):
    """transformers with a list of whole entries: every prompt served, and the shared prefixes, saved beforehand."""

    def begin(self, model: str, trace: str, n: int) -> None:
        self.load(load_model(model))
        self.trace = trace_of(trace, n)
        self.entries: list[tuple[str, list[int], Any]] = []  # tenant, ids and cache; the least recently used first
        self.computed = 0

    def serve(self, i: int, _: int) -> tuple[float, float]:
        request, self.pass_seconds = self.trace[i], 0.0
        return seconds_of(lambda: self._answer(request)), self.pass_seconds

    def _answer(self, request: traces.Request) -> None:
        if request.n_common > 0:
            common = request.token_ids[: request.n_common]
            if not any(e[0] == request.tenant and e[1] == common for e in self.entries):
                self._continue(request.tenant, common)
        self._continue(request.tenant, request.token_ids)

    def _continue(self, tenant: str, ids: list[int]) -> None:
        """Run the ids after a copy of the longest entry that begins them and leaves a token."""
        fits = [e for e in self.entries if e[0] == tenant and len(e[1]) < len(ids) and ids[: len(e[1])] == e[1]]
        cache, n = self.new_cache(), 0
        if fits:
            entry = max(fits, key=lambda e: len(e[1]))
            self.entries.sort(key=lambda e: e is entry)  # used last
            cache, n = copy.deepcopy(entry[2]), len(entry[1])
        seconds, self.last = timed(lambda: self.run(ids[n:], cache))
        self.pass_seconds += seconds
        self.computed += len(ids) - n
        self.entries.append((tenant, ids, cache))
        while sum(len(e[1]) for e in self.entries) > ROOM:
            del self.entries[0]

    def end(self, _: int) -> dict[str, Any]:
        n_tokens = sum(len(ids) for _, ids, _ in self.entries)
        config = self.model.config
        n_bytes = n_tokens * 2 * config.n_layer * config.n_embd * 4  # float32; the caches' tensors and nothing else
        return {"computed": self.computed, "bytes": n_bytes, "logits": self.last[0, -1, :50].float().tolist()}


SERVERS = {"blocks": Blocks, "entries": Entries}


@dataclass(frozen=True)
class Served:
    """How one engine served a trace: the seconds to each request's first token, and its counts."""

    model: str
    trace: str
    engine: str  # "blocks" or "entries"
    block: int  # tokens in a block; 0 for entries
    seconds: Sequence[float]
    passes: Sequence[float]  # the seconds of them that went into passes through the model
    computed: int
    least: int  # the fewest tokens that blocks of this size leave to compute; for entries 0
    bytes: int
    limit: float  # the median of the least seconds for a request when everything shared is reused; 0: unknown

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def p95(self) -> float:
        return float(np.percentile(self.seconds, 95))


def measure_serving(n: int = 200, runs: dict[str, tuple[str, ...]] = RUNS) -> list[Served]:
    """Serve every trace on every model, with the engines in turn; without transformers, the course's own alone.

    One trace is then served by stores of the other block sizes as well.
    """
    names = ["blocks", *(["entries"] if peer_installed() else [])]
    results = []
    for model, of_model in runs.items():
        threads = 1 if model == "tiny" else THREADS
        limit = _limit(model, trace_of(SHARED, n), threads)
        with engines(names, threads) as running:
            for trace in of_model:
                results += _served(running, model, trace, n, limit if trace == SHARED else 0)
    return results


def _served(running: dict[str, Engine], model: str, trace: str, n: int, limit: float) -> list[Served]:
    in_turn = [(name, BLOCK if name == "blocks" else 0) for name in running]
    alone = [[("blocks", block)] for block in BLOCKS if trace == SHARED and block != BLOCK]
    took: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for engine in running.values():
        engine("begin", model, trace, n)
    for servers in (in_turn, *alone):
        for i in range(n):
            for name, block in servers[:: (-1) ** i]:
                took.setdefault((name, block), []).append(running[name]("serve", i, block))
    ends = [running[name]("end", block) for name, block in took]
    if not all(np.allclose(end["logits"], ends[0]["logits"], atol=1e-3, rtol=1e-2) for end in ends):
        raise RuntimeError("transformers and the store give different logits, so they do not compare")
    results = []
    for ((name, block), times), end in zip(took.items(), ends, strict=True):
        least = traces.best_possible(trace_of(trace, n), ROOM // block, block) if block else 0
        counts = end["computed"], least, end["bytes"]
        results.append(Served(model, trace, name, block, *zip(*times, strict=True), *counts, limit))
    return results


def _limit(model: str, trace: list[traces.Request], threads: int) -> float:
    config = SHAPES[model] if model in SHAPES else load_model(model).config
    with engines(["machine"], threads) as running:
        limits = Limits(running["machine"]("flops"), running["machine"]("read"))
    passes = [(len(request.token_ids) - request.n_common, len(request.token_ids)) for request in trace]
    return float(np.median([limits.seconds(config, *one) for one in passes]))
