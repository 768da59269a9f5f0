"""The check of render_chat."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student, StudentError
from autograder.stages.failure_modes.bugs import template as bugs
from autograder.stages.failure_modes.drawn import ODD_CONTENTS, Talk, draw_talk, out_of_turn
from autograder.stages.failure_modes.shared import (
    GENERATION_PROMPT,
    NO_THOUGHT,
    STAGE,
    START,
    common,
    expect_text,
    plain_chat,
)

OUT_OF_TURN = "roles in any order"


class _Rendered:
    """What the student's render_chat makes of each beginning of a conversation, with and without generation prompt."""

    def __init__(self, student: Student, talk: Talk):
        asked = [(n, asking) for n in range(1, len(talk) + 1) for asking in (None, False, True)]
        calls = [((talk[:n],), {} if asking is None else {"add_generation_prompt": asking}) for n, asking in asked]
        texts = [expect_text("render_chat", value) for value in student.each_plain("render_chat", calls)]
        self._texts = dict(zip(asked, texts, strict=True))
        self.n_messages = len(talk)

    def __call__(self, n: int, asking: bool | None = None) -> str:
        return self._texts[n, asking]


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
        where = f"in a conversation of {sum(m['role'] == 'user' for m in talk)} turns, with {kind}"
        try:
            render = _Rendered(student, talk)
        except StudentError as error:
            if error.kind != "raised" or error.unwritten or kind != OUT_OF_TURN:
                raise
            raise Failure(None, f"With {kind}, {error.sentence}", bugs.MESSAGES_ONE_BY_ONE) from None
        whole = len(talk)
        _expect_contents(render(whole, False), talk, where)
        asking, history = render(whole - 1, True), render(whole - 1)
        if history == asking or not asking.startswith(history):
            bug = bugs.GENERATION_PROMPT_ALWAYS if history.endswith(GENERATION_PROMPT) else None
            detail = f"The generation prompt is not simply added to the same text ({where})."
            raise Failure(None, detail, bug)
        if not asking.endswith(GENERATION_PROMPT):
            bug = bugs.THINK_NOT_ASKED if asking.endswith(GENERATION_PROMPT.removesuffix(NO_THOUGHT)) else None
            raise Failure(None, f"The text does not end with GENERATION_PROMPT when it is asked for ({where}).", bug)
        for i in (i for i, m in enumerate(talk) if m["role"] == "assistant"):
            turn = render(i, True)
            full = turn + talk[i]["content"]
            for later in range(i + 1, whole + 1):
                following = render(later, talk[later - 1]["role"] != "assistant")
                if not following.startswith(full):
                    raise _not_a_prefix(turn, full, following, later == i + 1, where)
            if i + 1 < whole and not render(i + 2, False)[len(full) :].startswith(START):
                detail = f"In the history, something stands between an answer and the next message's START ({where})."
                raise Failure(None, detail, bugs.CONTENT_AFTER_END)
        _expect_exactly(render, talk, where)
    _expect_nothing_of_nothing(student)


def _talks(cases: Cases) -> Iterator[tuple[str, Talk]]:
    """Conversations of each kind."""
    for number, kind in enumerate(ODD_CONTENTS):
        n_turns = 12 if kind == "plain contents" else 1 + number % 4
        talk = draw_talk(cases, kind, max(n_turns, 2))
        if number % 2:
            talk = [{"role": "system", "content": "Answer in one line."}, *talk]
        if number % 3 == 2:
            talk = [*talk[:2], {"role": "context", "content": "It rains."}, *talk[2:]]
        yield kind, talk
    yield OUT_OF_TURN, out_of_turn(draw_talk(cases, "plain contents", 3))


def _expect_exactly(render: _Rendered, talk: Talk, where: str) -> None:
    """Nothing but the messages stands in the text, and the generation prompt where it is asked for, and only there."""
    for n in range(1, render.n_messages + 1):
        history, asking, right = render(n, False), render(n, True), plain_chat(talk[:n])
        if history != right:
            bug = bugs.CONTENT_AFTER_END if history.startswith(right) else None
            detail = "The text is not START, role, newline and content for each message, and nothing else"
        elif asking != right + GENERATION_PROMPT:
            bug = bugs.GENERATION_PROMPT_LEFT_OUT if asking == right else None
            last = talk[n - 1]["role"]
            detail = f"Behind a message of the role {last}, the generation prompt is not added when it is asked for"
        elif render(n) != right:
            bug, detail = None, "Without the argument add_generation_prompt, the text is another one than with False"
        else:
            continue
        raise Failure(None, f"{detail} ({where}).", bug)


def _expect_nothing_of_nothing(student: Student) -> None:
    for asking, right in ((False, ""), (True, GENERATION_PROMPT)):
        what = "with" if asking else "without"
        try:
            value = student.plain("render_chat", [], add_generation_prompt=asking)
        except StudentError as error:
            if error.kind != "raised":
                raise
            detail = f"For an empty list of messages, {what} generation prompt, {error.sentence}"
            raise Failure(None, detail, bugs.NO_MESSAGES_REFUSED) from None
        if expect_text("render_chat", value) != right:
            wanted = "the generation prompt alone" if asking else "an empty text"
            raise Failure(None, f"An empty list of messages, {what} generation prompt, does not give {wanted}.")


def _expect_contents(text: str, messages: Talk, where: str) -> None:
    """The roles and contents stand in the text, unchanged and in order."""
    place = 0
    for i, message in enumerate(messages):
        heading, content = f"{START}{message['role']}\n", message["content"]
        begin = text.find(heading, place)
        if begin < 0:
            detail = f"Message {i} (counted from 0) has no START, role and newline in its place ({where})."
            raise Failure(None, detail, _lost_heading(text, messages, i))
        place = begin + len(heading)
        after = text.find(content, place)
        if after < 0 or after > place + len(NO_THOUGHT):
            bug = None
            if "\r" in content and text.find(content.replace("\r", ""), place) >= 0:
                bug = bugs.CARRIAGE_RETURNS_REMOVED
            elif any(text.find(other, place) >= 0 for other in _normalized(content)):
                bug = bugs.CONTENT_NORMALIZED
            elif content.strip() != content and text.find(content.strip(), place) >= 0:
                bug = bugs.CONTENT_STRIPPED
            elif NO_THOUGHT in content or START in content:
                bug = bugs.MARKERS_REMOVED
            else:
                bug = _lost_heading(text, messages, i)
            raise Failure(None, f"The content of message {i} (counted from 0) is not there unchanged ({where}).", bug)
        if after > place and message["role"] != "assistant":
            detail = f"Message {i} (counted from 0) has something between its heading and its content ({where})."
            raise Failure(None, detail, bugs.THINK_FOR_OTHERS)
        place = after + len(content)


def _lost_heading(text: str, messages: Talk, i: int) -> Bug | None:
    """What it looks like that the heading of message i does not come behind the message before."""
    parts = [plain_chat([m]) for m in messages]
    if all(part in text for part in parts) and len(text) == len("".join(parts)):
        return bugs.MESSAGES_ONE_BY_ONE
    if not text.startswith(parts[0]) or text.count(START) >= "".join(parts).count(START):
        return None
    empty = any(not m["content"].strip() for m in messages[: i + 1])
    return bugs.EMPTY_MESSAGE_DROPPED if empty else bugs.MESSAGES_ONE_BY_ONE


def _normalized(content: str) -> set[str]:
    """The content with its letters and accents in one of Unicode's forms, where that is another text."""
    forms = {unicodedata.normalize(form, content) for form in ("NFC", "NFKC")}
    return forms - {content}


def _not_a_prefix(turn: str, full: str, following: str, just_answered: bool, where: str) -> Failure:
    """The failure of a prompt that does not continue the one before, with its likely cause."""
    shared, answer, without = common(full, following), full[len(turn) :], turn.removesuffix(NO_THOUGHT)
    bug = None
    if answer.startswith(NO_THOUGHT) and following.startswith(without + answer):
        bug = bugs.THINK_NOT_DOUBLED
    elif answer and following.startswith(without + answer + NO_THOUGHT):
        bug = bugs.THINK_AFTER_ANSWER
    elif len(without) <= shared < len(turn):
        bug = bugs.THINK_DROPPED if just_answered else bugs.THINK_ONLY_LATEST
    detail = f"{shared:,} of the {len(full):,} characters of a turn's prompt and answer begin a later prompt ({where})."
    return Failure(None, detail, bug)
