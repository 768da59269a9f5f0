"""The check of render_chat."""

from __future__ import annotations

from collections.abc import Iterator

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student, StudentError
from autograder.stages.failure_modes import bugs
from autograder.stages.failure_modes.drawn import ODD_CONTENTS, Talk, draw_talk, out_of_turn
from autograder.stages.failure_modes.shared import (
    GENERATION_PROMPT,
    NO_THOUGHT,
    STAGE,
    common,
    expect_string,
    plain_chat,
)


def _never(message: dict[str, str]) -> bool:
    return False


def _only_latest(messages: Talk, asking: bool) -> str:
    return plain_chat(messages, asking, lambda m: m is messages[-1] and m["role"] == "assistant")


VARIANTS = (
    (bugs.THINK_DROPPED, lambda messages, asking: plain_chat(messages, asking, _never)),
    (bugs.THINK_ONLY_LATEST, _only_latest),
    (
        bugs.THINK_NOT_ASKED,
        lambda m, asking: plain_chat(m, asking, _never, prompt=GENERATION_PROMPT.removesuffix(NO_THOUGHT)),
    ),
    (bugs.GENERATION_PROMPT_ALWAYS, lambda messages, asking: plain_chat(messages, True)),
    (bugs.CONTENT_STRIPPED, lambda messages, asking: plain_chat(messages, asking, content=str.strip)),
    (bugs.HISTORY_ADDS_AN_END, lambda messages, asking: plain_chat(messages, asking, content="{}\n".format)),
)


@check(
    stage=STAGE,
    id="turn-is-a-prefix",
    points=2,
    title="Each turn's prompt and answer begin the next turn's prompt",
    watches=("render_chat",),
)
def turn_is_a_prefix(student: Student, cases: Cases) -> None:
    """The prompt of turn n and the answer are the beginning of turn n + 1's prompt, with all contents unchanged."""
    for kind, talk in _talks(cases):
        where = f"in a conversation of {len(talk)} messages, with {kind}"
        asked = [(n, asking) for n in range(len(talk) + 1) for asking in (None, False, True)]
        named = [{} if asking is None else {"add_generation_prompt": asking} for _, asking in asked]
        calls = [((talk[:n],), kwargs) for (n, _), kwargs in zip(asked, named, strict=True)]
        try:
            values = student.each_plain("render_chat", calls)
        except StudentError as error:
            if error.kind != "raised" or error.stub:
                raise
            raise Failure(None, f"{error.sentence[:-1]} ({where}, or at the beginning of one).") from None
        texts = {key: expect_string("render_chat", value) for key, value in zip(asked, values, strict=True)}
        if texts == {(n, asking): plain_chat(talk[:n], bool(asking)) for n, asking in asked}:
            continue
        named_as = (bug for bug, render in VARIANTS if all(texts[n, a] == render(talk[:n], bool(a)) for n, a in asked))
        raise Failure(None, f"{_difference(talk, texts)} ({where}).", next(named_as, None))


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


def _difference(talk: Talk, texts: dict[tuple[int, bool | None], str]) -> str:
    """What does not hold: that a prompt and its answer begin the later ones, or else what a text consists of."""
    for i, message in enumerate(talk):
        full = texts[i, True] + message["content"]
        for later in range(i + 1, len(talk) + 1 if message["role"] == "assistant" else 0):
            if not texts[later, False].startswith(full):
                shared = common(full, texts[later, False])
                return f"{shared:,} of the {len(full):,} characters of a turn's prompt and answer begin a later prompt"
    n, asking = next((n, a) for (n, a), text in texts.items() if text != plain_chat(talk[:n], bool(a)))
    what = {None: "without the argument add_generation_prompt", True: "with", False: "without"}[asking]
    what = what if asking is None else f"{what} the generation prompt"
    return f"{n} messages {what} are not START, role, newline and content for each and nothing else"
