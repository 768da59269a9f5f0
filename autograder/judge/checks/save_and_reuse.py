"""The checks of save-and-reuse: one saved prefix, any number of suffixes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from autograder.judge.bugs import (
    CACHED_ROWS_IGNORED,
    FIRST_TOKEN_LOGITS,
    HALF_PRECISION,
    KEYS_VALUES_SWAPPED,
    LAYERS_AS_TEXT,
    MASK_WITHOUT_OFFSET,
    NO_CAUSAL_MASK,
    POSITIONS_COUNTED_TWICE,
    POSITIONS_MISSING,
    POSITIONS_RESET,
    Bug,
    positions_shifted,
)
from autograder.judge.bugs import save_and_reuse as own
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.compare import Sweep, expect_close, matches, recognize
from autograder.judge.framework import Failure, check
from autograder.judge.recompute import KV, RIGHT
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.words import count, tokens
from autograder.model.weights import tensors_of

STAGE = "save-and-reuse"
UNIT = "prefix lengths"

# In words


def _case(model: JudgeModel, n_prefix: int, n_suffix: int) -> str:
    return f"for a prefix of {n_prefix} and a suffix of {tokens(n_suffix)} on {model.about}"


# The right answer, and the wrong ones people get


def _rows(kv: KV, begin: int, end: int) -> KV:
    return [(k[:, begin:end], v[:, begin:end]) for k, v in kv]


def _expected(model: JudgeModel, prefix: list[int], suffix: list[int]) -> np.ndarray:
    return model.reference.logits(prefix + suffix)[-1]


def _wrong_saved(model: JudgeModel, prefix: list[int]) -> Iterator[tuple[Bug, Callable[[], KV]]]:
    """The keys and values that a wrong save leaves; each is computed when it is looked at."""
    reference, p, n_ctx = model.reference, len(prefix), model.config.n_ctx
    right = reference.run(prefix).kv
    yield KEYS_VALUES_SWAPPED, lambda: [(v, k) for k, v in right]
    yield LAYERS_AS_TEXT, lambda: [right[i] for i in sorted(range(len(right)), key=str)]
    yield NO_CAUSAL_MASK, lambda: reference.run(prefix, mistakes=RIGHT.with_(mask="none")).kv
    yield POSITIONS_MISSING, lambda: reference.run(prefix, mistakes=RIGHT.with_(positions="missing")).kv
    yield own.POSITION_STUCK, lambda: reference.run(prefix, positions=[0] * p).kv
    if p > 1:
        yield own.LAST_PREFIX_ROW_MISSING, lambda: _rows(right, 0, p - 1)
        yield own.FIRST_PREFIX_ROW_MISSING, lambda: _rows(right, 1, p)
        yield own.FIRST_PREFIX_ROW_MISSING, lambda: reference.run(prefix[1:], positions=range(1, p)).kv
        yield own.FIRST_PREFIX_ROW_MISSING, lambda: reference.run(prefix[1:]).kv
    yield own.PREFIX_SAVED_TWICE, lambda: reference.run(prefix, past=right, positions=range(p)).kv
    if 2 * p <= n_ctx:
        yield own.PREFIX_SAVED_TWICE, lambda: reference.run(prefix, past=right).kv
    if p < n_ctx:
        yield own.PREFIX_POSITIONS_SHIFTED, lambda: reference.run(prefix, positions=range(1, p + 1)).kv
        next_id = int(reference.logits(prefix)[-1].argmax())
        yield own.GENERATED_ROW_SAVED, lambda: reference.run([*prefix, next_id]).kv


def _suspects(model: JudgeModel, prefix: list[int], suffix: list[int]) -> Iterator[tuple[Bug, Callable]]:
    """The common wrong answers of a reuse; each is computed when it is looked at."""
    reference, p, s, n_ctx = model.reference, len(prefix), len(suffix), model.config.n_ctx
    whole = reference.run(prefix + suffix)
    saved = _rows(whole.kv, 0, p)

    def decode(positions, ids=suffix, past: KV | None = saved, mistakes=RIGHT):
        return lambda: reference.run(ids, past=past, positions=positions, mistakes=mistakes).logits[-1]

    right = range(p, p + s)
    yield POSITIONS_RESET, decode(range(s))
    shifts = [k for n in range(1, 9) for k in (n, -n) if p + k >= 0 and p + k + s <= n_ctx]
    for k in shifts[:4]:
        yield positions_shifted(k), decode(range(p + k, p + k + s))
    if 2 * p + s <= n_ctx:
        yield POSITIONS_COUNTED_TWICE, decode(range(2 * p, 2 * p + s))
    yield own.POSITION_STUCK, decode([p] * s)
    yield POSITIONS_MISSING, decode(right, mistakes=RIGHT.with_(positions="missing"))
    yield FIRST_TOKEN_LOGITS, lambda: whole.logits[p]
    yield own.STOPS_ONE_EARLY, lambda: whole.logits[-2]
    yield own.LAST_PREFIX_LOGITS, lambda: whole.logits[p - 1]
    yield own.ONLY_LAST_TOKEN, decode([p + s - 1], suffix[-1:])
    yield CACHED_ROWS_IGNORED, decode(right, past=None)
    yield CACHED_ROWS_IGNORED, decode(range(s), past=None)
    yield own.SUFFIX_REVERSED, decode(right, suffix[::-1])
    if p + s < n_ctx:
        again = prefix[-1:] + suffix
        yield own.LAST_PREFIX_TOKEN_TWICE, decode(range(p, p + s + 1), again)
        yield own.LAST_PREFIX_TOKEN_TWICE, decode(range(p - 1, p + s), again)
    yield own.ALL_LOGITS, lambda: whole.logits[p:]
    yield own.TOKEN_RETURNED, lambda: whole.logits[-1].argmax()
    yield MASK_WITHOUT_OFFSET, decode(right, mistakes=RIGHT.with_(mask="no-offset"))
    yield NO_CAUSAL_MASK, decode(right, mistakes=RIGHT.with_(mask="none"))
    for bug, wrong in _wrong_saved(model, prefix):
        yield bug, lambda wrong=wrong: reference.run(suffix, past=wrong(), positions=right).logits[-1]
    for k in shifts[4:]:
        yield positions_shifted(k), decode(range(p + k, p + k + s))


def _reuse(student: Student, saved: Handle, p: int, suffix: list[int], model: JudgeModel) -> np.ndarray:
    try:
        return student.array("generate_with_prefix", saved, p, suffix, model)
    except StudentError as error:
        raise _nothing_returned(error) or error from None


def _save(student: Student, prefix: list[int], model: JudgeModel) -> Handle:
    return student.handle("save_prefix_cache", prefix, model)


def _saved_rows(student: Student, saved: Handle) -> KV:
    """The keys and values of what save_prefix_cache returned."""
    try:
        return student.read_cache(saved, "save_prefix_cache")
    except StudentError as error:
        if "object has no attribute 'layers'" in error.message and "NoneType" not in error.message:
            kind = error.message.split("'")[1]
            raise Failure(None, f"save_prefix_cache returned no cache but a {kind}.", own.NOT_A_CACHE) from None
        empty = Failure(None, "What save_prefix_cache returned has no rows.", own.CACHE_EMPTY)
        raise _nothing_returned(error) or (empty if "NoneType" in error.message else error) from None


def _nothing_returned(error: StudentError) -> Failure | None:
    """The failure to raise instead, when a None was taken for a result."""
    none = "the result is not an array of numbers but NoneType", "'NoneType' object has no attribute 'layers'"
    return (
        Failure(None, f"{error.name} returned None.", own.NOTHING_RETURNED) if error.message.startswith(none) else None
    )


def _expect_answer(answer: np.ndarray, model: JudgeModel, prefix: list[int], suffix: list[int]) -> Bug | None:
    """Pass when the answer is right, or is one of the wrong ones that have a name, which is returned.

    For checks of another property: who gets the positions wrong can still keep the saved cache pristine. An answer
    that nothing explains passes none of them.
    """
    expected = _expected(model, prefix, suffix)
    if matches(answer, expected):
        return None
    bug = recognize(answer, expected, _suspects(model, prefix, suffix))
    if bug is None:
        where = _case(model, len(prefix), len(suffix))
        expect_close(answer, expected, name="generate_with_prefix", axes=("id",), where=where)
    return bug


# The checks


@check(
    stage=STAGE,
    id="saved-prefix-exact",
    points=2,
    title="The saved cache holds the prefix, all of it and nothing else",
    watches=("save_prefix_cache",),
)
def saved_prefix_exact(student, cases):
    """In every layer the saved cache holds the keys and values of the prefix's tokens, one row a token."""
    sweep = Sweep(UNIT)
    small, middle, _ = cases.odd
    for model, lengths in (
        (small, range(1, small.config.n_ctx + 1)),  # chunks and buffers of any size up to there, full and not
        (middle, (1, middle.config.n_ctx)),
        (cases.long, (24, 32, 33, 65, 128)),  # blocks of 8 to 128: full, and one row past them
        (cases.trained, (12,)),
    ):
        ids = cases.ids(model, max(lengths), "prefix")
        for p in lengths:
            with sweep.at(p):
                saved = _save(student, ids[:p], model)
                _expect_rows(_saved_rows(student, saved), model, ids, p)
    sweep.finish()


def _expect_rows(kv: KV, model: JudgeModel, ids: list[int], p: int) -> None:
    """The keys and values are those of ids[:p], to float32."""
    config, place = model.config, f"for a prefix of {tokens(p)} on {model.about}"
    right = _rows(model.reference.run(ids).kv, 0, p)  # a later token changes no earlier row
    if len(kv) != config.n_layer:
        raise Failure(None, f"The cache has {count(len(kv), 'layer')} where the model has {config.n_layer} ({place}).")
    shapes = {a.shape for pair in kv for a in pair}
    if shapes != {right[0][0].shape}:
        if shapes == {(p, config.n_head, config.head_dim)}:
            raise Failure(None, f"Keys and values have shape {list(kv[0][0].shape)} ({place}).", own.TOKENS_FIRST)
        counts = {shape[1] for shape in shapes}
        if counts == {p}:
            raise Failure(None, f"Keys and values have shape {list(kv[0][0].shape)} ({place}).")
        bug = None
        if counts == {p + 1}:
            bug = own.GENERATED_ROW_SAVED
        elif counts == {0}:
            bug = own.CACHE_EMPTY
        elif counts == {config.n_ctx} and p < config.n_ctx - 2:  # nearer to the end, it may be a few rows too many
            bug = own.CACHE_PADDED
        rows, belong = _rows_of(counts), "belongs" if p == 1 else "belong"
        raise Failure(
            None, f"The layers have {rows} where {p} {belong} ({place}).", _content_bug(kv, model, ids[:p]) or bug
        )
    for layer, (actual, expected) in enumerate(zip(kv, right, strict=True)):
        for name, a, e in zip(("keys", "values"), actual, expected, strict=True):
            scale = float(np.sqrt((e**2).mean()))  # float32 is right to 1e-5 of it, float16 to 1e-3
            options = {"atol": 1e-4 * scale, "rtol": 1e-4, "axes": ("head", "row", "element")}
            try:
                expect_close(a, e, name=f"Layer {layer}'s array of {name}", where=place, **options)
            except Failure as failure:
                raise Failure(None, failure.detail, _content_bug(kv, model, ids[:p])) from None


def _rows_of(counts: set[int]) -> str:
    """The numbers of rows of the layers: "1 row", "3 to 5 rows"."""
    return count(min(counts), "row") if len(counts) == 1 else f"{min(counts)} to {max(counts)} rows"


def _content_bug(kv: KV, model: JudgeModel, prefix: list[int]) -> Bug | None:
    flat = np.concatenate([a.ravel() for pair in kv for a in pair]).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(flat).all() and flat.any() and (flat == flat.astype(np.float16)).all():
            return HALF_PRECISION
    for bug, wrong in _wrong_saved(model, prefix):
        pairs = zip(kv, wrong(), strict=True)
        if all(matches(a, w) for pair, other in pairs for a, w in zip(pair, other, strict=True)):
            return bug
    return None


@check(
    stage=STAGE,
    id="reuse-equals-recompute",
    points=2,
    title="Reusing the prefix gives the same logits as recomputing",
    watches=("generate_with_prefix",),
)
def reuse_equals_recompute(student, cases):
    """The logits after saved prefix and suffix are those of running the whole prompt from scratch."""
    sweep = Sweep(UNIT)
    for model, pairs in _prompt_lengths(cases):
        ids = cases.ids(model, max(map(sum, pairs)), "prompt")
        for p, s in pairs:
            with sweep.at(p):
                prefix, suffix = ids[:p], ids[p : p + s]
                sweep.close(
                    _reuse(student, _save(student, prefix, model), p, suffix, model),
                    model.reference.logits(ids)[p + s - 1],
                    name="generate_with_prefix",
                    axes=("id",),
                    where=_case(model, p, s),
                    suspects=_suspects(model, prefix, suffix),
                )
    sweep.finish()


def _prompt_lengths(cases) -> Iterator[tuple[JudgeModel, list[tuple[int, int]]]]:
    """(prefix length, suffix length) pairs for each model: short and long ones, and up to exactly n_ctx."""
    small, middle, large = cases.odd
    n = small.config.n_ctx
    # Buffers of 4, 8, 10 or 16 rows, one short, full and past it, which in some the suffix is; one token; n_ctx.
    yield small, [(p, min(1 + p % 3, n - p)) for p in (1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, n - 1)]
    n = middle.config.n_ctx
    yield middle, [(1, n - 1), (4, 2), (n // 2, n - n // 2), (n - 1, 1)]  # suffixes longer than a prefix, up to n_ctx
    yield large, [(1, 1), (large.config.n_ctx // 2, 7)]
    n = cases.long.config.n_ctx
    # Blocks of 16 to 128: full before the suffix, filled by it, one row past them. Chunks of the suffix: 64 is full
    # ones of 16 and 32; 40 of 5, 8 and 10, and not of 16 or 32. The last goes to n_ctx, past all blocks.
    yield cases.long, [(16, 1), (32, 3), (64, 64), (65, 40), (128, n - 128)]
    yield cases.trained, [(11, 4)]


@check(stage=STAGE, id="position-continues", points=2, title="The suffix continues at position prefix_len")
def position_continues(student, cases):
    """Token i of the suffix stands at position prefix_len + i, with prefix_len as it was passed."""
    sweep = Sweep(UNIT)
    small, _, large = cases.odd
    for model, lengths in ((small, (2, 7, small.config.n_ctx - 3)), (large, (11,)), (cases.trained, (5,))):
        for p in lengths:
            ids = cases.ids(model, p + 3, "prompt")
            prefix, suffix = ids[:p], ids[p:]
            with sweep.at(p):
                saved = _save(student, prefix, model)
                expected = _expected(model, prefix, suffix)
                sweep.close(
                    _reuse(student, saved, p, suffix, model),
                    expected,
                    name="generate_with_prefix",
                    axes=("id",),
                    where=_case(model, p, len(suffix)),
                    suspects=_suspects(model, prefix, suffix),
                )
                for wrong in (0, p - 1, p + 1):
                    if wrong + len(suffix) > model.config.n_ctx:
                        continue
                    _expect_other_answer(student, model, saved, p, wrong, suffix, expected)
    sweep.finish()


def _expect_other_answer(student, model, saved, p, wrong, suffix, expected):
    """With a wrong prefix_len the answer must be wrong too, or there must be a clear error."""
    try:
        answer = _reuse(student, saved, wrong, suffix, model)
    except StudentError as error:
        if error.loud:
            return
        raise
    if matches(answer, expected):
        detail = f"With prefix_len given as {wrong} for a prefix of {p}, the logits are still those of position {p}"
        raise Failure(None, f"{detail} ({_case(model, p, len(suffix))}).", own.PREFIX_LEN_IGNORED)


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
    where = _case(model, p, len(a))
    saved = _save(student, prefix, model)
    before = _saved_rows(student, saved)

    def reuse(suffix):
        return _reuse(student, saved, p, suffix, model)

    first = reuse(a)
    _expect_answer(first, model, prefix, a)
    _expect_same(before, student.read_cache(saved), model, p, "a request")
    requests = (b, a[:1], c, b[:2], b, d, *(a[:1] for _ in range(8))) if all_of_it else (b, c, d)
    for suffix in requests:
        answer = reuse(suffix)
        if suffix is c and not matches(answer, _expected(model, prefix, c)) and matches(answer, first):
            detail = f"Another suffix of the same length gets the first one's logits ({where})."
            raise Failure(None, detail, own.ANSWERS_FROM_MEMORY)
    _expect_same(before, student.read_cache(saved), model, p, f"{1 + len(requests)} requests")
    errors = (
        ("a request that raised half-way", p, [*a[:2], model.config.n_vocab, *a[2:]]),
        ("a request with an empty suffix", p, []),
        ("a request past n_ctx", p, [a[0]] * (model.config.n_ctx + 1 - p)),
        ("a request with a prefix_len of -1", -1, a[:1]),
        ("a request with a prefix_len that is one less", p - 1, a),
    )
    for what, n, suffix in errors if all_of_it else errors[:1]:
        _reuse_with_error(student, model, saved, n, suffix)
        _expect_same(before, student.read_cache(saved), model, p, what, by_error=n == p)
    if not matches(reuse(a), first):
        raise Failure(None, f"The suffixes A, B, A give other logits for A the second time ({where}).")


def _reuse_with_error(student, model, saved, p, suffix):
    """A request that should be refused, or goes elsewhere; whether it is loud is another check's question."""
    try:
        _reuse(student, saved, p, suffix, model)
    except StudentError as error:
        if error.stub or error.kind == "missing":
            raise


def _expect_same(before: KV, after: KV, model: JudgeModel, p: int, event: str, by_error: bool = False) -> None:
    def rows(kv):
        return [{a.shape[1] for a in pair} for pair in kv]

    where = f"(for a prefix of {tokens(p)} on {model.about})"
    changed = [
        layer
        for layer, (old, new) in enumerate(zip(before, after, strict=False))
        if any(
            o.shape != n.shape or o.dtype != n.dtype or o.tobytes() != n.tobytes()
            for o, n in zip(old, new, strict=True)
        )
    ]
    if not changed and len(before) == len(after):
        return
    n_old, n_new = max(map(max, rows(before))), max(map(max, rows(after)))
    grown = [layer for layer, (old, new) in enumerate(zip(rows(before), rows(after), strict=False)) if old != new]
    if not grown:
        bug = own.SAVED_ROWS_OVERWRITTEN
        hold = f"{len(changed)} of {len(before)} layers {'holds' if len(changed) == 1 else 'hold'}"
        detail = f"After {event}, {hold} other numbers {where}."
    else:
        if by_error:
            bug = own.LEFT_BY_ERROR
        elif len(grown) < len(before):
            bug = own.CLONE_INCOMPLETE
        else:
            bug = own.SAVED_CACHE_GROWS if n_new > n_old else own.SAVED_CACHE_SHRINKS
        new = {n for layer in grown for n in rows(after)[layer]}
        have = f"{len(grown)} of {len(before)} layers {'has' if len(grown) == 1 else 'have'}"
        detail = f"After {event}, {have} {_rows_of(new)} instead of {n_old} {where}."
    raise Failure(None, detail, bug)


@check(
    stage=STAGE, id="requests-in-turn", points=1, title="Two saved prefixes, and two clones, do not disturb each other"
)
def requests_in_turn(student, cases):
    """Two prefixes saved at once give each its own answers, and two clones of one saved cache grow independently."""
    for model in (cases.odd[0], cases.odd[2]):
        one, two, suffix = cases.ids(model, 6, "one"), cases.ids(model, 4, "two"), cases.ids(model, 3, "suffix")
        saved = [_save(student, prefix, model) for prefix in (one, two)]
        for handle, prefix, other in ((saved[0], one, two), (saved[1], two, one)):
            answer = _reuse(student, handle, len(prefix), suffix, model)
            others = [_expected(model, other, suffix)]
            at = range(len(prefix), len(prefix) + len(suffix))
            past = model.reference.run(other).kv
            others.append(model.reference.run(suffix, past=past, positions=at).logits[-1])
            right = _expected(model, prefix, suffix)
            if not matches(answer, right) and any(matches(answer, wrong) for wrong in others):
                detail = f"With two prefixes saved, the wrong one is used ({_case(model, len(prefix), len(suffix))})."
                raise Failure(None, detail, own.ONE_CACHE_FOR_ALL)
            _expect_answer(answer, model, prefix, suffix)
        _expect_independent_clones(student, cases, model)


def _expect_independent_clones(student, cases, model):
    prefix = cases.ids(model, 5, "cloned")
    p = len(prefix)
    saved = student.make_cache(model, model.reference.run(prefix).kv)
    before = student.read_cache(saved)
    tails = [cases.ids(model, 3, "tail", name) for name in "AB"]
    clones = [student.method(saved, "clone", returns="handle") for _ in tails]
    right = [model.reference.logits(prefix + tail) for tail in tails]
    for i in range(len(tails[0])):
        for clone, tail, logits in zip(clones, tails, right, strict=True):
            answer, expected = student.array("decode_step", tail[i], p + i, model, clone), logits[p + i]
            if matches(answer, expected):
                continue
            past = student.read_cache(clone)
            where = f"for a prefix of {tokens(len(prefix))} on {model.about}"
            detail = f"Two clones were continued in turn, and at token {i + 1} one has rows of the other ({where})."
            lengths_right = {a.shape[1] for pair in past for a in pair} == {len(prefix) + i + 1}
            if lengths_right and i and _first_rows_right(student.read_cache(saved), before):
                raise Failure(None, detail, own.CLONES_SHARE_MEMORY)
            expect_close(answer, expected, name="The answer of a clone", axes=("id",), where=where)
    _expect_same(before, student.read_cache(saved), model, len(prefix), "growing two clones")


def _first_rows_right(kv: KV, before: KV) -> bool:
    return all(
        new[:, : old.shape[1]].tobytes() == old.tobytes()
        for now, then in zip(kv, before, strict=False)
        for new, old in zip(now, then, strict=True)
    )


@check(stage=STAGE, id="cache-is-used", points=1, title="The answer comes from the saved keys and values")
def cache_is_used(student, cases):
    """The saved keys and values of every layer decide the answer; the prefix is neither run again nor remembered."""
    for model in (cases.odd[1], cases.odd[2]):
        prefix, other, suffix = (cases.ids(model, n, name) for n, name in ((6, "prefix"), (6, "other"), (3, "suffix")))
        p, where = len(prefix), _case(model, len(prefix), len(suffix))
        expected = _expected(model, prefix, suffix)
        kv = model.reference.run(prefix).kv
        rng = cases.rng("altered", model.config.n_layer)

        saved = _save(student, prefix, model)
        answer = _reuse(student, saved, p, suffix, model)
        options = {"name": "generate_with_prefix", "axes": ("id",)}
        expect_close(answer, expected, where=where, suspects=_suspects(model, prefix, suffix), **options)

        wpe = model.weights.wpe.copy()
        wpe[:p] = rng.normal(size=wpe[:p].shape) * wpe.std()
        spoiled = model.patched("wpe.weight", wpe)
        saved = _save(student, prefix, model)
        answer = _reuse(student, saved, p, suffix, spoiled)
        again = [(own.RECOMPUTED, lambda m=spoiled, a=prefix, b=suffix: _expected(m, a, b))]
        place = f"with other numbers in the rows of wpe that only the prefix needs, {where}"
        expect_close(answer, expected, where=place, suspects=again, **options)

        saved = _save(student, prefix, model)
        answer, n_run = student.counted_array("generate_with_prefix", saved, p, suffix, model)
        expect_close(answer, expected, where=where, **options)
        if n_run is not None and n_run > len(suffix) + 1.5:
            detail = f"{n_run:.0f} tokens went through the model where the suffix has {len(suffix)} ({where})."
            raise Failure(None, detail, own.RECOMPUTED)
        _expect_no_memory(student, model, saved, kv, suffix, answer, where)

        _save(student, other, model)
        past, positions = model.reference.run(other).kv, range(p, p + len(suffix))
        of_other = model.reference.run(suffix, past=past, positions=positions).logits[-1]
        noticed = False
        for layer in range(model.config.n_layer):
            for part, name in enumerate(("keys", "values")):
                altered, wrong = _altered(model, kv, layer, part, suffix, expected, rng)
                handle = student.make_cache(model, altered)
                answer = _reuse(student, handle, p, suffix, model)
                if matches(answer, expected):
                    detail = f"Other {name} in layer {layer} of the cache change nothing ({where})."
                    raise Failure(None, detail, own.ONE_LAYER_IGNORED if noticed else own.ANSWERS_FROM_MEMORY)
                place = f"with other {name} in layer {layer} of the cache, {where}"
                last_saved = [(own.ONE_CACHE_FOR_ALL, lambda e=of_other: e)]
                expect_close(answer, wrong, where=place, suspects=last_saved, **options)
                noticed = True


def _expect_no_memory(student, model, saved, kv, suffix, answer, where):
    """With one row more in the very same cache there must be another answer, or a clear error.

    A saved cache that cannot be appended to, as it is write-protected or has other layers, is let be.
    """
    p = kv[0][0].shape[1]
    try:
        layers = student.attribute(saved, "layers", returns="handle")
        for i, (keys, values) in enumerate(kv):
            layer = student.method(layers, "__getitem__", i, returns="handle")
            k, v = (np.asarray(3 * a[:, :1], np.float32) for a in (keys, values))
            student.method(layer, "append", k, v, returns="none")
    except StudentError:
        return
    try:
        again = _reuse(student, saved, p, suffix, model)
    except StudentError as error:
        if error.loud:
            return
        raise
    if np.array_equal(again, answer):
        raise Failure(None, f"One row more in the same cache changes nothing ({where}).", own.ANSWERS_FROM_MEMORY)


def _altered(model, kv, layer, part, suffix, expected, rng):
    """The K/V with one layer's keys or values changed, enough to change the logits; and those logits."""
    scale = 1.0
    while True:
        array = kv[layer][part]
        changed = array + scale * array.std() * rng.normal(size=array.shape)
        changed = changed.astype(np.float32).astype(np.float64)  # what the student gets, to the bit
        pair = (changed, kv[layer][1]) if part == 0 else (kv[layer][0], changed)
        altered = [*kv[:layer], pair, *kv[layer + 1 :]]
        logits = model.reference.run(suffix, past=altered).logits[-1]
        if not matches(logits, expected, atol=1e-2, rtol=5e-2):
            return altered, logits
        scale *= 3


@check(stage=STAGE, id="reuse-refusals", points=1, title="What cannot be reused is refused with a clear error")
def reuse_refusals(student, cases):
    """An empty prefix or suffix, an id outside the vocabulary, a negative prefix_len, a total past n_ctx are errors."""
    model = cases.odd[1]
    n_ctx, n_vocab = model.config.n_ctx, model.config.n_vocab
    ids = cases.ids(model, n_ctx + 1, "prompt")
    p = n_ctx - 5
    prefix, suffix, rest = ids[:p], ids[p : p + 3], ids[p:n_ctx]
    saved = _save(student, prefix, model)
    known = _expect_answer(_reuse(student, saved, p, suffix, model), model, prefix, suffix)
    full = _save(student, ids[:n_ctx], model)

    reuse, save = "generate_with_prefix", "save_prefix_cache"
    attempts = (
        ("an empty suffix", own.EMPTY_SUFFIX, reuse, (saved, p, [], model)),
        ("an empty prefix", own.EMPTY_PREFIX, save, ([], model)),
        ("a prefix_len of -1", own.NEGATIVE_PREFIX_LEN, reuse, (saved, -1, suffix[:1], model)),
        ("a suffix that ends one past n_ctx", own.PAST_THE_CONTEXT, reuse, (saved, p, [*rest, ids[n_ctx]], model)),
        ("a suffix to a prefix of n_ctx tokens", own.PAST_THE_CONTEXT, reuse, (full, n_ctx, suffix[:1], model)),
        ("a prefix of n_ctx + 1 tokens", own.PAST_THE_CONTEXT, save, (ids, model)),
        (
            "a suffix with the id n_vocab",
            own.OUTSIDE_VOCABULARY,
            reuse,
            (saved, p, [suffix[0], n_vocab, suffix[1]], model),
        ),
        ("a suffix with the id -1", own.OUTSIDE_VOCABULARY, reuse, (saved, p, [suffix[0], -1, suffix[1]], model)),
        ("a prefix with the id n_vocab", own.OUTSIDE_VOCABULARY, save, ([*ids[:2], n_vocab, ids[2]], model)),
        ("a prefix with the id -1", own.OUTSIDE_VOCABULARY, save, ([*ids[:2], -1, ids[2]], model)),
    )
    failed = []
    for what, bug, name, arguments in attempts:
        try:
            student.handle(name, *arguments)
        except StudentError as error:
            if not error.loud:
                failed.append((what, f"{error.sentence[:-1]}; a ValueError is expected", known or bug))
        else:
            if bug is own.NEGATIVE_PREFIX_LEN and _same_whatever_the_length(student, model, p, suffix, saved):
                bug = own.PREFIX_LEN_IGNORED
            failed.append((what, f"{name} returned as if nothing were wrong; a ValueError is expected", known or bug))
    try:
        student.array(reuse, saved, p, rest, model)
    except StudentError as error:
        failed.append(("a suffix that ends exactly at n_ctx, and so fits", error.sentence[:-1], known))
    _finish_refusals(failed)


def _same_whatever_the_length(student, model, p, suffix, saved):
    answers = [_reuse(student, saved, n, suffix[:1], model) for n in (p, -1)]
    return matches(*answers)


def _finish_refusals(failed: list[tuple[str, str, Bug | None]]) -> None:
    """Fail with the first attempt that did not end as it should, and name the others."""
    if not failed:
        return
    what, happened, bug = failed[0]
    others = f" The same check fails for {'; '.join(w for w, _, _ in failed[1:])}." if failed[1:] else ""
    raise Failure(None, f"For {what}, {happened}.{others}", bug)


@check(
    stage=STAGE,
    id="cache-file-round-trip",
    points=1,
    title="What is written is what is read, to the bit",
    watches=("write_prefix_cache",),
)
def cache_file_round_trip(student, cases):
    """write_prefix_cache writes exactly at path; read_prefix_cache gives back the same cache and ids, bit for bit."""
    small, middle, _ = cases.odd
    read, files = [], []
    for model, p, path in (
        (small, small.config.n_ctx, "prefix.safetensors"),
        (middle, 1, "saved prefix"),
        (cases.trained, 5, "prefix.v1.bin"),
        (small, 3, "prefix.safetensors"),  # over the first file
    ):
        ids = cases.ids(model, p, path)
        where = f"for a prefix of {tokens(p)} on {model.about}"
        cache = student.make_cache(model, model.reference.run(ids).kv)
        before = student.read_cache(cache)
        student.handle("write_prefix_cache", path, cache, ids, model)
        if not student.file_exists(path):
            added = any(student.file_exists(path + ending) for ending in (".npz", ".npy", ".safetensors", ".json"))
            raise Failure(
                None, f"There is no file at the path given ({where}).", own.SUFFIX_ADDED_TO_PATH if added else None
            )
        _expect_same(before, student.read_cache(cache), model, p, "writing it to a file")
        moved = _file_name(cases, "moved", len(read))  # what is read must be in the file, and in nothing else
        data = student.read_file(path)
        files.append((data, model, ids, before, where))
        student.write_file(moved, data)
        try:
            back, back_ids = _read(student, moved, model)
        except StudentError as error:
            if not error.stub and _reads(student, path, model):
                detail = f"The file's bytes under another name cannot be read: {error.sentence[:-1]} ({where})."
                raise Failure(None, detail, own.NOT_IN_THE_FILE) from None
            raise
        if back_ids != ids:
            raise Failure(
                None, f"The prefix ids that came back are not those that were written ({where}).", own.IDS_CHANGED
            )
        _expect_bits(student.read_cache(back), before, where)
        _expect_bits(student.read_cache(_read(student, path, model)[0]), before, where)
        read.append((back, before))
    for back, before in read:
        if not _same_bits(student.read_cache(back), before):
            detail = "A cache that was read is no longer what it was after other files were read."
            raise Failure(None, detail, own.READ_CACHES_SHARED)
    if student.begin_anew():
        _expect_files_to_be_enough(student, cases, files)


def _file_name(cases: Cases, *label: object) -> str:
    """A name that does not tell what is in the file."""
    return f"{cases.number('file', *label) % 10**9}.safetensors"


def _expect_files_to_be_enough(student: Student, cases: Cases, files: list[tuple]) -> None:
    """In a new process, where there is nothing but the files' bytes."""
    for i, (data, model, ids, before, where) in enumerate(files):
        path = _file_name(cases, "elsewhere", i)
        student.write_file(path, data)
        try:
            back, back_ids = _read(student, path, model)
        except StudentError as error:
            detail = f"In another process the file's bytes cannot be read: {error.sentence[:-1]} ({where})."
            raise Failure(None, detail, own.NOT_IN_THE_FILE) from None
        if back_ids != ids or not _same_bits(student.read_cache(back), before):
            raise Failure(
                None, f"In another process, something else is read from the file ({where}).", own.NOT_IN_THE_FILE
            )


def _reads(student: Student, path: str, model: JudgeModel) -> bool:
    try:
        student.handle("read_prefix_cache", path, model)
    except StudentError:
        return False
    return True


def _read(student: Student, path: str, model: JudgeModel) -> tuple[Handle, list[int]]:
    """What read_prefix_cache returns: (saved, prefix_ids)."""
    pair = student.handle("read_prefix_cache", path, model)
    try:
        return student.method(pair, "__getitem__", 0, returns="handle"), student.method(
            pair, "__getitem__", 1, returns="ids"
        )
    except StudentError:
        raise Failure(None, "read_prefix_cache does not return a pair (saved, prefix_ids).") from None


def _same_bits(a: KV, b: KV) -> bool:
    return len(a) == len(b) and all(
        np.array_equal(x, y) for one, two in zip(a, b, strict=True) for x, y in zip(one, two, strict=True)
    )


def _expect_bits(kv: KV, written: KV, where: str) -> None:
    if _same_bits(kv, written):
        return
    bug = None
    with np.errstate(over="ignore"):
        for suspect, wrong in (
            (own.FILE_HALF_PRECISION, [(k.astype(np.float16), v.astype(np.float16)) for k, v in written]),
            (own.FILE_KEYS_VALUES_SWAPPED, [(v, k) for k, v in written]),
            (own.FILE_LAYERS_AS_TEXT, [written[i] for i in sorted(range(len(written)), key=str)]),
            (own.ONE_WRITTEN_TWICE, [(k, k) for k, _ in written]),
            (own.ONE_WRITTEN_TWICE, [(v, v) for _, v in written]),
        ):
            if _same_bits(kv, wrong):
                bug = suspect
    first_heads = [[(k[:1], v[:1]) for k, v in cache] for cache in (kv, written)]
    if bug is None and _same_bits(*first_heads):
        bug = own.VIEW_WRITTEN
    if len(kv) != len(written):
        raise Failure(None, f"{count(len(kv), 'layer')} came back of {len(written)} ({where}).", bug)
    for layer, (new, old) in enumerate(zip(kv, written, strict=True)):
        for name, n, o in zip(("keys", "values"), new, old, strict=True):
            if not np.array_equal(n, o):
                how = f"of shape {list(n.shape)} instead of {list(o.shape)}" if n.shape != o.shape else "changed"
                raise Failure(None, f"The {name} of layer {layer} came back {how} ({where}).", bug)


@check(stage=STAGE, id="cache-file-refusals", points=2, title="A file that does not fit is refused")
def cache_file_refusals(student, cases):
    """read_prefix_cache gives a ValueError for another model's cache and for a damaged file, and changes no cache."""
    model = cases.odd[0]
    config, p = model.config, 6
    ids = cases.ids(model, p, "prefix")
    kv = model.reference.run(ids).kv
    cache = student.make_cache(model, kv)
    before = student.read_cache(cache)
    good = _file_name(cases, "good")
    student.handle("write_prefix_cache", good, cache, ids, model)
    data = student.read_file(good)
    back, back_ids = _read(student, good, model)
    if back_ids != ids:
        raise Failure(None, "A file that fits does not come back as it was written.", own.IDS_CHANGED)
    _expect_bits(student.read_cache(back), before, "a file that fits")

    def expect_good(when: str) -> None:
        path = _file_name(cases, "good", when)
        student.write_file(path, data)
        again, _ = _read(student, path, model)
        _expect_bits(student.read_cache(again), before, f"a file that fits, {when}")

    failed: list[tuple[str, str, Bug | None]] = []
    number = 0

    def attempt(what: str, bug: Bug, make: Callable[[str], object], writer_may_refuse: bool = False) -> None:
        """make(path) leaves a file there; the reader must refuse it, or the writer, where it can know."""
        nonlocal number
        number += 1
        path = _file_name(cases, number)
        try:
            make(path)
        except StudentError as error:
            if not (error.loud and writer_may_refuse):
                failed.append((what, f"{error.sentence[:-1]}, before there was a file to refuse", None))
                return
            if not student.file_exists(path):
                return  # what a writer that refuses leaves behind must not be readable, either
        refused(what, bug, path, model)

    def refused(what: str, bug: Bug, path: str, by: JudgeModel) -> None:
        try:
            student.handle("read_prefix_cache", path, by)
        except StudentError as error:
            if not error.loud:
                failed.append((what, f"{error.sentence[:-1]}; a ValueError is expected", own.LIBRARY_ERROR))
        else:
            failed.append((what, "read_prefix_cache returned a cache; a ValueError is expected", bug))

    def written(kv: KV, ids: list[int], by: JudgeModel) -> Callable[[str], object]:
        return lambda path: student.handle("write_prefix_cache", path, student.make_cache(by, kv), ids, by)

    other = random_judge_model(config, cases.number("another"))
    attempt("the cache of another model of the same shape", own.NO_FINGERPRINT, written(kv, ids, other))
    for tensor, changed in _one_number_off(model, cases.rng("places")):
        what = f"the cache of a model that differs in one number of {tensor}"
        refused(what, own.FINGERPRINT_PARTIAL, good, changed)
    for tensor, changed in _two_exchanged(model, cases.rng("exchanged")):
        what = f"the cache of a model that differs in the order of two numbers of {tensor}"
        refused(what, own.FINGERPRINT_PARTIAL, good, changed)
    expect_good("after those of other models")
    heads = random_judge_model(replace(config, n_head=config.n_embd // config.n_head), model.spec["seed"])
    what = f"the cache of a model with these weights and {heads.config.n_head} heads"
    attempt(what, own.CONFIG_NOT_COMPARED, written(heads.reference.run(ids).kv, ids, heads))
    for what, rows, some_ids in (
        ("ids that are one fewer than the rows", kv, ids[:-1]),
        ("ids that are one more than the rows", kv, [*ids, ids[0]]),
        ("a last layer that is one row short", [*kv[:-1], *_rows(kv[-1:], 0, p - 1)], ids),
    ):
        attempt(what, own.LENGTH_NOT_COMPARED, written(rows, some_ids, model), writer_may_refuse=True)
    for wrong_id in (config.n_vocab, -1):
        what = f"the prefix id {'n_vocab' if wrong_id > 0 else wrong_id}"
        outside = written(kv, [*ids[:2], wrong_id, *ids[3:]], model)
        attempt(what, own.FILE_IDS_OUTSIDE, outside, writer_may_refuse=True)
    for layer, part, value in ((0, "keys", np.nan), (config.n_layer - 1, "values", np.inf)):
        spoiled = written(_with_value(kv, layer, part, value), ids, model)
        attempt(
            f"{value:g} among the {part} of layer {layer}", own.NOT_FINITE_ACCEPTED, spoiled, writer_may_refuse=True
        )
    expect_good("after those with wrong contents")
    for what, damaged in (
        ("a file cut in half", data[: len(data) // 2]),
        ("a file without its last bytes", data[:-8]),
        ("an empty file", b""),
        ("a file of something else", cases.rng("noise").bytes(len(data))),
    ):
        attempt(what, own.DAMAGE_ACCEPTED, lambda path, damaged=damaged: student.write_file(path, damaged))
    _finish_refusals(failed)
    _expect_same(before, student.read_cache(back), model, p, "reading files that do not fit")
    expect_good("after those that do not")


def _one_number_off(model: JudgeModel, rng: np.random.Generator) -> Iterator[tuple[str, JudgeModel]]:
    """The model with one number changed, once in each kind of tensor, in all blocks, away from the ends of it."""
    tensors = tensors_of(model.weights)
    kinds = {name.split(".", 2)[-1] if name.startswith("h.") else name: None for name in tensors}
    for i, kind in enumerate(kinds):
        name = kind if kind in tensors else f"h.{i % model.config.n_layer}.{kind}"
        array = tensors[name].copy()
        edge = 17 if array.size > 40 else 0
        array.flat[rng.integers(edge, array.size - edge)] += 0.25
        yield name, model.patched(name, array)


def _two_exchanged(model: JudgeModel, rng: np.random.Generator) -> Iterator[tuple[str, JudgeModel]]:
    """The model with two numbers of one tensor in each other's place, which no sum shows.

    np.sum begins with flat[0] + flat[8], and so gives the same to the last bit.
    """
    tensors = tensors_of(model.weights)
    name = "h.0.mlp.c_fc.weight"
    for places in ((0, 8), rng.choice(tensors[name].size, 2, replace=False)):
        array = tensors[name].copy()
        array.flat[list(places)] = array.flat[list(places[::-1])]
        yield name, model.patched(name, array)


def _with_value(kv: KV, layer: int, part: str, value: float) -> KV:
    pairs = [[k.copy(), v.copy()] for k, v in kv]
    pairs[layer][("keys", "values").index(part)][-1, -1, -1] = value
    return [(k, v) for k, v in pairs]
