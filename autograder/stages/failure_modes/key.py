"""The check of cache_key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, permutations, product
from typing import Any

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import AsText, Student, StudentError
from autograder.stages.failure_modes.bugs import key as bugs
from autograder.stages.failure_modes.drawn import WORDS
from autograder.stages.failure_modes.key_borders import border_pairs, readable_pairs
from autograder.stages.failure_modes.key_likeness import empty_pairs, likeness_pairs
from autograder.stages.failure_modes.keys import Keys, Pair, Question, expect_key
from autograder.stages.failure_modes.shared import STAGE, common, draw_ids, same

ELSEWHERE = "In another process, the same arguments give another key."
LEAST_BITS = 64
LONGEST_DIGEST = 10_000  # as a text
N_LISTS = 300  # so many different lists show every value of a digit, and more than half of those of a byte


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
    word = [WORDS[i] for i in rng.permutation(len(WORDS))]
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789")
    base = {
        field: f"{word[i]}{''.join(rng.choice(letters, 20))}/{''.join(rng.choice(letters, 41))}"[:64]
        for i, field in enumerate(bugs.KEY_FIELDS)
    }
    ids = [i + 1 for i in draw_ids(cases, 40, "key")]  # one less is an id as well
    first = Question(ids, base)
    _expect_again_and_elsewhere(student, first)

    fields, id_changes = _field_changes(first, word[10]), _id_changes(first)
    shuffled = _shuffled(first)
    singles = _single_pairs(first, shuffled)
    borders = [*likeness_pairs(word), *border_pairs(word), *empty_pairs()]
    lists = [Question(some, base) for some in rng.integers(50_000, size=(N_LISTS, 8)).tolist()]
    keys = Keys(student)
    long = _long_pairs(first)
    _ask_long(keys, long)
    pairs = [*chain(*fields.values(), *id_changes.values()), *singles, *long, *borders]
    keys.ask([first, *_both(pairs), *lists])

    _expect_dependence(keys, fields, id_changes, shuffled)
    _expect_enough_bits([keys[q] for q in lists])
    keys.expect_different(pairs)
    readable = readable_pairs(keys[first], base, word)
    keys.ask(_both(readable))
    keys.expect_different(readable)
    _expect_in_a_new_process(student, keys, [first, *lists[:20]])


def _both(pairs: Sequence[Pair]) -> list[Question]:
    return [question for pair in pairs for question in (pair.one, pair.two)]


def _long_pairs(first: Question) -> list[Pair]:
    """Texts that are longer than a length in one byte or in two can say, with another last letter."""
    pairs = []
    for field, n in (("tenant", 300), ("model", 70_000)):
        text = first.texts[field] * (n // len(first.texts[field]) + 1)
        one, two = (first.having(**{field: text[:n] + end}) for end in "ab")
        detail = f"With another last letter of a {field} of {n + 1:,} letters, the key is the same."
        pairs.append(Pair(one, two, detail, bugs.KEY_FIELD_CUT))
    return pairs


def _ask_long(keys: Keys, pairs: Sequence[Pair]) -> None:
    try:
        keys.ask(_both(pairs))
    except StudentError as error:
        if error.kind != "raised" or error.unwritten:
            raise
        raise Failure(None, f"With a long text, {error.sentence}", bugs.KEY_LONG_TEXT) from None


def _expect_in_a_new_process(student: Student, keys: Keys, again: Sequence[Question]) -> None:
    """The same keys in another process, where there is one, with nothing in memory of this one."""
    hashed = student.hashes()
    if not student.begin_anew():
        return
    there = Keys(student)
    there.ask(again)
    if any(there[q] != keys[q] for q in again):
        raise Failure(None, ELSEWHERE, bugs.KEY_SALTED if hashed else bugs.KEY_OF_ONE_PROCESS)


def _expect_again_and_elsewhere(student: Student, first: Question) -> None:
    """Two equal calls give one key, here and as in another process, where hash() and the order of sets are others."""
    ids, texts = first.ids, first.texts

    def key(**changes: Any) -> Any:
        return student.plain("cache_key", ids, **{**texts, **changes})

    try:
        one = key()
    except StudentError as error:
        if "whole number" not in error.message or error.kind != "bad-result":
            raise
        raise Failure(None, "cache_key returned a whole number of more than 64 bits.", bugs.KEY_NOT_A_TEXT) from None
    if not same(key(), one):
        raise Failure(None, "Two calls with equal arguments gave two keys.", bugs.KEY_NEVER_FOUND)
    with student.elsewhere():
        there = key()
    if not same(there, one) or not _same_for_other_hashes(student, ids, texts):
        raise Failure(None, ELSEWHERE, bugs.KEY_SALTED)
    expect_key(one)
    if not same(student.plain("cache_key", ids, **dict(reversed(texts.items()))), one):
        detail = "With the same arguments by name in another order, the key is another one."
        raise Failure(None, detail, bugs.KEY_BY_ARGUMENT_ORDER)
    twice = texts["layout"]
    alike = [key(layout=AsText(twice, form), positions=AsText(twice, form)) for form in ("own", "one")]
    if not same(*alike):
        detail = "With layout and positions equal, the key is another one when both are the same object."
        raise Failure(None, detail, bugs.KEY_BY_IDENTITY)


def _same_for_other_hashes(student: Student, ids: list[int], texts: dict[str, str]) -> bool:
    """Whether texts with other hashes give the same key; also where the code does not take such texts."""
    try:
        keys = [
            student.plain("cache_key", ids, **{name: AsText(text, salt) for name, text in texts.items()})
            for salt in range(1, 6)
        ]
    except StudentError:
        return True
    return all(same(key, keys[0]) for key in keys)


def _field_changes(first: Question, word: str) -> dict[str, list[Pair]]:
    """For each field, the pairs in which it alone differs."""
    changes: dict[str, list[Pair]] = {}
    for field, value in first.texts.items():
        middle, slash = len(value) // 2 + 8, value.index("/")
        others = {f"With another {field}": (word + value[::-1][len(word) :], None)}
        for what, place in (("first", 0), ("last", len(value) - 1), ("middle", middle)):
            other = "x" if value[place] != "x" else "y"
            cut = value[:place] + other + value[place + 1 :], bugs.KEY_FIELD_CUT
            others[f"With another {what} letter of the {field}"] = cut
        before_slash = value[:slash][::-1] + "z" + value[slash:]
        others |= {
            f"With something else before the slash in the {field}": (before_slash, bugs.KEY_FIELD_CUT),
            f"With the {field} in capitals": (value.upper(), bugs.KEY_NORMALIZED),
            f"With a blank at the end of the {field}": (value + " ", bugs.KEY_NORMALIZED),
            f"With a blank at the start of the {field}": (" " + value, bugs.KEY_NORMALIZED),
            f"With a letter beyond ASCII at the end of the {field}": (value + "é", bugs.KEY_LETTERS_LOST),
        }
        changes[field] = [
            Pair(first, first.having(**{field: other}), f"{what}, the key is the same.", bug)
            for what, (other, bug) in others.items()
        ]
    return changes


def _id_changes(first: Question) -> dict[str, list[Pair]]:
    """For each of some places in the ids, the pairs in which the id there alone differs."""
    ids = first.ids
    n = len(ids)
    return {
        f"id {i} of {n}": [
            Pair(
                first,
                first.with_ids([*ids[:i], ids[i] + more, *ids[i + 1 :]]),
                f"With a change in id {i} of {n} alone (counted from 0), the key is the same.",
                bugs.KEY_SOME_IDS,
            )
            for more in (1, 777, 4999)
        ]
        for i in (0, 1, n // 2, n - 2, n - 1)
    }


def _single_pairs(first: Question, shuffled: Sequence[Question]) -> list[Pair]:
    """Pairs that differ in one way each: what a key must tell apart besides."""
    ids = first.ids
    texts = first.texts
    pairs = []

    def add(what: str, bug: Any, two: Question, one: Question = first) -> None:
        pairs.append(Pair(one, two, f"With {what}, the key is the same.", bug))

    for name, value in texts.items():
        for a, b in (("é", "ü"), ("漢", "字"), ("é", "e\u0301"), *product("é", ("?", "&#233;", "\\xe9", "\\u00e9"))):
            one, two = first.having(**{name: value + a}), first.having(**{name: value + b})
            add(f"another letter beyond ASCII in the {name}", bugs.KEY_LETTERS_LOST, two, one)
    for a, b in permutations(texts, 2):
        add(f"{a} and {b} exchanged", bugs.KEY_FIELDS_EXCHANGED, first.having(**{a: texts[b], b: texts[a]}))
    for what, other in (
        ("one id less at the end", ids[:-1]),
        ("one id less at the start", ids[1:]),
        ("the last id twice", [*ids, ids[-1]]),
    ):
        add(f"a change in the ids alone ({what})", bugs.KEY_SOME_IDS, first.with_ids(other))
    for step in (2**k for k in range(1, 16)):
        what = f"one id greater by {step:,} alone"
        add(what, bugs.KEY_IDS_WRAP, first.with_ids([*ids[:-1], ids[-1] + step]))
        add(what, bugs.KEY_IDS_WRAP, first.with_ids([ids[0] + step, *ids[1:]]))
    for n, places in ((1600, (128, 800, 1599)), (8200, (8199,))):  # of a usual length, and a long one
        many = [(40_000 + i) % 50_000 for i in range(n)]  # ids as large as GPT-2's
        whole = first.with_ids(many)
        for i in places:
            what = f"a change in id {i:,} of {n:,} alone (counted from 0)"
            add(what, bugs.KEY_SOME_IDS, whole.with_ids([*many[:i], many[i] + 1, *many[i + 1 :]]), whole)
    for what, other in zip(("two ids exchanged", "one id greater by 1 and one less"), shuffled, strict=True):
        add(what, bugs.KEY_IGNORES_ID_ORDER, other)
    return pairs


def _shuffled(first: Question) -> tuple[Question, Question]:
    """The same ids with two exchanged, and ids of the same sum."""
    ids = first.ids
    return (
        first.with_ids([*ids[:-2], ids[-1], ids[-2]]),
        first.with_ids([ids[0] + 1, *ids[1:-1], ids[-1] - 1]),
    )


def _expect_dependence(
    keys: Keys, fields: dict[str, list[Pair]], id_changes: dict[str, list[Pair]], shuffled: Sequence[Question]
) -> None:
    """The key depends on each field and on each id: not every change of it leaves the key as it was.

    Each is changed in several ways, so that a short key that is equal by chance is not taken for one that ignores it.
    """
    same = [field for field, pairs in fields.items() if not any(keys.differ(pair) for pair in pairs)]
    unseen = [place for place, pairs in id_changes.items() if not any(keys.differ(pair) for pair in pairs)]
    if same:
        bug = bugs.KEY_IGNORES[same[0]] if len(same) == 1 else None
        if len(same) == len(fields):
            bug = bugs.KEY_SAME_FOR_ALL if len(unseen) == len(id_changes) else bugs.KEY_IDS_ALONE
        raise Failure(None, f"A change in {' or '.join(same)} alone leaves the key as it was.", bug)
    if unseen:
        bug = bugs.KEY_NO_IDS if len(unseen) == len(id_changes) else bugs.KEY_SOME_IDS
        raise Failure(None, f"Any change in {unseen[0]} alone (counted from 0) leaves the key as it was.", bug)
    first = next(iter(id_changes.values()))[0].one
    if all(keys[other] == keys[first] for other in shuffled):
        detail = "With two ids exchanged, or with one id greater by 1 and one less, the key is the same."
        raise Failure(None, detail, bugs.KEY_IGNORES_ID_ORDER)


def _expect_enough_bits(keys: list[str]) -> None:
    """Keys of many lists of ids differ in so much that two of them are never equal by chance."""
    n = len(set(keys))
    bits = _bits(keys)
    if n < len(keys):
        detail = f"{len(keys):,} different lists of ids have {n:,} different keys."
    elif bits < LEAST_BITS - 1:
        detail = f"The keys of {len(keys):,} different lists of ids differ in about {bits:.0f} bits."
    else:
        return
    raise Failure(None, detail, bugs.KEY_TOO_SHORT)


def _bits(keys: list[str]) -> float:
    """How many bits the keys differ in, from how many values are seen at each place; no more than are enough."""
    bits, place = 0.0, common(min(keys), max(keys))
    last = min(max(map(len, keys)), place + LONGEST_DIGEST)
    before: set[tuple[str, ...]] = set()  # a digest that is written twice has no more bits for it
    while place < last and bits < LEAST_BITS:
        there = tuple(key[place : place + 1] for key in keys)
        seen = len(set(there)) if there not in before else 1
        bits += 8 if seen > 128 else math.log2(seen)
        before.add(there)
        place += 1
    return bits
