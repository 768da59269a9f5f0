"""What the checks of failure-modes share: tables of cases, drawn ids, and the template's markers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure
from autograder.judge.student import StudentError

TIMES = 4  # that each case is asked, since an answer may not depend on the calls before it

# The template's markers, as the notebook's setup cell gives them
START = "<|endoftext|>"
NO_THOUGHT = "[think]"
GENERATION_PROMPT = f"{START}assistant\n{NO_THOUGHT}"

Ids = list[int]
Table = dict[str, tuple[Any, Any]]  # the two arguments of a function, by a description of the case
Variants = Sequence[tuple[Bug, Callable]]  # wrong versions of a function


def expect_answers(
    cases: Cases,
    table: Table,
    ask: Callable,
    right: Callable,
    told: Callable[[Any, Any], str],
    variants: Variants = (),
    alike: tuple[Bug, Callable[[Any, Any], bool]] | None = None,
) -> None:
    """Ask every case, in a drawn order. Where an answer is wrong, the failure names the variant that gives them all.

    ask, right and each variant take a case's two arguments.
    told: the answer and the right one as half a sentence, which follows "For <case>, ".
    alike: a bug, and whether an answer is what it makes of the right one, where that is not one answer alone.
    """
    names = [list(table)[i] for i in cases.rng("order").permutation(len(table))]
    expected = {name: right(*table[name]) for name in names}
    answers = {name: _outcome(ask, table[name]) for name in names}
    right_at_first = [name for name in names if _same(answers[name], expected[name])]
    for name in right_at_first * (TIMES - 1):
        if _same(answers[name], expected[name]):
            answers[name] = _outcome(ask, table[name])
    wrong = [name for name in names if not _same(answers[name], expected[name])]
    if not wrong:
        return
    first, answer = wrong[0], answers[wrong[0]]
    detail = answer.sentence[:-1] if isinstance(answer, StudentError) else told(answer, right(*table[first]))
    detail = f"asked again, {detail}" if first in right_at_first else detail
    named = [bug for bug, variant in variants if all(_same(answers[n], variant(*table[n])) for n in names)]
    named += [bug for bug, fits in [alike] if all(fits(answers[n], expected[n]) for n in names)] if alike else []
    raise Failure(f"For {first}, {detail} ({len(wrong)} of {len(table)} cases fail).", next(iter(named), None))


def _same(answer: Any, right: Any) -> bool:
    try:
        return bool(answer == right)
    except ValueError:  # an array, where none is expected
        return False


def _outcome(ask: Callable, case: tuple) -> Any:
    try:
        return ask(*case)
    except StudentError as error:
        return error


def plain_chat(
    messages: Sequence[dict[str, str]],
    asking: bool = False,
    thinks: Callable[[dict[str, str]], bool] = lambda message: message["role"] == "assistant",
    content: Callable[[str], str] = str,
    prompt: str = GENERATION_PROMPT,
) -> str:
    """The messages as render_chat has to write them; the last three arguments are for its variants."""
    parts = [f"{START}{m['role']}\n{NO_THOUGHT if thinks(m) else ''}{content(m['content'])}" for m in messages]
    return "".join(parts) + (prompt if asking else "")


def own_ids(ids: Sequence[int]) -> Ids:
    """The ids as number objects of their own, so that `is` tells ids of two lists apart here as in another process."""
    return [int(str(i)) for i in ids]


def draw_ids(cases: Cases, n: int, *label: Any) -> Ids:
    """n different ids from 1 to 499, of which some are above 256. The trained model's tokenizer has them all."""
    return (cases.rng("ids", *label).permutation(499)[:n] + 1).tolist()


def other_ids(cases: Cases, n: int) -> Ids:
    """n ids from 501 to 999, which the tokenizer has as well, and draw_ids never draws."""
    return [i + 500 for i in draw_ids(cases, n, "other")]


def repeated(ids: Sequence[int]) -> tuple[Ids, Ids]:
    """Two short lists that share four of their ids, with each of the ids that differ among the shared ones too."""
    a, b, c = ids[:3]
    return [a, b, a, c, b, c], [a, b, a, c, a, c, b]


# Conversations and tools

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
