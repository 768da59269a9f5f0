"""The course's functions, transformers and the machine's limits at the size of GPT-2 small, measured in turn."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.bench.limits import Limits
from autograder.toolkit.model import GPT2_SMALL
from autograder.toolkit.threads import BLAS_VARIABLES
from autograder.toolkit.timing import Measurement

PREFILL = (128, 512, 1000)
DECODE = (64, 128, 256, 512, 1000)
PREFIX, SUFFIX = 512, 8
THREADS = 2

Call = tuple[Any, ...]  # ("decode", 512)


@dataclass
class Speed:
    """The seconds of every call by engine, and the machine's limits."""

    threads: int
    samples: dict[tuple[str, Call], list[float]] = field(default_factory=dict)

    def add(self, engine: str, call: Call, value: float) -> None:
        self.samples.setdefault((engine, call), []).append(value)

    def time(self, engine: str, *call: Any) -> Measurement:
        return Measurement(tuple(self.samples[engine, call]))

    @property
    def has_peer(self) -> bool:
        return any(engine == "transformers" for engine, _ in self.samples)

    @property
    def limits(self) -> Limits:
        """The best of all rounds: a limit is what the machine can do when nothing disturbs it."""
        return Limits(max(self.samples["machine", ("flops",)]), max(self.samples["machine", ("read",)]))

    def limit(self, n_new: int, n_seq: int) -> float:
        return self.limits.seconds(GPT2_SMALL, n_new, n_seq)


class Engine:
    """The parent's side of bench/engine.py."""

    last: Engine | None = None  # the one that was called last

    def __init__(self, name: str, threads: int) -> None:
        self.threads, count = threads, str(threads)
        variables = dict.fromkeys(BLAS_VARIABLES, count)
        command = [sys.executable, "-m", "autograder.bench.engine", name, count]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | variables
        )
        self._answer()

    def __call__(self, *call: Any) -> Any:
        assert self.process.stdin is not None
        if self.threads > 1 and Engine.last is not self:
            time.sleep(0.05)  # until the previous engine's threads stop spinning
        Engine.last = self
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(map(str, self.process.args))} ended with status {self.process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def engines(names: list[str], threads: int) -> Iterator[dict[str, Engine]]:
    with ExitStack() as stack:
        running = {}
        for name in names:
            running[name] = Engine(name, threads)
            stack.callback(running[name].close)
        yield running


def peer_installed() -> bool:
    return all(importlib.util.find_spec(name) for name in ("torch", "transformers"))


def measure_speed(repeats: int = 5, threads: int = THREADS) -> Speed:
    """Time every call of every engine, in rounds; the first round is the warm-up."""
    both: list[Call] = [
        *(("prefill", n) for n in PREFILL),
        *(("decode", n) for n in DECODE),
        ("reuse", PREFIX, SUFFIX),
    ]
    speed = Speed(threads)
    peers = ["transformers"] if peer_installed() else []
    with engines(["machine", "solutions", *peers], threads) as running:
        if peers:
            ours, theirs = (np.array(running[name]("logits", 40, SUFFIX)) for name in ("solutions", *peers))
            if not np.allclose(ours, theirs, atol=1e-3, rtol=1e-2):
                raise RuntimeError("transformers and the solutions give different logits, so they do not compare")
        for number in range(repeats + 1):
            calls: list[tuple[str, Call]] = [("machine", ("flops",)), ("machine", ("read",))]
            for call in both:
                calls += [(name, call) for name in ("solutions", *peers)][:: (-1) ** number]
            calls.append(("solutions", ("share", PREFIX, SUFFIX)))
            for engine, call in calls:
                value = running[engine](*call)
                if number:
                    speed.add(engine, call, value)
    return speed
