"""The inputs of the checks: the trained model, random models of odd shapes, and token ids, all drawn from one seed.

The visible cases of a student's own run and the hidden ones of grading differ only in the seed.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from autograder.judge.reference import KV, Reference
from autograder.toolkit.model import GPT2Config, load_model, random_model
from autograder.toolkit.model.load import absolute_name
from autograder.toolkit.model.weights import Weights, replace_tensor
from autograder.worker.arguments import Model

VISIBLE_SEED = 0

# No two sizes of a shape are equal, and none is a multiple that would let a wrong reshape pass.
ODD_SHAPES = (
    GPT2Config(n_layer=2, n_head=3, n_embd=21, n_ctx=19, n_vocab=53),
    GPT2Config(n_layer=3, n_head=2, n_embd=22, n_ctx=13, n_vocab=37),
    GPT2Config(n_layer=4, n_head=5, n_embd=30, n_ctx=26, n_vocab=71),
)
LONG_SHAPE = GPT2Config(n_layer=2, n_head=3, n_embd=15, n_ctx=290, n_vocab=41)
# Each exceeds one size of the trained model and GPT-2 small that code may have hard-coded: 12 layers, 512 and 1,024
# positions. Vocabularies stay small: with a large one, one-hot rows by np.eye, which are right, need gigabytes.
DEEP_SHAPE = GPT2Config(n_layer=13, n_head=3, n_embd=15, n_ctx=17, n_vocab=41)
FAR_SHAPE = GPT2Config(n_layer=1, n_head=1, n_embd=40, n_ctx=1100, n_vocab=499)


@dataclass(frozen=True, eq=False)
class JudgeModel:
    """The judge's model: its own copy of the weights, and what the worker needs to make another.

    make: returns the weights. It is called when they are first used, because many models are only passed to the worker.
    """

    spec: dict
    config: GPT2Config
    make: Callable[[], Weights] = field(repr=False)
    patches: dict = field(default_factory=dict, repr=False)

    @cached_property
    def weights(self) -> Weights:
        return self.make()

    @cached_property
    def reference(self) -> Reference:
        return Reference(self.weights)

    def patched(self, tensor: str, array: np.ndarray) -> JudgeModel:
        """The same model with one tensor replaced (Hugging Face name, such as "wpe.weight")."""
        array = np.ascontiguousarray(array, dtype=np.float32)
        patches = {**self.patches, tensor: array}
        return JudgeModel(self.spec, self.config, lambda: replace_tensor(self.weights, tensor, array), patches)

    def with_ids_exchanged(self, one: int, other: int, *texts: list[int]) -> tuple[Any, ...]:
        """The same model with the ids of two tokens exchanged, and the texts with their new ids."""
        wte = self.weights.wte.copy()
        wte[[one, other]] = wte[[other, one]]
        new = {one: other, other: one}
        return self.patched("wte.weight", wte), *([new.get(i, i) for i in ids] for ids in texts)

    def as_argument(self) -> Model:
        """The form of this model in a request to the worker."""
        return Model(self.spec, self.patches)

    @property
    def about(self) -> str:
        """What to call the model in a message: "the trained model", "a 3-layer random model"."""
        return "the trained model" if "name" in self.spec else f"a {self.config.n_layer}-layer random model"

    def part(self, path: str) -> ModelPart:
        """A part of the weights, such as "blocks.1.attn", for a student's function that takes that part."""
        return ModelPart(self, path)


@dataclass(frozen=True)
class ModelPart:
    """A part of a model's weights, by its path of names and numbers."""

    model: JudgeModel
    path: str

    def as_argument(self) -> Model:
        return Model(self.model.spec, self.model.patches, self.path)


_trained: dict[str, JudgeModel] = {}  # their references remember passes from one check to the next


def forget_passes() -> None:
    """Forget random models and remembered passes. Call it when the next inputs will differ."""
    random_judge_model.cache_clear()
    for model in _trained.values():
        model.reference.forget()


def trained_model(name: str | None = None) -> JudgeModel:
    name = absolute_name(name or None)
    if name not in _trained:
        weights = load_model(name)
        _trained[name] = JudgeModel({"name": name}, weights.config, lambda: weights)
    return _trained[name]


@functools.lru_cache(maxsize=64)
def random_judge_model(config: GPT2Config, seed: int) -> JudgeModel:
    """The same one wherever it is asked for again, with the passes that its reference remembers."""
    return JudgeModel({"config": asdict(config), "seed": seed}, config, lambda: random_model(config, seed))


class Cases:
    """The inputs of one check, the same for the same seed."""

    def __init__(self, seed: int = VISIBLE_SEED, label: str = "", trained: str | None = None):
        self._seed = seed
        self._label = label
        self._trained = trained

    def number(self, *label: object) -> int:
        """A number below 2**63 that depends on the seed, the check and the label only."""
        text = "\0".join(map(str, (self._seed, self._label, *label)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    def rng(self, *label: object) -> np.random.Generator:
        return np.random.default_rng(self.number("rng", *label))

    @cached_property
    def trained(self) -> JudgeModel:
        """The trained model, with its 12 layers."""
        return trained_model(self._trained)

    @cached_property
    def odd(self) -> tuple[JudgeModel, ...]:
        """Three small random models whose sizes all differ."""
        return tuple(self.random_model(shape) for shape in ODD_SHAPES)

    @cached_property
    def long(self) -> JudgeModel:
        """A small random model with a context longer than any usual size of a block, a chunk or a buffer."""
        return self.random_model(LONG_SHAPE)

    @cached_property
    def deep(self) -> JudgeModel:
        """A small random model with many layers."""
        return self.random_model(DEEP_SHAPE)

    @cached_property
    def far(self) -> JudgeModel:
        """A random model of one layer, with more positions than the models that people know."""
        return self.random_model(FAR_SHAPE)

    @cached_property
    def beyond(self) -> list[tuple[JudgeModel, list[int]]]:
        """Small random models that exceed a size of well-known models, and ids that reach beyond it."""
        return [(self.deep, self.ids(self.deep, 5)), (self.far, self.ids(self.far, 1030))]

    def past(self, model: JudgeModel, n: int) -> KV:
        """Random keys and values for n positions, of about the size of a model's own, for which nothing is computed."""
        c, rng = model.config, self.rng("past", n)
        arrays = rng.standard_normal((c.n_layer, 2, c.n_head, n, c.head_dim), np.float32)
        return [(keys, values) for keys, values in arrays]

    def random_model(self, config: GPT2Config) -> JudgeModel:
        return random_judge_model(config, self.number("model", *asdict(config).values()))

    def ids(self, model: JudgeModel, n: int, *label: object) -> list[int]:
        """n random token ids of the model's vocabulary."""
        return self.rng("ids", n, *label).integers(0, model.config.n_vocab, n).tolist()
