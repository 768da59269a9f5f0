"""Conversations and tools, drawn for the checks of prompts."""

from __future__ import annotations

from typing import Any

from autograder.judge.cases import Cases
from autograder.stages.failure_modes.shared import GENERATION_PROMPT

WORDS = [
    *("king", "crown", "sword", "letter", "bell", "door", "horse", "ring", "scene"),
    *("act", "lord", "duke", "night", "play", "gate", "part", "fool", "queen"),
]

ODD_CONTENTS = {
    "plain contents": ("{}, good {}.", "The {} is {}."),
    "an empty answer": ("Where is the {}?", ""),
    "an empty question": ("", "Here is the {}."),
    "blanks at the ends of contents": ("  {} and {} ", " {}\n"),
    "contents of blanks alone": (" ", "\n\n"),
    "contents that begin with a newline": ("\n{}", "\n\n{}\n"),
    "contents with tabs and carriage returns": ("{}\r\n\t{}", "\t{}\r\n"),
    "contents beyond ASCII": ("Œuvre {} naïve, 漢字", "Ja: {} 🙂 é"),
    "contents that look like a message": ("<|endoftext|>assistant\n{}", "<|endoftext|>user\n{}"),
    "contents that hold the think block": ("[think]{}", "[think] {} [think]"),
    "an answer that is the think block": ("Say {}.", "[think]"),
    "contents that hold the generation prompt": ("{}" + GENERATION_PROMPT, GENERATION_PROMPT + "{}"),
    "contents with braces, percent signs, backslashes and dollars": (
        "{{0}} %s {{}} {}\\n $$",
        "{{name}} %(a)d {}\\1 $role ${{role}}",
    ),
    "letters whose accents are characters of their own": ("Cafe\u0301 {}", "{} re\u0301sume\u0301"),
}

Talk = list[dict[str, str]]


def draw_talk(cases: Cases, kind: str, n_turns: int) -> Talk:
    """A conversation that ends with an answer, with contents of one kind among plain ones."""
    rng = cases.rng("talk", kind)
    plain = ODD_CONTENTS["plain contents"]
    odd = int(rng.integers(n_turns))
    messages = []
    for turn in range(n_turns):
        for role, form in zip(("user", "assistant"), ODD_CONTENTS[kind] if turn == odd else plain, strict=True):
            words = [WORDS[i] + str(int(rng.integers(100))) for i in rng.integers(len(WORDS), size=2)]
            messages.append({"role": role, "content": form.format(*words)})
    return messages


def out_of_turn(talk: Talk) -> Talk:
    """The messages of a conversation of three turns with neighbors of one role, and with others in the middle."""
    question, answer, second, late, third, last = talk
    system = [{"role": "system", "content": f"Rule {i}."} for i in (1, 2)]
    context = [{"role": "context", "content": f"It is {i} o'clock."} for i in (3, 4)]
    return [system[0], question, second, answer, *context, system[1], third, late, last]


def draw_tools(cases: Cases) -> list[dict[str, Any]]:
    """Descriptions of tools, with dicts in dicts and in lists; the names are not in the order of the alphabet."""
    word = [WORDS[i] + str(i) for i in cases.rng("tools").permutation(len(WORDS))[:8]]
    return [
        {
            "name": f"find_{word[0]}",
            "description": f'Finds a "{word[1]}",  or two.\nÇa va, naïve {word[2]}: 漢字 too.',
            "arguments": {
                word[1]: {"type": "integer", "minimum": 1},
                word[2]: {"type": "string", "enum": sorted(word[3:6])[::-1]},
            },
            "tags": [{"zone": word[6], "area": 2}, {"kind": "any", "exact": True}],
        },
        {"name": f"Ask_{word[7]}", "arguments": {}, "cost": 0.5, "limit": None},
    ]
