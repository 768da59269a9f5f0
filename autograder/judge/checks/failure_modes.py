"""The checks of stage 5: counting a shared prefix, lookup, diagnosis, prompts that reuse well, and the key."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise, permutations
from typing import Any

from autograder.judge.bugs import Bug, define
from autograder.judge.bugs import failure_modes as own
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import AsTuple, Entry, Student, StudentError

STAGE = "failure-modes"

# The template's markers, as the notebook's setup cell gives them
START = "<|endoftext|>"
NO_THOUGHT = "[think]"
GENERATION_PROMPT = f"{START}assistant\n{NO_THOUGHT}"

# longest_common_prefix


# lookup and its log


# explain_miss


# render_chat


# build_prompt


# cache_key

KEY_FIELDS = {
    "model": "another model's keys and values would be taken for its own",
    "tokenizer": "equal ids that stand for another text would match",
    "dtype": "the stored bytes would be read as other numbers",
    "layout": "the axes of the stored arrays would be taken for others",
    "positions": "keys made with other positions would be reused",
    "tenant": "one tenant's entry would serve another",
}
KEY_IGNORES = {
    field: define(
        f"key-ignores-{field}", f"{field} is not in the key", f"The key does not depend on the {field}, and so {why}."
    )
    for field, why in KEY_FIELDS.items()
}


# Helpers


def _number(student: Student, name: str, *args: Any, none: Bug | None = None) -> int:
    """A call that must give a whole number; none: what it is called when it gives None."""
    value = student.plain(name, *args)
    if isinstance(value, bool) or not isinstance(value, int):
        bug = own.GIVES_THE_IDS if isinstance(value, list) and all(isinstance(i, int) for i in value) else None
        bug = none if value is None else bug
        raise Failure(None, f"{name} returned {_kind(value)} where an int is expected.", bug)
    return value


def _text(student: Student, name: str, *args: Any, **kwargs: Any) -> str:
    """A call that must give a text."""
    value = student.plain(name, *args, **kwargs)
    if not isinstance(value, str):
        bug = own.MISS_PRINTED if name == "explain_miss" and value is None else None
        raise Failure(None, f"{name} returned {_kind(value)} where a text is expected.", bug)
    return value


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _common(a: Sequence, b: Sequence) -> int:
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n


def _own(ids: Sequence[int]) -> list[int]:
    """The ids as number objects of their own, so that `is` tells ids from separate lists apart here as elsewhere."""
    return [int(str(i)) for i in ids]


def _suspect(answers: dict[str, Any], right: dict[str, Any], suspects: Sequence[tuple[Bug, Callable]]) -> Bug | None:
    """The first bug that predicts every answer, and not the right ones. A suspect maps a case's name to its answer."""
    for bug, predict in suspects:
        predicted = {name: predict(name) for name in answers}
        if predicted != right and predicted == answers:
            return bug
    return None


def _ids(cases: Cases, n: int, *label: Any) -> list[int]:
    """n ids that differ from their neighbors, above 256 now and then, none of them twice."""
    return cases.rng("ids", *label).permutation(1000)[:n].tolist()


# Checks


@check(
    stage=STAGE,
    id="common-prefix",
    points=1,
    title="Shared ids are counted from the start, up to the first difference",
    watches=("longest_common_prefix",),
)
def common_prefix(student: Student, cases: Cases) -> None:
    """longest_common_prefix counts the equal first ids of two lists, up to the first difference or the shorter end."""
    ids, other = _ids(cases, 60), _ids(cases, 60, "other")
    other, long = [a + 1000 for a in other], _ids(cases, 900, "long")
    pairs: dict[str, tuple[list[int], list[int]]] = {
        f"two lists that share {c} first id{'s' if c > 1 else ''} and agree again later": (
            ids[:40],
            ids[:c] + other[:2] + ids[c + 2 : 30],
        )
        for c in (1, 3, 17)
    }
    pairs |= {
        "two lists without a common start": (ids[:9], other[:9]),
        "two lists that differ in the first id alone": (ids[:12], other[:1] + ids[1:12]),
        "the same ids from the second place on": (ids[:12], ids[1:13]),
        "a second list that is the beginning of the first": (ids[:25], ids[:11]),
        "a first list that is the beginning of the second": (ids[:11], ids[:25]),
        "equal lists": (ids, ids),
        "two long lists that share 700 first ids": (long, long[:700] + other[:9]),
        "an empty first list": ([], ids[:4]),
        "an empty second list": (ids[:4], []),
        "two empty lists": ([], []),
    }
    right = {name: _common(a, b) for name, (a, b) in pairs.items()}
    answers: dict[str, Any] = {}
    raised: dict[str, StudentError] = {}
    for name, (a, b) in pairs.items():
        try:
            none = own.SAME_LENGTH_IF_NO_DIFFERENCE if answers else None  # the first lists differ, and gave a number
            answers[name] = _number(student, "longest_common_prefix", _own(a), _own(b), none=none)
        except StudentError as error:
            if error.stub or error.kind == "missing":
                raise
            raised[name] = error
            answers[name] = None
    wrong = [name for name in pairs if answers[name] != right[name]]
    if not wrong:
        return

    def differs_at(a, b):
        return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)

    def ending(name, end):
        place = differs_at(*pairs[name])
        return end(*pairs[name]) if place is None else place

    suspects = [
        (own.COUNTS_EQUAL_PLACES, lambda n: sum(x == y for x, y in zip(*pairs[n], strict=False))),
        (own.COUNTS_LAST_INDEX, lambda n: right[n] - 1),
        (own.COUNTS_LAST_INDEX, lambda n: max(right[n] - 1, 0)),
        (own.COMPARES_WITH_IS, lambda n: _common(pairs[n][0], [i if i <= 256 else -1 for i in pairs[n][1]])),
        (own.COMMON_IDS_AS_A_SET, lambda n: len(set(pairs[n][0]) & set(pairs[n][1]))),
        (own.SAME_LENGTH_IF_NO_DIFFERENCE, lambda n: ending(n, lambda a, b: 0)),
        (own.SAME_LENGTH_IF_NO_DIFFERENCE, lambda n: ending(n, lambda a, b: -1)),
        (own.SAME_LENGTH_IF_NO_DIFFERENCE, lambda n: ending(n, lambda a, b: len(a))),
        (own.SAME_LENGTH_IF_NO_DIFFERENCE, lambda n: ending(n, lambda a, b: max(len(a), len(b)))),
    ]
    bug = _suspect(answers, right, suspects)
    if raised and all(e.type == "IndexError" for e in raised.values()) and set(wrong) == set(raised):
        bug = own.RUNS_PAST_THE_END
    first = wrong[0]
    if first in raised:
        detail = f"For {first}: {raised[first].sentence}"
    else:
        detail = f"For {first}, longest_common_prefix is off by {answers[first] - right[first]:+d}."
    raise Failure(None, f"{detail[:-1]} ({len(wrong)} of {len(pairs)} cases fail).", bug)


def _lookup_cases(cases: Cases) -> dict[str, tuple[list[list[int]], list[int]]]:
    """Entries' ids and a prompt, by a description. No entry covers the whole prompt exactly."""
    prompt, other = _ids(cases, 24), [i + 1000 for i in _ids(cases, 24, "other")]
    near = prompt[:18] + other[:1]
    nested = [prompt[:7], prompt[:15], prompt[:3]]
    return {
        "entries of 7, 15 and 3 ids that all match": (nested, prompt),
        "entries of 15, 3 and 7 ids that all match": ([prompt[:15], prompt[:3], prompt[:7]], prompt),
        "entries of 3, 7 and 15 ids that all match": ([prompt[:3], prompt[:7], prompt[:15]], prompt),
        "a longer entry that misses by its last id": ([prompt[:5], near, prompt[:9]], prompt),
        "nothing but entries that miss by one id": ([near, prompt[:6] + other[:2], other[:1] + prompt[1:9]], prompt),
        "a longer entry that differs in the middle alone": (
            [prompt[:6], prompt[:9] + other[:1] + prompt[10:17]],
            prompt,
        ),
        "a longer entry whose last id begins with the same digits": (
            [prompt[:4], [*prompt[:12], 7]],
            [*prompt[:12], 71, *prompt[13:]],
        ),
        "the longest entry belonging to another prompt": ([prompt[:8], other[:20]], prompt),
        "an entry that is the prompt and more": ([prompt[:6], prompt], prompt[:10]),
        "an entry whose ids stand in the prompt, but not at its start": ([prompt[2:9], prompt[:4]], prompt),
        "an entry with the right ids in another order": ([prompt[:4][::-1] + prompt[4:9], prompt[:2]], prompt),
        "one entry, of one id": ([prompt[:1]], prompt),
        "an entry that leaves one token": ([prompt[:4], prompt[:23]], prompt),
        "entries that share nothing with the prompt": ([other[:3], other[:9]], prompt),
        "no entries at all": ([], prompt),
    }


@check(
    stage=STAGE,
    id="log-of-candidates",
    points=1,
    title="The log tells what was decided about every candidate",
    watches=("candidate_log",),
)
def candidate_log(student: Student, cases: Cases) -> None:
    """candidate_log has one row for each entry, in order, with n, common, gate, key and hit."""
    table = _lookup_cases(cases)
    prompt = _ids(cases, 12, "whole")
    table["an entry that covers the whole prompt, and one that leaves a token"] = ([prompt, prompt[:11]], prompt)
    table["an entry longer than the prompt that differs from it early"] = ([prompt[:3] + prompt[4:]], prompt[:8])
    names = ("n", "common", "gate", "key", "hit")
    right, answers, extra = {}, {}, None
    for name, (entries, p) in table.items():
        right[name] = [_row(e, p) for e in entries]
        rows = student.plain("candidate_log", [Entry(_own(e)) for e in entries], _own(p))
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            raise Failure(None, f"For {name}, candidate_log returned {_kind(rows)} where a list of dicts is expected.")
        missing = sorted({key for row in rows for key in names if key not in row})
        if missing:
            raise Failure(None, f"For {name}, a row has no {', '.join(map(repr, missing))}.")
        answers[name] = [tuple(row[key] for key in names) for row in rows]
        if extra is None and len(rows) != len(entries):
            extra = f"For {name}, the log has {len(rows)} rows for {len(entries)} entries."
    if answers == right:
        return
    if extra:
        raise Failure(None, extra, own.LOG_HITS_ONLY)

    def rows_by(make):
        return lambda n: [make(e, table[n][1]) for e in table[n][0]]

    suspects = [
        (own.LOOKUP_TAKES_WHOLE_PROMPT, rows_by(lambda e, p: _row(e, p, gate=len(e) <= len(p)))),
        (own.LOOKUP_LEAVES_TWO, rows_by(lambda e, p: _row(e, p, gate=len(e) < len(p) - 1))),
        (own.LOG_HIT_WITHOUT_GATE, rows_by(lambda e, p: (*_row(e, p)[:4], _common(e, p) == len(e)))),
        (own.LOG_GATE_BY_SHARED, rows_by(lambda e, p: _row(e, p, gate=_common(e, p) < len(p)))),
        (own.LOG_KEY_IS_ANY, rows_by(lambda e, p: _row(e, p, key=_common(e, p) > 0))),
        (own.LOOKUP_LONGER_THAN_PROMPT, rows_by(lambda e, p: _row(e, p, key=_common(e, p) == min(len(e), len(p))))),
    ]
    name = next(n for n in table if answers[n] != right[n])
    place = next(i for i, (a, b) in enumerate(zip(answers[name], right[name], strict=True)) if a != b)
    column = next(key for key, a, b in zip(names, answers[name][place], right[name][place], strict=True) if a != b)
    detail = f"For {name}, {column!r} is not right in row {place} of {len(right[name])} (counted from 0)."
    raise Failure(None, detail, _suspect(answers, right, suspects))


def _row(entry: list[int], prompt: list[int], gate: bool | None = None, key: bool | None = None) -> tuple:
    common = _common(entry, prompt)
    gate = len(entry) < len(prompt) if gate is None else gate
    key = common == len(entry) if key is None else key
    return len(entry), common, gate, key, gate and key


def _best(entries: list[list[int]], prompt: list[int], fits: Callable[[list[int]], bool]) -> list[int] | None:
    return max((e for e in entries if fits(e)), key=len, default=None)


def _lookup_suspects(table: dict[str, tuple[list[list[int]], list[int]]]) -> list[tuple[Bug, Callable]]:
    """Wrong lookups, each a function of a case's name that gives the ids of the entry it would return."""

    def begins(e, p):
        return p[: len(e)] == e

    def hits(n):
        entries, p = table[n]
        return [e for e in entries if begins(e, p) and len(e) < len(p)]

    def ranks_first(n, limit):
        entries, p = table[n]
        longest = _best(entries, p, lambda e: limit is None or len(e) < len(p) + limit)
        return longest if longest is not None and begins(longest, p) and len(longest) < len(p) else None

    def longest_covers(n):
        entries, p = table[n]
        best = _best(entries, p, lambda e: begins(e, p))
        return None if best is not None and len(best) == len(p) else best

    def shares_most(n, least):
        entries, p = table[n]
        best = max((e for e in entries if len(e) < len(p)), key=lambda e: _common(e, p), default=None)
        return best if best is not None and _common(best, p) >= least else None

    def pairwise(n, shorter):
        entries, p = table[n]
        return _best(entries, p, lambda e: e[: len(p)] == p[: len(e)] and (len(e) != len(p) or not shorter))

    return [
        (own.LOOKUP_TAKES_WHOLE_PROMPT, lambda n: _best(*table[n], lambda e: begins(e, table[n][1]))),
        (
            own.LOOKUP_LEAVES_TWO,
            lambda n: max((e for e in hits(n) if len(e) < len(table[n][1]) - 1), key=len, default=None),
        ),
        (own.LOOKUP_FIRST_HIT, lambda n: next(iter(hits(n)), None)),
        (own.LOOKUP_LAST_HIT, lambda n: next(iter(hits(n)[::-1]), None)),
        (own.LOOKUP_SHORTEST, lambda n: min(hits(n), key=len, default=None)),
        (own.LOOKUP_LONGEST_COVERS, longest_covers),
        (own.LOOKUP_RANKS_FIRST, lambda n: ranks_first(n, 0)),
        (own.LOOKUP_RANKS_FIRST, lambda n: ranks_first(n, 1)),
        (own.LOOKUP_RANKS_FIRST, lambda n: ranks_first(n, None)),
        (own.LOOKUP_NEAR_MISS, lambda n: shares_most(n, 0)),
        (own.LOOKUP_NEAR_MISS, lambda n: shares_most(n, 1)),
        (own.LOOKUP_LONGER_THAN_PROMPT, lambda n: pairwise(n, False)),
        (own.LOOKUP_LONGER_THAN_PROMPT, lambda n: pairwise(n, True)),
        (own.LOOKUP_NEAR_MISS, lambda n: max(table[n][0], key=lambda e: _common(e, table[n][1]), default=None)),
    ]


def _found(student: Student, entries: list[list[int]], prompt: list[int], as_tuple: bool = False) -> list[int] | None:
    """The ids of the entry that the student's lookup returns."""
    given: list[Entry] | AsTuple = [Entry(_own(ids)) for ids in entries]
    try:
        index = student.entry("lookup", AsTuple(given) if as_tuple else given, _own(prompt))
    except StudentError as error:
        if error.kind == "bad-result":
            raise Failure(None, f"{error.sentence}", own.LOOKUP_NOT_AN_ENTRY) from None
        raise
    return None if index is None else entries[index]


def _expect_found(student: Student, table: dict, right: dict[str, Any], tuples: bool = False) -> None:
    """Asks lookup every case of the table; on a wrong answer, fails with the first one and its bug.

    tuples: whether some cases give the entries as a tuple.
    """
    answers: dict[str, Any] = {}
    raised: dict[str, StudentError] = {}
    for i, (name, (entries, prompt)) in enumerate(table.items()):
        try:
            answers[name] = _found(student, entries, prompt, as_tuple=tuples and i % 3 == 1)
        except StudentError as error:
            if error.stub or error.kind == "missing":
                raise
            raised[name], answers[name] = error, "raised"
    wrong = [name for name in table if answers[name] != right[name]]
    if not wrong:
        return
    bug = _suspect(answers, right, _lookup_suspects(table))
    if raised and set(raised) == set(wrong) and all(right[name] is None for name in wrong):
        bug = own.LOOKUP_FAILS_ON_NO_HIT
    first = wrong[0]
    if first in raised:
        detail = f"For {first}: {raised[first].sentence[:-1]}"
    else:
        detail = f"For {first}, lookup returned {_of(answers[first])} where {_of(right[first])} is expected"
    raise Failure(None, f"{detail} ({len(wrong)} of {len(table)} cases fail).", bug)


def _of(ids: list[int] | None) -> str:
    return "None" if ids is None else f"an entry of {len(ids)} ids"


@check(
    stage=STAGE,
    id="lookup-longest-entry",
    points=2,
    title="lookup finds the longest entry that begins the prompt",
    watches=("lookup",),
)
def lookup_longest_entry(student: Student, cases: Cases) -> None:
    """lookup returns the longest entry all of whose ids begin the prompt, and None where there is none."""
    table = _lookup_cases(cases)
    right = {name: _best(e, p, lambda x, p=p: len(x) < len(p) and p[: len(x)] == x) for name, (e, p) in table.items()}
    _expect_found(student, table, right, tuples=True)


@check(stage=STAGE, id="lookup-leaves-a-token", points=2, title="lookup leaves at least one token to compute")
def lookup_leaves_a_token(student: Student, cases: Cases) -> None:
    """lookup passes over an entry that covers the whole prompt, and returns the longest that leaves a token."""
    table: dict[str, tuple[list[list[int]], list[int]]] = {}
    for n in (2, 3, 9, 20):
        prompt = _ids(cases, n, n)
        table[f"a prompt of {n} ids that is stored whole, and also without its last id"] = (
            [prompt, prompt[: n - 1]],
            prompt,
        )
        table[f"a prompt of {n} ids that is stored whole, and nothing else"] = ([prompt], prompt)
        table[f"a prompt of {n} ids that is stored whole, twice, and so is its first id"] = (
            [prompt[:1], prompt, list(prompt)],
            prompt,
        )
    prompt, other = _ids(cases, 30), [i + 1000 for i in _ids(cases, 30, "other")]
    table["a prompt of one id that is stored whole"] = ([prompt[:1], other[:4]], prompt[:1])
    table["a prompt of 30 ids that is not stored whole"] = ([prompt[:11], prompt[:19]], prompt)
    table["a prompt of 30 ids, stored whole, with entries of 22, 9, 26 and 25 ids of which the third misses"] = (
        [prompt[:22], prompt, prompt[:9], prompt[:25] + other[:1], prompt[:25]],
        prompt,
    )
    right = {name: _best(e, p, lambda x, p=p: len(x) < len(p) and p[: len(x)] == x) for name, (e, p) in table.items()}
    _expect_found(student, table, right)


@check(
    stage=STAGE,
    id="miss-explained",
    points=1,
    title="A miss says how much was shared and what came next",
    watches=("explain_miss",),
)
def explain_miss(student: Student, cases: Cases) -> None:
    """explain_miss gives `common=C of N; stored next: X; live next: Y`, with `end` for a side that has no next id."""
    ids, other = _ids(cases, 50), [i + 1000 for i in _ids(cases, 50, "other")]
    pairs = {
        "a difference near the end of the stored ids": (ids[:23] + other[:4], ids[:23] + other[10:30]),
        "a difference in the middle": (ids[:40], ids[:11] + other[:7]),
        "a difference in the first id": (ids[:14], other[:1] + ids[1:20]),
        "a difference after one id": (ids[:14], ids[:1] + other[:5]),
        "stored ids that all begin the live ones": (ids[:13], ids[:31]),
        "live ids that all begin the stored ones": (ids[:31], ids[:13]),
        "equal ids": (ids[:17], ids[:17]),
    }
    for name, (stored, live) in pairs.items():
        common = _common(stored, live)
        a, b = (ids[common] if common < len(ids) else "end" for ids in (stored, live))
        at_end = "end" in (a, b)
        try:
            line = _text(student, "explain_miss", _own(stored), _own(live))
        except StudentError as error:
            if error.type != "IndexError" or not at_end:
                raise
            cell = str((error.where or {}).get("cell")).replace("-", "_")
            in_count = cell.endswith("longest_common_prefix")
            bug = own.RUNS_PAST_THE_END if in_count else own.MISS_NO_END
            raise Failure(None, f"For {name}, {error.sentence}", bug) from None
        begin = re.match(r"common=(-?\d+) of (\d+)(?!\d)", line)
        if begin is None:
            raise Failure(None, f"For {name}, the line does not begin with common=C of N.")
        if (int(begin[1]), int(begin[2])) != (common, len(stored)):
            bug = own.MISS_OF_LIVE if (int(begin[1]), int(begin[2])) == (common, len(live)) else None
            raise Failure(None, f"For {name}, the numbers after common= are not right.", bug)
        told = re.findall(r"(?<![\w.-])(?:\d+|end)(?!\w|\.\d)", line[begin.end() :])
        if len(told) <= 12 and _in_order(told, [str(a), str(b)]):
            continue
        bug = None
        shared = str(stored[common - 1]) if common else None
        if _in_order(told, [str(b), str(a)]):
            bug = own.MISS_SIDES_SWAPPED
        elif shared is not None and told.count(shared) >= 2 and len(told) <= 12:
            bug = own.MISS_LAST_SHARED
        elif at_end:
            bug = own.MISS_NO_END
        raise Failure(None, f"For {name}, the next ids are not named as they should be.", bug)


def _in_order(words: list[str], wanted: list[str]) -> bool:
    """Whether the wanted words are among the words, in their order; "end" twice may be said once."""
    if wanted == ["end", "end"]:
        wanted = ["end"]
    rest = iter(words)
    return all(word in rest for word in wanted)


# Conversations


_ODD_CONTENTS = {
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
    "contents with braces, percent signs and backslashes": ("{{0}} %s {{}} {}\\n", "{{name}} %(a)d {}\\1"),
}
_WORDS = [
    *("king", "crown", "sword", "letter", "bell", "door", "horse", "ring", "scene"),
    *("act", "lord", "duke", "night", "play", "gate", "part", "fool", "queen"),
]


def _talk(cases: Cases, kind: str, n_turns: int) -> list[dict[str, str]]:
    """A conversation that ends with an answer, with contents of one kind among plain ones."""
    rng = cases.rng("talk", kind)
    plain = _ODD_CONTENTS["plain contents"]
    odd = int(rng.integers(n_turns))
    messages = []
    for turn in range(n_turns):
        for role, form in zip(("user", "assistant"), _ODD_CONTENTS[kind] if turn == odd else plain, strict=True):
            words = [_WORDS[i] + str(int(rng.integers(100))) for i in rng.integers(len(_WORDS), size=2)]
            messages.append({"role": role, "content": form.format(*words)})
    return messages


@check(
    stage=STAGE,
    id="turn-is-a-prefix",
    points=2,
    title="Each turn's prompt and answer begin the next turn's prompt",
    watches=("render_chat",),
)
def turn_is_a_prefix(student: Student, cases: Cases) -> None:
    """The prompt of turn n and the answer are the beginning of turn n + 1's prompt, with all contents unchanged."""

    def render(messages, generate=None):
        options = {} if generate is None else {"add_generation_prompt": generate}
        return _text(student, "render_chat", messages, **options)

    for number, kind in enumerate(_ODD_CONTENTS):
        n_turns = 12 if kind == "plain contents" else 1 + number % 4
        talk = _talk(cases, kind, max(n_turns, 2))
        if number % 2:
            talk = [{"role": "system", "content": "Answer in one line."}, *talk]
        where = f"in a conversation of {sum(m['role'] == 'user' for m in talk)} turns, with {kind}"
        _expect_contents(render(talk, False), talk, where)
        asking = render(talk[:-1], True)
        history = render(talk[:-1])
        if history == asking or not asking.startswith(history):
            bug = own.GENERATION_PROMPT_ALWAYS if history.endswith(GENERATION_PROMPT) else None
            detail = f"The generation prompt is not simply added to the same text ({where})."
            raise Failure(None, detail, bug)
        if not asking.endswith(GENERATION_PROMPT):
            bug = own.THINK_NOT_ASKED if asking.endswith(GENERATION_PROMPT.removesuffix(NO_THOUGHT)) else None
            raise Failure(None, f"The text does not end with GENERATION_PROMPT when it is asked for ({where}).", bug)
        for i in (i for i, m in enumerate(talk) if m["role"] == "assistant"):
            turn = render(talk[:i], True)
            full = turn + talk[i]["content"]
            for later in range(i + 1, len(talk) + 1):
                following = render(talk[:later], talk[later - 1]["role"] != "assistant")
                if not following.startswith(full):
                    raise _not_a_prefix(turn, full, following, later == i + 1, where)
            if i + 1 < len(talk) and not render(talk[: i + 2], False)[len(full) :].startswith(START):
                detail = f"In the history, something stands between an answer and the next message's START ({where})."
                raise Failure(None, detail, own.CONTENT_AFTER_END)


def _expect_contents(text: str, messages: list[dict[str, str]], where: str) -> None:
    """The roles and contents stand in the text, unchanged and in order."""
    place = 0
    for i, message in enumerate(messages):
        heading, content = f"{START}{message['role']}\n", message["content"]
        begin = text.find(heading, place)
        if begin < 0:
            bug = own.EMPTY_MESSAGE_DROPPED if any(not m["content"].strip() for m in messages[: i + 1]) else None
            raise Failure(None, f"Message {i} (counted from 0) has no START, role and newline ({where}).", bug)
        place = begin + len(heading)
        after = text.find(content, place)
        if after < 0 or after > place + len(NO_THOUGHT):
            bug = None
            if content.strip() != content and text.find(content.strip(), place) >= 0:
                bug = own.CONTENT_STRIPPED
            elif NO_THOUGHT in content or START in content:
                bug = own.MARKERS_REMOVED
            raise Failure(None, f"The content of message {i} (counted from 0) is not there unchanged ({where}).", bug)
        if after > place and message["role"] != "assistant":
            detail = f"Message {i} (counted from 0) has something between its heading and its content ({where})."
            raise Failure(None, detail, own.THINK_FOR_OTHERS)
        place = after + len(content)


def _not_a_prefix(turn: str, full: str, following: str, just_answered: bool, where: str) -> Failure:
    """The failure of a prompt that does not continue the one before, with its likely cause."""
    common = _common(full, following)
    bug = None
    if full.removeprefix(turn) and following.startswith(turn.removesuffix(NO_THOUGHT) + full[len(turn) :] + NO_THOUGHT):
        bug = own.THINK_AFTER_ANSWER
    elif len(turn) - len(NO_THOUGHT) <= common < len(turn):
        bug = own.THINK_DROPPED if just_answered else own.THINK_ONLY_LATEST
    detail = f"{common} of the {len(full)} characters of a turn's prompt and answer begin a later prompt ({where})."
    return Failure(None, detail, bug)


def _tools(cases: Cases) -> list[dict[str, Any]]:
    """Descriptions of tools, with dicts in dicts and in lists."""
    word = [_WORDS[i] + str(i) for i in cases.rng("tools").permutation(len(_WORDS))[:8]]
    return [
        {
            "name": f"find_{word[0]}",
            "arguments": {word[1]: {"type": "integer", "minimum": 1}, word[2]: {"type": "string", "enum": word[3:6]}},
            "tags": [{"zone": word[6], "area": 2}, {"kind": "any", "exact": True}],
        },
        {"name": f"Ask_{word[7]}", "arguments": {}, "cost": 0.5},
    ]


def _turned(value: Any, turn: Callable[[int], bool], depth: int = 0) -> Any:
    """The same value with the keys of its dicts in the opposite order, at those depths for which turn says so."""
    if isinstance(value, dict):
        items = [(k, _turned(v, turn, depth + 1)) for k, v in value.items()]
        return dict(items[::-1] if turn(depth) else items)
    return [_turned(v, turn, depth) for v in value] if isinstance(value, list) else value


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
    words = [_WORDS[i] + str(i * 7 + 100) for i in rng.permutation(len(_WORDS))]
    system, tools = f"Keep to the {words[0]}.\nSpeak of the {words[1]} first.", _tools(cases)
    talk = _talk(cases, "plain contents", 3)[:-1]
    times, notes = (
        [f"It is {rng.integers(10, 24)}:{m} o'clock" for m in (11, 12)],
        [f"{w} is new" for w in sorted(words[2:6])[::-1]],
    )
    with_time = {"now": times[0]}
    variants = {
        "neither time nor notes": {},
        "a time": with_time,
        "another time": {"now": times[1]},
        "two notes": {"notes": notes[:2]},
        "one other note": {"notes": notes[2:3]},
        "a time and a note": {"now": times[0], "notes": notes[1:2]},
        "another time and two other notes": {"now": times[1], "notes": notes[2:]},
    }

    def build(messages, **options):
        return _text(student, "build_prompt", system, tools, messages, **options)

    if build(talk) != build(talk):
        raise Failure(None, "Two calls with equal arguments gave two prompts.", own.PROMPT_READS_CLOCK)
    prompts = {name: build(talk, **options) for name, options in variants.items()}
    for name, prompt in prompts.items():
        _expect_parts(prompt, system, tools, talk, variants[name], f"with {name}")
    for name, prompt in prompts.items():
        if not prompt.endswith(GENERATION_PROMPT):
            without_block = prompt.endswith(GENERATION_PROMPT.removesuffix(NO_THOUGHT))
            bug = own.THINK_NOT_ASKED if without_block else own.NO_GENERATION_PROMPT
            raise Failure(None, f"The prompt does not end with GENERATION_PROMPT (with {name}).", bug)
        if "now" not in variants[name] and "None" in prompt:
            raise Failure(None, f"The prompt holds the word None (with {name}).", own.NONE_IN_PROMPT)
        if not variants[name] and f"{START}context" in prompt:
            raise Failure(None, f"The prompt has a context message (with {name}).", own.EMPTY_CONTEXT)
    for n_messages in (5, 3, 1):
        messages = talk[:n_messages]
        base = build(messages, **with_time)
        need = _expect_parts(base, system, tools, messages, with_time, f"with {n_messages} messages and a time")
        others = {name: build(messages, **options) for name, options in variants.items()}
        if n_messages < len(talk):
            others["another time, a turn later"] = build(talk[: n_messages + 2], now=times[1], notes=notes[:1])
        for name, prompt in others.items():
            common = _common(base, prompt)
            if common >= need:
                continue
            bug = None
            if _template_holds(student, talk):  # else the order of the parts is not what is wrong
                bug = _volatile_bug(base, common, system, messages[0]["content"], variants.get(name))
            detail = (
                f"Of {need} characters up to the last of {n_messages} messages, a prompt with a time shares {common} "
                f"with the one with {name}."
            )
            raise Failure(None, detail, bug)


def _template_holds(student: Student, talk: list[dict[str, str]]) -> bool:
    """Whether the student's render_chat only ever adds to the text."""
    texts = [_text(student, "render_chat", talk[:n]) for n in range(1, len(talk) + 1)]
    context = [{"role": "context", "content": "late"}]
    after = [_text(student, "render_chat", [*talk[:n], *context]) for n in range(1, len(talk) + 1)]
    return all(t.startswith(s) for s, t in pairwise(texts)) and all(
        t.startswith(s) for s, t in zip(texts, after, strict=True)
    )


def _volatile_bug(base: str, common: int, system: str, first: str, options: dict | None) -> Bug:
    """By the place of the first difference, what stands too early. options: those of the prompt compared with base."""
    if common < base.find(system) + len(system):
        return own.CHANGES_BEFORE_SYSTEM
    if common > base.find(first):
        return own.CHANGES_BEFORE_LAST
    only_notes = options is not None and "now" not in options and "notes" in options
    return own.NOTES_BEFORE_MESSAGES if only_notes else own.TIME_BEFORE_MESSAGES


def _expect_parts(prompt, system, tools, messages, options, where) -> int:
    """All parts stand in the prompt, the lasting ones in order; gives the place where the last message ends."""
    place = prompt.find(system)
    if place < 0:
        raise Failure(None, f"The system text is not in the prompt, or not unchanged ({where}).")
    missing = [word for word in _words_of(tools) if word not in prompt]
    if missing:
        raise Failure(None, f"{len(missing)} texts of the tools are not in the prompt ({where}).", own.TOOLS_LEFT_OUT)
    place += len(system)
    for i, message in enumerate(messages):
        place = prompt.find(message["content"], place)
        if place < 0:
            raise Failure(None, f"Message {i} of {len(messages)} is not in the prompt, or not in its order ({where}).")
        place += len(message["content"])
    if "now" in options and options["now"] not in prompt:
        raise Failure(None, f"The time is not in the prompt ({where}).", own.TIME_LEFT_OUT)
    if any(note not in prompt for note in options.get("notes", ())):
        raise Failure(None, f"A note is not in the prompt ({where}).", own.NOTES_LEFT_OUT)
    changing = [text for text in (options.get("now"), *options.get("notes", ())) if text is not None]
    lines = iter(prompt[place:].splitlines())
    if all(text in prompt[place:] for text in changing) and not all(
        any(text in line for line in lines) for text in changing
    ):
        raise Failure(
            None, f"Time and notes do not stand on lines of their own, in order ({where}).", own.CONTEXT_LINES
        )
    return place


def _words_of(value: Any) -> list[str]:
    """The texts in a value, keys included."""
    if isinstance(value, dict):
        return [w for k, v in value.items() for w in (k, *_words_of(v))]
    if isinstance(value, list):
        return [w for v in value for w in _words_of(v)]
    return [value] if isinstance(value, str) else []


@check(stage=STAGE, id="canonical-tools", points=1, title="The order of a tool's keys makes no difference")
def canonical_tools(student: Student, cases: Cases) -> None:
    """The same tools with their keys in another order, at any depth, give the same prompt; other tools give another."""
    tools = _tools(cases)
    talk = _talk(cases, "plain contents", 1)[:-1]

    def build(tools):
        return _text(student, "build_prompt", "Answer in one line.", tools, talk)

    prompt = build(tools)
    if build(tools) != prompt:
        raise Failure(None, "Two calls with equal arguments gave two prompts.", own.PROMPT_READS_CLOCK)
    missing = [word for word in _words_of(tools) if word not in prompt]
    if missing:
        raise Failure(None, f"{len(missing)} texts of the tools are not in the prompt.", own.TOOLS_LEFT_OUT)
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
    }
    for what, other in changed.items():
        if build(other) == prompt:
            bug = own.LIST_SORTED if "list" in what else None
            raise Failure(None, f"Tools with {what} give the same prompt.", bug)
    turns = {
        "outer keys": lambda depth: depth == 0,
        "keys of inner dicts": lambda depth: depth > 0,
        "keys at every depth": lambda depth: True,
    }
    prompts = {what: build(_turned(tools, turn)) for what, turn in turns.items()}
    for what, other in prompts.items():
        if other != prompt:
            bug = own.KEYS_SORTED_ON_TOP if prompts["outer keys"] == prompt else own.KEYS_AS_THEY_COME
            detail = (
                f"With the {what} in another order, {_common(prompt, other)} of {len(prompt)} characters are shared."
            )
            raise Failure(None, detail, bug)


@check(
    stage=STAGE,
    id="key-separates",
    points=2,
    title="Equal keys mean that everything is equal, in any process",
    watches=("cache_key",),
)
def key_separates(student: Student, cases: Cases) -> None:
    """Equal arguments give equal keys, also in another process; a difference in any argument gives another key."""
    rng = cases.rng("key")
    word = [_WORDS[i] for i in rng.permutation(len(_WORDS))]
    base = {field: f"{word[i]}{int(rng.integers(10, 99))}" for i, field in enumerate(KEY_FIELDS)}
    ids = _ids(cases, 40, "key")

    def key(ids=ids, **changes):
        value = student.plain("cache_key", _own(ids), **{**base, **changes})
        if not isinstance(value, (str, bytes, list)) and (isinstance(value, bool) or not isinstance(value, int)):
            raise Failure(None, f"cache_key returned {_kind(value)} where a text is expected.")
        return value

    first = key()
    if key() != first:
        raise Failure(None, "Two calls with equal arguments gave two keys.", own.KEY_NEVER_FOUND)
    _expect_no_collision(key, ids)
    _expect_every_field(key, first, base, word[10])
    _expect_every_id(key, first, ids)
    with student.elsewhere():
        there = key()
    if there != first:
        raise Failure(None, "In another process, the same arguments give another key.", own.KEY_SALTED)
    _expect_borders(key, word)


def _expect_every_field(key: Callable, first: Any, base: dict[str, str], word: str) -> None:
    same = [field for field in base if key(**{field: word}) == first]
    if same:
        bug = KEY_IGNORES[same[0]] if len(same) == 1 else None
        if len(same) == len(base):
            bug = own.KEY_SAME_FOR_ALL if key([3, 5, 8]) == first else own.KEY_IDS_ALONE
        raise Failure(None, f"A change in {' or '.join(same)} alone leaves the key as it was.", bug)
    for field, value in base.items():
        for what, other in (
            ("in capitals", value.upper()),
            ("with a blank at its end", value + " "),
            ("with a blank at its start", " " + value),
            ("with a letter beyond ASCII at its end", value + "é"),
        ):
            if key(**{field: other}) == first:
                raise Failure(None, f"With the {field} {what}, the key is the same.", own.KEY_NORMALIZED)
    for a, b in permutations(base, 2):
        if key(**{a: base[b], b: base[a]}) == first:
            raise Failure(None, f"With {a} and {b} exchanged, the key is the same.", own.KEY_FIELDS_EXCHANGED)


def _expect_every_id(key: Callable, first: Any, ids: list[int]) -> None:
    n = len(ids)
    changes = {f"id {i} of {n}": [*ids[:i], ids[i] + 5000, *ids[i + 1 :]] for i in (0, 1, n // 2, n - 2, n - 1)}
    changes |= {
        "one id less at the end": ids[:-1],
        "one id less at the start": ids[1:],
        "the last id twice": [*ids, ids[-1]],
    }
    for what, other in changes.items():
        if key(other) == first:
            raise Failure(None, f"With a change in the ids alone ({what}), the key is the same.", own.KEY_SOME_IDS)
    for step in (256, 4096, 32768):
        if key([*ids[:-1], ids[-1] + step]) == first or key([ids[0] + step, *ids[1:]]) == first:
            raise Failure(None, f"With one id greater by {step} alone, the key is the same.", own.KEY_IDS_WRAP)
    many = [i % 50_000 for i in range(40_001, 41_601)]  # a prompt of a usual length, and ids as large as GPT-2's
    whole = key(many)
    for i in (0, 128, 800, len(many) - 1):
        if key([*many[:i], many[i] + 1, *many[i + 1 :]]) == whole:
            detail = f"With a change in id {i} of {len(many)} alone, the key is the same."
            raise Failure(None, detail, own.KEY_SOME_IDS)
    exchanged = [*ids[: n - 2], ids[n - 1], ids[n - 2]]
    balanced = [ids[0] + 1, *ids[1:-1], ids[-1] - 1]
    for what, other in (("two ids exchanged", exchanged), ("one id greater by 1 and one less", balanced)):
        if key(other) == first:
            raise Failure(None, f"With {what}, the key is the same.", own.KEY_IGNORES_ID_ORDER)


def _expect_no_collision(key: Callable, ids: list[int]) -> None:
    keys = [repr(key([i, *ids[:2]])) for i in range(200)]
    sizes = {"str": 11, "bytes": 8}  # shorter ones cannot hold 64 bits
    one = key(ids)
    if len(set(keys)) > 1 and (len(one) < sizes.get(type(one).__name__, 0) if isinstance(one, (str, bytes)) else False):
        raise Failure(None, f"A key has a length of {len(one)} only.", own.KEY_TOO_SHORT)
    if 1 < len(set(keys)) < len(keys):
        detail = f"{len(keys)} different lists of ids have {len(set(keys))} different keys."
        raise Failure(None, detail, own.KEY_TOO_SHORT)


def _expect_borders(key: Callable, word: list[str]) -> None:
    """What ends one field must not be able to begin the next, whatever a student's separator is."""
    for a, b in (([1, 23], [12, 3]), ([1, 2, 3], [123]), ([11, 1], [1, 11])):
        if key(a) == key(b):
            detail = f"{len(a)} ids and {len(b)} ids with the same digits give the same key."
            raise Failure(None, detail, own.KEY_IDS_RUN_TOGETHER)
    left, middle, right = word[:3]
    for separator in ("", "|", ",", ":", "/", "-", "_", " ", "\n", "\0", ", "):
        for a, b in permutations(KEY_FIELDS, 2):
            one = {a: f"{left}{separator}{middle}", b: right}
            two = {a: left, b: f"{middle}{separator}{right}"}
            if key([7], **one) == key([7], **two):
                holding = ", when they hold the separator too" if separator else ""
                detail = f"The same letters, divided between {a} and {b} at another place{holding}, give the same key."
                raise Failure(None, detail, own.KEY_SEPARATOR_IN_FIELD if separator else own.KEY_RUNS_TOGETHER)
    for separator in ("\t", ";", "#", "\x1f", "::", "||", "|||", "--", "__", ".", "&", "@", " | ", "\\", "~", "+"):
        for a, b in pairwise(KEY_FIELDS):  # less common ones, and only where fields follow each other
            one = {a: f"{left}{separator}{middle}", b: right}
            if key([7], **one) == key([7], **{a: left, b: f"{middle}{separator}{right}"}):
                detail = f"A separator inside {a} or {b} moves the border between them and gives the same key."
                raise Failure(None, detail, own.KEY_SEPARATOR_IN_FIELD)
    for separator in ("", "|", ",", ":", "/", "-", "_", " "):
        for field in KEY_FIELDS:
            one = key([2, 3], **{field: f"{left}{separator}1"})
            two = key([1, 2, 3] if separator else [12, 3], **{field: left})
            other = (
                key([2, 3], **{field: f"1{separator}{left}"}),
                key([2, 3, 1] if separator else [2, 31], **{field: left}),
            )
            if one == two or other[0] == other[1]:
                detail = f"An id written at the end or start of the {field} instead gives the same key."
                raise Failure(None, detail, own.KEY_SEPARATOR_IN_FIELD if separator else own.KEY_RUNS_TOGETHER)
