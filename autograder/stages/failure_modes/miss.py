"""The check of explain_miss."""

from __future__ import annotations

import re

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student, StudentError
from autograder.stages.failure_modes.bugs import ids as bugs
from autograder.stages.failure_modes.shared import (
    STAGE,
    common,
    draw_ids,
    expect_text,
    other_ids,
    own_ids,
    repeated,
)


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
    pairs = {
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
    for name, (stored, live) in pairs.items():
        shared = common(stored, live)
        a, b = (ids[shared] if shared < len(ids) else "end" for ids in (stored, live))
        at_end = "end" in (a, b)
        try:
            line = student.plain("explain_miss", own_ids(stored), own_ids(live))
        except StudentError as error:
            bug = _raised(error, at_end, bool(stored and live))
            if bug is None:
                raise
            raise Failure(None, f"For {name}, {error.sentence}", bug) from None
        line = expect_text("explain_miss", line, none=bugs.MISS_PRINTED)
        begin = re.match(r"common=(-?\d{1,9}) of (\d{1,9})(?!\d)", line)
        if begin is None:
            raise Failure(None, f"For {name}, the line does not begin with common=C of N.")
        if (int(begin[1]), int(begin[2])) != (shared, len(stored)):
            bug = bugs.MISS_OF_LIVE if (int(begin[1]), int(begin[2])) == (shared, len(live)) else None
            if int(begin[1]) != shared and int(begin[1]) in (x.index(i) for x, i in ((stored, a), (live, b)) if i in x):
                bug = bugs.DIFFERENCE_LOOKED_UP
            raise Failure(None, f"For {name}, the numbers after common= are not right.", bug)
        told = re.findall(r"(?<![\w.-])(?:\d+|end)(?!\w|\.\d)", line[begin.end() :])
        if len(told) <= 12 and _in_order(told, [str(a), str(b)]):
            continue
        bug = None
        last = str(stored[shared - 1]) if shared else None
        if _in_order(told, [str(b), str(a)]):
            bug = bugs.MISS_SIDES_SWAPPED
        elif last is not None and told.count(last) >= 2 and len(told) <= 12:
            bug = bugs.MISS_LAST_SHARED
        elif 0 in (a, b):
            bug = bugs.ZERO_IS_NO_ID
        elif at_end:
            bug = bugs.MISS_NO_END
        elif _in_order(told, [str(x) if shared + 1 < len(of) else "end" for x, of in ((a, stored), (b, live))]):
            bug = bugs.MISS_ENDS_EARLY
        raise Failure(None, f"For {name}, the next ids are not named as they should be.", bug)


def _raised(error: StudentError, at_end: bool, full: bool) -> Bug | None:
    """What an error looks like. at_end: a side has no next id. full: both lists have ids; those without come last."""
    if error.stub or error.kind != "raised":
        return None
    in_count = str((error.where or {}).get("cell")).replace("-", "_").endswith("longest_common_prefix")
    if not full:
        return None if in_count else bugs.MISS_EMPTY_LIST
    if error.type != "IndexError" or not at_end:
        return None
    return bugs.RUNS_PAST_THE_END if in_count else bugs.MISS_NO_END


def _in_order(words: list[str], wanted: list[str]) -> bool:
    """Whether the wanted words are among the words, in their order; "end" twice may be said once."""
    if wanted == ["end", "end"]:
        wanted = ["end"]
    rest = iter(words)
    return all(word in rest for word in wanted)
