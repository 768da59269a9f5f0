"""Small random Llamas to run checks on."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property

import numpy as np

from autograder.judge.cases import Cases, JudgeModel
from autograder.stages.chat_model.llama import LlamaReference
from autograder.toolkit.chat.config import LlamaConfig
from autograder.toolkit.chat.random_weights import random_llama
from autograder.toolkit.chat.weights import replace_tensor

# By n_head / n_kv_head; no two of a shape's figures agree, and each has a theta and an eps of its own.
SHAPES = (
    LlamaConfig(2, 3, 3, n_embd=18, n_inner=25, n_ctx=23, n_vocab=41, rope_theta=300.0, norm_eps=0.3),
    LlamaConfig(3, 4, 2, n_embd=40, n_inner=54, n_ctx=19, n_vocab=61, rope_theta=5000.0, norm_eps=1e-3, tied=False),
    LlamaConfig(5, 6, 2, n_embd=48, n_inner=70, n_ctx=26, n_vocab=53, rope_theta=80.0, norm_eps=1e-5),
)
# One layer more than SmolLM2-135M has, whose 30 code may hold a copy of; more heads of keys; and ids past 8 bits.
DEEP_SHAPE = LlamaConfig(31, 10, 5, n_embd=40, n_inner=33, n_ctx=17, n_vocab=301, rope_theta=400.0, norm_eps=1e-4)


class JudgeLlama(JudgeModel):
    """A JudgeModel of the Llama architecture."""

    @cached_property
    def reference(self) -> LlamaReference:
        return LlamaReference(self.weights)

    def patched(self, tensor: str, array: np.ndarray) -> JudgeLlama:
        array = np.ascontiguousarray(array, dtype=np.float32)
        patches = {**self.patches, tensor: array}
        return JudgeLlama(self.spec, self.config, lambda: replace_tensor(self.weights, tensor, array), patches)


def random_judge_llama(config: LlamaConfig, seed: int) -> JudgeLlama:
    return JudgeLlama({"llama": asdict(config), "seed": seed}, config, lambda: random_llama(config, seed))


def llamas(cases: Cases) -> list[JudgeLlama]:
    """Three, with 1, 2 and 3 heads of queries to each of keys."""
    return [_llama(cases, config) for config in SHAPES]


def deep_llama(cases: Cases) -> JudgeLlama:
    """One of many layers."""
    return _llama(cases, DEEP_SHAPE)


def _llama(cases: Cases, config: LlamaConfig) -> JudgeLlama:
    return random_judge_llama(config, cases.number("llama", *asdict(config).values()))
