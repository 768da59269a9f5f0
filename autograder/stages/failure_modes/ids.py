"""The checks of longest_common_prefix, candidate_log, lookup and explain_miss, which compare lists of ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import AsTuple, Entry, Student, in_words
from autograder.judge.words import count
from autograder.stages.failure_modes import bugs
from autograder.stages.failure_modes.shared import (
    STAGE,
    Table,
    common,
    draw_ids,
    expect_answers,
    expect_string,
    other_ids,
    own_ids,
    repeated,
)

Ids = list[int]


@check(
    stage=STAGE,
    id="common-prefix",
    points=1,
    title="Shared ids are counted from the start, up to the first difference",
    watches=("longest_common_prefix",),
)
def common_prefix(student: Student, cases: Cases) -> None:
    """longest_common_prefix counts the equal first ids of two lists, up to the first difference or the shorter end."""
    ids, other = draw_ids(cases, 60), other_ids(cases, 60)
    long = cases.rng("long").integers(500, size=6000).tolist()
    few, some, many = cases.rng("lengths").integers([2, 6, 16], [5, 12, 25]).tolist()
    table: Table = {
        f"two lists that share their first {count(c, 'id')} and agree again later": (
            ids[:40],
            ids[:c] + other[:2] + ids[c + 2 : 30],
        )
        for c in (1, few, many)
    }
    table |= {
        "two lists without a common start": (ids[:9], other[:9]),
        "two lists that differ in the first id alone": (ids[:12], other[:1] + ids[1:12]),
        "the same ids from the second place on": (ids[:12], ids[1:13]),
        "a second list that is the beginning of the first": (ids[:many], ids[:some]),
        "a first list that is the beginning of the second": (ids[:some], ids[:many]),
        "equal lists": (ids[: 2 * many], ids[: 2 * many]),
        "two lists that share id 0 and go on with others": ([*ids[:few], 0, *ids[4:9]], [*ids[:few], 0, *other[:5]]),
        "a first list that goes on with id 0 where the second ends": ([*ids[:some], 0, 0, 5], ids[:some]),
        "a second list that goes on with id 0 where the first ends": (ids[:some], [*ids[:some], 0]),
        "two lists in which some ids stand several times": repeated(other),
        "two long lists that differ late": (long, long[: 5900 + many] + other[:9]),
        "an empty first list": ([], ids[:4]),
        "an empty second list": (ids[:4], []),
        "two empty lists": ([], []),
    }

    def ask(a: Ids, b: Ids) -> Any:
        return student.plain("longest_common_prefix", own_ids(a), own_ids(b))

    def told(answer: Any, right: int) -> str:
        if type(answer) is not int:
            return f"longest_common_prefix returned {in_words(answer)} where an int is expected"
        return f"longest_common_prefix is off by {answer - right:+d}"

    def without_end(a: Ids, b: Ids) -> int:
        n = 0
        while a[n] == b[n]:
            n += 1
        return n

    def only_at_a_difference(end: Callable) -> Callable:
        return lambda a, b: n if (n := common(a, b)) < min(len(a), len(b)) else end(a, b)

    ends = (lambda a, b: None, lambda a, b: 0, lambda a, b: -1, lambda a, b: len(a), lambda a, b: max(len(a), len(b)))
    variants = [
        (bugs.COUNTS_EQUAL_PLACES, lambda a, b: sum(x == y for x, y in zip(a, b, strict=False))),
        (bugs.COUNTS_LAST_INDEX, lambda a, b: common(a, b) - 1),
        (bugs.COMPARES_WITH_IS, lambda a, b: common(a, [i if i <= 256 else -1 for i in b])),
        (bugs.RUNS_PAST_THE_END, without_end),
        *((bugs.NO_DIFFERENCE_FOUND, only_at_a_difference(end)) for end in ends),
    ]
    expect_answers(cases, table, ask, common, told, variants)


def _lookup_table(cases: Cases) -> Table:
    """Entries' ids and a prompt, by a description. No entry covers the whole prompt exactly."""
    prompt, other = draw_ids(cases, 24), other_ids(cases, 24)
    a, b, c = cases.rng("lengths").integers([2, 6, 11], [5, 10, 17]).tolist()
    near = prompt[:18] + other[:1]
    long = cases.rng("long").integers(500, size=720).tolist()
    with_zero = [*prompt[:5], 0, 0, *prompt[7:11]]
    twice, again = repeated(other)
    return {
        f"entries of {b}, {c} and {a} ids that all match": ([prompt[:b], prompt[:c], prompt[:a]], prompt),
        f"entries of {c}, {a} and {b} ids that all match": ([prompt[:c], prompt[:a], prompt[:b]], prompt),
        f"entries of {a}, {b} and {c} ids that all match": ([prompt[:a], prompt[:b], prompt[:c]], prompt),
        "a longer entry that misses by its last id": ([prompt[:5], near, prompt[:9]], prompt),
        "nothing but entries that miss by one id": ([near, prompt[:6] + other[:2], other[:1] + prompt[1:9]], prompt),
        "a longer entry that differs in the middle alone": (
            [prompt[:a], prompt[:9] + other[:1] + prompt[10:17]],
            prompt,
        ),
        "a longer entry whose last id begins with the same digits": (
            [prompt[:4], [*prompt[:12], 7]],
            [*prompt[:12], 71, *prompt[13:]],
        ),
        "the longest entry belonging to another prompt": ([prompt[:b], other[:20]], prompt),
        "an entry that is the prompt and more": ([prompt[:a], prompt], prompt[:10]),
        "an entry whose ids stand in the prompt, but not at its start": ([prompt[2:9], prompt[:a]], prompt),
        "an entry with the right ids in another order": ([prompt[:4][::-1] + prompt[4:9], prompt[:2]], prompt),
        "one entry, of one id": ([prompt[:1]], prompt),
        "a matching entry that is stored twice": ([prompt[:a], prompt[:b], prompt[:b]], prompt),
        "an entry that leaves one token": ([prompt[:4], prompt[:23]], prompt),
        "entries that share nothing with the prompt": ([other[:3], other[:9]], prompt),
        "an entry that matches, and shorter ones that miss": (
            [other[:3], prompt[:b], other[3:5], [*prompt[:4], other[0]], other[:1]],
            prompt,
        ),
        "an entry of 700 ids that differs late alone": ([long[:40], [*long[:650], other[0], *long[651:700]]], long),
        "a prompt with id 0 in it": ([with_zero[:5], with_zero[:6], [*prompt[:5], other[0], 0]], with_zero),
        "entries in which some ids stand several times": ([again[:4], again[:6], twice], again),
        "no entries at all": ([], prompt),
    }


COLUMNS = ("n", "common", "gate", "key", "hit")


@check(
    stage=STAGE,
    id="log-of-candidates",
    points=1,
    title="The log tells what was decided about every candidate",
    watches=("candidate_log",),
)
def candidate_log(student: Student, cases: Cases) -> None:
    """candidate_log has one row for each entry, in order, with n, common, gate, key and hit."""
    table = _lookup_table(cases)
    prompt = draw_ids(cases, 12, "whole")
    table["an entry that covers the whole prompt, and one that leaves a token"] = ([prompt, prompt[:11]], prompt)
    table["an entry longer than the prompt that differs from it early"] = ([prompt[:3] + prompt[4:]], prompt[:8])

    def ask(entries: list[Ids], prompt: Ids) -> list[tuple]:
        rows = student.plain("candidate_log", [Entry(own_ids(e)) for e in entries], own_ids(prompt))
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            raise Failure(None, f"candidate_log returned {in_words(rows)} where a list of dicts is expected.")
        missing = sorted({key for row in rows for key in COLUMNS if key not in row})
        if missing:
            raise Failure(None, f"A row has no {', '.join(map(repr, missing))}.")
        return [tuple(row[key] for key in COLUMNS) for row in rows]

    def told(rows: list[tuple], right: list[tuple]) -> str:
        if len(rows) != len(right):
            return f"the log has {count(len(rows), 'row')} and not {len(right)}, one for each entry, hit or not"
        i = next(i for i, (row, wanted) in enumerate(zip(rows, right, strict=True)) if row != wanted)
        column = next(key for key, a, b in zip(COLUMNS, rows[i], right[i], strict=True) if a != b)
        return f"{column!r} is not right in row {i} of {len(right)}, counted from 0"

    def rows_by(row: Callable) -> Callable:
        return lambda entries, prompt: [row(e, prompt) for e in entries]

    variants = [
        (bugs.LOOKUP_TAKES_WHOLE_PROMPT, rows_by(lambda e, p: _row(e, p, gate=len(e) <= len(p)))),
        (bugs.LOG_HIT_WITHOUT_GATE, rows_by(lambda e, p: (*_row(e, p)[:4], _begins(e, p)))),
    ]
    expect_answers(cases, table, ask, rows_by(_row), told, variants)


def _begins(entry: Ids, prompt: Ids) -> bool:
    return prompt[: len(entry)] == entry


def _row(entry: Ids, prompt: Ids, gate: bool | None = None) -> tuple:
    gate = len(entry) < len(prompt) if gate is None else gate
    return len(entry), common(entry, prompt), gate, _begins(entry, prompt), gate and _begins(entry, prompt)


def _best(entries: list[Ids], fits: Callable[[Ids], bool], by: Callable[[Ids], int] = len) -> Ids | None:
    return max(filter(fits, entries), key=by, default=None)


def _hits(entries: list[Ids], prompt: Ids) -> list[Ids]:
    return [e for e in entries if len(e) < len(prompt) and _begins(e, prompt)]


def _ranked(longest: int) -> Callable:
    """Takes the longest entry, of those that are at most so much longer than the prompt, and then looks at it."""

    def variant(entries: list[Ids], prompt: Ids) -> Ids | None:
        best = _best(entries, lambda e: len(e) <= len(prompt) + longest)
        return best if best is not None and _hits([best], prompt) else None

    return variant


def _matched_then_gated(entries: list[Ids], prompt: Ids) -> Ids | None:
    best = _best(entries, lambda e: _begins(e, prompt))
    return best if best is not None and len(best) < len(prompt) else None


def _shares_most(least: int) -> Callable:
    return lambda entries, p: _best(
        entries, lambda e: len(e) < len(p) and common(e, p) >= least, lambda e: common(e, p)
    )


LOOKUP_VARIANTS = [
    (bugs.LOOKUP_TAKES_WHOLE_PROMPT, lambda entries, p: _best(entries, lambda e: _begins(e, p))),
    (bugs.LOOKUP_NOT_LONGEST, lambda entries, p: next(iter(_hits(entries, p)), None)),
    (bugs.LOOKUP_NOT_LONGEST, lambda entries, p: next(iter(_hits(entries, p)[::-1]), None)),
    (bugs.LOOKUP_NOT_LONGEST, lambda entries, p: min(_hits(entries, p), key=len, default=None)),
    *((bugs.LOOKUP_RANKS_FIRST, _ranked(longest)) for longest in (-1, 0, 10_000)),
    (bugs.LOOKUP_RANKS_FIRST, _matched_then_gated),
    *((bugs.LOOKUP_NEAR_MISS, _shares_most(least)) for least in (0, 1)),
    (bugs.LOOKUP_NEAR_MISS, lambda entries, p: _best(entries, lambda e: common(e, p) > 0 and len(e) < len(p))),
    (bugs.LOOKUP_NEAR_MISS, lambda entries, p: _best(entries, lambda e: len(e) < len(p))),
    (bugs.LOOKUP_FAILS_ON_NO_HIT, lambda entries, p: max(_hits(entries, p), key=len)),
]


def _expect_found(student: Student, cases: Cases, table: Table, tuples: bool = False) -> None:
    """lookup returns the right entry in every case; tuples: whether pairs of entries are given as a tuple."""

    def ask(entries: list[Ids], prompt: Ids) -> Ids | None:
        given = [Entry(own_ids(ids)) for ids in entries]
        index = student.entry("lookup", AsTuple(given) if tuples and len(entries) == 2 else given, own_ids(prompt))
        return None if index is None else entries[index]

    def told(found: Ids | None, right: Ids | None) -> str:
        what = ["None" if ids is None else f"an entry of {count(len(ids), 'id')}" for ids in (found, right)]
        return f"lookup returned {what[0]} where {what[1]} is expected"

    def right(entries: list[Ids], prompt: Ids) -> Ids | None:
        return max(_hits(entries, prompt), key=len, default=None)

    expect_answers(cases, table, ask, right, told, LOOKUP_VARIANTS)


@check(
    stage=STAGE,
    id="lookup-longest-entry",
    points=2,
    title="lookup finds the longest entry that begins the prompt",
    watches=("lookup",),
)
def lookup_longest_entry(student: Student, cases: Cases) -> None:
    """lookup returns the longest entry all of whose ids begin the prompt, and None where there is none."""
    _expect_found(student, cases, _lookup_table(cases), tuples=True)


@check(stage=STAGE, id="lookup-leaves-a-token", points=2, title="lookup leaves at least one token to compute")
def lookup_leaves_a_token(student: Student, cases: Cases) -> None:
    """lookup passes over an entry that covers the whole prompt, and returns the longest that leaves a token."""
    table: Table = {}
    prompt, other = draw_ids(cases, 30), other_ids(cases, 30)
    for n in (2, 3, *cases.rng("lengths").integers([6, 15], [12, 25]).tolist()):
        ids, whole = draw_ids(cases, n, n), f"a prompt of {n} ids that is stored whole"
        table[f"{whole}, and also without its last id"] = ([ids, ids[:-1]], ids)
        table[f"{whole}, after the ids without the last"] = ([ids[:-1], ids], ids)
        table[f"{whole}, and nothing else"] = ([ids], ids)
        table[f"{whole}, twice, and so is its first id"] = ([ids[:1], ids, list(ids)], ids)
    table["a prompt of one id that is stored whole"] = ([prompt[:1], other[:4]], prompt[:1])
    table["a prompt of 30 ids that is not stored whole"] = ([prompt[:11], prompt[:19]], prompt)
    table["a prompt of which nothing is stored but an entry that misses"] = ([prompt[:9] + other[:1]], prompt)
    table["a prompt of 30 ids, stored whole, with entries of 22, 9, 26 and 25 ids of which the third misses"] = (
        [prompt[:22], prompt, prompt[:9], prompt[:25] + other[:1], prompt[:25]],
        prompt,
    )
    _expect_found(student, cases, table)


@check(
    stage=STAGE,
    id="miss-explained",
    points=1,
    title="A miss says how much was shared and what came next",
    watches=("explain_miss",),
)
def explain_miss(student: Student, cases: Cases) -> None:
    """explain_miss gives `common=C of N; stored next: X; live next: Y`, with `end` for a side that has no next id."""
    ids, other = draw_ids(cases, 50), other_ids(cases, 50)
    table: Table = {
        "the example of its docstring": ([5, 7, 9, 2], [5, 7, 8]),
        "one id left on each side": (ids[:9] + other[:1], ids[:9] + other[1:2]),
        "one id left of the stored ones": (ids[:9] + other[:1], ids[:9] + other[1:9]),
        "a difference near the end of the stored ids": (ids[:23] + other[:4], ids[:23] + other[10:30]),
        "a difference in the middle": (ids[:40], ids[:11] + other[:7]),
        "a difference in the first id": (ids[:14], other[:1] + ids[1:20]),
        "a difference after one id": (ids[:14], ids[:1] + other[:5]),
        "stored ids that all begin the live ones": (ids[:13], ids[:31]),
        "live ids that all begin the stored ones": (ids[:31], ids[:13]),
        "id 0 next on the stored side": ([*ids[:6], 0, *ids[7:9]], ids[:6] + other[:3]),
        "id 0 next on the live side, where the stored ids end": (ids[:6], [*ids[:6], 0, 0]),
        "id 0 among the shared ids": ([*ids[:3], 0, *ids[4:9]], [*ids[:3], 0, *other[:4]]),
        "ids that stand several times": repeated(other),
        "equal ids": (ids[:17], ids[:17]),
        "a stored list without ids": ([], ids[:5]),
        "a live list without ids": (ids[:5], []),
        "two lists without ids": ([], []),
    }

    def ask(stored: Ids, live: Ids) -> tuple:
        """The two numbers, and the next ids; where the line names others besides, all that it names."""
        line = expect_string("explain_miss", student.plain("explain_miss", own_ids(stored), own_ids(live)))
        begin = re.match(r"common=(-?\d{1,9}) of (\d{1,9})(?!\d)", line)
        if begin is None:
            raise Failure(None, "The line does not begin with common=C of N.")
        named = re.findall(r"(?<![\w.-])(?:\d+|end)(?!\w|\.\d)", line[begin.end() :])
        wanted = _next_ids(stored, live)
        holds = len(named) <= 12 and _in_order(named, wanted)
        return int(begin[1]), int(begin[2]), wanted if holds else tuple(named)

    def right(stored: Ids, live: Ids) -> tuple:
        return common(stored, live), len(stored), _next_ids(stored, live)

    def told(answer: tuple, right: tuple) -> str:
        if answer[:2] != right[:2]:
            return "the numbers after common= are not right"
        return "the next ids are not named as they should be"

    variants = [
        (bugs.MISS_OF_LIVE, lambda stored, live: (common(stored, live), len(live), _next_ids(stored, live))),
        (bugs.MISS_SIDES_SWAPPED, lambda stored, live: (*right(stored, live)[:2], _next_ids(live, stored))),
    ]
    expect_answers(cases, table, ask, right, told, variants)


def _next_ids(stored: Ids, live: Ids) -> tuple[str, str]:
    n = common(stored, live)
    one, two = (str(ids[n]) if n < len(ids) else "end" for ids in (stored, live))
    return one, two


def _in_order(named: list[str], wanted: tuple[str, str]) -> bool:
    """Whether the wanted ids are among those that are named, in their order; `end` twice may be said once."""
    rest = iter(named)
    return all(word in rest for word in dict.fromkeys(wanted))
