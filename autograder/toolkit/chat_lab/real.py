"""The real model for the notebook, and a conversation of eight turns with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from autograder.toolkit.chart_style import Chart
from autograder.toolkit.charts import line_chart
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


def eight_turns(chats: Mapping[str, Any]) -> Chart:
    """The time to the first token of each turn, by chat; a table grows while they answer. The ids must be the same."""
    print(f"Eight questions, {N_NEW} tokens for each answer, {len(chats)} times: about a minute on a laptop.")
    answers: dict[str, list[list[int]]] = {name: [] for name in chats}

    def rows():
        for turn, question in enumerate(QUESTIONS, 1):
            for name, chat in chats.items():
                answers[name].append(chat.send(question, N_NEW))
                yield {"turn": turn, "chat": name, **chat.log[-1]}

    live_table(rows(), "{computed} tokens were computed in all.")
    first, *others = answers.values()
    print("The answers are the same." if all(other == first for other in others) else "The answers differ.")
    turns = list(range(1, len(QUESTIONS) + 1))
    return line_chart(
        {name: (turns, [row["seconds"] for row in chat.log]) for name, chat in chats.items()},
        x_label="turn",
        y_label="time to the first token",
        y_unit="s",
        title="A conversation of eight turns",
        model="SmolLM2-135M",
    )
