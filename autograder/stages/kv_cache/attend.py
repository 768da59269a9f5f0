"""The checks of attend."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from autograder.judge import large_scores
from autograder.judge.bugs import SCORES_UNSCALED
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.reference import attention
from autograder.judge.student import Handle, StudentError
from autograder.judge.variants import ATTENTION, MASK_TOO_SMALL, suspects
from autograder.stages.forward_pass.bugs import FINITE_MASKS, SCORES, SOFTMAX_OVERFLOW
from autograder.stages.kv_cache.bugs import ATTEND_CHANGES_CACHE
from autograder.stages.kv_cache.shared import configs, equal, normal, read_layer, rows_if_any

AXES = ("head", "query", "element")
CLOSE = {"atol": 1e-5, "rtol": 1e-4}  # one attention in float32
ROUGH = {"atol": 2e-2, "rtol": 2e-2}  # the rounding of large scores
SUSPECTS = (
    *SCORES,
    *suspects("mask-without-offset", "keys-summed"),
    *suspects("keys-values-exchanged", bug="keys-values-swapped"),
)


@check("One new query attends to every cached position", points=1)
def attend_one_query(student, cases):
    """attend with one query is the softmax-weighted sum of all cached values; scores are divided by sqrt(head_dim)."""
    attending = Attending(student, cases)
    lengths = (2, 1, 3, 7, 5, 8, 9, 15, 16, 17, 31, 33, 64, 129, 1100)  # 7 is a head_dim
    attending.sweep((n_seq, 1) for n_seq in lengths)
    attending.expect_growing(configs(cases)[0], (3, 1, 1, 4))
    attending.expect_in_place_of_others(configs(cases)[1], 6)


@check("Each of several queries sees the keys up to its own", points=2)
def attend_several_queries(student, cases):
    """n_query queries are the last n_query cached positions, and each sees the keys up to its own position."""
    few = ((5, 2), (7, 3), (12, 5), (3, 3), (2, 2), (8, 7), (7, 7), (16, 15), (17, 2), (33, 6), (11, 11), (22, 22))
    many = ((150, 3), (70, 66), (140, 140))  # more queries than a piece of any usual size holds
    Attending(student, cases).sweep(few + many, in_trained=9)  # 7 and 11 are head_dims


@check("Large scores do not overflow", points=1)
def attend_large_scores(student, cases):
    """attend stays finite and right however large the scores are, in either direction."""
    config = configs(cases)[2]
    attending = Attending(student, cases)
    attending.require(config)
    n_seq, size = 6, 60.0
    loosely = {"suspects": FINITE_MASKS, "not_finite": SOFTMAX_OVERFLOW, **ROUGH}

    def expect_large(n_query: int, sign: np.ndarray, about: str) -> None:
        """All keys share a large part with a query, so all scores of a row are large alike. sign: [n_head, n_query]."""
        q, k, v = attending.draw(config, n_seq, n_query, about)
        k[:, :, 0] = size
        q[:, :, 0] = sign * np.float32(size * np.sqrt(config.head_dim))
        attending.expect(q, k, v, f"scores that are {about}, around {size * size:,.0f} in size", **loosely)

    expect_large(1, np.array([[1]]), "large")
    expect_large(1, np.array([[-1]]), "very negative")
    in_turn = np.resize([1, -1], (config.n_head, 1))
    expect_large(1, in_turn, "large in some heads and very negative in others")

    q, k, v = attending.draw(config, n_seq, 3, "ordinary")
    if not matches(attending.call(q, k, v), attention(q, k, v), **CLOSE):
        return  # the check of several queries tells what is wrong
    expect_large(3, np.array([[-1, 1, 1]]), "very negative for the first query and large for the others")
    rng = cases.rng("exact")
    v = normal(rng, 3, n_seq, large_scores.HEAD_DIM)
    for flags, sign, where in (  # the first of three queries sees no flagged key
        ([0] * (n_seq - 2) + [1, 1], 1, f"hidden scores around {large_scores.LARGE}, small visible ones"),
        ([1] * n_seq, -1, f"scores that are very negative, around {large_scores.LARGE} in size"),
    ):
        q, k = large_scores.draw(rng, 3, flags, sign)
        attending.expect(q[:, -3:], k, v, where, **loosely)


@check("attend only reads the cache", points=1, watches=("attend",))
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
            for name, a, b in zip(("len()", "keys", "values"), before, after, strict=True):
                if not np.array_equal(a, b):
                    detail = f"{name} of the cache is different after attend ({_sizes(q, k)})."
                    raise Failure(detail, ATTEND_CHANGES_CACHE)


class Attending:
    """Calls attend on a LayerCache filled with given keys and values, and compares with the reference."""

    def __init__(self, student, cases):
        self.student, self.cases = student, cases

    def draw(self, config, n_seq: int, n_query: int, *label: object) -> list[np.ndarray]:
        """Random q, k and v."""
        rng = self.cases.rng("attend", n_seq, n_query, config.n_head, *label)
        return [normal(rng, config.n_head, n, config.head_dim) * np.float32(1.5) for n in (n_query, n_seq, n_seq)]

    def fill(self, k: np.ndarray, v: np.ndarray) -> Handle:
        """A LayerCache that holds these rows, appended in two parts where there are several."""
        layer = self.student.handle("LayerCache")
        part = (k.shape[1] + 1) // 2
        for rows in (slice(0, part), slice(part, None)):
            if k[:, rows].shape[1]:
                self.student.method(layer, "append", k[:, rows], v[:, rows], returns="none")
        if not equal(rows_if_any(self.student, layer), (k, v)):
            raise Failure(
                f"The LayerCache does not hold the {k.shape[1]} rows that were appended to it, so attend cannot be "
                "judged: get the checks of LayerCache to pass first."
            )
        return layer

    def call(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        layer = self.fill(k, v)
        try:
            return self.student.array("attend", q, layer)
        except StudentError as error:
            raise Failure(f"{error.sentence[:-1]}: {_sizes(q, k)}.") from None

    def expect(self, q, k, v, where="", close=expect_close, suspects=SUSPECTS, not_finite=None, **options) -> None:
        """Compare one call with the reference. close: expect_close, or that of a sweep. not_finite: the bug then."""
        out = self.call(q, k, v)
        known = (
            (bug, lambda name=name: {**ATTENTION, **MASK_TOO_SMALL}[name](q, k, v))
            for bug, name in suspects
            if q.shape[1] > 1 or bug is not SCORES_UNSCALED or self._is_unscaled()
        )
        close(
            out,
            attention(q, k, v),
            name="attend",
            where=_sizes(q, k) + (f", {where}" if where else ""),
            axes=AXES,
            suspects=known,
            bug=None if np.isfinite(out.astype(np.float64)).all() else not_finite,
            **{**CLOSE, **options},
        )

    def _is_unscaled(self) -> bool:
        """Whether the scores of several queries are not scaled either; with one query, other divisors are 1 too."""
        q, k, v = self.draw(configs(self.cases)[0], 5, 3, "unscaled")
        return matches(self.call(q, k, v), ATTENTION["scores-unscaled"](q, k, v), **CLOSE)

    def sweep(self, sizes, in_trained: int = 1) -> None:
        """Numbers of cached positions and of queries, in the three configurations in turn; then those of the trained
        model: keys and values of layers in the middle, where keys serve as queries, too."""
        sweep = Sweep()
        for i, (n_seq, n_query) in enumerate(sizes):
            q, k, v = self.draw(configs(self.cases)[i % 3], n_seq, n_query)
            if n_query == 5:
                q[:, 2] = 0  # scores of exactly 0, which hide nothing
            with sweep.at(n_seq):
                self.expect(q, k, v, close=sweep.close)
        model = self.cases.trained
        kv = model.reference.run(self.cases.ids(model, 24, "trained")).kv
        arrays = kv[len(kv) // 3][0][:, -in_trained:], *kv[len(kv) // 2]
        with sweep.at(24):
            self.expect(*(np.asarray(a, np.float32) for a in arrays), "in the trained model", close=sweep.close)
        sweep.finish()

    def require(self, config) -> None:
        """Fail when attend is not right for one query of ordinary size: a check on anything else would mean nothing."""
        prop = "attend is right for one query of ordinary size, before anything else is asked of it."
        self.expect(*self.draw(config, 5, 1), prop=prop)

    def expect_growing(self, config, sizes: Sequence[int]) -> None:
        """One query after each append of so many rows to one and the same LayerCache."""
        layer, begin = self.student.handle("LayerCache"), 0
        _, k, v = self.draw(config, sum(sizes), 1, "growing")
        for end in itertools.accumulate(sizes):
            self.student.method(layer, "append", k[:, begin:end], v[:, begin:end], returns="none")
            q, *_ = self.draw(config, end, 1, "growing")
            out, rows = self.student.array("attend", q, layer), (k[:, :end], v[:, :end])
            if not equal(rows_if_any(self.student, layer), rows):
                return  # attend, or an append, has changed the rows, which other checks tell
            where = f"{_sizes(q, rows[0])}; {begin} of them were there at an earlier call"
            expect_close(out, attention(q, *rows), name="attend", where=where, axes=AXES, **CLOSE)
            begin = end

    def expect_in_place_of_others(self, config, n_seq: int) -> None:
        """Calls with caches of one size, each of which is gone when the next is made, and has its id()."""
        q, *_ = self.draw(config, n_seq, 1, "the same")
        for i in range(3):
            _, k, v = self.draw(config, n_seq, 1, "after one that is gone", i)
            layer = self.student.handle("LayerCache")
            self.student.method(layer, "append", k, v, returns="none")
            out, where = self.student.array("attend", q, layer), f"{_sizes(q, k)}; another cache had as many before"
            expect_close(out, attention(q, k, v), name="attend", where=where, axes=AXES, **CLOSE)
            self.student.replace(layer)


def _sizes(q: np.ndarray, k: np.ndarray) -> str:
    return f"{k.shape[1]} cached positions, n_query = {q.shape[1]}, {q.shape[0]} heads of {q.shape[2]}"
