"""The check of cache_key."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from autograder.judge.answers import expect_string
from autograder.judge.cases import Cases
from autograder.judge.compare import common
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student, StudentError
from autograder.stages.failure_modes import bugs
from autograder.stages.failure_modes.key_questions import FIELDS, Question, borders_in, draw_question, questions
from autograder.stages.failure_modes.shared import WORDS
from autograder.worker.arguments import AsString

ELSEWHERE = "In another process, the same arguments give another key."
IN_ONE_MESSAGE = 500
LEAST_BITS = 64
LONGEST_DIGEST = 10_000  # as a string
N_LISTS = 300  # so many different lists show every value of a digit, and more than half of those of a byte


@check("Equal keys mean that everything is equal, in any process", points=2, watches=("cache_key",))
def key_separates(student: Student, cases: Cases) -> None:
    """Equal arguments give equal keys, also in another process; a difference in any argument gives another key."""
    rng = cases.rng("key")
    word = [WORDS[i] for i in rng.permutation(len(WORDS))]
    first = draw_question(rng, word)
    _expect_in_any_call(student, first)
    lists = [first.with_ids(ids) for ids in rng.integers(50_000, size=(N_LISTS, 8)).tolist()]
    about = {**questions(first, word), **dict.fromkeys(lists, "the ids are others")}
    each = list(about)
    keys = _ask(student, [each[i] for i in rng.permutation([*range(len(each)), *rng.integers(len(each), size=100)])])
    _expect_dependence(keys, first)
    _expect_enough_bits([keys[q] for q in lists])
    _expect_different(keys, about)
    of_borders = dict.fromkeys(borders_in(keys[first], first, word), "letters stand in another field")
    _expect_different(_ask(student, of_borders), of_borders)
    again = [first, *lists[:20]]
    for other_hashes in (False, True):  # another number of the process; then another sandbox as well
        if student.begin_anew(other_hashes) and _ask(student, again) != {q: keys[q] for q in again}:
            raise Failure(ELSEWHERE, bugs.KEY_SALTED)


def _expect_in_any_call(student: Student, first: Question) -> None:
    """Two equal calls give one key, here and as in another process, where hash() and the order of sets are others."""

    def key(**changes: Any) -> str:
        return repr(student.plain("cache_key", list(first.ids), **{**first.named, **changes}))

    def elsewhere(salt: int) -> str:
        try:
            return key(**{name: AsString(text, salt) for name, text in first.named.items()})
        except StudentError:
            return one  # code that does not take such strings

    one = key()
    if key() != one:
        raise Failure("Two calls with equal arguments gave two keys.")
    with student.elsewhere():
        there = key()
    if there != one or len({elsewhere(salt) for salt in range(1, 6)}) > 1:
        raise Failure(ELSEWHERE, bugs.KEY_SALTED)
    if repr(student.plain("cache_key", list(first.ids), **dict(reversed(first.named.items())))) != one:
        raise Failure("With the same arguments by name in another order, the key is another one.")
    layout = first.named["layout"]
    if len({key(layout=AsString(layout, form), positions=AsString(layout, form)) for form in ("own", "one")}) > 1:
        raise Failure("With layout and positions equal, the key depends on whether both are one object.")


def _ask(student: Student, order: Iterable[Question]) -> dict[Question, str]:
    """The key of each question; one that is asked again has to have the same."""
    calls = [((list(q.ids),), q.named) for q in order]
    parts = range(0, len(calls), IN_ONE_MESSAGE)
    values = [v for i in parts for v in student.each_plain("cache_key", calls[i : i + IN_ONE_MESSAGE])]
    keys: dict[Question, str] = {}
    for question, value in zip(order, values, strict=True):
        if keys.setdefault(question, expect_string("cache_key", value)) != value:
            raise Failure("Two calls with equal arguments gave two keys.")
    return keys


def _differing(one: Question, two: Question) -> list[str]:
    """The names of the arguments that differ."""
    fields = zip(FIELDS, one.fields, two.fields, strict=True)
    return ["ids"] * (one.ids != two.ids) + [name for name, a, b in fields if a != b]


def _expect_dependence(keys: dict[Question, str], first: Question) -> None:
    """Not every change of an argument leaves the key as it was: a short key may be equal by chance."""
    seen: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for question, key in keys.items():
        seen[tuple(_differing(first, question))].add(key)
    ignored = [name for name in ("ids", *FIELDS) if seen[name,] == {keys[first]}]
    if ignored:
        detail = f"Any change in {' or '.join(ignored)} alone leaves the key as it was."
        raise Failure(detail, bugs.KEY_IGNORES_AN_ARGUMENT)


def _expect_different(keys: dict[Question, str], about: dict[Question, str]) -> None:
    by_key: dict[str, Question] = {}
    for question, kind in about.items():
        other = by_key.setdefault(keys[question], question)
        if other != question:
            differing = _differing(other, question)
            same_letters = Counter("".join(other.fields)) == Counter("".join(question.fields))
            divided = same_letters and "ids" not in differing and sorted(other.fields) != sorted(question.fields)
            detail = f"Calls that differ in {' and '.join(differing)} have one key (here {kind})."
            raise Failure(detail, bugs.KEY_RUNS_TOGETHER if divided and len(differing) > 1 else None)


def _expect_enough_bits(keys: Sequence[str]) -> None:
    """Keys of different ids differ in so much that two are never equal by chance: by the values at each place."""
    place, columns = common(min(keys), max(keys)), set()
    for i in range(place, min(max(map(len, keys)), place + LONGEST_DIGEST)):
        columns.add(tuple(key[i : i + 1] for key in keys))  # once each: a digest written twice has no more bits
    bits = sum(8 if n > 128 else math.log2(n) for n in (len(set(column)) for column in columns))
    if bits < LEAST_BITS - 1:
        detail = f"The keys of {len(keys):,} different lists of ids differ in about {bits:.0f} bits: keep {LEAST_BITS}."
        raise Failure(detail)
