"""The checks of generate_with_prefix: its answers, what it leaves of the saved cache, and what it refuses."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import numpy as np

from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.far import expect_right_far_on
from autograder.judge.framework import Failure, check
from autograder.judge.reference import part_of_rows
from autograder.judge.student import Student, StudentError
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import (
    REUSE,
    SAVE,
    UNIT,
    append_rows,
    case,
    expect_kept,
    expect_kept_as_well,
    expect_refusals,
    expect_right,
    expect_same,
    same_answer,
    same_bits,
)


@check("Reusing the prefix gives the same logits as recomputing", points=2, watches=("generate_with_prefix",))
def reuse_equals_recompute(student: Student, cases: Cases) -> None:
    """The logits after saved prefix and suffix are those of running the whole prompt from scratch."""
    sweep = Sweep(UNIT)
    for model, pairs in _prompt_lengths(cases):
        ids = cases.ids(model, max(map(sum, pairs)), "prompt")
        model.reference.run(ids)  # which answers for all its beginnings
        for p, s in pairs:
            with sweep.at(p):
                saved = student.handle(SAVE, ids[:p], model)
                expect_right(student, saved, model, ids[:p], ids[p : p + s], sweep.close)
    sweep.finish()
    deep = cases.ids(cases.deep, 5)
    expect_right(student, student.handle(SAVE, deep[:-2], cases.deep), cases.deep, deep[:-2], deep[-2:])
    expect_kept_as_well(student, cases)


def _prompt_lengths(cases: Cases) -> Iterator[tuple[JudgeModel, list[tuple[int, int]]]]:
    """(prefix length, suffix length) pairs for each model: short and long ones, and up to exactly n_ctx."""
    small, middle, large = cases.odd
    n = small.config.n_ctx
    # Buffers of 4, 8, 10 or 16 rows, one short, full and past it, which in some the suffix is; one token; n_ctx.
    yield small, [(p, min(1 + p % 3, n - p)) for p in (1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, n - 1)]
    n = middle.config.n_ctx
    yield middle, [(1, n - 1), (4, 2), (n // 2, n - n // 2), (n - 1, 1)]  # suffixes longer than a prefix, up to n_ctx
    yield large, [(1, 1), (large.config.n_ctx // 2, 7)]
    # Blocks of 16 to 128: full before the suffix, filled by it, one row past them. Chunks of the suffix: 64 is full
    # ones of 16 to 64; 40 of 5, 8 and 10, and not of 16 or 32; 257 has one token past those of 8 to 256.
    yield cases.far, [(64, 64), (128, 3), (129, 40), (20, 257)]
    yield cases.trained, [(5, 2)]


@check("The suffix continues at position prefix_len", points=2)
def position_continues(student: Student, cases: Cases) -> None:
    """Token i of the suffix stands at position prefix_len + i, with prefix_len as it was passed."""
    sweep = Sweep(UNIT)
    small, _, large = cases.odd
    # Suffixes of one token, of a few and of many: who handles them apart can get the position wrong in one way alone.
    for model, pairs in (
        (small, ((2, 3), (7, 1), (7, 6), (small.config.n_ctx - 3, 3))),
        (large, ((11, 6), (3, 20))),
        (cases.long, ((9, 40),)),
    ):
        for p, s in pairs:
            ids = cases.ids(model, p + s, "prompt")
            with sweep.at(p):
                saved = student.handle(SAVE, ids[:p], model)
                answer = expect_right(student, saved, model, ids[:p], ids[p:], sweep.close)
                for wrong in (0, p - 1, p + 1, p + 3) if s == 3 else (p + 1,):
                    if wrong + s <= model.config.n_ctx and same_answer(student, saved, wrong, ids[p:], model, answer):
                        detail = f"With prefix_len given as {wrong}, the logits are still those of position {p}"
                        raise Failure(f"{detail} ({case(model, p, s)}).", own.PREFIX_LEN_IGNORED)
    sweep.finish()
    expect_kept_as_well(student, cases)


@check("The saved cache stays as it was saved", points=2)
def saved_stays_pristine(student: Student, cases: Cases) -> None:
    """After any number of reuses the saved cache has its length and every byte, and A, B, A gives A's logits twice."""
    expect_kept(student, cases)
    model, p = cases.odd[0], 3
    prefix, where = cases.ids(model, p, "prefix"), case(model, p)
    a, b, c, d = (cases.ids(model, n, "suffix", n) for n in (3, 4, 7, 1))
    saved = student.handle(SAVE, prefix, model)
    before = student.read_cache(saved, SAVE)
    requests = (a, b, a, b[:2], c, *[d] * 8)
    for suffix in requests:
        expect_right(student, saved, model, prefix, suffix)
    expect_same(before, student.read_cache(saved), where, f"{len(requests)} requests")
    for what, n, suffix in (
        ("a request with an empty suffix", p, []),
        ("a request past n_ctx", p, [a[0]] * (model.config.n_ctx + 1 - p)),
        ("a request with a prefix_len of -1", -1, d),
        ("a request with a prefix_len that is one less", p - 1, a),
    ):
        with contextlib.suppress(StudentError):
            student.array(REUSE, saved, n, suffix, model)
        expect_same(before, student.read_cache(saved), where, what)
    expect_right(student, saved, model, prefix, a)


@check("Two saved prefixes, and two clones, do not disturb each other", points=1)
def requests_in_turn(student: Student, cases: Cases) -> None:
    """Prefixes saved at once give each its own answers, and clones of one saved cache grow independently."""
    for model, n_cloned in ((cases.odd[0], 12), (cases.odd[2], 5)):  # past a buffer of 8 rows, and within one
        prefixes = [cases.ids(model, n, name) for n, name in ((7, "one"), (4, "two"), (7, "three"))]
        saved = [student.handle(SAVE, prefix, model) for prefix in prefixes]
        for i, (handle, prefix) in enumerate(zip(saved, prefixes, strict=True)):
            expect_right(student, handle, model, prefix, cases.ids(model, 3, "suffix", i))
        _expect_independent_clones(student, cases, model, n_cloned)
    expect_kept_as_well(student, cases)


def _expect_independent_clones(student: Student, cases: Cases, model: JudgeModel, p: int) -> None:
    """Two clones of a saved cache, and a clone of one of them, each with a tail of its own."""
    prefix, where = cases.ids(model, p, "cloned"), case(model, p)
    saved = student.make_cache(model, model.reference.run(prefix).kv)
    before = student.read_cache(saved)
    clones = [student.method(saved, "clone", returns="handle") for _ in range(2)]
    clones.append(student.method(clones[0], "clone", returns="handle"))
    tails = [cases.ids(model, 3, "tail", i) for i in range(len(clones))]
    for i in range(len(tails[0])):
        rows = []
        for clone, tail in zip(clones, tails, strict=True):
            answer = student.array("decode_step", tail[i], p + i, model, clone)
            right = model.reference.logits(prefix + tail)[p + i]
            expect_close(answer, right, name="The answer of a clone", axes=("id",), where=where)
            rows.append(student.read_cache(clone))
        if not all(same_bits(student.read_cache(clone), kv) for clone, kv in zip(clones, rows, strict=True)):
            detail = f"Clones were continued in turn, and one has other rows after the next has grown ({where})."
            raise Failure(detail, own.CLONES_SHARE_MEMORY)
    expect_same(before, student.read_cache(saved), where, "growing clones")


@check("The answer comes from the saved keys and values", points=1)
def cache_is_used(student: Student, cases: Cases) -> None:
    """The saved keys and values of every layer decide the answer; the prefix is neither run again nor remembered."""
    model = cases.odd[1]  # with a layer between the first and the last
    prefix, suffix = cases.ids(model, 9, "prefix"), cases.ids(model, 3, "suffix")
    p, where = len(prefix), case(model, len(prefix), len(suffix))
    whole = model.reference.run(prefix + suffix)
    kv, expected = part_of_rows(whole.kv, 0, p), whole.logits[-1]
    rng = cases.rng("altered")
    options = {"name": REUSE, "axes": ("id",)}

    expect_right(student, student.handle(SAVE, prefix, model), model, prefix, suffix)

    wpe = model.weights.wpe.copy()
    wpe[:p] = rng.normal(size=wpe[:p].shape) * wpe.std()
    spoiled = model.patched("wpe.weight", wpe)
    answer = student.array(REUSE, student.handle(SAVE, prefix, model), p, suffix, spoiled)
    again = [(own.RECOMPUTED, lambda: spoiled.reference.logits(prefix + suffix)[-1])]
    place = f"with other numbers in the rows of wpe that only the prefix needs, {where}"
    expect_close(answer, expected, where=place, suspects=again, **options)

    saved = student.handle(SAVE, prefix, model)
    answer, n_run = student.counted_array(REUSE, saved, p, suffix, model)
    expect_close(answer, expected, where=where, **options)
    if n_run is not None and n_run > len(suffix) + 1.5:
        detail = f"{n_run:.0f} tokens went through the model where the suffix has {len(suffix)} ({where})."
        raise Failure(detail, own.RECOMPUTED)

    # With one row more in the very same cache there must be another answer, or an error. Left out are caches that
    # cannot be appended to, and code that reads the first prefix_len rows only: it answers alike for a copy, too.
    with contextlib.suppress(StudentError):
        append_rows(student, saved, [tuple(np.asarray(3 * a[:, :1], np.float32) for a in pair) for pair in kv])
        copy = student.method(saved, "clone", returns="handle")
        again, of_copy = (student.array(REUSE, cache, p, suffix, model) for cache in (saved, copy))
        if matches(again, answer) and not matches(of_copy, answer):
            raise Failure(f"One row more in the same cache changes nothing ({where}).")
    expect_right(student, student.handle(SAVE, prefix, model), model, prefix, suffix)  # saved anew, without that row

    # Small changes of each layer's keys and values in turn; then values past the largest number of half precision.
    for layer, part, scale in (*itertools.product(range(model.config.n_layer), (0, 1), (1.0,)), (0, 1, 1e8)):
        array, altered, wrong = kv[layer][part], [list(pair) for pair in kv], expected
        while matches(wrong, expected, atol=1e-2, rtol=5e-2):  # until the change is large enough for the logits
            altered[layer][part] = (array + scale * array.std() * rng.normal(size=array.shape)).astype(np.float32)
            wrong, scale = model.reference.run(suffix, past=altered).logits[-1], 3 * scale
        cache = student.make_cache(model, altered)
        answer = student.array(REUSE, cache, p, suffix, model)
        student.replace(cache)  # with the next, which has its id()
        what = f"Other {('keys', 'values')[part]} in layer {layer} of the cache"
        if matches(answer, expected):
            raise Failure(f"{what} change nothing ({where}).")
        expect_close(answer, wrong, where=f"{what}, {where}", **options)
    # The same numbers in another order, in which they add up to the same sum to the last bit.
    altered[layer][part].flat[:16] = np.roll(altered[layer][part].flat[:16], 8)
    wrong = model.reference.run(suffix, past=altered).logits[-1]
    answer = student.array(REUSE, student.make_cache(model, altered), p, suffix, model)
    expect_close(answer, wrong, where=f"the keys and values in another order, {where}", **options)
    expect_right_far_on(student, cases, REUSE, 2, lambda ids, p, cache: (cache, p, ids, cases.far))
    expect_kept_as_well(student, cases)


@check("What cannot be reused is refused with a clear error", points=1)
def reuse_refusals(student: Student, cases: Cases) -> None:
    """An empty prefix or suffix, an id outside the vocabulary, a negative prefix_len, a total past n_ctx are errors."""
    model = cases.odd[1]
    n_ctx, n_vocab = model.config.n_ctx, model.config.n_vocab
    ids = cases.ids(model, n_ctx + 1, "prompt")
    p = n_ctx - 5
    saved = student.handle(SAVE, ids[:p], model)
    expect_right(student, saved, model, ids[:p], ids[p : p + 3])
    full, nearly = (student.handle(SAVE, ids[:n], model) for n in (n_ctx, n_ctx - 1))
    one, two = ids[p : p + 1], ids[p : p + 2]
    past = own.PAST_THE_CONTEXT
    calls = (
        ("an empty suffix", own.EMPTY_SUFFIX, REUSE, saved, p, []),
        ("an empty prefix", None, SAVE, []),
        ("a prefix_len of -1", None, REUSE, saved, -1, one),
        ("a suffix that ends one past n_ctx", past, REUSE, saved, p, ids[p:]),
        ("a suffix to a prefix of n_ctx tokens", past, REUSE, full, n_ctx, one),
        # here a slice of wpe leaves one row, which NumPy gives to every token
        ("a suffix of 2 to a prefix of n_ctx - 1 tokens", past, REUSE, nearly, n_ctx - 1, two),
        ("a suffix of 3 to a prefix of n_ctx - 1 tokens", past, REUSE, nearly, n_ctx - 1, [*two, 0]),
        ("a prefix of n_ctx + 1 tokens", past, SAVE, ids),
        ("a suffix with the id n_vocab", None, REUSE, saved, p, [*one, n_vocab, *one]),
        ("a suffix with the id -1", None, REUSE, saved, p, [*one, -1, *one]),
        ("a prefix with the id n_vocab", None, SAVE, [*two, n_vocab, *one]),
        ("a prefix with the id -1", None, SAVE, [*two, -1, *one]),
    )
    expect_refusals(student, ((*call, model) for call in calls))
    student.handle(REUSE, saved, p, ids[p:n_ctx], model)  # this just fits
