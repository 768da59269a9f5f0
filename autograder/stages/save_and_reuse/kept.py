"""The checks that a saved cache stays as it is, whatever is done with it."""

from __future__ import annotations

from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV, Run, part_of_rows
from autograder.judge.student import Student
from autograder.judge.words import tokens
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import (
    STAGE,
    UNIT,
    cases_of_keeping,
    expect_kept,
    expect_kept_everywhere,
    expect_right,
    expect_same,
    save_prefix,
    saved_rows,
    try_reuse,
)


@check(stage=STAGE, id="saved-stays-pristine", points=2, title="The saved cache stays as it was saved")
def saved_stays_pristine(student: Student, cases: Cases) -> None:
    """After any number of reuses the saved cache has its length and every byte, and A, B, A gives A's logits twice."""
    sweep = Sweep(UNIT)
    for model, p in (*cases_of_keeping(cases), (cases.trained, 5)):
        with sweep.at(p):
            expect_kept(student, cases, model, p)
    sweep.finish()
    _expect_kept_by_many(student, cases.odd[0], cases)


def _expect_kept_by_many(student: Student, model: JudgeModel, cases: Cases) -> None:
    p, n_ctx = 3, model.config.n_ctx
    prefix = cases.ids(model, p, "prefix")
    a, b, c, d = (cases.ids(model, n, "suffix", n) for n in (3, 4, 7, 1))
    saved = save_prefix(student, prefix, model)
    before = saved_rows(student, saved)
    requests = (a, b, a, b[:2], c, *[d] * 8)
    for suffix in requests:
        expect_right(student, saved, model, prefix, suffix)
    expect_same(before, student.read_cache(saved), model, p, f"{len(requests)} requests")
    for what, n, suffix in (
        ("a request with an empty suffix", p, []),
        ("a request past n_ctx", p, [a[0]] * (n_ctx + 1 - p)),
        ("a request with a prefix_len of -1", -1, d),
        ("a request with a prefix_len that is one less", p - 1, a),
    ):
        try_reuse(student, saved, n, suffix, model)
        expect_same(before, student.read_cache(saved), model, p, what, by_error=n == p)
    expect_right(student, saved, model, prefix, a)


@check(
    stage=STAGE, id="requests-in-turn", points=1, title="Two saved prefixes, and two clones, do not disturb each other"
)
def requests_in_turn(student: Student, cases: Cases) -> None:
    """Prefixes saved at once give each its own answers, and clones of one saved cache grow independently."""
    for model, n_cloned in ((cases.odd[0], 12), (cases.odd[2], 5)):  # past a buffer of 8 rows, and within one
        prefixes = [cases.ids(model, n, name) for n, name in ((7, "one"), (4, "two"), (7, "three"))]
        saved = [save_prefix(student, prefix, model) for prefix in prefixes]
        for i, (handle, prefix) in enumerate(zip(saved, prefixes, strict=True)):
            expect_right(student, handle, model, prefix, cases.ids(model, 3, "suffix", i))
        _expect_independent_clones(student, cases, model, n_cloned)
    expect_kept_everywhere(student, cases)


def _expect_independent_clones(student: Student, cases: Cases, model: JudgeModel, p: int) -> None:
    """Two clones of a saved cache, and a clone of one of them, each with a tail of its own."""
    prefix = cases.ids(model, p, "cloned")
    saved = student.make_cache(model, model.reference.run(prefix).kv)
    before = student.read_cache(saved)
    clones = [student.method(saved, "clone", returns="handle") for _ in range(2)]
    clones.append(student.method(clones[0], "clone", returns="handle"))
    tails = [cases.ids(model, 3, "tail", i) for i in range(len(clones))]
    right = [model.reference.run(prefix + tail) for tail in tails]
    where = f"for a prefix of {tokens(p)} on {model.about}"
    for i in range(len(tails[0])):
        for clone, tail, run in zip(clones, tails, right, strict=True):
            answer = student.array("decode_step", tail[i], p + i, model, clone)
            if matches(answer, run.logits[p + i]):
                continue
            if _has_rows_of_another(student.read_cache(clone), right, run, p, i):
                detail = f"Clones were continued in turn, and at token {i + 1} one has rows of another ({where})."
                raise Failure(None, detail, own.CLONES_SHARE_MEMORY)
            expect_close(answer, run.logits[p + i], name="The answer of a clone", axes=("id",), where=where)
    expect_same(before, student.read_cache(saved), model, p, "growing clones")


def _has_rows_of_another(kv: KV, runs: list[Run], mine: Run, p: int, i: int) -> bool:
    """Whether a clone of the right length begins with the saved rows, and goes on with those of another's tail."""
    if {a.shape[1] for pair in kv for a in pair} != {p + i + 1} or not i:
        return False

    def equal(begin: int, end: int, run: Run) -> bool:
        pairs = zip(part_of_rows(kv, begin, end), part_of_rows(run.kv, begin, end), strict=False)
        return all(matches(x, y) for one, two in pairs for x, y in zip(one, two, strict=True))

    return equal(0, p, mine) and any(equal(p, p + 1, other) for other in runs if other is not mine)
