"""The checks of longest_common_prefix, candidate_log, lookup and explain_miss, which compare lists of ids."""

from __future__ import annotations

import re
from typing import Any

from autograder.judge.answers import described, expect_string
from autograder.judge.cases import Cases
from autograder.judge.compare import common
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.student import AsTuple, Entry, Student
from autograder.stages.failure_modes import bugs
from autograder.stages.failure_modes.shared import (
    Ids,
    Table,
    draw_ids,
    expect_answers,
    other_ids,
    own_ids,
    repeated,
)


def _pairs(cases: Cases) -> Table:
    """Two lists of ids, by a description."""
    ids, other = draw_ids(cases, 60), other_ids(cases, 60)
    long = cases.rng("long").integers(500, size=6000).tolist()
    few, some, many = cases.rng("lengths").integers([2, 6, 16], [5, 12, 25]).tolist()
    return {
        "the example of the docstring": ([5, 7, 9, 2], [5, 7, 8]),
        "two lists that share one id and agree again later": (ids[:40], ids[:1] + other[:2] + ids[3:30]),
        f"two lists that share {few} ids and agree again later": (ids[:40], ids[:few] + other[:2] + ids[few + 2 : 30]),
        f"two lists that share {many} ids and go on with others": (ids[:40], ids[:many] + other[:7] + ids[:9]),
        "two lists without a common start": (ids[:9], other[:9]),
        "two lists that differ in the first id alone": (ids[:12], other[:1] + ids[1:12]),
        "two lists that differ by 256 in one id": (ids[:12], _with(ids[:12], few, ids[few] + 256)),
        "the same ids from the second place on": (ids[:12], ids[1:13]),
        "two lists that differ in the last id alone": (ids[:9] + other[:1], ids[:9] + other[1:2]),
        "a first list that ends one id after the shared ones": (ids[:9] + other[:1], ids[:9] + other[1:9]),
        "a second list that is the beginning of the first": (ids[:many], ids[:some]),
        "a first list that is the beginning of the second": (ids[:some], ids[:many]),
        "equal lists": (ids[: 2 * many], ids[: 2 * many]),
        "id 0 among the shared ids": ([*ids[:few], 0, *ids[4:9]], [*ids[:few], 0, *other[:5]]),
        "id 0 next in the first list": ([*ids[:some], 0, *ids[12:15]], ids[:some] + other[:3]),
        "a first list that goes on with id 0 where the second ends": ([*ids[:some], 0, 0, 5], ids[:some]),
        "a second list that goes on with id 0 where the first ends": (ids[:some], [*ids[:some], 0, 0]),
        "two lists in which some ids stand several times": repeated(other),
        "two long lists that differ late": (long, long[: 5900 + many] + other[:9]),
        **{
            f"two lists of 90 ids that differ in one, at place {place}": (long[:90], _with(long[:90], place, other[0]))
            for place in (20 + few, 40 + some)
        },
        "an empty first list": ([], ids[:4]),
        "an empty second list": (ids[:4], []),
        "two empty lists": ([], []),
    }


def _with(ids: Ids, place: int, new: int) -> Ids:
    """The ids, and another one at a place."""
    return [*ids[:place], new, *ids[place + 1 :]]


@check(
    "Shared ids are counted from the start, up to the first difference", points=1, watches=("longest_common_prefix",)
)
def common_prefix(student: Student, cases: Cases) -> None:
    """longest_common_prefix counts the equal first ids of two lists, up to the first difference or the shorter end."""

    def ask(a: Ids, b: Ids) -> Any:
        return student.plain("longest_common_prefix", own_ids(a), own_ids(b))

    def told(answer: Any, right: int) -> str:
        if type(answer) is not int:
            return f"longest_common_prefix returned {described(answer)} where an int is expected"
        return f"longest_common_prefix is off by {answer - right:+d}"

    ids = draw_ids(cases, 12)
    large = {"two lists that differ by 65,536 in one id": (ids, _with(ids, 7, ids[7] + 2**16))}
    equal_places = bugs.COUNTS_EQUAL_PLACES, lambda a, b: sum(x == y for x, y in zip(a, b, strict=False))
    by_is = bugs.COMPARES_WITH_IS, lambda a, b: min([common(a, b), *(i for i, x in enumerate(a) if x > 256)])
    expect_answers(cases, _pairs(cases) | large, ask, common, told, [equal_places, by_is])


def _lookup_table(cases: Cases) -> Table:
    """Entries' ids and a prompt, by a description. No entry covers the whole prompt exactly."""
    p, other = draw_ids(cases, 24), other_ids(cases, 24)
    a, b, c = cases.rng("lengths").integers([2, 6, 11], [5, 10, 17]).tolist()
    near, x = p[:18] + other[:1], other[0]
    long = cases.rng("long").integers(500, size=720).tolist()
    zero = [*p[:5], 0, 0, *p[7:11]]
    twice, again = repeated(other)
    return {
        f"entries of {b}, {c} and {a} ids that all match": ([p[:b], p[:c], p[:a]], p),
        f"entries of {c}, {a} and {b} ids that all match": ([p[:c], p[:a], p[:b]], p),
        f"entries of {a}, {b} and {c} ids that all match": ([p[:a], p[:b], p[:c]], p),
        "a longer entry that misses by its last id": ([p[:5], near, p[:9]], p),
        "nothing but entries that miss by one id": ([near, p[:6] + other[:2], [x, *p[1:9]]], p),
        "a longer entry that differs in the middle alone": ([p[:a], [*p[:9], x, *p[10:17]]], p),
        "a longer entry whose last id begins with the same digits": ([p[:4], [*p[:12], 7]], [*p[:12], 71, *p[13:]]),
        "the longest entry belonging to another prompt": ([p[:b], other[:20]], p),
        "an entry that is the prompt and more": ([p[:a], p], p[:10]),
        "an entry whose ids stand in the prompt, but not at its start": ([p[2:9], p[:a]], p),
        "an entry with the right ids in another order": ([p[:4][::-1] + p[4:9], p[:2]], p),
        "one entry, of one id": ([p[:1]], p),
        "a matching entry that is stored twice": ([p[:a], p[:b], p[:b]], p),
        "an entry that leaves one token": ([p[:4], p[:23]], p),
        "entries that share nothing with the prompt": ([other[:3], other[:9]], p),
        "an entry that matches, and shorter ones that miss": ([other[:3], p[:b], other[3:5], [*p[:4], x], [x]], p),
        "nothing but an entry of 700 ids that differs late alone": ([_with(long[:700], 650, x)], long),
        "an entry of 700 ids that misses by its last ones alone": ([long[:40], long[:696] + other[:4]], long),
        "thirty entries that match": ([long[:n] for n in (*cases.rng("many").permutation(29) + c, c + 30)], long),
        "a prompt with id 0 in it": ([zero[:5], zero[:6], [*p[:5], x, 0]], zero),
        "entries in which some ids stand several times": ([again[:4], again[:6], twice], again),
        "no entries at all": ([], p),
    }


COLUMNS = ("n", "common", "gate", "key", "hit")


@check("The log tells what was decided about every candidate", points=1, watches=("candidate_log",))
def log_of_candidates(student: Student, cases: Cases) -> None:
    """candidate_log has one row for each entry, in order, with n, common, gate, key and hit."""
    table = _lookup_table(cases)
    prompt = draw_ids(cases, 12, "whole")
    table["an entry that covers the whole prompt, and one that leaves a token"] = ([prompt, prompt[:11]], prompt)
    table["an entry longer than the prompt that differs from it early"] = ([prompt[:3] + prompt[4:]], prompt[:8])

    def ask(entries: list[Ids], prompt: Ids) -> list[tuple]:
        rows = student.plain("candidate_log", [Entry(own_ids(e)) for e in entries], own_ids(prompt))
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            raise Failure(f"candidate_log returned {described(rows)} where a list of dicts is expected.")
        missing = sorted({key for row in rows for key in COLUMNS if key not in row})
        if missing:
            raise Failure(f"A row has no {', '.join(map(repr, missing))}.")
        return [tuple(row[key] for key in COLUMNS) for row in rows]

    def told(rows: list[tuple], right: list[tuple]) -> str:
        if len(rows) != len(right):
            return f"the log has {count(len(rows), 'row')} and not {len(right)}, one for each entry, hit or not"
        i = next(i for i, (row, wanted) in enumerate(zip(rows, right, strict=True)) if row != wanted)
        column, given, due = next(c for c in zip(COLUMNS, rows[i], right[i], strict=True) if c[1] != c[2])
        seen = given if isinstance(given, (bool, int)) else described(given)
        return f"{column!r} is {seen} where {due} is right, in row {i} of {len(right)}, counted from 0"

    def right(entries: list[Ids], prompt: Ids) -> list[tuple]:
        figures = [(len(e), common(e, prompt), len(e) < len(prompt), prompt[: len(e)] == e) for e in entries]
        return [(*row, row[2] and row[3]) for row in figures]

    def reordered(rows: Any, right: list[tuple]) -> bool:
        return isinstance(rows, list) and sorted(map(repr, rows)) == sorted(map(repr, right))

    expect_answers(cases, table, ask, right, told, alike=(bugs.LOG_REORDERED, reordered))


def _longest(entries: list[Ids], prompt: Ids) -> Ids | None:
    """Of the entries that begin the prompt, the longest."""
    return max((e for e in entries if prompt[: len(e)] == e), key=len, default=None)


def _hits(entries: list[Ids], prompt: Ids) -> list[Ids]:
    return [e for e in entries if len(e) < len(prompt) and prompt[: len(e)] == e]


def _if_hit(best: Ids | None, entries: list[Ids], prompt: Ids) -> Ids | None:
    return best if best in _hits(entries, prompt) else None


def _gated_then_matched(entries: list[Ids], prompt: Ids) -> Ids | None:
    return _if_hit(max((e for e in entries if len(e) < len(prompt)), key=len, default=None), entries, prompt)


def _shares_most(entries: list[Ids], prompt: Ids) -> Ids | None:
    shared = {common(e, prompt): e for e in reversed(entries) if len(e) < len(prompt)}
    return shared[max(shared)] if max(shared, default=0) else None


LOOKUP_VARIANTS = [
    (bugs.LOOKUP_TAKES_WHOLE_PROMPT, _longest),
    (bugs.LOOKUP_NOT_LONGEST, lambda entries, prompt: next(iter(_hits(entries, prompt)), None)),
    (bugs.LOOKUP_NOT_LONGEST, lambda entries, prompt: next(reversed(_hits(entries, prompt)), None)),
    (bugs.LOOKUP_NOT_LONGEST, lambda entries, prompt: min(_hits(entries, prompt), key=len, default=None)),
    (bugs.LOOKUP_RANKS_FIRST, _gated_then_matched),
    (bugs.LOOKUP_RANKS_FIRST, lambda entries, prompt: _if_hit(_longest(entries, prompt), entries, prompt)),
    (bugs.LOOKUP_NEAR_MISS, _shares_most),
]


def _expect_found(student: Student, cases: Cases, table: Table, tuples: bool = False) -> None:
    """lookup returns the right entry in every case; tuples: whether pairs of entries are given as a tuple."""

    def ask(entries: list[Ids], prompt: Ids) -> Ids | None:
        given = [Entry(own_ids(ids)) for ids in entries]
        index = student.entry("lookup", AsTuple(given) if tuples and len(entries) == 2 else given, own_ids(prompt))
        return None if index is None else entries[index]

    def told(found: Ids | None, right: Ids | None) -> str:
        what = ["None" if ids is None else f"an entry of {count(len(ids), 'id')}" for ids in (found, right)]
        return f"lookup returned {what[0]} where {what[1] if what[0] != what[1] else 'another one'} is expected"

    def right(entries: list[Ids], prompt: Ids) -> Ids | None:
        return max(_hits(entries, prompt), key=len, default=None)

    expect_answers(cases, table, ask, right, told, LOOKUP_VARIANTS)


@check("lookup finds the longest entry that begins the prompt", points=2, watches=("lookup",))
def lookup_longest_entry(student: Student, cases: Cases) -> None:
    """lookup returns the longest entry all of whose ids begin the prompt, and None where there is none."""
    _expect_found(student, cases, _lookup_table(cases), tuples=True)
    _expect_found_anew(student, cases)


def _expect_found_anew(student: Student, cases: Cases) -> None:
    """A prompt is asked again when other entries are stored, of which some are the very objects of before."""
    p = draw_ids(cases, 24, "anew")
    lengths = cases.rng("anew").integers([2, 8, 14], [7, 13, 23]).tolist()
    few, some, many = (student.keep(Entry(p[:n])) for n in lengths)
    for change, entries, right in (
        ("at first", [some, few], 0),
        ("after a longer entry was stored", [some, few, many], 2),
        ("after the longest entry was dropped", [some, few], 0),
        ("after a longer entry took the place of another", [some, many], 1),
    ):
        if student.entry("lookup", entries, own_ids(p)) != right:
            raise Failure(f"Asked for the same prompt {change}, lookup did not return the longest that matches.")


@check("lookup leaves at least one token to compute", points=2)
def lookup_leaves_a_token(student: Student, cases: Cases) -> None:
    """lookup passes over an entry that covers the whole prompt, and returns the longest that leaves a token."""
    p, other = draw_ids(cases, 30), other_ids(cases, 30)
    table: Table = {
        "a prompt of one id that is stored whole": ([p[:1], other[:4]], p[:1]),
        "a prompt of 30 ids that is not stored whole": ([p[:11], p[:19]], p),
        "a prompt of which nothing is stored but an entry that misses": ([p[:9] + other[:1]], p),
        "a prompt stored whole, with an entry that misses": ([p[:22], p, p[:9], p[:25] + other[:1], p[:25]], p),
    }
    for n in (2, 3, *cases.rng("lengths").integers([6, 15], [12, 25]).tolist()):
        ids, whole = draw_ids(cases, n, n), f"a prompt of {n} ids that is stored whole"
        table[f"{whole}, and also without its last id"] = ([ids, ids[:-1]], ids)
        table[f"{whole}, after the ids without the last"] = ([ids[:-1], ids], ids)
        table[f"{whole}, and nothing else"] = ([ids], ids)
        table[f"{whole}, twice, and so is its first id"] = ([ids[:1], ids, list(ids)], ids)
    _expect_found(student, cases, table)


@check("A miss says how much was shared and what came next", points=1, watches=("explain_miss",))
def miss_explained(student: Student, cases: Cases) -> None:
    """explain_miss gives `common=C of N; stored next: X; live next: Y`, with `end` for a side that has no next id."""

    def ask(stored: Ids, live: Ids) -> tuple:
        """The two numbers, and the next ids; where the line names others besides, all that it names."""
        line = expect_string("explain_miss", student.plain("explain_miss", own_ids(stored), own_ids(live)))
        begin = re.match(r"common=(-?\d{1,9}) of (\d{1,9})(?!\d)", line)
        if begin is None:
            raise Failure("The line does not begin with common=C of N.")
        named = re.findall(r"(?<![\w.-])(?:\d+|end)(?!\w|\.\d)", line[begin.end() :])
        wanted = _next_ids(stored, live)
        holds = len(named) <= 12 and _in_order(named, wanted) and not _both_ways(named, wanted, len(stored) + len(live))
        return int(begin[1]), int(begin[2]), wanted if holds else tuple(named)

    def right(stored: Ids, live: Ids) -> tuple:
        return common(stored, live), len(stored), _next_ids(stored, live)

    def told(answer: tuple, right: tuple) -> str:
        if answer[:2] != right[:2]:
            return "the numbers after common= are not right"
        return "the next ids are not named once, stored before live"

    expect_answers(cases, _pairs(cases), ask, right, told)


def _next_ids(stored: Ids, live: Ids) -> tuple[str, str]:
    n = common(stored, live)
    one, two = (str(ids[n]) if n < len(ids) else "end" for ids in (stored, live))
    return one, two


def _both_ways(named: list[str], wanted: tuple[str, str], most: int) -> bool:
    """Whether a line gives the pair in the other order too. Only ids above `most` count, which are no number of ids."""
    if "end" in wanted or min(map(int, wanted)) <= most:
        return False
    ids = [word for word in named if word in wanted]
    return any(tuple(ids[i : i + 2]) == wanted[::-1] for i in range(0, len(ids), 2))


def _in_order(named: list[str], wanted: tuple[str, str]) -> bool:
    """Whether the wanted ids are among those that are named, in their order; `end` twice may be said once."""
    rest = iter(named)
    return all(word in rest for word in dict.fromkeys(wanted))
