"""The checks of attend."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from autograder.judge import large_scores
from autograder.judge.bugs import MASK_TIMES_INFINITY, Bug
from autograder.judge.compare import Sweep, expect_close, in_words, matches
from autograder.judge.framework import Failure, check
from autograder.judge.reference import attention
from autograder.judge.student import Handle, StudentError
from autograder.judge.variants import MASK_TOO_SMALL
from autograder.stages.kv_cache import bugs as own
from autograder.stages.kv_cache.attend_suspects import attend_suspects
from autograder.stages.kv_cache.shared import STAGE, configs, normal, read_layer, read_layers, wrong_layers

QUERY_AXES = ("head", "query", "element")
CLOSE = {"atol": 1e-5, "rtol": 1e-4}  # one attention in float32


@check(stage=STAGE, id="attend-one-query", points=1, title="One new query attends to every cached position")
def attend_one_query(student, cases):
    """attend with one query is the softmax-weighted sum of all cached values; scores are divided by sqrt(head_dim)."""
    attending = Attending(student, cases)
    sweep = Sweep()
    for i, n_seq in enumerate((2, 1, 3, 7, 5, 8, 9, 15, 16, 17, 31, 33, 64, 129, 300)):  # 7 is a head_dim
        with sweep.at(n_seq):
            attending.compare(configs(cases)[i % 3], n_seq, 1, sweep.close)
    with sweep.at(24):
        attending.compare_trained(24, 1, sweep.close)
    sweep.finish()
    attending.compare_growing(configs(cases)[0], (3, 1, 1, 4))


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
            (7, 7),  # as many positions as head_dim
            (16, 15),
            (17, 2),
            (33, 6),
            (11, 11),  # the same
            (22, 22),
            (150, 3),
            (70, 66),
            (140, 140),
        )  # more queries than a piece of any usual size holds
    ):
        with sweep.at(n_seq):
            attending.compare(configs(cases)[i % 3], n_seq, n_query, sweep.close)
    with sweep.at(24):
        attending.compare_trained(24, 9, sweep.close)
    sweep.finish()


@check(stage=STAGE, id="attend-large-scores", points=1, title="Large scores do not overflow")
def attend_large_scores(student, cases):
    """attend stays finite and right however large the scores are, in either direction."""
    config = configs(cases)[2]
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
            where = f"scores that are {about}, around {size * size:,.0f} in size, {n_seq} cached positions"
            try:
                expect_close(out, attention(q, k, v), name="attend", where=where, axes=QUERY_AXES, atol=2e-2, rtol=2e-2)
            except Failure as failure:
                raise Failure(None, failure.detail, bug) from None

    q, k, v = attending.draw(config, n_seq, 3, "ordinary")
    if not matches(attending.call(q, k, v), attention(q, k, v), **CLOSE):
        return  # the check of several queries tells what is wrong
    rng = cases.rng("exact")
    v = normal(rng, 3, n_seq, large_scores.HEAD_DIM)
    q, k = large_scores.draw(rng, 3, [0] * (n_seq - 2) + [1, 1], 1)  # the first of three queries sees no flagged key
    q = q[:, -3:]
    out, expected = attending.call(q, k, v), attention(q, k, v)
    blind = out.shape == expected.shape and not np.isfinite(out[:, 0]).any()
    expect_close(
        out,
        expected,
        name="attend",
        where=f"hidden scores around {large_scores.LARGE}, small visible ones, {n_seq} cached positions, n_query = 3",
        axes=QUERY_AXES,
        suspects=_masks_too_small(q, k, v),
        bug=_largest_taken(attending, config) if blind else None,
        atol=2e-2,
        rtol=2e-2,
    )
    q, k = large_scores.draw(rng, 3, [1] * n_seq, -1)
    q = q[:, -3:]
    where = f"scores that are very negative, around {large_scores.LARGE} in size, {n_seq} cached positions, n_query = 3"
    expect_close(
        attending.call(q, k, v),
        attention(q, k, v),
        name="attend",
        where=where,
        axes=QUERY_AXES,
        suspects=_masks_too_small(q, k, v),
        atol=2e-2,
        rtol=2e-2,
    )


def _largest_taken(attending: Attending, config) -> Bug | None:
    """Which largest score is taken off when a row far below hidden scores, and below another row's, becomes 0 / 0.

    Told apart by scores that are large alike in a row, hidden ones included, and of the other sign in another row.
    """
    size = 60.0
    q, k, v = attending.draw(config, 6, 3, "which maximum")
    k[:, :, 0] = size
    q[:, :, 0] = np.array([-1, 1, 1]) * size * np.sqrt(config.head_dim)
    out = attending.call(q, k, v)
    if matches(out, attention(q, k, v), atol=2e-2, rtol=2e-2):
        return own.SOFTMAX_HIDDEN_MAX
    return own.SOFTMAX_GLOBAL_MAX if np.isfinite(out[:, 1:]).all() else None


def _masks_too_small(q, k, v):
    """Hidden scores that are set to a number, or lowered by one, which is not enough."""
    for wrong in MASK_TOO_SMALL.values():
        yield own.MASK_TOO_SMALL, lambda wrong=wrong: wrong(q, k, v)


@check(stage=STAGE, id="attend-only-reads", points=1, title="attend only reads the cache", watches=("attend",))
def attend_only_reads(student, cases):
    """attend leaves the cache as it was: same keys, same values, same length."""
    attending = Attending(student, cases)
    for config, n_seq in zip(configs(cases), (4, 9, 16), strict=True):
        attending.require(config)
        for n_query in (1, 3, n_seq):
            q, k, v = attending.draw(config, n_seq, n_query, "only reads")
            layer = attending.fill(k, v)
            before = [student.length(layer), *read_layer(student, layer)]
            student.array("attend", q, layer)
            after = [student.length(layer), *read_layer(student, layer)]
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
        _, k, v = self.draw(configs(cases)[0], 5, 1, "before")
        self._blame_cache(self.fill(k, v), k, v)

    def draw(self, config, n_seq: int, n_query: int, *label: object) -> list[np.ndarray]:
        rng = self.cases.rng("attend", n_seq, n_query, config.n_head, *label)
        return [normal(rng, config.n_head, n, config.head_dim) * np.float32(1.5) for n in (n_query, n_seq, n_seq)]

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
            if error.unwritten:
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

    def compare_growing(self, config, sizes: Sequence[int]) -> None:
        """One query after each append of so many rows to one and the same LayerCache."""
        layer = self.student.handle("LayerCache")
        begin, seen = 0, []
        _, k, v = self.draw(config, sum(sizes), 1, "growing")
        for end in itertools.accumulate(sizes):
            self.student.method(layer, "append", k[:, begin:end], v[:, begin:end], returns="none")
            q, *_ = self.draw(config, end, 1, "growing")
            out, expected = self.student.array("attend", q, layer), attention(q, k[:, :end], v[:, :end])
            if not matches(out, expected, **CLOSE):
                self._blame_cache(self.fill(k[:, :end], v[:, :end]), k[:, :end], v[:, :end])
                if wrong_layers(read_layers(self.student, [layer]), [(k[:, :end], v[:, :end])]):
                    return  # attend has changed the rows, and another check tells
                suspects = [(own.ATTEND_STALE, lambda q=q, n=n: attention(q, k[:, :n], v[:, :n])) for n in seen]
                earlier = f" after calls with {in_words(seen)}" if seen else ""
                where = f"{end} cached positions{earlier} on the same LayerCache"
                expect_close(out, expected, name="attend", where=where, axes=QUERY_AXES, suspects=suspects, **CLOSE)
            begin = end
            seen.append(end)

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
            suspects=attend_suspects(q, k, v),
            bug=MASK_TIMES_INFINITY if nothing_finite else None,
            **CLOSE,
            **options,
        )

    def _blame_cache(self, layer: Handle, k: np.ndarray, v: np.ndarray) -> None:
        """Fail at once when it is the LayerCache that is wrong: attend cannot be judged on it."""
        if wrong_layers(read_layers(self.student, [layer]), [(k, v)]):
            raise Failure(
                None,
                f"The LayerCache does not hold the {k.shape[1]} rows that were appended to it, so attend cannot be "
                "judged: get the checks of LayerCache to pass first.",
            )
