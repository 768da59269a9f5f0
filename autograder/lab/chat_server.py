"""A failure of stage 5 in a real chat model, before the student has written one: it uses the judge's own Llama."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder.stages.chat_model.llama import KV, LlamaReference
from autograder.toolkit.chat.tokenizer import ChatTokenizer
from autograder.toolkit.chat.weights import LlamaWeights
from autograder.toolkit.chat_lab.server import Row, Server


class _Cache:
    """The keys and values of a prefix. A pass replaces its list, and changes no array, so a clone may share it."""

    def __init__(self, n_layer: int, kv: KV | None = None) -> None:
        self.n_layer, self.kv = n_layer, kv

    def __len__(self) -> int:
        return self.kv[0][0].shape[1] if self.kv else 0

    def clone(self) -> _Cache:
        return _Cache(self.n_layer, self.kv)


def ranking_in_chat(
    weights: LlamaWeights, tokenizer: ChatTokenizer, lookup: Callable[..., Any], explain_miss: Callable[..., str]
) -> list[Row]:
    """The ranking failure, 2,328 + 104 tokens, with a chat model's own tokenizer and template: a table and its rows.

    lookup, explain_miss: the student's. The seconds are of passes in float64.
    """
    reference = LlamaReference(weights)

    def advance(ids: Sequence[int], position: int, _: LlamaWeights, cache: _Cache) -> np.ndarray:
        run = reference.run(ids, cache.kv)
        cache.kv = run.kv
        return run.logits[-1]

    server = Server(weights, tokenizer, advance, _Cache, lookup, explain_miss)
    return server.ranking(tokenizer.render)
