"""The check of the tools in a prompt: whole, as JSON, and in one order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student
from autograder.judge.words import count
from autograder.stages.failure_modes.bugs import prompt as bugs
from autograder.stages.failure_modes.drawn import draw_talk, draw_tools, words_of
from autograder.stages.failure_modes.shared import STAGE, START, common, decoded, text_of

SYSTEM = "Answer in one line."
PROPERTY = "The tools stand behind the system text as JSON, whole and in their order."


def _turned(value: Any, turn: Callable[[int], bool], depth: int = 0) -> Any:
    """The same value with the keys of its dicts in the opposite order, at those depths for which turn says so."""
    if isinstance(value, dict):
        items = [(k, _turned(v, turn, depth + 1)) for k, v in value.items()]
        return dict(items[::-1] if turn(depth) else items)
    return [_turned(v, turn, depth) for v in value] if isinstance(value, list) else value


@check(stage=STAGE, id="canonical-tools", points=1, title="The order of a tool's keys makes no difference")
def canonical_tools(student: Student, cases: Cases) -> None:
    """The same tools with their keys in another order, at any depth, give the same prompt; other tools give another."""
    tools = draw_tools(cases)
    talk = draw_talk(cases, "plain contents", 1)[:-1]

    def build(tools: Any) -> str:
        return text_of(student, "build_prompt", SYSTEM, tools, talk)

    prompt = build(tools)
    if build(tools) != prompt:
        raise Failure(None, "Two calls with equal arguments gave two prompts.", bugs.PROMPT_READS_CLOCK)
    missing = [word for word in words_of(tools) if word not in prompt]
    if missing:
        lacking = (
            f"{count(len(missing), 'text')} of the tools {'is' if len(missing) == 1 else 'are'} not in the prompt."
        )
        raise Failure(None, lacking, bugs.TOOLS_LEFT_OUT)
    first = tools[0]["arguments"]
    enum = next(k for k, v in first.items() if "enum" in v)
    changed = {
        "another name": [{**tools[0], "name": "find_nothing"}, tools[1]],
        "another number deep inside": [tools[0], {**tools[1], "cost": 0.25}],
        "one tool less": tools[:1],
        "a list in another order": [
            {**tools[0], "arguments": {**first, enum: {**first[enum], "enum": first[enum]["enum"][::-1]}}},
            tools[1],
        ],
        "the other tool first": tools[::-1],
    }
    prompts = {what: build(other) for what, other in changed.items()}
    same = [what for what, other in prompts.items() if other == prompt]
    if same:
        bug = {"a list in another order": bugs.LIST_SORTED, "the other tool first": bugs.TOOLS_SORTED}.get(same[0])
        raise Failure(None, f"With {same[0]}, the prompt is the same.", bug)
    turns = {
        "outer keys": lambda depth: depth == 0,
        "keys of inner dicts": lambda depth: depth > 0,
        "keys at every depth": lambda depth: True,
    }
    prompts = {what: build(_turned(tools, turn)) for what, turn in turns.items()}
    for what, other in prompts.items():
        if other != prompt:
            bug = bugs.KEYS_SORTED_ON_TOP if prompts["outer keys"] == prompt else bugs.KEYS_AS_THEY_COME
            detail = (
                f"With the {what} in another order, {common(prompt, other):,} of {len(prompt):,} characters are shared."
            )
            raise Failure(None, detail, bug)
    if not _behind_system(prompt).strip():
        return  # the tools stand elsewhere, which is another check's affair
    for given in (tools, tools[::-1], []):
        _expect_json(build(given), given)


def _behind_system(prompt: str) -> str:
    """What stands between the system text and the next message."""
    return prompt.partition(SYSTEM)[2].partition(START)[0]


def _expect_json(prompt: str, tools: list[dict[str, Any]]) -> None:
    """What follows the system text, up to the next START, begins with the tools as JSON."""
    behind = _behind_system(prompt)
    where = f"with {count(len(tools), 'tool')}"
    value, _ = decoded(behind)
    if value is None:
        bug = bugs.TOOLS_NOT_JSON if behind.strip() in (str(tools), str(json.loads(_as_text(tools)))) else None
        if not tools and not behind.strip():
            bug = bugs.NO_TOOLS_NO_LIST
        raise Failure(PROPERTY, f"What follows the system text does not begin with a JSON list ({where}).", bug)
    if _as_text(value) != _as_text(tools):
        bug = None
        if sorted(map(_as_text, value)) == sorted(map(_as_text, tools)):
            bug = bugs.TOOLS_SORTED
        elif _TEXT.sub("", _as_text(value)) == _TEXT.sub("", _as_text(tools)):
            bug = bugs.TOOLS_CHANGED
        elif _as_text(value) == _as_text(_without_none(tools)):
            bug = bugs.TOOLS_LEFT_OUT
        raise Failure(PROPERTY, f"The JSON that follows the system text is not the list of tools ({where}).", bug)


_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')  # as JSON writes it


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    return [_without_none(v) for v in value] if isinstance(value, list) else value


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
