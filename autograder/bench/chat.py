"""The chat model's solution beside transformers on the same weights, each in a process of its own (engine.py).

The weights are SmolLM2's where it was fetched, else random ones of its shape.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from autograder.bench.engine import Timed, Transformers
from autograder.bench.speed import THREADS, Call, engines, peer_installed
from autograder.toolkit.chat import SMOLLM2, random_llama
from autograder.toolkit.chat_lab.server import CHUNK
from autograder.toolkit.model.load import fetched_folder, is_fetched

PREFIX, SUFFIX, LONG = 2328, 104, 5923
COLD, REUSE = ("prefill", PREFIX + SUFFIX), ("reuse", PREFIX, SUFFIX)
CALLS: tuple[Call, ...] = (COLD, ("prefill", LONG), ("decode", PREFIX), REUSE)
STEPS = 10  # decode steps that are timed together
IN_A_ROUND = {"prefill": 1, "decode": 3, "reuse": 3}  # repetitions; a disturbance can spoil a whole short call


def in_words(call: Call) -> str:
    """A call in words."""
    name, n, *suffix = call
    if name == "decode":
        return f"decode, {n:,} tokens cached"
    return f"reuse, {n:,} + {suffix[0]} tokens" if suffix else f"{name} of {n:,} tokens"


class _Measured(Timed):
    """An engine that also has begin(folder)."""

    n_vocab, steps = SMOLLM2.n_vocab, STEPS

    def peak(self) -> int:
        """The most memory that the process has used, in bytes."""
        import resource  # which Windows does not have

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Llama(_Measured):
    """The course's own functions."""

    def __init__(self, threads: int) -> None:
        from autograder.bench.solved import solved

        self.course = solved("chat-model")

    def begin(self, folder: str) -> None:
        from autograder.toolkit.chat import load_llama

        self.weights = load_llama(folder)

    def new_cache(self) -> Any:
        return self.course.ModelCache(self.weights.config.n_layer)

    def run(self, ids: list[int], cache: Any) -> Any:
        for i in range(0, len(ids), CHUNK):  # as the notebook's server does
            logits = self.course.advance_llama(ids[i : i + CHUNK], len(cache), self.weights, cache)
        return logits

    def copied(self, cache: Any) -> Any:
        return cache.clone()


class TransformersLlama(_Measured, Transformers):
    """transformers with the same weights."""

    def begin(self, folder: str) -> None:
        self.use(self.transformers.AutoModelForCausalLM.from_pretrained(folder).float())


CHATS = {"llama": Llama, "transformers-llama": TransformersLlama}
NAMES = {"llama": "solution", "transformers-llama": "transformers"}


@dataclass
class ChatTimes:
    """The seconds of every call by engine ("solution", "transformers"), and the most bytes that each process used."""

    model: str
    threads: int
    repeats: int
    weights_and_cache: int  # bytes, with LONG tokens cached
    seconds: dict[tuple[str, Call], list[float]] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=dict)

    def best(self, name: str, call: Call) -> float:
        """The shortest time: the one that was disturbed least."""
        return min(self.seconds[name, call])


def measure_chat(repeats: int = 2, threads: int = THREADS) -> ChatTimes:
    """Time every call in rounds, with the engines in turn; without transformers, the course's own alone."""
    with TemporaryDirectory() as place:
        fetched = is_fetched("smollm2")
        folder = fetched_folder("smollm2") if fetched else _random_weights(Path(place))
        n_bytes = (folder / "model.safetensors").stat().st_size
        n_bytes += 4 * 2 * LONG * SMOLLM2.n_layer * SMOLLM2.n_kv_head * SMOLLM2.head_dim
        model = "SmolLM2-135M" if fetched else "Random weights of SmolLM2-135M's shape"
        times = ChatTimes(model, threads, repeats, n_bytes)
        names = list(CHATS) if peer_installed() else ["llama"]
        with engines(names, threads) as running:
            for engine in running.values():
                engine("begin", str(folder))
            logits = [engine("logits", 39, 1) for engine in running.values()]
            if not np.allclose(logits[0], logits[-1], atol=1e-3, rtol=1e-2):
                raise RuntimeError("transformers and the solution give different logits, so they do not compare")
            for engine in running.values():
                engine("prefill", 256)  # the warm-up
            for number in range(repeats):
                for call in CALLS:
                    for name in IN_A_ROUND[call[0]] * names[:: (-1) ** number]:
                        times.seconds.setdefault((NAMES[name], call), []).append(running[name](*call))
                        if call == CALLS[1] and not number:  # before anything is saved
                            times.peak[NAMES[name]] = running[name]("peak")
    return times


def _random_weights(place: Path) -> Path:
    from autograder.toolkit.chat.config import config_to_hf
    from autograder.toolkit.chat.load import write_float32
    from autograder.toolkit.chat.weights import tensors_of

    write_float32(place / "model.safetensors", tensors_of(random_llama(SMOLLM2, 0)))
    (place / "config.json").write_text(json.dumps(config_to_hf(SMOLLM2)), encoding="utf-8")
    return place
