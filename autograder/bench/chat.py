"""`python -m autograder.bench.chat`: the chat model's solution beside transformers on the same weights.

The weights are SmolLM2's where it was fetched, else random ones of its shape. Every engine is a process of its own.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import os
import resource
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from autograder.bench.goals import Goal
from autograder.bench.report import goals_table
from autograder.bench.speed import Engine, peer_installed

PREFIX, SUFFIX = 2328, 104
CALLS = (("prefill", PREFIX + SUFFIX), ("prefill", 5923), ("decode", PREFIX), ("reuse", PREFIX, SUFFIX))
MOST = {CALLS[0]: 1.25, CALLS[1]: 1.4, CALLS[2]: 0.5, CALLS[3]: 0.9}  # times the time of transformers
STEPS = 10


def some_ids(n: int) -> list[int]:
    return np.random.default_rng(0).integers(0, 49152, n).tolist()


class _Measured:
    """run(ids, cache), new_cache() and copied(cache) are the engine's."""

    @functools.cache  # noqa: B019 - there is one engine in the process
    def saved(self, n: int) -> Any:
        cache = self.new_cache()
        self.run(some_ids(n), cache)
        return cache

    def timed(self, *work: tuple[list[int], Any]) -> float:
        begin = time.perf_counter()
        for ids, cache in work:
            self.run(ids, cache)
        return time.perf_counter() - begin

    def prefill(self, n: int) -> float:
        return self.timed((some_ids(n), self.new_cache()))

    def decode(self, n: int) -> float:
        return self.timed(*[([11], self.copied(self.saved(n)))] * STEPS) / STEPS

    def reuse(self, n: int, suffix: int) -> float:
        saved = self.saved(n)
        begin = time.perf_counter()
        self.run(some_ids(n + suffix)[n:], self.copied(saved))
        return time.perf_counter() - begin

    def peak(self) -> int:
        """The most memory that the process has used, in bytes."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Solution(_Measured):
    def __init__(self, folder: str, threads: int) -> None:
        from autograder.bench.solved import solved
        from autograder.toolkit.chat import load_llama

        self.course, self.weights = solved("chat-model"), load_llama(folder)

    def new_cache(self) -> Any:
        return self.course.ModelCache(self.weights.config.n_layer)

    def run(self, ids: list[int], cache: Any) -> Any:
        return self.course.advance_llama(ids, len(cache), self.weights, cache)

    def copied(self, cache: Any) -> Any:
        return cache.clone()

    def logits(self) -> list[float]:
        return self.run(some_ids(40), self.new_cache())[:50].tolist()


class Transformers(_Measured):
    def __init__(self, folder: str, threads: int) -> None:
        import torch
        import transformers

        torch.set_num_threads(threads)
        self.torch, self.dynamic = torch, transformers.DynamicCache
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def new_cache(self) -> Any:
        return self.dynamic()

    def run(self, ids: list[int], cache: Any) -> Any:
        with self.torch.no_grad():
            return self.model(self.torch.tensor([ids]), past_key_values=cache, use_cache=True, logits_to_keep=1).logits

    def copied(self, cache: Any) -> Any:
        return copy.deepcopy(cache)  # as its users do

    def logits(self) -> list[float]:
        return self.run(some_ids(40), self.new_cache())[0, -1, :50].float().tolist()


def folder_of_weights(place: Path) -> Path:
    """SmolLM2's folder, or one of random weights of its shape."""
    from autograder.toolkit.chat import SMOLLM2, random_llama
    from autograder.toolkit.chat.config import config_to_hf
    from autograder.toolkit.chat.load import write_float32
    from autograder.toolkit.chat.weights import tensors_of
    from autograder.toolkit.model.load import fetched_folder, is_fetched

    if is_fetched("smollm2"):
        return fetched_folder("smollm2")
    write_float32(place / "model.safetensors", tensors_of(random_llama(SMOLLM2, 0)))
    (place / "config.json").write_text(json.dumps(config_to_hf(SMOLLM2)), encoding="utf-8")
    return place


def measure(folder: Path, repeats: int, threads: int) -> list[Goal]:
    os.environ["AUTOGRADER_BENCH_FOLDER"] = str(folder)
    names = ["solution", *(["transformers"] if peer_installed() else [])]
    taken: dict[tuple[str, tuple], list[float]] = {}
    peak = None
    with ExitStack() as stack:
        running = {name: Engine(name, threads, "autograder.bench.chat") for name in names}
        for engine in running.values():
            stack.callback(engine.close)
        first, *others = (np.array(engine("logits")) for engine in running.values())
        if others and not np.allclose(first, others[0], atol=1e-3, rtol=1e-2):
            raise RuntimeError("transformers and the solution give different logits, so they do not compare")
        for engine in running.values():
            engine("prefill", 256)  # the warm-up
        for _ in range(repeats):
            for call in CALLS:
                for name, engine in running.items():
                    taken.setdefault((name, call), []).append(engine(*call))
                    if (name, call) == ("solution", CALLS[1]) and peak is None:  # before anything is saved
                        peak = engine("peak")
    seconds = {key: median(values) for key, values in taken.items()}
    for (name, call), value in seconds.items():
        print(f"{name:12} {' '.join(map(str, call)):18} {value:8.3f} s")
    goals = [
        Goal(f"{' '.join(map(str, call))}, to transformers", most, seconds["solution", call] / seconds[names[-1], call])
        for call, most in MOST.items()
        if len(names) > 1
    ]
    cold, reused = seconds["solution", CALLS[0]], seconds["solution", CALLS[3]]
    size = (folder / "model.safetensors").stat().st_size + 2 * 30 * 3 * 64 * 4 * 5923
    return [
        *goals,
        Goal(f"reuse of {PREFIX} + {SUFFIX}, to cold", 0.1, reused / cold),
        Goal("peak memory, to the weights and the cache of 5,923", 1.2, peak / size),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m autograder.bench.chat", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    from rich import print as show

    with TemporaryDirectory() as place:
        show(goals_table(measure(folder_of_weights(Path(place)), options.repeats, options.threads)))


def answer(name: str, threads: str) -> None:
    """An engine's process: calls come as lines of JSON."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints must not look like an answer
    kind = {"solution": Solution, "transformers": Transformers}[name]
    engine = kind(os.environ["AUTOGRADER_BENCH_FOLDER"], int(threads))
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        print(json.dumps(getattr(engine, method)(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main() if len(sys.argv) != 3 or sys.argv[1].startswith("-") else answer(*sys.argv[1:])
