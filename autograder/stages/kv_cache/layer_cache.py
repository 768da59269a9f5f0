"""The checks of LayerCache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from autograder.judge.bugs import HALF_PRECISION, Bug
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.student import Handle, StudentError
from autograder.judge.words import count
from autograder.stages.kv_cache import bugs as own
from autograder.stages.kv_cache.shared import EXACT, STAGE, configs, draw_kv, normal, read_layers
from autograder.toolkit.model import GPT2Config

# The sizes of buffers that people choose, one less and one more, then a single row and the same again; and big leaps.
# MANY rows come in three appends, in two small heads: past any room that is made once for all, and soon copied.
CHUNKS = (
    *((size + d, 1, size + d) for size in (4, 8, 16, 32, 64, 128, 256) for d in (-1, 0, 1)),
    (1, 90),
    (2, 3, 77),
)
MANY, FEW_NUMBERS = (1100, 1, 1000), GPT2Config(n_layer=1, n_head=2, n_embd=6, n_ctx=16, n_vocab=16)
MANY_HEADS = GPT2Config(n_layer=1, n_head=40, n_embd=120, n_ctx=16, n_vocab=16)  # more of them than rows, for long
KV_AXES = ("head", "position", "element")


@check(stage=STAGE, id="layer-cache-length", points=1, title="A LayerCache counts its positions")
def layer_cache_length(student, cases):
    """len() of a LayerCache is 0 before the first append and then the number of positions appended so far."""
    for config in configs(cases):
        sizes = (1, 1, 4, 2)
        layer = student.handle("LayerCache")
        lengths = [student.length(layer)]
        for n_new in sizes:
            student.method(layer, "append", *draw_kv(cases, config, n_new, "length"), returns="none")
            lengths.append(student.length(layer))
        right = [0, *np.cumsum(sizes).tolist()]
        if lengths != right:
            first = next(i for i, (a, b) in enumerate(zip(lengths, right, strict=True)) if a != b)
            when = f"after {_appends(sizes[:first])}" if first else "before the first append"
            detail = f"len() is {lengths[first]} {when} ({config.n_head} heads of {config.head_dim})."
            raise Failure(None, detail, _name_lengths(student, layer, config, sizes, lengths[1:]))
        total = right[-1]
        for n_new in [1] * (40 if config == configs(cases)[0] else 0):
            student.method(layer, "append", *draw_kv(cases, config, n_new, "length"), returns="none")
            total += n_new
            if student.length(layer) != total:
                raise Failure(None, f"len() is {student.length(layer)} after appends of {total} rows in all.")
        second = student.length(student.handle("LayerCache"))
        if second != 0:
            detail = f"len() of a second, new LayerCache is {second}, with {total} positions in the first."
            raise Failure(None, detail, own.CACHES_SHARE_STATE if second == total else None)


def _name_lengths(student, layer: Handle, config, sizes: Sequence[int], lengths: list[int]) -> Bug | None:
    pair = read_layers(student, [layer])[0]
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
    sweep = Sweep()
    filling = Filling(student, cases, MANY_HEADS, "one at a time")
    for n_seq in range(1, 71):
        with sweep.at(n_seq):
            filling.append(1, f"after {_appends([1] * n_seq)}")
        if filling.broken:
            break
    sweep.finish()

    sweep = Sweep("sizes of the first chunk")
    chunks_fit, all_fit = False, True  # what raises for every chunk is no matter of growth
    for first, *rest in (*CHUNKS, MANY):
        config = FEW_NUMBERS if (first, *rest) == MANY else configs(cases)[1]
        filling = Filling(student, cases, config, f"chunks {first}")
        with sweep.at(first):
            for i, n_new in enumerate((first, *rest)):
                raises = (
                    (own.NO_ROOM_LEFT if all_fit and first == MANY[0] else own.GROWTH_TOO_SMALL) if chunks_fit else None
                )
                filling.append(n_new, f"after {_appends([first, *rest][: i + 1])}", raises)
                chunks_fit = chunks_fit or n_new > 1
        all_fit = all_fit and not filling.broken
    sweep.finish()


class Filling:
    """A LayerCache of the student's that is filled and read back after each append."""

    def __init__(self, student, cases, config, label: str):
        self.student, self.config = student, config
        self._rng = cases.rng("filling", label)
        self.layer = student.handle("LayerCache")
        self.chunks: list[tuple[np.ndarray, np.ndarray]] = []
        self.broken = False
        self.was_right = False  # after some append
        self._is_right = False  # after the last append
        self._lost_in_growth = False

    def append(self, n_new: int, where: str, raises: Bug | None = None) -> None:
        """Append n_new rows and compare; raises Failure. `raises`: what an exception in append looks like here."""
        k, v = (normal(self._rng, self.config.n_head, n_new, self.config.head_dim) for _ in range(2))
        self.chunks.append((k, v))
        try:
            self.student.method(self.layer, "append", k, v, returns="none")
            got = [self.student.attribute(self.layer, name, returns="array") for name in ("keys", "values")]
        except StudentError as error:
            self.broken = True
            if error.unwritten:
                raise
            raise Failure(None, f"{error.sentence[:-1]}, {where}.", raises if error.loud else None) from None
        expected = [np.concatenate(parts, axis=1) for parts in zip(*self.chunks, strict=True)]
        for name, actual, right in zip(("keys", "values"), got, expected, strict=True):
            if not matches(actual, right, **EXACT):
                bug = _name_rows(got, expected, self.chunks) or self._name_growth(got, expected)
                self._is_right = False
                if bug is own.ROWS_CUT and len(self.chunks) > 1 and not self.was_right:
                    bug = own.LAST_ROW_CUT if got[0].shape[1] == right.shape[1] - 1 else None
                try:
                    expect_close(actual, right, name=name, where=where, axes=KV_AXES, **EXACT)
                except Failure as failure:
                    raise Failure(None, failure.detail, bug) from None
        self.was_right = self._is_right = True

    def _name_growth(self, got: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> Bug | None:
        """Whether a larger buffer began without the rows so far, now or at an earlier append."""
        n_new = self.chunks[-1][0].shape[1]
        if any(
            a.shape != b.shape or not matches(a[:, -n_new:], b[:, -n_new:], **EXACT)
            for a, b in zip(got, right, strict=True)
        ):
            return None
        if self._is_right:
            self._lost_in_growth = all(_is_lost(a[:, :-n_new], b) for a, b in zip(got, right, strict=True))
        return own.GROWTH_LOSES_ROWS if self._lost_in_growth else None


def _is_lost(older: np.ndarray, right: np.ndarray) -> bool:
    """Whether the older rows are not there: nothing of theirs, or of the newest, stands anywhere or near its place."""
    near = np.isclose(older, right[:, : older.shape[1]], atol=1e-2)
    return older.shape[1] > 1 and near.mean() < 0.1 and not np.isin(older, right).any()


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
    if all_match([np.concatenate([c for c in side for _ in range(2)], axis=1) for side in (keys, values)]) or all_match(
        [np.repeat(a, 2, axis=1) for a in right]
    ):
        return own.ROWS_TWICE
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
    return None


def all_match_part(got, right, part: slice) -> bool:
    return all(matches(a[:, part], b, **EXACT) for a, b in zip(got, right, strict=True))


def _appends(sizes: Sequence[int]) -> str:
    if set(sizes) == {1}:
        return f"{count(len(sizes), 'append')} of one row"
    return f"appends of {_listed(sizes)} rows" if len(sizes) > 1 else f"an append of {sizes[0]} rows"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes[:-1])) + f" and {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
