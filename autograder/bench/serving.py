"""The same traces served from stage 6's store of blocks and by transformers, whose users copy whole entries.

Both have room for the same number of tokens and evict what was used least recently. Each is an engine in a process of
its own (engine.py), and they take turns, request by request.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.bench.engine import Transformers, seconds_of
from autograder.bench.speed import THREADS, engines, peer_installed
from autograder.toolkit import traces
from autograder.toolkit.model import load_model

BLOCK, ROOM = 16, 512  # tokens in a block, blocks in the store
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
        self.store = self.f.BlockStore(ROOM, BLOCK)
        self.computed = 0
        self.globals["prefill"] = self._counted

    def _counted(self, token_ids: list[int], *rest: Any) -> np.ndarray:
        self.computed += len(token_ids)
        return self.prefill(token_ids, *rest)

    def serve(self, i: int) -> float:
        request = self.trace[i]
        return seconds_of(lambda: self._answer(request))

    def _answer(self, request: traces.Request) -> None:
        self.logits = self.f.serve(self.store, request.token_ids, self.weights, {"tenant": request.tenant})

    def end(self) -> dict[str, Any]:
        from autograder.worker.holding import bytes_held

        return {"computed": self.computed, "bytes": bytes_held(self.store), "logits": self.logits[:50].tolist()}


class Entries(Transformers):
    """transformers with a list of whole entries: each prompt that was served, and what prompts share, saved ahead."""

    def begin(self, model: str, trace: str, n: int) -> None:
        self.load(load_model(model))
        self.trace = trace_of(trace, n)
        self.entries: list[tuple[str, list[int], Any]] = []  # tenant, ids and cache; the least recently used first
        self.computed = 0

    def serve(self, i: int) -> float:
        request = self.trace[i]
        return seconds_of(lambda: self._answer(request))

    def _answer(self, request: traces.Request) -> None:
        if request.n_common > 0:
            common = request.token_ids[: request.n_common]
            if not any(e[0] == request.tenant and e[1] == common for e in self.entries):
                self._continue(request.tenant, common)
        self.last = self._continue(request.tenant, request.token_ids)

    def _continue(self, tenant: str, ids: list[int]) -> Any:
        """The logits after the ids, from a copy of the longest entry that begins them and leaves a token."""
        fits = [e for e in self.entries if e[0] == tenant and len(e[1]) < len(ids) and ids[: len(e[1])] == e[1]]
        cache, n = self.new_cache(), 0
        if fits:
            entry = max(fits, key=lambda e: len(e[1]))
            self.entries.sort(key=lambda e: e is entry)  # used last
            cache, n = copy.deepcopy(entry[2]), len(entry[1])
        logits = self.run(ids[n:], cache)
        self.computed += len(ids) - n
        self.entries.append((tenant, ids, cache))
        while sum(len(e[1]) for e in self.entries) > ROOM * BLOCK:
            del self.entries[0]
        return logits

    def end(self) -> dict[str, Any]:
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
    engine: str
    seconds: Sequence[float]
    computed: int
    least: int  # the fewest tokens that blocks of this size leave to compute
    bytes: int

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def p95(self) -> float:
        return float(np.percentile(self.seconds, 95))


def measure_serving(n: int = 200, runs: dict[str, tuple[str, ...]] = RUNS) -> list[Served]:
    """Every trace on every model, by both engines in turn; by the course's own alone where there is no peer."""
    names = ["blocks", *(["entries"] if peer_installed() else [])]
    results = []
    for model, of_model in runs.items():
        for trace in of_model:
            with engines(names, 1 if model == "tiny" else THREADS) as running:
                for engine in running.values():
                    engine("begin", model, trace, n)
                seconds = {name: [] for name in names}
                for i in range(n):
                    for name in names[:: (-1) ** i]:
                        seconds[name].append(running[name]("serve", i))
                ends = {name: running[name]("end") for name in names}
            logits = [end["logits"] for end in ends.values()]
            if not np.allclose(logits[0], logits[-1], atol=1e-3, rtol=1e-2):
                raise RuntimeError("transformers and the store give different logits, so they do not compare")
            least = traces.best_possible(trace_of(trace, n), ROOM, BLOCK)
            for name, end in ends.items():
                results.append(Served(model, trace, name, seconds[name], end["computed"], least, end["bytes"]))
    return results
