"""The checks of build_prompt: what it puts where, and the tools as JSON in one order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student
from autograder.judge.words import count
from autograder.stages.failure_modes import bugs
from autograder.stages.failure_modes.drawn import WORDS, Talk, draw_talk, draw_tools
from autograder.stages.failure_modes.shared import (
    GENERATION_PROMPT,
    STAGE,
    START,
    common,
    plain_chat,
    string_of,
)

Options = dict[str, Any]

PROPERTY = (
    "A prompt is what render_chat makes of the system's message, the conversation as it is, and one context message."
)
TEMPLATE_FIRST = "render_chat itself does not write messages as it should: look there first."
A_CONTENT = "what-is-told"  # to find where contents stand


@check(
    stage=STAGE,
    id="volatile-last",
    points=2,
    title="What changes from call to call comes after what stays",
    watches=("build_prompt",),
)
def volatile_last(student: Student, cases: Cases) -> None:
    """With another time or other notes, and in the next turn, everything up to the last message is still shared."""
    try:
        _expect_order(student, cases)
    except Failure as failure:
        messages = [{"role": role, "content": role} for role in ("system", "user", "context")]
        if all(
            string_of(student, "render_chat", messages, add_generation_prompt=asking) == plain_chat(messages, asking)
            for asking in (False, True)
        ):
            raise
        raise Failure(failure.prop, f"{failure.detail} {TEMPLATE_FIRST}") from None


def _expect_order(student: Student, cases: Cases) -> None:
    rng = cases.rng("volatile")
    words = [WORDS[i] + str(i * 7 + 100) for i in rng.permutation(len(WORDS))]
    system, tools = f"Keep to the {words[0]}.\nSpeak of the {words[1]} first. ", draw_tools(cases)
    talk = draw_talk(cases, "plain contents", 3)[:-1]
    times = [f"It is {rng.integers(10, 24)}:{m} o'clock" for m in (11, 12)]
    notes = [f"{w} is new" for w in sorted(words[2:6])[::-1]]
    many = [f"{words[i % 6]} is number {n}" for i, n in enumerate(rng.permutation(range(10, 99))[:12])]
    two_notes: Options = {"now": times[0], "notes": notes[:2]}
    variants: list[tuple[str, Talk, Options]] = [
        ("neither time nor notes", talk, {}),
        ("a time", talk, {"now": times[0]}),
        ("another time", talk, {"now": times[1]}),
        ("two notes", talk, {"notes": notes[:2]}),
        ("one other note", talk, {"notes": notes[2:3]}),
        ("a time and 12 notes", talk, {"now": times[0], "notes": many}),
        ("the same note twice", talk, {"notes": [notes[0], notes[1], notes[0]]}),
        *((f"{count(n, 'message')}, a time and two notes", talk[:n], two_notes) for n in (1, 3)),
        ("45 messages, a time and two notes", _long_talk(cases), two_notes),
        ("45 messages", _long_talk(cases), {}),
    ]

    def build(messages: Talk, options: Options) -> str:
        return string_of(student, "build_prompt", system, tools, messages, **options)

    if build(talk, {}) != build(talk, {}):
        raise Failure(None, "Two calls with equal arguments gave two prompts.", bugs.PROMPT_READS_CLOCK)
    prompts = [(f" (with {name})", messages, options, build(messages, options)) for name, messages, options in variants]
    contents = set()
    for where, messages, options, prompt in prompts:
        changing = [text for text in (options.get("now"), *options.get("notes", ())) if text is not None]
        if early := _stands_early(prompt, changing, system, messages):
            raise Failure(None, f"Time or notes stand before what does not change{where}.", early)
        if not prompt.endswith(GENERATION_PROMPT):
            detail = f"The prompt does not end with GENERATION_PROMPT{where}."
            raise Failure(None, detail, bugs.NO_GENERATION_PROMPT)
        content, context = _contents(student, prompt, messages, bool(changing), where)
        _expect_system_and_tools(content, system, tools, where)
        _expect_lines(context, changing, where)
        contents.add(content)
    if len(contents) > 1:
        raise Failure(None, "The system's message is another one when time, notes or messages are others.")


def _stands_early(prompt: str, changing: list[str], system: str, messages: Talk) -> Bug | None:
    """What the place of the first of the texts that change is called, where it is wrong."""
    place = min((prompt.find(text) for text in changing if text in prompt), default=len(prompt))
    borders = (
        (system, bugs.CHANGES_BEFORE_SYSTEM),
        (messages[0]["content"], bugs.CHANGES_BEFORE_MESSAGES),
        (messages[-1]["content"], bugs.CHANGES_BEFORE_LAST),
    )
    return next((bug for text, bug in borders if place < prompt.find(text)), None)


def _contents(student: Student, prompt: str, talk: Talk, with_context: bool, where: str) -> tuple[str, str]:
    """The contents of the system's message and of the context (empty without one), between what render_chat writes.

    By the student's own render_chat: what it adds to each message costs its own check and not this one.
    """
    system, context = ({"role": role, "content": A_CONTENT} for role in ("system", "context"))
    messages = [system, *talk, *[context] * with_context]
    frame = string_of(student, "render_chat", messages, add_generation_prompt=True).split(A_CONTENT)
    match = re.fullmatch("(.*)".join(map(re.escape, frame)), prompt, re.DOTALL)
    in_place = match is not None and len(match.groups()) == 1 + with_context  # fewer where render_chat drops messages
    if in_place and not any(START in content for content in match.groups()):
        found = match.groups()
        return found[0], found[1] if with_context else ""
    conversation = string_of(student, "render_chat", messages[: len(talk) + 1]).partition(A_CONTENT)[2]
    if not prompt.startswith(frame[0]):
        detail = "The prompt does not begin with START, the role system and a newline"
    elif conversation not in prompt:
        detail = "The messages are not there, all of them and unchanged, as render_chat writes them"
    elif with_context:
        detail = "The system's message, the messages, and one message of the role context are not all that is there"
    else:
        detail = "The system's message and the messages are not all that is there, and there is no time and no note"
    raise Failure(PROPERTY, f"{detail}{where}.")


def _expect_system_and_tools(content: str, system: str, tools: Any, where: str) -> None:
    if not content.startswith(f"{system}\n"):
        raise Failure(PROPERTY, f"The system's message does not begin with the system text and a newline{where}.")
    after = content.removeprefix(f"{system}\n")
    missing = [word for word in re.findall(r"[a-z]+\d+", json.dumps(tools, ensure_ascii=False)) if word not in after]
    if missing:
        detail = f"{count(len(missing), 'word')} of the tools not found after the system text, in its message{where}."
        raise Failure(PROPERTY, detail)
    value, more = _json_list(after)
    if value is not None and more.strip():
        raise Failure(PROPERTY, f"Something stands after the tools in the system's message{where}.")


def _expect_lines(context: str, changing: list[str], where: str) -> None:
    """Each text stands on a line of its own, in order; there may be words around it and lines between."""
    lines = iter(context.splitlines())
    for text in changing:
        own = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
        if not any(own.search(line) for line in lines):
            detail = f"Time and notes do not stand on lines of their own, all of them and in order{where}."
            raise Failure(PROPERTY, detail)
    if "None" in context:
        raise Failure(PROPERTY, f"The context says None where there is no time{where}.")


def _long_talk(cases: Cases) -> Talk:
    """Of 45 messages, the last a question: blanks at the ends, a question twice, an empty answer, each of the roles."""
    talk = draw_talk(cases, "blanks at the ends of contents", 22)[:-1]
    told = [f"{m['content']} ({i})" if i % 3 else f" ({i}) {m['content']}\n" for i, m in enumerate(talk)]
    told[8], told[11] = told[4], ""
    long = [{**message, "content": content} for message, content in zip(talk, told, strict=True)]
    others = [{"role": role, "content": f" Of the {role}.\n"} for role in ("system", "context")]
    return [*long[:21], *others, *long[21:]]


@check(stage=STAGE, id="canonical-tools", points=1, title="The order of a tool's keys makes no difference")
def canonical_tools(student: Student, cases: Cases) -> None:
    """The same tools with their keys in another order, at any depth, give the same prompt; other tools give another."""
    tools = draw_tools(cases)
    talk = draw_talk(cases, "plain contents", 1)[:-1]
    system = "Answer in one line."

    def build(tools: Any) -> str:
        return string_of(student, "build_prompt", system, tools, talk)

    prompt = build(tools)
    if build(tools) != prompt:
        raise Failure(None, "Two calls with equal arguments gave two prompts.", bugs.PROMPT_READS_CLOCK)
    stands_there = bool(_after(system, prompt).strip())  # that it does not is the other check's affair
    for given in (tools, tools[::-1], []) if stands_there else ():
        value, _ = _json_list(_after(system, build(given)))
        where = f"(with {count(len(given), 'tool')})"
        if value is None:
            raise Failure(None, f"What follows the system text does not begin with a JSON list {where}.")
        if json.dumps(value, sort_keys=True) != json.dumps(given, sort_keys=True):
            raise Failure(None, f"The JSON list after the system text is not the list of tools as it is {where}.")
    turned = {
        "outer keys": build(_turned(tools, lambda depth: depth == 0)),
        "keys of inner dicts": build(_turned(tools, lambda depth: depth > 0)),
        "keys at every depth": build(_turned(tools, lambda depth: True)),
    }
    for what, other in turned.items():
        if other != prompt:
            shared = f"{common(prompt, other):,} of {len(prompt):,} characters are shared"
            bug = bugs.KEYS_SORTED_ON_TOP if turned["outer keys"] == prompt else bugs.KEYS_AS_THEY_COME
            raise Failure(None, f"With the {what} in another order, {shared}.", bug)
    if not stands_there and prompt == build(tools[::-1]):
        raise Failure(None, "With the tools in another order, the prompt is the same.")


def _turned(value: Any, turn: Callable[[int], bool], depth: int = 0) -> Any:
    """The same value with the keys of its dicts in the opposite order, at those depths for which turn says so."""
    if isinstance(value, dict):
        items = [(k, _turned(v, turn, depth + 1)) for k, v in value.items()]
        return dict(items[::-1] if turn(depth) else items)
    return [_turned(v, turn, depth) for v in value] if isinstance(value, list) else value


def _after(system: str, prompt: str) -> str:
    """What stands between the system text and the next message."""
    return prompt.partition(system)[2].partition(START)[0]


def _json_list(text: str) -> tuple[list | None, str]:
    """The JSON list with which the text begins, or None, and what follows it."""
    text = text.lstrip()
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, text
    return (value, text[end:]) if isinstance(value, list) else (None, text)
