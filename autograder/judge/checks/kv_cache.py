"""The checks of stage 2: LayerCache, ModelCache and its clone, attend, and the memory bill.

Keys, values and queries are drawn at random: a cache must hold whatever it is given, and attend is a function of
arrays. What `keys` is before the first append is never looked at, nothing is written into `keys` or `values`, and what
`append` returns is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from autograder.judge.bugs import (
    HALF_PRECISION,
    KEYS_VALUES_SWAPPED,
    MASK_TIMES_INFINITY,
    MASK_WITHOUT_OFFSET,
    NO_CAUSAL_MASK,
    SCORES_SCALED_BY_EMBD,
    SCORES_SCALED_BY_LENGTH,
    SCORES_UNSCALED,
    Bug,
)
from autograder.judge.bugs import kv_cache as own
from autograder.judge.compare import Sweep, expect_close, in_words, matches
from autograder.judge.framework import Failure, check
from autograder.judge.recompute import KV, RIGHT, attention, softmax
from autograder.judge.student import Handle, StudentError

STAGE = "kv-cache"
# The sizes of buffers that people choose, one less and one more, then a single row and the same again; and big leaps.
CHUNKS = (
    *((size + d, 1, size + d) for size in (4, 8, 16, 32, 64, 128, 256) for d in (-1, 0, 1)),
    (1, 90),
    (2, 3, 77),
)
KV_AXES = ("head", "position", "element")
QUERY_AXES = ("head", "query", "element")
EXACT = {"atol": 1e-6, "rtol": 1e-6}  # what was put in comes out, in float32 or wider
CLOSE = {"atol": 1e-5, "rtol": 1e-4}  # one attention in float32


BYTES_BUGS = (  # in the order in which they are looked for
    own.BYTES_FLOAT,
    own.BYTES_KEYS_ONLY,
    own.BYTES_ONE_LAYER,
    own.BYTES_ONE_HEAD,
    own.BYTES_NO_SIZE,
    own.BYTES_IGNORED,
    own.BYTES_N_CTX,
    own.BYTES_HEADS_TWICE,
    own.BYTES_DEFAULT,  # any other number, and only where n_bytes is left out
)


# LayerCache


@check(stage=STAGE, id="layer-cache-length", points=1, title="A LayerCache counts its positions")
def layer_cache_length(student, cases):
    """len() of a LayerCache is 0 before the first append and then the number of positions appended so far."""
    for config in _configs(cases):
        sizes = (1, 1, 4, 2)
        layer = student.handle("LayerCache")
        lengths = [student.length(layer)]
        for n_new in sizes:
            student.method(layer, "append", *_draw_kv(cases, config, n_new, "length"), returns="none")
            lengths.append(student.length(layer))
        right = [0, *np.cumsum(sizes).tolist()]
        if lengths != right:
            first = next(i for i, (a, b) in enumerate(zip(lengths, right, strict=True)) if a != b)
            when = f"after {_appends(sizes[:first])}" if first else "before the first append"
            detail = f"len() is {lengths[first]} {when} ({config.n_head} heads of {config.head_dim})."
            raise Failure(None, detail, _name_lengths(student, layer, config, sizes, lengths[1:]))
        total = right[-1]
        for n_new in [1] * (40 if config == _configs(cases)[0] else 0):
            student.method(layer, "append", *_draw_kv(cases, config, n_new, "length"), returns="none")
            total += n_new
            if student.length(layer) != total:
                raise Failure(None, f"len() is {student.length(layer)} after appends of {total} rows in all.")
        second = student.length(student.handle("LayerCache"))
        if second != 0:
            detail = f"len() of a second, new LayerCache is {second}, with {total} positions in the first."
            raise Failure(None, detail, own.CACHES_SHARE_STATE if second == total else None)


def _name_lengths(student, layer: Handle, config, sizes: Sequence[int], lengths: list[int]) -> Bug | None:
    pair = _read_layers(student, [layer])[0]
    if pair is not None and all(a.ndim == 3 and a.shape[1] == lengths[-1] for a in pair):
        suspects = {
            own.FIRST_OF_CHUNK: [1, 2, 3, 4],
            own.ONLY_NEWEST: list(sizes),
        }  # the length is true and the rows are missing
    else:
        suspects = {
            own.LENGTH_COUNTS_HEADS: [config.n_head] * len(sizes),
            own.LENGTH_COUNTS_APPENDS: [1, 2, 3, 4],
            own.LENGTH_OF_LAST_APPEND: list(sizes),
            own.LENGTH_COUNTS_TWICE: (2 * np.cumsum(sizes)).tolist(),
        }
    return next((bug for bug, values in suspects.items() if values == lengths), None)


@check(
    stage=STAGE,
    id="layer-cache-rows",
    points=2,
    title="keys and values hold every appended row, in order",
    watches=("append",),
)
def layer_cache_rows(student, cases):
    """keys and values are [n_head, n_seq, head_dim] and hold every appended row in order, in appends of any size."""
    config = _configs(cases)[0]
    sweep = Sweep()
    filling = Filling(student, cases, config, "one at a time")
    for n_seq in range(1, 71):
        with sweep.at(n_seq):
            filling.append(1, f"after {_appends([1] * n_seq)}")
        if filling.broken:
            break
    sweep.finish()

    config = _configs(cases)[1]
    sweep = Sweep("sizes of the first chunk")
    for first, *rest in CHUNKS:
        filling = Filling(student, cases, config, f"chunks {first}")
        with sweep.at(first):
            for i, n_new in enumerate((first, *rest)):
                filling.append(n_new, f"after {_appends([first, *rest][: i + 1])}", own.GROWTH_TOO_SMALL)
    sweep.finish()


class Filling:
    """A LayerCache of the student's that is filled and read back after each append."""

    def __init__(self, student, cases, config, label: str):
        self.student, self.config = student, config
        self._rng = cases.rng("filling", label)
        self.layer = student.handle("LayerCache")
        self.chunks: list[tuple[np.ndarray, np.ndarray]] = []
        self.broken = False

    def append(self, n_new: int, where: str, raises: Bug | None = None) -> None:
        """Append n_new rows and compare; raises Failure. `raises`: what an exception in append looks like here."""
        k, v = (_normal(self._rng, self.config.n_head, n_new, self.config.head_dim) for _ in range(2))
        self.chunks.append((k, v))
        try:
            self.student.method(self.layer, "append", k, v, returns="none")
            got = [self.student.attribute(self.layer, name, returns="array") for name in ("keys", "values")]
        except StudentError as error:
            self.broken = True
            if error.stub or error.kind == "missing":
                raise
            raise Failure(None, f"{error.sentence[:-1]}, {where}.", raises if error.loud else None) from None
        expected = [np.concatenate(parts, axis=1) for parts in zip(*self.chunks, strict=True)]
        for name, actual, right in zip(("keys", "values"), got, expected, strict=True):
            if not matches(actual, right, **EXACT):
                bug = _name_rows(got, expected, self.chunks)
                try:
                    expect_close(actual, right, name=name, where=where, axes=KV_AXES, **EXACT)
                except Failure as failure:
                    raise Failure(None, failure.detail, bug) from None


def _name_rows(got: Sequence[np.ndarray], right: Sequence[np.ndarray], chunks) -> Bug | None:
    """The bug that explains a layer's keys and values, `got`, where `right` should stand."""

    def all_match(candidates: Iterable[np.ndarray]) -> bool:
        return all(matches(a, b, **EXACT) for a, b in zip(got, candidates, strict=True))

    keys, values = zip(*chunks, strict=True)
    newest, n_seq = chunks[-1], right[0].shape[1]
    n_new = newest[0].shape[1]
    if all_match(right[::-1]):
        return own.CACHE_SWAPPED
    if all_match([right[0], right[0]]):
        return own.VALUES_ARE_KEYS
    if all_match([a.astype(np.float16).astype(np.float64) for a in right]):
        return HALF_PRECISION
    if len(chunks) > 1 and all_match(newest):
        return own.ONLY_NEWEST
    if len(chunks) > 1 and all_match([np.concatenate(side[::-1], axis=1) for side in (keys, values)]):
        return own.NEWEST_FIRST
    if all_match([a.transpose(1, 0, 2) for a in right]):
        return own.TOKEN_MAJOR
    if all_match([a.transpose(1, 0, 2).reshape(a.shape) for a in right]) or all_match(
        [np.concatenate([c.transpose(1, 0, 2) for c in side]).reshape(right[0].shape) for side in (keys, values)]
    ):
        return own.RESHAPED
    if len(chunks) > 1 and len({k.shape[1] for k in keys}) == 1:
        for axis in (0, 2):
            if all_match([np.concatenate(side, axis=axis) for side in (keys, values)]):
                return own.WRONG_AXIS
    if any(a.ndim != 3 for a in got):
        return None
    rows = got[0].shape[1]
    if all(a.shape[1] == rows for a in got):
        if rows > n_seq and all_match_part(got, right, slice(0, n_seq)):
            return own.SPARE_ROWS
        if rows > n_seq and all_match_part(got, right, slice(rows - n_seq, rows)):
            return own.CACHES_SHARE_STATE
        starts = np.cumsum([0, *(k.shape[1] for k in keys)])[:-1]
        if n_new > 1 and all(a.shape[1] in (n_seq, len(starts)) for a in got):
            place = starts if rows == n_seq else np.arange(len(starts))
            others = np.setdiff1d(np.arange(n_seq), starts) if rows == n_seq else []
            kept = any(matches(got[0][:, i], right[0][:, i], **EXACT) for i in others)  # then something else is wrong
            if not kept and all(matches(a[:, place], b[:, starts], **EXACT) for a, b in zip(got, right, strict=True)):
                return own.FIRST_OF_CHUNK
        if 0 < rows < n_seq and all(matches(a, b[:, :rows], **EXACT) for a, b in zip(got, right, strict=True)):
            return own.ROWS_CUT
    if all(
        a.shape == b.shape and matches(a[:, -n_new:], b[:, -n_new:], **EXACT) for a, b in zip(got, right, strict=True)
    ):
        return own.GROWTH_LOSES_ROWS
    return None


def all_match_part(got, right, part: slice) -> bool:
    return all(matches(a[:, part], b, **EXACT) for a, b in zip(got, right, strict=True))


# ModelCache


@check(stage=STAGE, id="model-cache-layers", points=1, title="A ModelCache has n_layer layers of its own")
def model_cache_layers(student, cases):
    """ModelCache(n_layer) has n_layer LayerCaches that share no rows; its len() is the number of cached positions."""
    for config in (*_configs(cases), cases.trained.config):
        cache = student.handle("ModelCache", config.n_layer)
        about = f"a cache of {config.n_layer} layers"
        layers = _layers(student, cache, config.n_layer, about)
        lengths, kv = [student.length(cache)], []
        for n_new in (1, 6):
            new = [_draw_kv(cases, config, n_new, "layers", i, n_new) for i in range(config.n_layer)]
            for layer, (k, v) in zip(layers, new, strict=True):
                student.method(layer, "append", k, v, returns="none")
            kv = [_joined(a, b) for a, b in zip(kv, new, strict=True)] if kv else new
            got = student.read_cache(cache, _capital(about))
            wrong = _wrong_layers(got, kv)
            if wrong:
                if all(k.shape[1] == kv[0][0].shape[1] * config.n_layer for k, _ in got):
                    raise Failure(None, f"Every layer of {about} holds the rows of all layers.", own.LAYERS_SHARED)
                detail = f"{_capital(about)} holds other rows than were appended, in {_of(wrong, config.n_layer)}"
                raise Failure(None, f"{detail}: look at the checks of LayerCache first.")
            lengths.append(student.length(cache))
        suspects = {
            own.LENGTH_COUNTS_LAYERS: [config.n_layer, config.n_layer],
            own.LENGTH_SUMMED: [config.n_layer, 7 * config.n_layer],
            own.LENGTH_COUNTS_HEADS: [config.n_head, config.n_head],
            own.LENGTH_COUNTS_APPENDS: [1, 2],
        }
        right = (0, 1, 7)
        if tuple(lengths) != right:
            i = next(i for i in range(3) if lengths[i] != right[i])
            bug = next((bug for bug, values in suspects.items() if lengths[1:] == values), None)
            here = _count(right[i], "position")
            raise Failure(None, f"len() of {about} is {lengths[i]} with {here} in every layer.", bug)
        second = student.length(student.handle("ModelCache", config.n_layer))
        if second != 0:
            raise Failure(None, f"len() of a second, new ModelCache is {second}.", own.CACHES_SHARE_STATE)
    for model in (*cases.odd, cases.trained):
        many = student.length(student.make_cache(model, _draw_cache(cases, model.config, 14, "many")))
        if many != 14:
            about = f"a cache of {model.config.n_layer} layers"
            raise Failure(None, f"len() of {about} is {many} with 14 positions in every layer.")


@check(stage=STAGE, id="clone-equal", points=1, title="A clone holds the same rows in every layer")
def clone_equal(student, cases):
    """clone() gives a cache with the same number of layers, the same rows in every layer and the same len()."""
    _require_caches(student, cases)
    sweep = Sweep()
    for model, n_seq in _clone_cases(cases):
        n_layer = model.config.n_layer
        about = f"the clone of a cache of {n_layer} layers and {_count(n_seq, 'position')}"
        kv = _draw_cache(cases, model.config, n_seq, "clone")
        with sweep.at(n_seq):
            original = student.make_cache(model, kv)
            clone = student.method(original, "clone", returns="handle")
            layers = _layers(student, clone, n_layer, about)
            got = _read_whole(student, clone, layers)
            wrong = _wrong_layers(got, kv)
            if wrong:
                _blame_original(student, student.make_cache(model, kv), kv)
                detail = f"{_capital(about)} holds other rows than the original in {_of(wrong, n_layer)}."
                raise Failure(None, detail, _name_clone(got, kv))
            if _wrong_layers(_read_whole(student, original, _layers(student, original, n_layer, "the original")), kv):
                detail = f"After clone(), the original of {_count(n_seq, 'position')} does not hold its rows any more."
                raise Failure(None, detail, own.CLONE_TAKES_ROWS)
            lengths = student.length(clone), student.length(original)
            if lengths[0] != lengths[1]:
                raise Failure(
                    None, f"len() of {about} is {lengths[0]}, and {lengths[1]} of the original.", own.CLONE_LENGTH
                )
    sweep.finish()
    original = student.handle("ModelCache", 3)
    try:
        clone = student.method(original, "clone", returns="handle")
    except StudentError as error:
        if error.stub or error.kind == "missing":
            raise
        raise Failure(None, f"For an empty cache of 3 layers, {error.sentence}") from None
    _layers(student, clone, 3, "the clone of an empty cache of 3 layers")
    if student.length(clone) != student.length(original):
        raise Failure(None, f"len() of the clone of an empty cache is {student.length(clone)}.")


@check(stage=STAGE, id="clone-independent", points=2, title="A clone and its original grow apart")
def clone_independent(student, cases):
    """What one of a cache and its clones appends never shows in another, in any layer."""
    _require_caches(student, cases)
    sweep = Sweep("lengths at cloning")
    for model, n_seq in _clone_cases(cases):
        config, n_layer = model.config, model.config.n_layer
        kv = _draw_cache(cases, config, n_seq, "independent")
        with sweep.at(n_seq):
            original = student.make_cache(model, kv)
            _blame_original(student, original, kv)
            clone = student.method(original, "clone", returns="handle")
            _layers(student, clone, n_layer, f"the clone of a cache of {n_layer} layers")
            second = student.method(clone, "clone", returns="handle")
            third = student.method(original, "clone", returns="handle")
            held = {
                "the original": original,
                "the clone": clone,
                "a clone of the clone": second,
                "a second clone": third,
            }
            layers = {
                name: _layers(student, handle, n_layer, f"{name} of a cache of {n_layer} layers")
                for name, handle in held.items()
            }
            for name, handle in held.items():
                if _wrong_layers(_read_whole(student, handle, layers[name]), kv):
                    detail = "does not hold the rows that were there before cloning: get the check above to pass first"
                    raise Failure(None, f"{_capital(name)} {detail}.")
            expected = dict.fromkeys(held, kv)
            turns = ("the clone", "the original", "a second clone", "a clone of the clone", "the clone", "the original")
            for turn, name in enumerate(turns):
                n_new = 1 if turn < 4 else 18  # past the end of a buffer, too
                new = _draw_cache(cases, config, n_new, "turn", turn)
                for layer, (k, v) in zip(layers[name], new, strict=True):
                    student.method(layer, "append", k, v, returns="none")
                expected[name] = [_joined(a, b) for a, b in zip(expected[name], new, strict=True)]
                for other in (name, *(h for h in held if h != name)):
                    got = _read_whole(student, held[other], layers[other])
                    wrong = _wrong_layers(got, expected[other])
                    if wrong:
                        where = f"{_of(wrong, n_layer)}, cloned at {_count(n_seq, 'position')}"
                        detail = f"{_capital(other)} holds wrong rows after {name} grew by {n_new} ({where})."
                        bug = None if other == name else _name_sharing(got, expected[other], wrong)
                        raise Failure(None, detail, bug)
    sweep.finish()


def _require_caches(student, cases) -> None:
    """Fail when caches do not hold what is appended to them, before anything is asked of their clones."""
    for model in cases.odd[:2]:
        n_layer = model.config.n_layer
        _layers(student, student.handle("ModelCache", n_layer), n_layer, f"a cache of {n_layer} layers")
        kv = _draw_cache(cases, model.config, 3, "require")
        _blame_original(student, student.make_cache(model, kv), kv)


def _blame_original(student, cache: Handle, kv: KV) -> None:
    """Fail when it is the cache itself that does not hold its rows: its clones cannot be judged."""
    layers = _layers(student, cache, len(kv), f"a cache of {len(kv)} layers")
    wrong = _wrong_layers(_read_whole(student, cache, layers), kv)
    if wrong:
        detail = f"A cache does not hold the {_count(kv[0][0].shape[1], 'row')} appended to it in {_of(wrong, len(kv))}"
        raise Failure(None, f"{detail}, so clones cannot be judged: get the checks above to pass first.")


def _clone_cases(cases) -> list[tuple]:
    """Models and numbers of positions, at and beside the sizes of buffers; one model has 12 layers."""
    two, three, four = cases.odd
    return [(two, 1), (three, 5), (two, 15), (four, 16), (two, 17), (cases.trained, 6), (two, 130)]


def _name_clone(got: Sequence, right: KV) -> Bug | None:
    filled = [i for i, pair in enumerate(got) if pair is not None and pair[0].shape[1:2] != (0,)]
    if not filled:
        return own.CLONE_EMPTY
    if len(filled) < len(got):
        return own.CLONE_LAYERS_MISSING if len(filled) == 1 else None
    if any(not _wrong_layers(got, [right[i]] * len(right)) for i in (0, -1)):
        return own.CLONE_LAYERS_ALIKE
    for mixed in ([(v, k) for k, v in right], [(k, k) for k, _ in right], [(v, v) for _, v in right]):
        if not _wrong_layers(got, mixed):
            return own.CLONE_VALUES
    return None


def _name_sharing(got: Sequence, right: KV, wrong: list[int]) -> Bug | None:
    """What is shared, when growing one cache changed another in the layers `wrong`."""
    if any(got[i] is None or got[i][0].ndim != 3 for i in wrong):
        return None
    if all(got[i][0].shape == right[i][0].shape for i in wrong):
        return own.CLONE_SHARES_BUFFER
    if all(got[i][0].shape[1] > right[i][0].shape[1] for i in wrong):
        return own.CLONE_SHALLOW if len(wrong) == len(right) else own.CLONE_SOME_LAYERS
    return None


# attend


@check(stage=STAGE, id="attend-one-query", points=1, title="One new query attends to every cached position")
def attend_one_query(student, cases):
    """attend with one query is the softmax-weighted sum of all cached values; scores are divided by sqrt(head_dim)."""
    attending = Attending(student, cases)
    sweep = Sweep()
    for i, n_seq in enumerate((2, 1, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 129, 300)):
        with sweep.at(n_seq):
            attending.compare(_configs(cases)[i % 3], n_seq, 1, sweep.close)
    with sweep.at(24):
        attending.compare_trained(24, 1, sweep.close)
    sweep.finish()


@check(stage=STAGE, id="attend-several-queries", points=2, title="Each of several queries sees the keys up to its own")
def attend_several_queries(student, cases):
    """n_query queries are the last n_query cached positions, and each sees the keys up to its own position."""
    attending = Attending(student, cases)
    sweep = Sweep()
    for i, (n_seq, n_query) in enumerate(
        (
            (5, 2),
            (7, 3),
            (12, 5),
            (3, 3),
            (2, 2),
            (8, 7),
            (11, 11),
            (16, 15),
            (17, 2),
            (33, 6),
            (7, 7),
            (22, 22),
            (150, 3),
            (70, 66),
            (140, 140),
        )  # more queries than a piece of any usual size holds
    ):
        with sweep.at(n_seq):
            attending.compare(_configs(cases)[i % 3], n_seq, n_query, sweep.close)
    with sweep.at(24):
        attending.compare_trained(24, 9, sweep.close)
    sweep.finish()


@check(stage=STAGE, id="attend-large-scores", points=1, title="Large scores do not overflow")
def attend_large_scores(student, cases):
    """attend stays finite and right however large the scores are, in either direction."""
    config = _configs(cases)[2]
    attending = Attending(student, cases)
    attending.require(config)
    n_seq, size = 6, 60.0
    for signs, about in (
        ((1,), "large"),
        ((-1,), "very negative"),
        ((1, -1), "large in some heads and very negative in others"),
    ):
        q, k, v = attending.draw(config, n_seq, 1, about)
        sign = np.resize(np.array(signs, np.float32), config.n_head)
        k[:, :, 0] = size  # every key shares a large part with the query, so all scores of a head are large alike
        q[:, :, 0] = sign[:, None] * size * np.float32(np.sqrt(config.head_dim))
        out = attending.call(q, k, v)
        finite = np.isfinite(out).all(axis=tuple(range(1, out.ndim))) if out.ndim == 3 else None
        bug = None
        if finite is not None and len(finite) == config.n_head and not finite.all():
            split = len(signs) == 2 and finite[sign > 0].all()
            bug = own.SOFTMAX_GLOBAL_MAX if split else own.SOFTMAX_OVERFLOW
        if not matches(out, attention(q, k, v), atol=2e-2, rtol=2e-2):
            where = f"scores that are {about}, around {size * size:.0f} in size, {n_seq} cached positions"
            try:
                expect_close(out, attention(q, k, v), name="attend", where=where, axes=QUERY_AXES, atol=2e-2, rtol=2e-2)
            except Failure as failure:
                raise Failure(None, failure.detail, bug) from None

    q, k, v = attending.draw(config, n_seq, 3, "ordinary")
    if not matches(attending.call(q, k, v), attention(q, k, v), **CLOSE):
        return  # the check of several queries tells what is wrong
    k[:, :, 0], q[:, :, 0] = 0, size * np.float32(np.sqrt(config.head_dim))
    k[:, n_seq - 2 :, 0] = size  # the last two keys, which the first query must not see
    out, expected = attending.call(q, k, v), attention(q, k, v)
    blind = out.shape == expected.shape and not np.isfinite(out[:, 0]).any()
    expect_close(
        out,
        expected,
        name="attend",
        where=f"hidden scores around {size * size:.0f} and small visible ones, {n_seq} cached positions, n_query = 3",
        axes=QUERY_AXES,
        bug=own.SOFTMAX_HIDDEN_MAX if blind else None,
        atol=2e-2,
        rtol=2e-2,
    )
    k[:, :, 0], q[:, :, 0] = size, -size * np.float32(np.sqrt(config.head_dim))
    expected = attention(q, k, v)
    hidden_alone = expected.copy()
    for i in range(2):  # query i of 3 does not see the last 2 - i keys
        hidden_alone[:, i] = v[:, n_seq - 2 + i :].mean(axis=1)
    where = f"scores that are very negative, around {size * size:.0f} in size, {n_seq} cached positions, n_query = 3"
    suspects = [(own.MASK_TOO_SMALL, lambda: hidden_alone)]
    expect_close(
        attending.call(q, k, v),
        expected,
        name="attend",
        where=where,
        axes=QUERY_AXES,
        suspects=suspects,
        atol=2e-2,
        rtol=2e-2,
    )


@check(stage=STAGE, id="attend-only-reads", points=1, title="attend only reads the cache", watches=("attend",))
def attend_only_reads(student, cases):
    """attend leaves the cache as it was: same keys, same values, same length."""
    attending = Attending(student, cases)
    for config, n_seq in zip(_configs(cases), (4, 9, 16), strict=True):
        attending.require(config)
        for n_query in (1, 3, n_seq):
            q, k, v = attending.draw(config, n_seq, n_query, "only reads")
            layer = attending.fill(k, v)
            before = [student.length(layer), *_read_layer(student, layer)]
            student.array("attend", q, layer)
            after = [student.length(layer), *_read_layer(student, layer)]
            where = f"{n_seq} cached positions, n_query = {n_query}, {config.n_head} heads"
            for name, a, b in zip(("len()", "keys", "values"), before, after, strict=True):
                if not np.array_equal(a, b):
                    raise Failure(
                        None, f"{name} of the cache is different after attend ({where}).", own.ATTEND_CHANGES_CACHE
                    )


class Attending:
    """Calls attend on a LayerCache filled with given keys and values, and compares with the reference."""

    def __init__(self, student, cases):
        self.student, self.cases = student, cases
        _, k, v = self.draw(_configs(cases)[0], 5, 1, "before")
        self._blame_cache(self.fill(k, v), k, v)

    def draw(self, config, n_seq: int, n_query: int, *label: object) -> list[np.ndarray]:
        rng = self.cases.rng("attend", n_seq, n_query, config.n_head, *label)
        return [_normal(rng, config.n_head, n, config.head_dim) * np.float32(1.5) for n in (n_query, n_seq, n_seq)]

    def fill(self, k: np.ndarray, v: np.ndarray) -> Handle:
        layer = self.student.handle("LayerCache")
        part = (k.shape[1] + 1) // 2
        for rows in (slice(0, part), slice(part, None)):
            if k[:, rows].shape[1]:
                self.student.method(layer, "append", k[:, rows], v[:, rows], returns="none")
        return layer

    def call(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        layer = self.fill(k, v)
        try:
            return self.student.array("attend", q, layer)
        except StudentError as error:
            if error.stub or error.kind == "missing":
                raise
            self._blame_cache(layer, k, v)
            where = f"{k.shape[1]} cached positions, n_query = {q.shape[1]}, {q.shape[0]} heads of {q.shape[2]}"
            raise Failure(None, f"{error.sentence[:-1]}: {where}.") from None

    def compare(self, config, n_seq: int, n_query: int, close=expect_close, **options) -> None:
        """Compare one call at ordinary scores. close: expect_close, or that of a sweep."""
        q, k, v = self.draw(config, n_seq, n_query)
        where = f"{n_seq} cached positions, n_query = {n_query}, {config.n_head} heads of {config.head_dim}"
        self._compare(q, k, v, where, close, **options)

    def compare_trained(self, n_seq: int, n_query: int, close) -> None:
        """Keys and values as the trained model makes them, in a layer in the middle; keys serve as queries, too."""
        model = self.cases.trained
        kv = model.reference.run(self.cases.ids(model, n_seq, "trained")).kv
        k, v = (np.asarray(a, np.float32) for a in kv[len(kv) // 2])
        q = np.asarray(kv[len(kv) // 3][0][:, -n_query:], np.float32)
        self._compare(q, k, v, f"keys of the trained model, {n_seq} cached positions, n_query = {n_query}", close)

    def require(self, config) -> None:
        """Fail when attend is not right for one query of ordinary size: a check on anything else would mean nothing."""
        prop = "attend is right for one query of ordinary size, before anything else is asked of it."
        self.compare(config, 5, 1, prop=prop)

    def _compare(self, q, k, v, where, close, **options) -> None:
        out = self.call(q, k, v)
        expected = attention(q, k, v)
        if matches(out, expected, **CLOSE):
            return
        self._blame_cache(self.fill(k, v), k, v)
        nothing_finite = k.shape[1] > 1 and out.size and not np.isfinite(out.astype(np.float64)).any()
        close(
            out,
            expected,
            name="attend",
            where=where,
            axes=QUERY_AXES,
            suspects=_suspects(q, k, v),
            bug=MASK_TIMES_INFINITY if nothing_finite else None,
            **CLOSE,
            **options,
        )

    def _blame_cache(self, layer: Handle, k: np.ndarray, v: np.ndarray) -> None:
        """Fail at once when it is the LayerCache that is wrong: attend cannot be judged on it."""
        if _wrong_layers(_read_layers(self.student, [layer]), [(k, v)]):
            raise Failure(
                None,
                f"The LayerCache does not hold the {k.shape[1]} rows that were appended to it, so attend cannot be "
                "judged: get the checks of LayerCache to pass first.",
            )


def _suspects(q, k, v):
    """Common wrong results of attend, each with its bug."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    n_query, n_seq = q.shape[1], k.shape[1]
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2])
    seen = np.tri(n_query, n_seq, n_seq - n_query, dtype=bool)
    masked = np.where(seen, scores, -np.inf)
    peak = masked.max(axis=-1, keepdims=True)

    def mistake(**changes):
        return lambda: attention(q, k, v, RIGHT.with_(**changes))

    def sees_next():  # with two queries it is the same as no mask
        later = np.tri(n_query, n_seq, n_seq - n_query + 1, dtype=bool)
        return softmax(np.where(later, scores, -np.inf)) @ v if n_query > 2 else attention(q, k, v)

    def over_heads():
        shares = np.exp(masked - peak.max(axis=0, keepdims=True))
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(shares / shares.sum(axis=0, keepdims=True)) @ v

    return [
        (own.MASK_SEES_NEXT, sees_next),
        (NO_CAUSAL_MASK, mistake(mask="none")),
        (MASK_WITHOUT_OFFSET, mistake(mask="no-offset")),
        (own.MASK_HIDES_SELF, mistake(mask="strict")),
        (own.MASK_AS_ZERO, mistake(mask="zeros")),
        (own.MASK_AFTER_SOFTMAX, mistake(mask="after-softmax")),
        (SCORES_UNSCALED, mistake(scale="none")),
        (SCORES_SCALED_BY_EMBD, mistake(scale="n_embd")),
        (SCORES_SCALED_BY_LENGTH, mistake(scale="n_seq")),
        (own.SCORES_NO_ROOT, mistake(scale="no-root")),
        (KEYS_VALUES_SWAPPED, lambda: attention(q, v, k)),
        (HALF_PRECISION, lambda: attention(q, *(a.astype(np.float16).astype(np.float64) for a in (k, v)))),
        (own.NO_SOFTMAX, lambda: np.where(seen, scores, 0.0) @ v),
        (own.SOFTMAX_SUM, lambda: np.exp(masked) @ v),
        (own.SOFTMAX_SUM, lambda: np.exp(masked - peak) @ v),
        (own.SOFTMAX_AXIS, mistake(softmax="queries")),
        (own.SOFTMAX_OVER_HEADS, over_heads),
    ]


# The memory bill


@check(stage=STAGE, id="memory-bytes", points=1, title="The memory bill is exact")
def kv_cache_bytes(student, cases):
    """kv_cache_bytes is, as an int, the number of bytes of the keys and the values of n_seq positions in all layers."""
    failures: list[Failure] = []
    explained: list[set[Bug]] = []
    for model in (*cases.odd, cases.trained):
        c, config = model.config, model.part("config")
        for n_seq, sizes in ((1, ()), (c.n_ctx - 2, ()), (5, (2,)), (9, (8,))):
            value = student.plain("kv_cache_bytes", config, n_seq, *sizes)
            n_bytes = sizes[0] if sizes else 4
            row = c.n_layer * c.n_embd * n_bytes
            right = 2 * row * n_seq
            shape = f"n_layer = {c.n_layer}, n_head = {c.n_head}, n_embd = {c.n_embd}, n_seq = {n_seq}"
            where = f"{shape}, n_bytes {f'= {n_bytes}' if sizes else 'left out'}"
            if type(value) not in (int, float):
                raise Failure(None, f"kv_cache_bytes returns {_kind(value)} where an int is expected ({where}).")
            suspects = {
                own.BYTES_FLOAT: right,
                own.BYTES_KEYS_ONLY: row * n_seq,
                own.BYTES_ONE_LAYER: 2 * c.n_embd * n_seq * n_bytes,
                own.BYTES_ONE_HEAD: 2 * c.n_layer * c.head_dim * n_seq * n_bytes,
                own.BYTES_NO_SIZE: 2 * c.n_layer * c.n_embd * n_seq,
                own.BYTES_IGNORED: 2 * c.n_layer * c.n_embd * n_seq * 4,
                own.BYTES_N_CTX: 2 * row * c.n_ctx,
                own.BYTES_HEADS_TWICE: 2 * row * n_seq * c.n_head,
                own.BYTES_DEFAULT: right if sizes else value,
            }
            explained.append({bug for bug, wrong in suspects.items() if value == wrong})
            if type(value) is int and value == right:
                continue
            size = "a float" if value == right else f"{value / right:.3g} times the right number"
            failures.append(Failure(None, f"kv_cache_bytes is {size} ({where})."))
    if failures:
        bug = next((bug for bug in BYTES_BUGS if all(bug in bugs for bugs in explained)), None)
        raise Failure(None, failures[0].detail, bug)


# Helpers


def _configs(cases):
    return [model.config for model in cases.odd]


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def _draw_kv(cases, config, n_new: int, *label: object) -> tuple[np.ndarray, np.ndarray]:
    rng = cases.rng("kv", n_new, config.n_head, *label)
    return tuple(_normal(rng, config.n_head, n_new, config.head_dim) for _ in range(2))


def _draw_cache(cases, config, n_seq: int, *label: object) -> KV:
    return [_draw_kv(cases, config, n_seq, *label, "layer", i) for i in range(config.n_layer)]


def _joined(a, b):
    return tuple(np.concatenate(pair, axis=1) for pair in zip(a, b, strict=True))


def _layers(student, cache: Handle, n_layer: int, about: str) -> list[Handle]:
    """The cache's layers, each a handle; Failure when their number is wrong."""
    try:
        layers = student.attribute(cache, "layers", returns="handle")
    except StudentError as error:
        if error.message.startswith("'NoneType' object"):
            raise Failure(None, f"{_capital(about)} is None.", own.CLONE_NOT_RETURNED) from None
        raise
    count = student.length(layers)
    if count != n_layer:
        raise Failure(None, f"{_capital(about)} has {count} entries in layers.", own.NUMBER_OF_LAYERS)
    return [student.method(layers, "__getitem__", i, returns="handle") for i in range(n_layer)]


def _read_layer(student, layer: Handle) -> list[np.ndarray]:
    return [student.attribute(layer, name, returns="array") for name in ("keys", "values")]


def _read_layers(student, layers: Sequence[Handle]) -> list[tuple[np.ndarray, np.ndarray] | None]:
    """Each layer's (keys, values), or None where a layer has no arrays to give."""
    pairs = []
    for layer in layers:
        try:
            pairs.append(tuple(_read_layer(student, layer)))
        except StudentError as error:
            if error.stub or error.kind == "missing":
                raise
            pairs.append(None)
    return pairs


def _read_whole(student, cache: Handle, layers: Sequence[Handle]) -> list[tuple[np.ndarray, np.ndarray] | None]:
    """What _read_layers gives, in one request where nothing is amiss."""
    try:
        got = student.read_cache(cache)
    except StudentError:
        return _read_layers(student, layers)
    return got if len(got) == len(layers) else _read_layers(student, layers)


def _wrong_layers(got: Sequence, right: KV) -> list[int]:
    """The layers in which the rows differ."""
    return [
        i
        for i, (pair, expected) in enumerate(zip(got, right, strict=True))
        if pair is None or not all(matches(a, b, **EXACT) for a, b in zip(pair, expected, strict=True))
    ]


def _of(layers: list[int], n_layer: int) -> str:
    if len(layers) == n_layer:
        return f"all {n_layer} layers"
    return f"layer{'s' if len(layers) > 1 else ''} {in_words(layers)} of 0 to {n_layer - 1}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes[:-1])) + f" and {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])


def _appends(sizes: Sequence[int]) -> str:
    if set(sizes) == {1}:
        return f"{_count(len(sizes), 'append')} of one row"
    return f"appends of {_listed(sizes)} rows" if len(sizes) > 1 else f"an append of {sizes[0]} rows"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
