"""The checks of ModelCache and its clone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.compare import Sweep, in_words
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.reference import KV
from autograder.judge.student import Handle, StudentError
from autograder.stages.kv_cache import bugs as own
from autograder.stages.kv_cache.shared import configs, draw_kv, equal, rows_if_any


@check("A ModelCache has n_layer layers of its own", points=1)
def model_cache_layers(student, cases):
    """ModelCache(n_layer) has n_layer LayerCaches that share no rows; its len() is the number of cached positions."""
    one_layer = replace(configs(cases)[0], n_layer=1)
    for config in (*configs(cases), one_layer, cases.trained.config):
        cache = Held.new(student, config, "the cache")
        lengths = [student.length(cache.handle)]
        for n_new in (1, 13):
            cache.append(_draw_cache(cases, config, n_new, "layers"))
            every = tuple(np.concatenate(side, axis=1) for side in zip(*cache.kv, strict=True))
            as_one = [(own.LAYERS_ARE_ONE_OBJECT, [every] * config.n_layer)]
            cache.expect(", which the checks of LayerCache may explain", as_one)
            lengths.append(student.length(cache.handle))
        right = [0, 1, 14]
        if lengths != right:
            i = next(i for i in range(3) if lengths[i] != right[i])
            counts_layers = set(lengths) == {config.n_layer} and student.length(cache.layers[0]) == right[-1]
            bug = own.LENGTH_COUNTS_LAYERS if counts_layers else None
            held = f"{count(config.n_layer, 'layer')} with {count(right[i], 'position')} in each"
            raise Failure(f"len() of a cache of {held} is {lengths[i]}.", bug)
        second = student.length(student.handle("ModelCache", config.n_layer))
        if second != 0:
            raise Failure(f"len() of a second, new ModelCache is {second}.", own.CACHES_SHARE_STATE)


@check("A clone holds the same rows in every layer", points=1)
def clone_equal(student, cases):
    """clone() gives a cache with the same number of layers, the same rows in every layer and the same len()."""

    def expect_equal(original: Held, clone: Held) -> None:
        clone.expect()
        lengths = student.length(clone.handle), student.length(original.handle)
        if lengths[0] != lengths[1]:
            raise Failure(f"len() of the clone is {lengths[0]}, and {lengths[1]} of the original.")

    _clone_each(student, cases, "clone", expect_equal)
    original = Held.new(student, configs(cases)[1], "the empty cache")
    try:
        clone = original.clone("the clone of an empty cache")
    except StudentError as error:
        raise Failure(f"For an empty cache of 3 layers, {error.sentence}") from None
    if student.length(clone.handle) != student.length(original.handle):
        raise Failure(f"len() of the clone of an empty cache is {student.length(clone.handle)}.")


@check("A clone and its original grow apart", points=2)
def clone_independent(student, cases):
    """What one of a cache and its clones appends never shows in another, in any layer."""

    def expect_independent(original: Held, clone: Held) -> None:
        second, third = clone.clone("a clone of the clone"), original.clone("a second clone")
        held = (original, clone, second, third)
        for turn, grown in enumerate((clone, original, third, second, clone, original)):
            n_new = 1 if turn < 4 else 18  # past the end of a buffer, too
            grown.append(_draw_cache(cases, grown.config, n_new, "turn", turn))
            when = f" after {grown.name} grew by {n_new}"
            grown.expect(when)
            for other in held:
                other.expect(when, _shared_rows(other.kv, grown.kv, n_new))

    _clone_each(student, cases, "independent", expect_independent)
    config = configs(cases)[0]
    original, clones = Held.new(student, config, "the original"), []
    for n_new in (2, 3, 0):
        clones.append(original.clone("a clone"))
        if len(clones) > 1:
            clones[-1].expect(", made after one with fewer rows")
        if n_new:
            original.append(_draw_cache(cases, config, n_new, "growing"))
    for n_new in (2, 3):
        clones[0].append(_draw_cache(cases, config, n_new, "in the clone"))
    lengths = [student.length(cache.handle) for cache in (clones[0], original)]
    if lengths[0] != lengths[1]:
        raise Failure(f"Of a clone and its original, which grew alike, one len() is {lengths[0]}, one {lengths[1]}.")
    for cache in (clones[0], original):
        cache.expect(" after an empty cache was cloned and both grew")


CLONED = ", after a clone was made of it: get the checks above to pass first, and then look at clone()"


def _clone_each(student, cases, label: str, look: Callable[[Held, Held], None]) -> None:
    """Call `look` with a cache and a clone of it, of lengths at and beside the sizes of buffers; one has 12 layers."""
    two, three, four = cases.odd
    sweep = Sweep("lengths at cloning")
    for model, n_seq in ((two, 1), (three, 5), (two, 15), (four, 16), (two, 17), (cases.trained, 6), (two, 260)):
        kv = _draw_cache(cases, model.config, n_seq, label)
        with sweep.at(n_seq):
            original = Held(student, student.make_cache(model, kv), model.config, "the original", kv)
            clone = original.clone("the clone")  # before a look at the rows, which may put something in order
            original.expect(CLONED)
            look(original, clone)
        if sweep.failed and student.length(student.handle("ModelCache", 1)) > 0:
            break  # caches share their rows, which each further clone would double once a layer
    sweep.finish()


class Held:
    """A ModelCache of the student's, and the rows that it is to hold."""

    def __init__(self, student, handle: Handle, config, name: str, kv: KV):
        self.student, self.handle, self.config, self.name, self.kv = student, handle, config, name, kv
        try:
            self.layers = student.layers(handle)
        except StudentError as error:
            if error.message.startswith("'NoneType' object"):
                raise Failure("clone() returned None.", own.CLONE_NOT_RETURNED) from None
            raise
        if len(self.layers) != len(kv):
            raise Failure(f"There are {len(self.layers)} layers in {name} where {len(kv)} are expected.")

    @classmethod
    def new(cls, student, config, name: str) -> Held:
        """A new ModelCache, still empty."""
        nothing = np.empty((config.n_head, 0, config.head_dim), np.float32)
        handle = student.handle("ModelCache", config.n_layer)
        return cls(student, handle, config, name, [(nothing, nothing)] * config.n_layer)

    def clone(self, name: str) -> Held:
        handle = self.student.method(self.handle, "clone", returns="handle")
        return Held(self.student, handle, self.config, name, self.kv)

    def append(self, new: KV) -> None:
        """Append rows to every layer."""
        for layer, (k, v) in zip(self.layers, new, strict=True):
            self.student.method(layer, "append", k, v, returns="none")
        self.kv = [
            tuple(np.concatenate(pair, axis=1) for pair in zip(a, b, strict=True))
            for a, b in zip(self.kv, new, strict=True)
        ]

    def expect(self, when: str = "", suspects: Iterable[tuple[Bug, KV]] = ()) -> None:
        """Fail when other rows are there. suspects: the rows that a bug would leave there."""
        try:
            got = self.student.read_cache(self.handle)  # in one request, where nothing is amiss
        except StudentError:
            got = []
        if len(got) != len(self.kv):
            got = [rows_if_any(self.student, layer) for layer in self.layers]
        wrong = _wrong_layers(got, self.kv)
        if wrong:
            n, n_seq = len(self.kv), self.kv[0][0].shape[1]
            where = f"all {n} layers" if len(wrong) == n else f"layers {in_words(wrong)} of 0 to {n - 1}"
            rows = f"other rows in {self.name} than the {n_seq} that were appended"
            bug = next((bug for bug, kv in suspects if not _wrong_layers(got, kv)), None)
            raise Failure(f"There are {rows}, in {where}{when}.", bug)


def _wrong_layers(got: Sequence, right: KV) -> list[int]:
    return [i for i, (pair, expected) in enumerate(zip(got, right, strict=True)) if not equal(pair, expected)]


def _draw_cache(cases, config, n_seq: int, *label: object) -> KV:
    return [draw_kv(cases, config, n_seq, *label, "layer", i) for i in range(config.n_layer)]


def _shared_rows(right: KV, grown: KV, n_new: int) -> Iterator[tuple[Bug, KV]]:
    """What a cache holds that shares its layers, or its buffers alone, with one that has just grown by n_new."""
    begin = grown[0][0].shape[1] - n_new

    def overwritten(a, other):
        return np.concatenate([a[:, :begin], other[:, begin : a.shape[1]], a[:, begin + n_new :]], axis=1)

    if grown[0][0].shape[1] > right[0][0].shape[1]:
        yield own.CLONE_SHALLOW, grown
    pairs = zip(right, grown, strict=True)
    yield own.CLONE_SHARES_BUFFER, [tuple(map(overwritten, pair, others)) for pair, others in pairs]
