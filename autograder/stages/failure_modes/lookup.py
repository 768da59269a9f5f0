"""The checks of the log and of lookup."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import AsTuple, Entry, Student, StudentError
from autograder.judge.words import count
from autograder.stages.failure_modes.bugs import ids as bugs
from autograder.stages.failure_modes.shared import (
    STAGE,
    common,
    draw_ids,
    kind_of,
    other_ids,
    own_ids,
    repeated,
    suspect,
)

TWICE = "a matching entry that is stored twice"


def _lookup_cases(cases: Cases) -> dict[str, tuple[list[list[int]], list[int]]]:
    """Entries' ids and a prompt, by a description. No entry covers the whole prompt exactly."""
    prompt, other = draw_ids(cases, 24), other_ids(cases, 24)
    near = prompt[:18] + other[:1]
    nested = [prompt[:7], prompt[:15], prompt[:3]]
    long = cases.rng("long").integers(500, size=720).tolist()
    with_zero = [*prompt[:5], 0, 0, *prompt[7:11]]
    twice, again = repeated(other)
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
        TWICE: ([prompt[:4], prompt[:9], prompt[:9]], prompt),
        "an entry that leaves one token": ([prompt[:4], prompt[:23]], prompt),
        "entries that share nothing with the prompt": ([other[:3], other[:9]], prompt),
        "an entry of 9 ids that matches, and shorter ones that miss": (
            [other[:3], prompt[:9], other[3:5], [*prompt[:4], other[0]], other[:1]],
            prompt,
        ),
        "an entry of 700 ids that differs late alone": ([long[:40], [*long[:650], other[0], *long[651:700]]], long),
        "a prompt with id 0 in it": ([with_zero[:5], with_zero[:6], [*prompt[:5], other[0], 0]], with_zero),
        "entries in which some ids stand several times": ([again[:4], again[:6], twice], again),
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
    prompt = draw_ids(cases, 12, "whole")
    table["an entry that covers the whole prompt, and one that leaves a token"] = ([prompt, prompt[:11]], prompt)
    table["an entry longer than the prompt that differs from it early"] = ([prompt[:3] + prompt[4:]], prompt[:8])
    names = ("n", "common", "gate", "key", "hit")
    right: dict[str, list[tuple]] = {}
    answers: dict[str, list[tuple]] = {}
    extra: Failure | None = None
    for name, (entries, p) in table.items():
        right[name] = [_row(e, p) for e in entries]
        rows = student.plain("candidate_log", [Entry(own_ids(e)) for e in entries], own_ids(p))
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            raise Failure(
                None, f"For {name}, candidate_log returned {kind_of(rows)} where a list of dicts is expected."
            )
        missing = sorted({key for row in rows for key in names if key not in row})
        if missing:
            raise Failure(None, f"For {name}, a row has no {', '.join(map(repr, missing))}.")
        answers[name] = [tuple(row[key] for key in names) for row in rows]
        if extra is None and len(rows) != len(entries):
            entered = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
            bug = bugs.LOG_HITS_ONLY if len(rows) < len(entries) else bugs.LOG_MORE_ROWS
            extra = Failure(None, f"For {name}, the log has {count(len(rows), 'row')} for {entered}.", bug)
    if answers == right:
        return
    if extra:
        raise extra

    def rows_by(make):
        return lambda n: [make(e, table[n][1]) for e in table[n][0]]

    suspects = [
        (bugs.LOOKUP_TAKES_WHOLE_PROMPT, rows_by(lambda e, p: _row(e, p, gate=len(e) <= len(p)))),
        (bugs.LOOKUP_LEAVES_TWO, rows_by(lambda e, p: _row(e, p, gate=len(e) < len(p) - 1))),
        (bugs.LOG_HIT_WITHOUT_GATE, rows_by(lambda e, p: (*_row(e, p)[:4], common(e, p) == len(e)))),
        (bugs.LOG_GATE_BY_SHARED, rows_by(lambda e, p: _row(e, p, gate=common(e, p) < len(p)))),
        (bugs.LOG_KEY_IS_ANY, rows_by(lambda e, p: _row(e, p, key=common(e, p) > 0))),
        (bugs.LOOKUP_LONGER_THAN_PROMPT, rows_by(lambda e, p: _row(e, p, key=common(e, p) == min(len(e), len(p))))),
    ]
    name = next(n for n in table if answers[n] != right[n])
    place = next(i for i, (a, b) in enumerate(zip(answers[name], right[name], strict=True)) if a != b)
    column = next(key for key, a, b in zip(names, answers[name][place], right[name][place], strict=True) if a != b)
    detail = f"For {name}, {column!r} is not right in row {place} of {len(right[name])} (counted from 0)."
    raise Failure(None, detail, suspect(answers, right, suspects))


def _row(entry: list[int], prompt: list[int], gate: bool | None = None, key: bool | None = None) -> tuple:
    shared = common(entry, prompt)
    gate = len(entry) < len(prompt) if gate is None else gate
    key = shared == len(entry) if key is None else key
    return len(entry), shared, gate, key, gate and key


def _best(entries: list[list[int]], prompt: list[int], fits: Callable[[list[int]], bool]) -> list[int] | None:
    return max((e for e in entries if fits(e)), key=len, default=None)


def _lookup_suspects(table: dict[str, tuple[list[list[int]], list[int]]]) -> list[tuple[Bug, Callable]]:
    """Wrong lookups, each a function of a case's name that gives the ids of the entry it would return."""

    def begins(e, p):
        return p[: len(e)] == e

    def hits(n):
        entries, p = table[n]
        return [e for e in entries if begins(e, p) and len(e) < len(p)]

    def first_ids(n, k):
        entries, p = table[n]
        return _best(entries, p, lambda e: len(e) < len(p) and begins(e[:k], p))

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
        best = max((e for e in entries if len(e) < len(p)), key=lambda e: common(e, p), default=None)
        return best if best is not None and common(best, p) >= least else None

    def until_a_miss(entries, p):
        found = takewhile(lambda e: begins(e, p) and len(e) < len(p), entries)
        return max(found, key=len, default=None)

    def pairwise(n, shorter):
        entries, p = table[n]
        return _best(entries, p, lambda e: e[: len(p)] == p[: len(e)] and (len(e) != len(p) or not shorter))

    return [
        (bugs.LOOKUP_TAKES_WHOLE_PROMPT, lambda n: _best(*table[n], lambda e: begins(e, table[n][1]))),
        (
            bugs.LOOKUP_LEAVES_TWO,
            lambda n: max((e for e in hits(n) if len(e) < len(table[n][1]) - 1), key=len, default=None),
        ),
        (bugs.LOOKUP_FIRST_HIT, lambda n: next(iter(hits(n)), None)),
        (bugs.LOOKUP_LAST_HIT, lambda n: next(iter(hits(n)[::-1]), None)),
        (bugs.LOOKUP_SHORTEST, lambda n: min(hits(n), key=len, default=None)),
        (bugs.LOOKUP_LONGEST_COVERS, longest_covers),
        (bugs.LOOKUP_RANKS_FIRST, lambda n: ranks_first(n, 0)),
        (bugs.LOOKUP_RANKS_FIRST, lambda n: ranks_first(n, 1)),
        (bugs.LOOKUP_RANKS_FIRST, lambda n: ranks_first(n, None)),
        (bugs.LOOKUP_STOPS_AT_MISS, lambda n: until_a_miss(sorted(table[n][0], key=len), table[n][1])),
        (bugs.LOOKUP_STOPS_AT_MISS, lambda n: until_a_miss(*table[n])),
        (bugs.LOOKUP_NEAR_MISS, lambda n: shares_most(n, 0)),
        (bugs.LOOKUP_NEAR_MISS, lambda n: shares_most(n, 1)),
        (bugs.LOOKUP_LONGER_THAN_PROMPT, lambda n: pairwise(n, False)),
        (bugs.LOOKUP_LONGER_THAN_PROMPT, lambda n: pairwise(n, True)),
        (bugs.LOOKUP_NEAR_MISS, lambda n: max(table[n][0], key=lambda e: common(e, table[n][1]), default=None)),
        *((bugs.LOOKUP_SOME_IDS, lambda n, k=2**i: first_ids(n, k)) for i in range(3, 10)),
    ]


def _found(student: Student, entries: list[list[int]], prompt: list[int], as_tuple: bool = False) -> list[int] | None:
    """The ids of the entry that the student's lookup returns."""
    given: list[Entry] | AsTuple = [Entry(own_ids(ids)) for ids in entries]
    try:
        index = student.entry("lookup", AsTuple(given) if as_tuple else given, own_ids(prompt))
    except StudentError as error:
        if error.kind == "bad-result":
            raise Failure(None, f"{error.sentence}", bugs.LOOKUP_NOT_AN_ENTRY) from None
        raise
    return None if index is None else entries[index]


def _expect_found(student: Student, table: dict, tuples: bool = False) -> None:
    """Asks lookup every case of the table; on a wrong answer, fails with the first one and its bug.

    tuples: whether some cases give the entries as a tuple.
    """
    right = {name: _best(e, p, lambda x, p=p: len(x) < len(p) and p[: len(x)] == x) for name, (e, p) in table.items()}
    answers: dict[str, Any] = {}
    raised: dict[str, StudentError] = {}
    for i, (name, (entries, prompt)) in enumerate(table.items()):
        try:
            answers[name] = _found(student, entries, prompt, as_tuple=tuples and i % 3 == 1)
        except StudentError as error:
            if error.unwritten:
                raise
            raised[name], answers[name] = error, "raised"
    wrong = [name for name in table if answers[name] != right[name]]
    if not wrong:
        return
    bug = suspect(answers, right, _lookup_suspects(table))
    if raised and set(raised) == set(wrong) and all(right[name] is None for name in wrong):
        bug = bugs.LOOKUP_FAILS_ON_NO_HIT
    if set(raised) == set(wrong) == {TWICE} and raised[TWICE].type == "TypeError":
        bug = bugs.LOOKUP_COMPARES_ENTRIES
    first = wrong[0]
    if first in raised:
        detail = f"For {first}: {raised[first].sentence[:-1]}"
    else:
        detail = f"For {first}, lookup returned {_of(answers[first])} where {_of(right[first])} is expected"
    raise Failure(None, f"{detail} ({len(wrong)} of {len(table)} cases fail).", bug)


def _of(ids: list[int] | None) -> str:
    return "None" if ids is None else f"an entry of {count(len(ids), 'id')}"


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
    _expect_found(student, table, tuples=True)


@check(stage=STAGE, id="lookup-leaves-a-token", points=2, title="lookup leaves at least one token to compute")
def lookup_leaves_a_token(student: Student, cases: Cases) -> None:
    """lookup passes over an entry that covers the whole prompt, and returns the longest that leaves a token."""
    table: dict[str, tuple[list[list[int]], list[int]]] = {}
    for n in (2, 3, 9, 20):
        prompt = draw_ids(cases, n, n)
        table[f"a prompt of {n} ids that is stored whole, and also without its last id"] = (
            [prompt, prompt[: n - 1]],
            prompt,
        )
        table[f"a prompt of {n} ids that is stored whole, and nothing else"] = ([prompt], prompt)
        table[f"a prompt of {n} ids that is stored whole, twice, and so is its first id"] = (
            [prompt[:1], prompt, list(prompt)],
            prompt,
        )
    prompt, other = draw_ids(cases, 30), other_ids(cases, 30)
    table["a prompt of one id that is stored whole"] = ([prompt[:1], other[:4]], prompt[:1])
    table["a prompt of 30 ids that is not stored whole"] = ([prompt[:11], prompt[:19]], prompt)
    table["a prompt of 30 ids, stored whole, with entries of 22, 9, 26 and 25 ids of which the third misses"] = (
        [prompt[:22], prompt, prompt[:9], prompt[:25] + other[:1], prompt[:25]],
        prompt,
    )
    _expect_found(student, table)
