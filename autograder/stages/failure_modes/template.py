"""The check of render_chat."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autograder.judge.answers import expect_string
from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.compare import common
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.student import Student, StudentError
from autograder.stages.failure_modes import bugs
from autograder.stages.failure_modes.shared import (
    ODD_CONTENTS,
    START,
    Talk,
    draw_talk,
    out_of_turn,
    plain_chat,
)

Render = Callable[[Talk, bool], str]  # of messages, and whether the generation prompt is asked for


def _never(message: dict[str, str]) -> bool:
    return False


def _only_latest(talk: Talk, asking: bool) -> str:
    return plain_chat(talk, asking, lambda m: m is talk[-1] and m["role"] == "assistant")


VARIANTS: tuple[tuple[Bug, Render], ...] = (
    (bugs.THINK_DROPPED, lambda talk, asking: plain_chat(talk, asking, _never)),
    (bugs.THINK_ONLY_LATEST, _only_latest),
    (bugs.THINK_NOT_ASKED, lambda talk, asking: plain_chat(talk, asking, _never, prompt=f"{START}assistant\n")),
    (bugs.CONTENT_STRIPPED, lambda talk, asking: plain_chat(talk, asking, content=str.strip)),
    (bugs.HISTORY_ADDS_AN_END, lambda talk, asking: plain_chat(talk, asking, content="{}\n".format)),
)
NAMED = ({}, {"add_generation_prompt": False}, {"add_generation_prompt": True})  # each beginning is asked for so


def _beginnings(talk: Talk, render: Render) -> list[str]:
    return [render(talk[:n], kwargs.get("add_generation_prompt", False)) for n, kwargs in _asked(talk)]


def _asked(talk: Talk) -> list[tuple[int, dict[str, bool]]]:
    return [(n, kwargs) for n in range(len(talk) + 1) for kwargs in NAMED]


@check("Each turn's prompt and answer begin the next turn's prompt", points=2, watches=("render_chat",))
def turn_is_a_prefix(student: Student, cases: Cases) -> None:
    """The prompt of turn n and the answer are the beginning of turn n + 1's prompt, with all contents unchanged."""
    for kind, talk in _talks(cases):
        where = f"in a conversation of {count(len(talk), 'message')}, with {kind}"
        try:
            values = student.each_plain("render_chat", [((talk[:n],), kwargs) for n, kwargs in _asked(talk)])
        except StudentError as error:
            raise Failure(f"{error.sentence[:-1]} ({where}, or at the beginning of one).") from None
        texts, right = [expect_string("render_chat", value) for value in values], _beginnings(talk, plain_chat)
        if texts != right:
            bug = next((bug for bug, render in VARIANTS if texts == _beginnings(talk, render)), None)
            raise Failure(f"{_difference(talk, texts, right)} ({where}).", bug)


def _talks(cases: Cases) -> Iterator[tuple[str, Talk]]:
    """Conversations of each kind."""
    for number, kind in enumerate(ODD_CONTENTS):
        talk = draw_talk(cases, kind, 12 if number == 0 else max(1 + number % 4, 2))
        if number % 2:
            talk = [{"role": "system", "content": "Answer in one line."}, *talk]
        if number % 3 == 2:
            talk = [*talk[:2], {"role": "context", "content": "It rains."}, *talk[2:]]
        yield kind, talk
    yield "roles in any order", out_of_turn(draw_talk(cases, "plain contents", 3))


def _difference(talk: Talk, texts: list[str], right: list[str]) -> str:
    """What does not hold: that a prompt and its answer begin the later ones, or else what a text consists of."""
    without, asking = texts[1 :: len(NAMED)], texts[2 :: len(NAMED)]
    for i, message in enumerate(talk):
        full = asking[i] + message["content"]
        for later in without[i + 1 :] if message["role"] == "assistant" else ():
            if not later.startswith(full):
                shared = common(full, later)
                return f"{shared:,} of the {len(full):,} characters of a turn's prompt and answer begin a later prompt"
    wrong = next(i for i, (text, wanted) in enumerate(zip(texts, right, strict=True)) if text != wanted)
    n, what = divmod(wrong, len(NAMED))
    what = ("without the argument add_generation_prompt", "without the generation prompt", "with it")[what]
    return (
        f"The string of {count(n, 'message')} {what} is not START, role, newline and content for each and nothing else"
    )
