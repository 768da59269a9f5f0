"""The real model for the notebook, and a conversation of eight turns with it."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from autograder.toolkit.chat.load import load_llama
from autograder.toolkit.chat.tokenizer import ChatTokenizer, load_chat_tokenizer
from autograder.toolkit.chat.weights import LlamaWeights
from autograder.toolkit.model.config import ModelError
from autograder.toolkit.play.live import live_table

QUESTIONS = (
    "What is the capital of France?",
    "Which river flows through it?",
    "Name one famous building there.",
    "Who built it?",
    "How tall is it?",
    "What can I eat near it?",
    "Is it open in the evening?",
    "Thank you. Say goodbye in French.",
)
N_NEW = 30
TURN = 35  # tokens by which a prompt grows in a turn, about


class RealModel(NamedTuple):
    weights: LlamaWeights
    tokenizer: ChatTokenizer


def real_model(name: str = "smollm2") -> RealModel | None:
    """The chat model that was fetched; None where it was not, and then it is said what to do."""
    try:
        return RealModel(load_llama(name), load_chat_tokenizer(name))
    except ModelError as error:
        print(f"This part needs the real model, and can be left out. {error}.")
        return None


def eight_turns(chat_class: Any, weights: Any, tokenizer: Any) -> dict[str, list[dict[str, Any]]]:
    """Ask eight questions twice, with and without reuse; the logs of both. A table grows while they answer.

    It says beforehand how long it will take, and afterwards whether the ids were the same.
    """
    _announce(chat_class(weights, tokenizer, reuse=False))
    chats = {name: chat_class(weights, tokenizer, reuse=name != "cold") for name in ("cold", "with reuse")}
    answers: dict[str, list[list[int]]] = {name: [] for name in chats}

    def rows():
        for turn, question in enumerate(QUESTIONS, 1):
            for name, chat in chats.items():
                answers[name].append(chat.send(question, N_NEW))
                yield {"turn": turn, "chat": name, **chat.log[-1]}

    live_table(rows())
    cold, reusing = answers.values()
    print("The answers are the same." if cold == reusing else "The answers differ.")
    return {name: chat.log for name, chat in chats.items()}


def _announce(chat: Any) -> None:
    """Say how long the eight turns will take here, by the time of a first one."""
    begin = time.perf_counter()
    new_ids = chat.send("Hello.", 5)
    row, n_turns = chat.log[-1], len(QUESTIONS)
    token = row["seconds"] / row["prompt"]
    step = (time.perf_counter() - begin - row["seconds"]) / len(new_ids) if new_ids else token
    n_computed = TURN * (n_turns * (n_turns + 1) / 2 + n_turns)  # cold, each turn computes all before it
    seconds = n_computed * token + 2 * n_turns * N_NEW * step
    print(f"Eight questions twice, {N_NEW} tokens an answer: this will take about {max(1, round(seconds))} s here.")
