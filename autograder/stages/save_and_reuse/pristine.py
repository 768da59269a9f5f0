"""The checks that a saved cache stays as it is, whatever is done with it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from autograder.judge.cases import JudgeModel
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV
from autograder.judge.student import StudentError
from autograder.judge.words import tokens
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import (
    STAGE,
    UNIT,
    case,
    expect_answer,
    expect_same,
    reuse_prefix,
    right_logits,
    save_prefix,
    saved_rows,
)


@check(stage=STAGE, id="saved-stays-pristine", points=2, title="The saved cache stays as it was saved")
def saved_stays_pristine(student, cases):
    """After any number of reuses the saved cache has its length and every byte, and A, B, A gives A's logits twice."""
    sweep = Sweep(UNIT)
    small, _, large = cases.odd
    # Many requests, and every way to fail, once; the other lengths are for buffers: 6 and A go past a room of 8.
    for model, p, all_of_it in ((small, 3, True), (small, 1, False), (small, 6, False), (large, 8, False)):
        with sweep.at(p):
            _expect_pristine(student, cases, model, p, all_of_it)
    with sweep.at(5):
        _expect_pristine(student, cases, cases.trained, 5, all_of_it=False)
    sweep.finish()


def _expect_pristine(student, cases, model, p, all_of_it):
    prefix = cases.ids(model, p, "prefix")
    a, b = cases.ids(model, 3, "A", p), cases.ids(model, 4, "B", p)
    c = cases.ids(model, 3, "C", p)  # as long as A
    d = cases.ids(model, 7, "D", p)  # longer; it leaves room for who puts tokens too far on
    where = case(model, p, len(a))
    saved = save_prefix(student, prefix, model)
    before = saved_rows(student, saved)

    def reuse(suffix):
        return reuse_prefix(student, saved, p, suffix, model)

    first = reuse(a)
    expect_answer(first, model, prefix, a)
    expect_same(before, student.read_cache(saved), model, p, "a request")
    if all_of_it:
        requests = (b, a[:1], c, b[:2], b, d, *(a[:1] for _ in range(8)))
    else:
        requests = (b,) if model is cases.trained else (b, c, d)  # its 12 layers are what it shows, and take long
    for suffix in requests:
        answer = reuse(suffix)
        if suffix is not c or answer.size == 1:  # one number, such as a token, may be the same by chance
            continue
        if not matches(answer, right_logits(model, prefix, c)) and matches(answer, first):
            detail = f"Another suffix of the same length gets the first one's logits ({where})."
            raise Failure(None, detail, own.ANSWERS_FROM_MEMORY)
    expect_same(before, student.read_cache(saved), model, p, f"{1 + len(requests)} requests")
    errors = (
        ("a request that raised half-way", p, [*a[:2], model.config.n_vocab, *a[2:]]),
        ("a request with an empty suffix", p, []),
        ("a request past n_ctx", p, [a[0]] * (model.config.n_ctx + 1 - p)),
        ("a request with a prefix_len of -1", -1, a[:1]),
        ("a request with a prefix_len that is one less", p - 1, a),
    )
    for what, n, suffix in errors if all_of_it else errors[:1]:
        _reuse_with_error(student, model, saved, n, suffix)
        expect_same(before, student.read_cache(saved), model, p, what, by_error=n == p)
    if not matches(reuse(a), first):
        raise Failure(None, f"The suffixes A, B, A give other logits for A the second time ({where}).")


def _reuse_with_error(student, model, saved, p, suffix):
    """A request that should be refused, or goes elsewhere; whether it is loud is another check's question."""
    try:
        reuse_prefix(student, saved, p, suffix, model)
    except StudentError as error:
        if error.unwritten:
            raise


@check(
    stage=STAGE, id="requests-in-turn", points=1, title="Two saved prefixes, and two clones, do not disturb each other"
)
def requests_in_turn(student, cases):
    """Prefixes saved at once give each its own answers, and clones of one saved cache grow independently."""
    for model, n_cloned in ((cases.odd[0], 12), (cases.odd[2], 5)):  # past a buffer of 8 rows, and within one
        prefixes = [cases.ids(model, n, name) for n, name in ((6, "one"), (4, "two"), (6, "three"))]
        saved = [save_prefix(student, prefix, model) for prefix in prefixes]
        for i, (handle, prefix) in enumerate(zip(saved, prefixes, strict=True)):
            suffix = cases.ids(model, 3, "suffix", i)
            answer = reuse_prefix(student, handle, len(prefix), suffix, model)
            if not matches(answer, right_logits(model, prefix, suffix)) and any(
                matches(answer, wrong) for wrong in _answers_of_others(model, prefix, prefixes, suffix)
            ):
                where = case(model, len(prefix), len(suffix))
                detail = f"With {len(prefixes)} prefixes saved, the wrong one is used ({where})."
                raise Failure(None, detail, own.ONE_CACHE_FOR_ALL)
            expect_answer(answer, model, prefix, suffix)
        _expect_independent_clones(student, cases, model, n_cloned)


def _answers_of_others(
    model: JudgeModel, prefix: list[int], prefixes: list[list[int]], suffix: list[int]
) -> Iterator[np.ndarray]:
    """What comes out with another prefix's rows, at their end and at the end of this one."""
    for other in prefixes:
        if other is not prefix:
            past = model.reference.run(other).kv
            for n in {len(other), len(prefix)}:
                yield model.reference.run(suffix, past=past, positions=range(n, n + len(suffix))).logits[-1]


def _expect_independent_clones(student, cases, model, p):
    """Two clones of a saved cache, and a clone of one of them, each with a tail of its own."""
    prefix = cases.ids(model, p, "cloned")
    saved = student.make_cache(model, model.reference.run(prefix).kv)
    before = student.read_cache(saved)
    clones = [student.method(saved, "clone", returns="handle") for _ in range(2)]
    clones.append(student.method(clones[0], "clone", returns="handle"))
    tails = [cases.ids(model, 3, "tail", i) for i in range(len(clones))]
    right = [model.reference.logits(prefix + tail) for tail in tails]
    for i in range(len(tails[0])):
        for clone, tail, logits in zip(clones, tails, right, strict=True):
            answer, expected = student.array("decode_step", tail[i], p + i, model, clone), logits[p + i]
            if matches(answer, expected):
                continue
            past = student.read_cache(clone)
            where = f"for a prefix of {tokens(p)} on {model.about}"
            detail = f"Clones were continued in turn, and at token {i + 1} one has rows of another ({where})."
            lengths_right = {a.shape[1] for pair in past for a in pair} == {p + i + 1}
            if lengths_right and i and _first_rows_right(student.read_cache(saved), before):
                raise Failure(None, detail, own.CLONES_SHARE_MEMORY)
            expect_close(answer, expected, name="The answer of a clone", axes=("id",), where=where)
    expect_same(before, student.read_cache(saved), model, p, "growing clones")


def _first_rows_right(kv: KV, before: KV) -> bool:
    return all(
        new[:, : old.shape[1]].tobytes() == old.tobytes()
        for now, then in zip(kv, before, strict=False)
        for new, old in zip(now, then, strict=True)
    )
