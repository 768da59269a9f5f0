"""The check of what build_prompt puts where. What it makes of the tools is in tools.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student
from autograder.judge.words import count
from autograder.stages.failure_modes.bugs import prompt as bugs
from autograder.stages.failure_modes.bugs.template import THINK_NOT_ASKED
from autograder.stages.failure_modes.drawn import WORDS, Talk, draw_talk, draw_tools, words_of
from autograder.stages.failure_modes.shared import (
    GENERATION_PROMPT,
    NO_THOUGHT,
    STAGE,
    START,
    common,
    decoded,
    expect_text,
    plain_chat,
    text_of,
)

Options = dict[str, Any]

PARTS = "A prompt holds the system text, the tools, all messages, the time and the notes, each unchanged."
PROPERTY = (
    "A prompt is what render_chat makes of the system's message, the conversation as it is, and one context message."
)


@check(
    stage=STAGE,
    id="volatile-last",
    points=2,
    title="What changes from call to call comes after what stays",
    watches=("build_prompt",),
)
def volatile_last(student: Student, cases: Cases) -> None:
    """With another time or other notes, and in the next turn, everything up to the last message is still shared."""
    rng = cases.rng("volatile")
    words = [WORDS[i] + str(i * 7 + 100) for i in rng.permutation(len(WORDS))]
    system, tools = f"Keep to the {words[0]}.\nSpeak of the {words[1]} first. ", draw_tools(cases)
    talk = draw_talk(cases, "plain contents", 3)[:-1]
    times = [f"It is {rng.integers(10, 24)}:{m} o'clock" for m in (11, 12)]
    notes = [f"{w} is new" for w in sorted(words[2:6])[::-1]]
    many = [f"{words[i % 6]} is number {n}" for i, n in enumerate(rng.permutation(range(10, 99))[:12])]
    variants: dict[str, Options] = {
        "neither time nor notes": {},
        "a time": {"now": times[0]},
        "another time": {"now": times[1]},
        "two notes": {"notes": notes[:2]},
        "one other note": {"notes": notes[2:3]},
        "a time and a note": {"now": times[0], "notes": notes[1:2]},
        "another time and two other notes": {"now": times[1], "notes": notes[2:]},
        "a time and 12 notes": {"now": times[0], "notes": many},
        "the same note twice": {"notes": [notes[0], notes[1], notes[0]]},
    }

    def build(messages: Talk, **options: Any) -> str:
        return text_of(student, "build_prompt", system, tools, messages, **options)

    if build(talk) != build(talk):
        raise Failure(None, "Two calls with equal arguments gave two prompts.", bugs.PROMPT_READS_CLOCK)
    prompts = {name: build(talk, **options) for name, options in variants.items()}
    for name, prompt in prompts.items():
        place = _expect_parts(prompt, system, tools, talk, variants[name], f"with {name}")
        if "now" not in variants[name] and "None" in prompt[place:]:
            raise Failure(None, f"The prompt holds the word None (with {name}).", bugs.NONE_IN_PROMPT)
    with _template_first(student, talk):
        for name, prompt in prompts.items():
            _expect_end(prompt, f"with {name}")
        _expect_sharing(build, system, tools, talk, variants)
        long, options = _long_talk(cases), {"now": times[0], "notes": notes[:2]}
        where = f"with {len(long)} messages, a time and two notes"
        longest = build(long, **options)
        for name, prompt in prompts.items():
            _expect_messages(student, prompt, system, talk, variants[name], f"with {name}")
        _expect_messages(student, longest, system, long, options, where)


@contextmanager
def _template_first(student: Student, talk: Talk) -> Iterator[None]:
    """A failure in this context names no bug of build_prompt where the student's render_chat writes another text."""
    try:
        yield
    except Failure as failure:
        if _template_holds(student, talk):
            raise
        detail = f"{failure.detail} render_chat itself does not write these messages as it should: look there first."
        raise Failure(failure.prop, detail) from None


def _expect_end(prompt: str, where: str) -> None:
    if not prompt.endswith(GENERATION_PROMPT):
        without_block = prompt.endswith(GENERATION_PROMPT.removesuffix(NO_THOUGHT))
        bug = THINK_NOT_ASKED if without_block else bugs.NO_GENERATION_PROMPT
        raise Failure(None, f"The prompt does not end with GENERATION_PROMPT ({where}).", bug)
    if prompt.endswith(GENERATION_PROMPT * 2):
        raise Failure(None, f"The prompt ends with GENERATION_PROMPT twice ({where}).", bugs.GENERATION_PROMPT_TWICE)


def _long_talk(cases: Cases) -> Talk:
    """Of 45 messages, the last a question: blanks at the ends, a question twice, an empty answer, each of the roles."""
    talk = draw_talk(cases, "blanks at the ends of contents", 22)[:-1]
    told = [f"{m['content']} ({i})" if i % 3 else f" ({i}) {m['content']}\n" for i, m in enumerate(talk)]
    told[8], told[11] = told[4], ""
    long = [{**message, "content": content} for message, content in zip(talk, told, strict=True)]
    others = [{"role": role, "content": f" Of the {role}.\n"} for role in ("system", "context")]
    return [*long[:21], *others, *long[21:]]


def _expect_sharing(
    build: Callable[..., str],
    system: str,
    tools: Any,
    talk: Talk,
    variants: dict[str, Options],
) -> None:
    """With another time, other notes or a turn more, all is shared up to the last message."""
    with_time = variants["a time"]
    for n_messages in (5, 3, 1):
        messages = talk[:n_messages]
        base = build(messages, **with_time)
        where = f"with {count(n_messages, 'message')} and a time"
        need = _expect_parts(base, system, tools, messages, with_time, where)
        others = {name: build(messages, **options) for name, options in variants.items()}
        if n_messages < len(talk):
            later = {"now": variants["another time"]["now"], "notes": variants["two notes"]["notes"][:1]}
            others["another time, a turn later"] = build(talk[: n_messages + 2], **later)
        for name, prompt in others.items():
            shared = common(base, prompt)
            if shared >= need:
                continue
            bug = _volatile_bug(base, shared, system, messages[0]["content"], variants.get(name))
            detail = (
                f"Of {need:,} characters up to the last of {count(n_messages, 'message')}, a prompt with a time shares "
                f"{shared:,} with the one with {name}."
            )
            raise Failure(None, detail, bug)


def _template_holds(student: Student, talk: Talk) -> bool:
    """Whether the student's render_chat only ever adds to the text, and writes what is no answer as it should.

    An answer without its think block costs another check, and misleads none here.
    """
    unanswered = [{"role": role, "content": role} for role in ("system", "user", "context")]
    for asking in (False, True):
        if text_of(student, "render_chat", unanswered, add_generation_prompt=asking) != plain_chat(unanswered, asking):
            return False
    texts = [text_of(student, "render_chat", talk[:n]) for n in range(1, len(talk) + 1)]
    context = [{"role": "context", "content": "late"}]
    after = [text_of(student, "render_chat", [*talk[:n], *context]) for n in range(1, len(talk) + 1)]
    return all(t.startswith(s) for s, t in pairwise(texts)) and all(
        t.startswith(s) for s, t in zip(texts, after, strict=True)
    )


def _volatile_bug(base: str, shared: int, system: str, first: str, options: Options | None) -> Bug:
    """By the place of the first difference, what stands too early. options: those of the prompt compared with base."""
    if shared < base.find(system) + len(system):
        return bugs.CHANGES_BEFORE_SYSTEM
    if shared > base.find(first):
        return bugs.CHANGES_BEFORE_LAST
    only_notes = options is not None and "now" not in options and "notes" in options
    return bugs.NOTES_BEFORE_MESSAGES if only_notes else bugs.TIME_BEFORE_MESSAGES


def _expect_parts(prompt: str, system: str, tools: Any, messages: Talk, options: Options, where: str) -> int:
    """All parts stand in the prompt, the lasting ones in order; gives the place where the last message ends."""
    place = prompt.find(system)
    if place < 0:
        bug = bugs.MESSAGE_STRIPPED if system.strip() in prompt else None
        raise Failure(PARTS, f"The system text is not in the prompt, or not unchanged ({where}).", bug)
    missing = [word for word in words_of(tools) if word not in prompt]
    if missing:
        lacking = f"{count(len(missing), 'text')} of the tools {'is' if len(missing) == 1 else 'are'} not in the prompt"
        raise Failure(PARTS, f"{lacking} ({where}).", bugs.TOOLS_LEFT_OUT)
    place += len(system)
    for i, message in enumerate(messages):
        place = prompt.find(message["content"], place)
        if place < 0:
            detail = f"Message {i} of {len(messages)} (counted from 0) is not in the prompt, or not in its order"
            raise Failure(PARTS, f"{detail} ({where}).", _lost_message(prompt, messages))
        place += len(message["content"])
    if "now" in options and options["now"] not in prompt:
        raise Failure(PARTS, f"The time is not in the prompt ({where}).", bugs.TIME_LEFT_OUT)
    told = options.get("notes", ())
    if any(prompt.count(note) < told.count(note) for note in told):
        raise Failure(PARTS, f"A note is not in the prompt ({where}).", bugs.NOTES_LEFT_OUT)
    changing = _changing(options)
    lines = iter(prompt[place:].splitlines())
    if all(text in prompt[place:] for text in changing) and not all(
        any(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", line) for line in lines) for text in changing
    ):
        detail = f"Time and notes do not stand on lines of their own, in order ({where})."
        raise Failure(PARTS, detail, bugs.CONTEXT_LINES)
    return place


def _changing(options: Options) -> list[str]:
    """The time and the notes, in the order of their lines."""
    return [text for text in (options.get("now"), *options.get("notes", ())) if text is not None]


def _lost_message(prompt: str, messages: Sequence[dict[str, str]]) -> Bug | None:
    """What it looks like that a message's content is not there as it is."""
    there = [m["content"] in prompt for m in messages]
    if all(there):
        return None
    if {m["role"] for m, kept in zip(messages, there, strict=True) if not kept} <= {"system", "context"}:
        return bugs.MESSAGES_REWRITTEN
    if all(m["content"].strip() in prompt for m in messages):
        return bugs.MESSAGE_STRIPPED
    kept = there.index(True) if True in there else 0
    return bugs.MESSAGES_WINDOW if kept and all(there[kept:]) else None


def _expect_messages(student: Student, prompt: str, system: str, talk: Talk, options: Options, where: str) -> None:
    """The prompt is what render_chat makes of the parts: the system's message, the conversation, and the context."""
    if START not in prompt.removesuffix(GENERATION_PROMPT):
        raise Failure(PROPERTY, f"There is no START before the generation prompt ({where}).", bugs.PARTS_NOT_RENDERED)
    first = re.match(re.escape(START) + r"(.*)\n", prompt)
    if first is None or not prompt.startswith(f"{START}system\n"):
        bug = bugs.SYSTEM_ROLE if first is not None else None
        raise Failure(PROPERTY, f"The prompt does not begin with START, the role system and a newline ({where}).", bug)
    end = prompt.find(START, 1)
    content = prompt[:end].removeprefix(_heading(student, "system"))
    if content.strip() == system.strip():
        raise Failure(PROPERTY, f"The tools are not in the system message ({where}).", bugs.TOOLS_BEHIND_MESSAGES)
    if not content.startswith(f"{system}\n"):
        bug = bugs.TOOLS_BEFORE_SYSTEM if content.rstrip().endswith(system.rstrip()) else None
        detail = f"The system message does not begin with the system text and a newline ({where})."
        raise Failure(PROPERTY, detail, bug)
    value, more = decoded(content.removeprefix(system))
    if value is not None and more.strip():
        raise Failure(PROPERTY, f"Something stands behind the tools in the system message ({where}).")
    rest = _behind_messages(student, prompt, content, talk)
    if rest is None:
        detail = f"The messages are not there as render_chat writes them, behind the system message ({where})."
        raise Failure(PROPERTY, detail, _rewritten(student, prompt, content, talk))
    context = rest.removesuffix(GENERATION_PROMPT)
    changing = _changing(options)
    if not changing:
        if context.strip():
            raise Failure(PROPERTY, f"The prompt has a message behind the conversation ({where}).", bugs.EMPTY_CONTEXT)
        return
    if not context.startswith(_heading(student, "context")):
        bug = bugs.CONTEXT_ROLE if context.startswith(START) else bugs.CONTEXT_IN_MESSAGE
        detail = f"Behind the messages, time and notes have no message of the role context ({where})."
        raise Failure(PROPERTY, detail, bug)
    if context.find(START, 1) > 0:
        detail = f"There are {context.count(START)} messages behind the conversation, and one is right ({where})."
        raise Failure(PROPERTY, detail, bugs.CONTEXT_SPLIT)


def _heading(student: Student, role: str) -> str:
    """What render_chat writes before the content of a message: START, role and newline, or more where it has a bug."""
    right = f"{START}{role}\n"
    text = text_of(student, "render_chat", [{"role": role, "content": "X"}])
    return text[: text.find("X")] if text.startswith(right) and "X" in text else right


def _behind_messages(student: Student, prompt: str, content: str, talk: Talk) -> str | None:
    """What follows the system's message and the conversation; None where these are not what render_chat writes.

    A render_chat that adds something of its own to each message costs its own check and not this one.
    """
    for blanks in range(2):  # a last one may be of the template
        if blanks and not content[-blanks:].isspace():
            break
        messages = [{"role": "system", "content": content[: len(content) - blanks]}, *talk]
        front = text_of(student, "render_chat", messages)
        if prompt.startswith(front.removesuffix(GENERATION_PROMPT)):
            return prompt[len(front.removesuffix(GENERATION_PROMPT)) :]
    return None


def _rewritten(student: Student, prompt: str, content: str, talk: Talk) -> Bug | None:
    """What the messages look like that are not there as they are."""
    first = {"role": "system", "content": content}

    def begins_with(messages: Talk) -> bool:
        text = expect_text("render_chat", student.plain("render_chat", [first, *messages]))
        return prompt.startswith(text.removesuffix(GENERATION_PROMPT))

    if begins_with([{**m, "content": m["content"].strip()} for m in talk]):
        return bugs.MESSAGE_STRIPPED
    if any(begins_with(talk[n:]) for n in range(1, len(talk))):
        return bugs.MESSAGES_WINDOW
    return bugs.MESSAGES_REWRITTEN
