"""The check of longest_common_prefix."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student, StudentError
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
    pairs: dict[str, tuple[list[int], list[int]]] = {
        f"two lists that share their first {count(c, 'id')} and agree again later": (
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
        "two lists that share id 0 and go on with others": ([*ids[:3], 0, *ids[4:9]], [*ids[:3], 0, *other[:5]]),
        "a first list that goes on with id 0 where the second ends": ([*ids[:8], 0, 0, 5], ids[:8]),
        "a second list that goes on with id 0 where the first ends": (ids[:8], [*ids[:8], 0]),
        "two lists in which some ids stand several times": repeated(other),
        "two long lists that share 5,919 first ids": (long, long[:5919] + other[:9]),
        "an empty first list": ([], ids[:4]),
        "an empty second list": (ids[:4], []),
        "two empty lists": ([], []),
    }
    right = {name: common(a, b) for name, (a, b) in pairs.items()}
    answers: dict[str, Any] = {}
    raised: dict[str, StudentError] = {}
    for name, (a, b) in pairs.items():
        try:
            none = bugs.SAME_LENGTH_IF_NO_DIFFERENCE if answers else None  # the first lists differ, and gave a number
            answers[name] = number_of(student, "longest_common_prefix", own_ids(a), own_ids(b), none=none)
        except StudentError as error:
            if error.unwritten:
                raise
            raised[name] = error
            answers[name] = None
    wrong = [name for name in pairs if answers[name] != right[name]]
    if not wrong:
        return

    def differs_at(a, b):
        return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)

    def place_of_id(a, b):
        place = differs_at(a, b)
        return min(len(a), len(b)) if place is None else a.index(a[place])

    def filled_with_zeros(a, b):
        pairs = list(zip_longest(a, b, fillvalue=0))
        return common([x for x, _ in pairs], [y for _, y in pairs])

    def ending(name, end):
        place = differs_at(*pairs[name])
        return end(*pairs[name]) if place is None else place

    suspects = [
        (bugs.COUNTS_EQUAL_PLACES, lambda n: sum(x == y for x, y in zip(*pairs[n], strict=False))),
        (bugs.COUNTS_LAST_INDEX, lambda n: right[n] - 1),
        (bugs.COUNTS_LAST_INDEX, lambda n: max(right[n] - 1, 0)),
        (bugs.COMPARES_WITH_IS, lambda n: common(pairs[n][0], [i if i <= 256 else -1 for i in pairs[n][1]])),
        (bugs.DIFFERENCE_LOOKED_UP, lambda n: place_of_id(*pairs[n])),
        (bugs.DIFFERENCE_LOOKED_UP, lambda n: place_of_id(*pairs[n][::-1])),
        (bugs.ZERO_IS_NO_ID, lambda n: filled_with_zeros(*pairs[n])),
        (bugs.ZERO_IS_NO_ID, lambda n: common([i or None for i in pairs[n][0]], pairs[n][1])),
        (bugs.COMMON_IDS_AS_A_SET, lambda n: len(set(pairs[n][0]) & set(pairs[n][1]))),
        (bugs.SAME_LENGTH_IF_NO_DIFFERENCE, lambda n: ending(n, lambda a, b: 0)),
        (bugs.SAME_LENGTH_IF_NO_DIFFERENCE, lambda n: ending(n, lambda a, b: -1)),
        (bugs.SAME_LENGTH_IF_NO_DIFFERENCE, lambda n: ending(n, lambda a, b: len(a))),
        (bugs.SAME_LENGTH_IF_NO_DIFFERENCE, lambda n: ending(n, lambda a, b: max(len(a), len(b)))),
    ]
    bug = suspect(answers, right, suspects)
    if raised and all(e.type == "IndexError" for e in raised.values()) and set(wrong) == set(raised):
        bug = bugs.RUNS_PAST_THE_END
    first = wrong[0]
    if first in raised:
        detail = f"For {first}: {raised[first].sentence}"
    else:
        detail = f"For {first}, longest_common_prefix is off by {answers[first] - right[first]:+d}."
    raise Failure(None, f"{detail[:-1]} ({len(wrong)} of {len(pairs)} cases fail).", bug)


def number_of(student: Student, name: str, *args: Any, none: Bug | None = None) -> int:
    """A call that must give a whole number; none: what it is called when it gives None."""
    value = student.plain(name, *args)
    if isinstance(value, bool) or not isinstance(value, int):
        bug = bugs.GIVES_THE_IDS if isinstance(value, list) and all(isinstance(i, int) for i in value) else None
        bug = none if value is None else bug
        raise Failure(None, f"{name} returned {kind_of(value)} where an int is expected.", bug)
    return value
