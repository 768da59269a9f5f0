"""The checks of build_prompt: what it puts where, and the tools as JSON in one order."""

from __future__ import annotations

import json
import re
from typing import Any

from autograder.judge.bugs import INPUT_CHANGED
from autograder.judge.cases import Cases
from autograder.judge.compare import common
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.student import Student
from autograder.stages.failure_modes import bugs
from autograder.stages.failure_modes.shared import (
    GENERATION_PROMPT,
    START,
    WORDS,
    Talk,
    draw_talk,
    draw_tools,
    plain_chat,
)

Options = dict[str, Any]

A_CONTENT = "what-is-told"  # to find where contents stand


@check("What changes from call to call comes after what stays", points=2, watches=("build_prompt",))
def volatile_last(student: Student, cases: Cases) -> None:
    """With another time or other notes, and in the next turn, everything up to the last message is still shared."""
    try:
        _expect_order(student, cases)
    except Failure as failure:
        if failure.bug is INPUT_CHANGED:  # by render_chat, maybe, whose own check tells it
            student.watched = ("render_chat",)
        messages = [{"role": role, "content": role} for role in ("system", "user", "assistant", "context")]
        rendered = [student.string("render_chat", messages, add_generation_prompt=asking) for asking in (False, True)]
        if rendered != [plain_chat(messages, asking) for asking in (False, True)]:
            failure.detail += " render_chat itself does not write messages as it should: look there first."
            failure.bug = None
        raise


def _expect_order(student: Student, cases: Cases) -> None:
    rng = cases.rng("volatile")
    words = [WORDS[i] + str(i * 7 + 100) for i in rng.permutation(len(WORDS))]
    system, tools = f"Keep to the {words[0]}.\nSpeak of the {words[1]} first. ", draw_tools(cases)
    talk, long = draw_talk(cases, "plain contents", 3)[:-1], _long_talk(cases)
    now, then = (f"It is {rng.integers(10, 24)}:{m} o'clock" for m in (11, 12))
    notes = [f"{w} is new" for w in sorted(words[2:6])[::-1]]
    many = [f"{words[i % 6]} is number {n}" for i, n in enumerate(rng.permutation(range(10, 99))[:12])]

    def build(messages: Talk, options: Options) -> str:
        return student.string("build_prompt", system, tools, messages, **options)

    if build(talk, {}) != build(talk, {}):
        raise Failure("Two calls with equal arguments gave two prompts.", bugs.PROMPT_READS_THE_CLOCK)
    variants: list[tuple[str, Talk, Options]] = [
        ("neither time nor notes", talk, {}),
        ("a time", talk, {"now": now}),
        ("another time", talk, {"now": then}),
        ("two notes", talk, {"notes": notes[:2]}),
        ("one other note", talk, {"notes": notes[2:3]}),
        ("a time and 12 notes", talk, {"now": now, "notes": many}),
        ("the same note twice", talk, {"notes": [notes[0], notes[1], notes[0]]}),
        *(
            (f"{count(len(t), 'message')}, a time and two notes", t, {"now": now, "notes": notes[:2]})
            for t in (talk[:1], talk[:3], long)
        ),
        (f"{len(long)} messages", long, {}),
    ]
    prompts = [(f" (with {name})", messages, options, build(messages, options)) for name, messages, options in variants]
    contents, n_lines = set(), {}
    for where, messages, options, prompt in prompts:
        changing = [text for text in (options.get("now"), *options.get("notes", ())) if text is not None]
        place = min((prompt.find(text) for text in changing if text in prompt), default=len(prompt))
        if place < max(prompt.find(text) for text in (system, messages[0]["content"], messages[-1]["content"])):
            raise Failure(f"Time or notes stand before what does not change{where}.", bugs.CHANGES_EARLY)
        if not prompt.endswith(GENERATION_PROMPT):
            raise Failure(f"The prompt does not end with GENERATION_PROMPT{where}.")
        content, context = _contents(student, prompt, messages, bool(changing), where)
        if not content.startswith(f"{system}\n"):
            raise Failure(f"The system's message does not begin with the system text and a newline{where}.")
        after = content.removeprefix(f"{system}\n")
        if not all(word in after for word in re.findall(r"[a-z]+\d+", json.dumps(tools, ensure_ascii=False))):
            raise Failure(f"Not all of the tools stand after the system text, in its message{where}.")
        value, more = _json_list(after)
        if value is not None and more.strip():
            raise Failure(f"Something stands after the tools in the system's message{where}.")
        lines = iter(context.splitlines())  # with words around the texts, maybe, and lines between
        own = [re.compile(rf"(?<!\w){re.escape(text)}(?!\w)") for text in changing]
        if "None" in context or not all(any(text.search(line) for line in lines) for text in own):
            detail = f"The context is not the time and the notes, each on a line of its own, in order{where}."
            raise Failure(detail)
        contents.add(content)
        n_lines[("now" in options, *options.get("notes", ()))] = len(context.splitlines())
    if n_lines[(False, *notes[:2])] >= n_lines[(True, *notes[:2])]:
        raise Failure("Without a time, there is a line for it in the context all the same.")
    if len(contents) > 1:
        raise Failure("The system's message is another one when time, notes or messages are others.")


def _contents(student: Student, prompt: str, talk: Talk, with_context: bool, where: str) -> tuple[str, str]:
    """The contents of the system's message and of the context (empty without one), between what render_chat writes.

    By the student's own render_chat: what it adds to each message costs its own check and not this one.
    """
    system, context = ({"role": role, "content": A_CONTENT} for role in ("system", "context"))
    messages = [system, *talk, *[context] * with_context]
    frame = student.string("render_chat", messages, add_generation_prompt=True).split(A_CONTENT)
    match = re.fullmatch("(.*)".join(map(re.escape, frame)), prompt, re.DOTALL)
    in_place = match is not None and len(match.groups()) == 1 + with_context  # fewer where render_chat drops messages
    if in_place and not any(START in content for content in match.groups()):
        found = match.groups()
        return found[0], found[1] if with_context else ""
    last = "one message of the role context" if with_context else "nothing else, as there is no time and no note"
    detail = "The prompt is not what render_chat makes of the system's message, the messages as they are, and"
    raise Failure(f"{detail} {last}{where}.")


def _long_talk(cases: Cases) -> Talk:
    """Of 45 messages, the last a question: blanks at the ends, a question twice, an empty answer, each of the roles."""
    talk = draw_talk(cases, "blanks at the ends of contents", 22)[:-1]
    told = [f"{m['content']} ({i})" if i % 3 else f" ({i}) {m['content']}\n" for i, m in enumerate(talk)]
    told[8], told[11] = told[4], ""
    long = [{**message, "content": content} for message, content in zip(talk, told, strict=True)]
    others = [{"role": role, "content": f" Of the {role}.\n"} for role in ("system", "context")]
    return [*long[:21], *others, *long[21:]]


@check("The order of a tool's keys makes no difference", points=1)
def canonical_tools(student: Student, cases: Cases) -> None:
    """The same tools with their keys in another order, at any depth, give the same prompt; other tools give another."""
    tools = draw_tools(cases)
    talk = draw_talk(cases, "plain contents", 1)[:-1]
    system = "Answer in one line."

    def build(tools: Any) -> str:
        return student.string("build_prompt", system, tools, talk)

    prompt = build(tools)
    if build(tools) != prompt:
        raise Failure("Two calls with equal arguments gave two prompts.", bugs.PROMPT_READS_THE_CLOCK)
    stands_there = bool(_after(system, prompt).strip())  # that it does not is the other check's affair
    for given in (tools, tools[::-1], [*tools, tools[0]], []) if stands_there else ():
        value, _ = _json_list(_after(system, build(given)))
        where = f"(with {count(len(given), 'tool')})"
        if value is None:
            raise Failure(f"What follows the system text does not begin with a JSON list {where}.")
        if json.dumps(value, sort_keys=True) != json.dumps(given, sort_keys=True):
            raise Failure(f"The JSON list after the system text is not the list of tools as it is {where}.")
    other = build(_turned(tools))
    if other != prompt:
        shared = f"{common(prompt, other):,} of {len(prompt):,} characters are shared"
        raise Failure(f"With the keys in another order, {shared}.", bugs.KEYS_AS_THEY_COME)
    if not stands_there and prompt == build(tools[::-1]):
        raise Failure("With the tools in another order, the prompt is the same.")


def _turned(value: Any) -> Any:
    """The same value with the keys of its dicts in the opposite order, at every depth."""
    if isinstance(value, dict):
        return {key: _turned(item) for key, item in reversed(value.items())}
    return list(map(_turned, value)) if isinstance(value, list) else value


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
