"""One engine in a process of its own: `python -m autograder.bench.engine NAME THREADS`, driven by bench/speed.py.

It reads one JSON list a line, such as ["decode", 512], and answers with one JSON value: the seconds that it took.
What a call needs beforehand, such as a filled cache, is made outside of the measured time.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.toolkit.model import GPT2_SMALL, random_model, tensors_of

CONFIG = GPT2_SMALL
STEPS = 4  # decode steps that are timed together


def some_ids(n: int, n_vocab: int = CONFIG.n_vocab) -> list[int]:
    return np.random.default_rng(0).integers(0, n_vocab, n).tolist()


def timed(fn: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds that it took, and what it returned."""
    start = time.perf_counter()
    result = fn()
    return time.perf_counter() - start, result


def seconds_of(fn: Callable[[], Any]) -> float:
    return timed(fn)[0]


class Solutions:
    """The course's own functions."""

    def __init__(self, threads: int) -> None:
        from autograder.bench.solved import solved

        self.weights = random_model(CONFIG, seed=0)
        self.f = solved(sharing=True)

    @functools.cache  # noqa: B019 - there is one engine in the process
    def saved(self, n: int) -> Any:
        return self.f.save_prefix_cache(some_ids(n), self.weights)

    def prefill(self, n: int) -> float:
        cache = self.f.ModelCache(CONFIG.n_layer)
        return seconds_of(lambda: self.f.prefill(some_ids(n), self.weights, cache))

    def decode(self, n: int) -> float:
        """The seconds for one token after n others."""
        cache = self.saved(n).clone()

        def run() -> None:
            for position in range(n, n + STEPS):
                self.f.decode_step(11, position, self.weights, cache)

        return seconds_of(run) / STEPS

    def reuse(self, n: int, suffix: int) -> float:
        saved, ids = self.saved(n), some_ids(n + suffix)[n:]
        return seconds_of(lambda: self.f.generate_with_prefix(saved, n, ids, self.weights))

    def share(self, n: int, suffix: int) -> float:
        """Reuse without a copy of the prefix."""
        saved, ids = self.saved(n), some_ids(n + suffix)[n:]
        return seconds_of(lambda: self.f.generate_sharing(self.f.SharedCache(saved), n, ids, self.weights))

    def logits(self, n: int, suffix: int) -> list[float]:
        """The logits after n + suffix tokens, n of them from a saved cache."""
        return self.f.generate_with_prefix(self.saved(n), n, some_ids(n + suffix)[n:], self.weights)[:50].tolist()


def keywords(model: Any) -> tuple[str, dict[str, Any]]:
    """The name of a transformers model's cache argument, and further arguments for its call."""
    known = inspect.signature(model.forward).parameters  # names differ between versions
    options = {"use_cache": True}
    if "logits_to_keep" in known:  # logits of the last row only, as its own generate() asks for
        options["logits_to_keep"] = 1
    return "cache" if "cache" in known else "past_key_values", options


class Timed:
    """The calls of an engine that has run(ids, cache), new_cache() and copied(cache), each with its seconds."""

    n_vocab, steps = CONFIG.n_vocab, STEPS

    def ids(self, n: int) -> list[int]:
        return some_ids(n, self.n_vocab)

    @functools.cache  # noqa: B019 - there is one engine in the process
    def saved(self, n: int) -> Any:
        cache = self.new_cache()
        self.run(self.ids(n), cache)
        return cache

    def prefill(self, n: int) -> float:
        return seconds_of(lambda: self.run(self.ids(n), self.new_cache()))

    def decode(self, n: int) -> float:
        """The seconds for one token after n others."""
        cache = self.copied(self.saved(n))
        return seconds_of(lambda: [self.run([11], cache) for _ in range(self.steps)]) / self.steps

    def reuse(self, n: int, suffix: int) -> float:
        saved, ids = self.saved(n), self.ids(n + suffix)[n:]
        return seconds_of(lambda: self.run(ids, self.copied(saved)))


class Transformers(Timed):
    """transformers on PyTorch, with its own cache, which is copied with copy.deepcopy for each reuse."""

    def __init__(self, threads: int) -> None:
        import torch
        import transformers
        from transformers.cache_utils import DynamicCache

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        transformers.logging.set_verbosity_error()
        self.torch, self.transformers, self.new_cache = torch, transformers, DynamicCache
        self.load(random_model(CONFIG, seed=0))

    def load(self, weights: Any) -> None:
        from autograder.toolkit.model.config import config_to_hf

        hf_config = self.transformers.GPT2Config(**config_to_hf(weights.config))
        self.model = self.transformers.GPT2LMHeadModel(hf_config).eval()
        tensors = {name: self.torch.tensor(array) for name, array in tensors_of(weights).items()}
        self.model.transformer.load_state_dict(tensors, strict=False)
        self.cache_name, self.options = keywords(self.model)

    def run(self, ids: list[int], cache: Any) -> Any:
        return self.model(self.torch.tensor([ids]), **{self.cache_name: cache}, **self.options).logits

    def copied(self, cache: Any) -> Any:
        return copy.deepcopy(cache)

    def logits(self, n: int, suffix: int) -> list[float]:
        logits = self.run(self.ids(n + suffix)[n:], self.copied(self.saved(n)))
        return logits[0, -1, :50].float().tolist()


class Machine:
    """The machine's limits: its fastest arithmetic and memory reads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def flops(self) -> float:
        from autograder.bench.limits import matrix_flops

        return matrix_flops()

    def read(self) -> float:
        from autograder.bench.limits import read_bytes

        return read_bytes(self.threads)


ENGINES = {"solutions": Solutions, "transformers": Transformers, "machine": Machine}


def main() -> None:
    from autograder.bench.chat import CHATS
    from autograder.bench.serving import SERVERS

    name, threads = sys.argv[1:]
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints must not look like an answer
    engine = {**ENGINES, **SERVERS, **CHATS}[name](int(threads))
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        print(json.dumps(getattr(engine, method)(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main()
