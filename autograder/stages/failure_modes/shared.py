"""What the checks of failure-modes share: results of a kind, shared beginnings, ids, and the template's markers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure
from autograder.judge.student import Student

STAGE = "failure-modes"

# The template's markers, as the notebook's setup cell gives them
START = "<|endoftext|>"
NO_THOUGHT = "[think]"
GENERATION_PROMPT = f"{START}assistant\n{NO_THOUGHT}"


def plain_chat(messages: Sequence[dict[str, str]], add_generation_prompt: bool = False) -> str:
    """The messages as render_chat has to write them."""
    text = "".join(
        f"{START}{m['role']}\n{NO_THOUGHT if m['role'] == 'assistant' else ''}{m['content']}" for m in messages
    )
    return text + GENERATION_PROMPT if add_generation_prompt else text


def text_of(student: Student, name: str, *args: Any, **kwargs: Any) -> str:
    """A call that must give a text."""
    return expect_text(name, student.plain(name, *args, **kwargs))


def expect_text(name: str, value: Any, none: Bug | None = None) -> str:
    """The value, a text; none: what it is called when it is None."""
    if not isinstance(value, str):
        bug = none if value is None else None
        raise Failure(None, f"{name} returned {kind_of(value)} where a text is expected.", bug)
    return value


def kind_of(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal. Of arrays, == would tell of each number, and NaN is not equal to itself."""
    return repr(one) == repr(other)


def common(a: Sequence, b: Sequence) -> int:
    """How much two lists or texts share from the start."""
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n


def own_ids(ids: Sequence[int]) -> list[int]:
    """The ids as number objects of their own, so that `is` tells ids from separate lists apart here as elsewhere."""
    return [int(str(i)) for i in ids]


def draw_ids(cases: Cases, n: int, *label: Any) -> list[int]:
    """n ids under 500, above 256 now and then, none of them twice. The trained model's tokenizer has them all."""
    return cases.rng("ids", *label).permutation(500)[:n].tolist()


def repeated(ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Two short lists that share four of their ids, with each of the ids that differ among the shared ones too."""
    a, b, c = ids[:3]
    return [a, b, a, c, b, c], [a, b, a, c, a, c, b]


def other_ids(cases: Cases, n: int) -> list[int]:
    """n ids from 500 to 999, which the tokenizer has as well, and draw_ids never draws."""
    return [i + 500 for i in draw_ids(cases, n, "other")]


def suspect(answers: dict[str, Any], right: dict[str, Any], suspects: Sequence[tuple[Bug, Callable]]) -> Bug | None:
    """The first bug that predicts every answer, and not the right ones. A suspect maps a case's name to its answer."""
    for bug, predict in suspects:
        predicted = {name: predict(name) for name in answers}
        if predicted != right and predicted == answers:
            return bug
    return None


def decoded(text: str) -> tuple[list | None, str]:
    """The JSON list with which the text begins, or None, and what follows it."""
    text = text.lstrip()
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, text
    return (value, text[end:]) if isinstance(value, list) else (None, text)
