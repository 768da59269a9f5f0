"""The check of render_chat."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student, StudentError
from autograder.stages.failure_modes import bugs
from autograder.stages.failure_modes.drawn import ODD_CONTENTS, Talk, draw_talk, out_of_turn
from autograder.stages.failure_modes.shared import STAGE, START, common, expect_string, plain_chat


def _never(message: dict[str, str]) -> bool:
    return False


VARIANTS: tuple[tuple[Bug, Callable[[Talk, bool], str]], ...] = (
    (bugs.THINK_DROPPED, lambda talk, asking: plain_chat(talk, asking, _never)),
    (
        bugs.THINK_ONLY_LATEST,
        lambda talk, asking: plain_chat(talk, asking, lambda m: m is talk[-1] and m["role"] == "assistant"),
    ),
    (bugs.THINK_NOT_ASKED, lambda talk, asking: plain_chat(talk, asking, _never, prompt=f"{START}assistant\n")),
    (bugs.CONTENT_STRIPPED, lambda talk, asking: plain_chat(talk, asking, content=str.strip)),
    (bugs.HISTORY_ADDS_AN_END, lambda talk, asking: plain_chat(talk, asking, content="{}\n".format)),
)


NAMED = ({}, {"add_generation_prompt": False}, {"add_generation_prompt": True})


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
        asked = [(n, kwargs) for n in range(len(talk) + 1) for kwargs in NAMED]
        try:
            values = student.each_plain("render_chat", [((talk[:n],), kwargs) for n, kwargs in asked])
        except StudentError as error:
            if error.kind != "raised" or error.stub:
                raise
            raise Failure(None, f"{error.sentence[:-1]} ({where}, or at the beginning of one).") from None
        texts = [expect_string("render_chat", value) for value in values]

        def all_by(render: Callable[[Talk, bool], str], talk: Talk = talk, asked: list = asked) -> list[str]:
            return [render(talk[:n], bool(kwargs.get("add_generation_prompt"))) for n, kwargs in asked]

        if texts != all_by(plain_chat):
            bug = next((bug for bug, render in VARIANTS if texts == all_by(render)), None)
            raise Failure(None, f"{_difference(talk, texts, all_by(plain_chat))} ({where}).", bug)


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
    return f"{n} messages {what} are not START, role, newline and content for each and nothing else"
