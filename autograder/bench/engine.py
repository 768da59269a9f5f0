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

from autograder.bench.limits import Machine
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

    def logits(self, n: int, suffix: int) -> list[float]:
        """Logits after n + suffix tokens, n of them from a saved cache."""
        logits = self.run(self.ids(n + suffix)[n:], self.copied(self.saved(n)))
        return np.asarray(logits)[..., :50].reshape(-1, 50)[-1].tolist()


class Solutions(Timed):
    """The course's own functions."""

    def __init__(self, threads: int) -> None:
        from autograder.bench.solved import solved

        self.weights = random_model(CONFIG, seed=0)
        self.f = solved(sharing=True)

    def new_cache(self) -> Any:
        return self.f.ModelCache(CONFIG.n_layer)

    def run(self, ids: list[int], cache: Any) -> Any:
        return self.f.advance(ids, len(cache), self.weights, cache)

    def copied(self, cache: Any) -> Any:
        return cache.clone()

    def share(self, n: int, suffix: int) -> float:
        """Reuse without a copy of the prefix."""
        saved, ids = self.saved(n), self.ids(n + suffix)[n:]
        return seconds_of(lambda: self.f.generate_sharing(self.f.SharedCache(saved), n, ids, self.weights))


class Transformers(Timed):
    """transformers on PyTorch, with its own cache, which is copied with copy.deepcopy for each reuse."""

    def __init__(self, threads: int) -> None:
        import torch
        import transformers

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.torch, self.transformers, self.new_cache = torch, transformers, transformers.DynamicCache

    def use(self, model: Any) -> None:
        known = inspect.signature(model.forward).parameters  # names differ between versions
        self.model, self.options = model.eval(), {"use_cache": True}
        if "logits_to_keep" in known:  # logits of the last row only, as its own generate() asks for
            self.options["logits_to_keep"] = 1
        self.cache_name = "cache" if "cache" in known else "past_key_values"

    def load(self, weights: Any) -> None:
        """Use a GPT-2 with these weights."""
        from autograder.toolkit.model.config import config_to_hf

        model = self.transformers.GPT2LMHeadModel(self.transformers.GPT2Config(**config_to_hf(weights.config)))
        tensors = {name: self.torch.tensor(array) for name, array in tensors_of(weights).items()}
        model.transformer.load_state_dict(tensors, strict=False)
        self.use(model)

    def run(self, ids: list[int], cache: Any) -> Any:
        return self.model(self.torch.tensor([ids]), **{self.cache_name: cache}, **self.options).logits

    def copied(self, cache: Any) -> Any:
        return copy.deepcopy(cache)


class TransformersGPT2(Transformers):
    """The same weights as Solutions."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.load(random_model(CONFIG, seed=0))


ENGINES = {"solutions": Solutions, "transformers": TransformersGPT2, "machine": Machine}


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
