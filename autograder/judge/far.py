"""Past 1,024 positions, the context of GPT-2, of which code may hold a copy."""

from __future__ import annotations

from collections.abc import Callable

from autograder.judge.cases import Cases
from autograder.judge.compare import expect_close
from autograder.judge.plurals import tokens
from autograder.judge.student import Handle, Student

END = 1030


def expect_right_far_on(
    student: Student, cases: Cases, name: str, n: int, arguments: Callable[[list[int], int, Handle], tuple]
) -> None:
    """Pass when a function that continues a cache gives the logits of the last of n tokens.

    The rows before them are random: computing those of a prompt would take longer than all other cases together.
    arguments: of the call, from the ids, their first position and the cache.
    """
    model, ids, past = cases.far, cases.ids(cases.far, n), cases.past(cases.far, END - n)
    logits = student.array(name, *arguments(ids, END - n, student.make_cache(model, past)))
    where = f"for {tokens(n)} after {END - n:,} cached on {model.about}"
    expect_close(logits, model.reference.run(ids, past=past).logits[-1], name=name, where=where, axes=("id",))
