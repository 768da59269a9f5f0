"""The checks of ModelCache and its clone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.compare import Sweep, in_words
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV
from autograder.judge.student import Handle, StudentError
from autograder.judge.words import count
from autograder.stages.kv_cache import bugs as own
from autograder.stages.kv_cache.shared import STAGE, configs, draw_kv, read_layers, wrong_layers


@check(stage=STAGE, id="model-cache-layers", points=1, title="A ModelCache has n_layer layers of its own")
def model_cache_layers(student, cases):
    """ModelCache(n_layer) has n_layer LayerCaches that share no rows; its len() is the number of cached positions."""
    one_layer = replace(configs(cases)[0], n_layer=1)
    for config in (*configs(cases), one_layer, cases.trained.config):
        cache = Held.new(student, config, "the cache")
        lengths = [student.length(cache.handle)]
        for n_new in (1, 13):
            cache.append(_draw_cache(cases, config, n_new, "layers"))
            cache.expect(", which the checks of LayerCache may explain", _name_shared_layers)
            lengths.append(student.length(cache.handle))
        right = (0, 1, 14)
        if tuple(lengths) != right:
            i = next(i for i in range(3) if lengths[i] != right[i])
            bug = own.LENGTH_COUNTS_LAYERS if set(lengths) == {config.n_layer} else None
            about = f"a cache of {count(config.n_layer, 'layer')}"
            raise Failure(
                None, f"len() of {about} is {lengths[i]} with {count(right[i], 'position')} in each layer.", bug
            )
        second = student.length(student.handle("ModelCache", config.n_layer))
        if second != 0:
            raise Failure(None, f"len() of a second, new ModelCache is {second}.", own.CACHES_SHARE_STATE)


@check(stage=STAGE, id="clone-equal", points=1, title="A clone holds the same rows in every layer")
def clone_equal(student, cases):
    """clone() gives a cache with the same number of layers, the same rows in every layer and the same len()."""
    _require_caches(student, cases)
    sweep = Sweep()
    for model, n_seq in _clone_cases(cases):
        kv = _draw_cache(cases, model.config, n_seq, "clone")
        with sweep.at(n_seq):
            original = Held(student, student.make_cache(model, kv), "the original", kv)
            clone = original.clone("the clone")
            try:
                clone.expect()
            except Failure:
                Held(student, student.make_cache(model, kv), "the original", kv).expect(BEFORE)
                raise
            original.expect(" after clone()")
            lengths = student.length(clone.handle), student.length(original.handle)
            if lengths[0] != lengths[1]:
                raise Failure(None, f"len() of the clone is {lengths[0]}, and {lengths[1]} of the original.")
    sweep.finish()
    original = Held.new(student, configs(cases)[1], "the empty cache")
    try:
        clone = original.clone("the clone of an empty cache")
    except StudentError as error:
        if error.unwritten:
            raise
        raise Failure(None, f"For an empty cache of 3 layers, {error.sentence}") from None
    if student.length(clone.handle) != student.length(original.handle):
        raise Failure(None, f"len() of the clone of an empty cache is {student.length(clone.handle)}.")


@check(stage=STAGE, id="clone-independent", points=2, title="A clone and its original grow apart")
def clone_independent(student, cases):
    """What one of a cache and its clones appends never shows in another, in any layer."""
    _require_caches(student, cases)
    sweep = Sweep("lengths at cloning")
    for model, n_seq in _clone_cases(cases):
        kv = _draw_cache(cases, model.config, n_seq, "independent")
        with sweep.at(n_seq):
            original = Held(student, student.make_cache(model, kv), "the original", kv)
            original.expect(BEFORE)
            clone = original.clone("the clone")
            second, third = clone.clone("a clone of the clone"), original.clone("a second clone")
            held = (original, clone, second, third)
            for cache in held:
                cache.expect(BEFORE)
            for turn, grown in enumerate((clone, original, third, second, clone, original)):
                n_new = 1 if turn < 4 else 18  # past the end of a buffer, too
                grown.append(_draw_cache(cases, model.config, n_new, "turn", turn))
                when = f" after {grown.name} grew by {n_new}, cloned at {count(n_seq, 'position')}"
                grown.expect(when)
                for other in held:
                    other.expect(when, _name_sharing(grown.kv, n_new))
    sweep.finish()

    config = configs(cases)[0]
    original, clones = Held.new(student, config, "the original"), []
    for n_new in (2, 3, 0):
        clones.append(original.clone("a clone"))
        if len(clones) > 1:
            clones[-1].expect(", made after one with fewer rows")
        if n_new:
            original.append(_draw_cache(cases, config, n_new, "growing"))
    clones[0].append(_draw_cache(cases, config, 1, "in the clone"))
    for cache in (clones[0], original):
        cache.expect(" after an empty cache was cloned and both grew")


BEFORE = ", so its clones cannot be judged: get the checks above to pass first"


def _require_caches(student, cases) -> None:
    """Fail when caches do not hold their rows, before clones of what they share with others grow without end."""
    for model in cases.odd[:2]:
        kv = _draw_cache(cases, model.config, 3, "require")
        Held(student, student.make_cache(model, kv), "a cache", kv).expect(BEFORE)


class Held:
    """A ModelCache of the student's, and the rows that it is to hold."""

    def __init__(self, student, handle: Handle, name: str, kv: KV):
        self.student, self.handle, self.name, self.kv = student, handle, name, kv
        try:
            layers = student.attribute(handle, "layers", returns="handle")
        except StudentError as error:
            if error.message.startswith("'NoneType' object"):
                raise Failure(None, f"{_capital(name)} is None.", own.CLONE_NOT_RETURNED) from None
            raise
        n_layers = student.length(layers)
        if n_layers != len(kv):
            raise Failure(None, f"{_capital(name)} has {count(n_layers, 'layer')} where {len(kv)} are expected.")
        self.layers = [student.method(layers, "__getitem__", i, returns="handle") for i in range(n_layers)]

    @classmethod
    def new(cls, student, config, name: str) -> Held:
        """A new ModelCache, still empty."""
        nothing = np.empty((config.n_head, 0, config.head_dim), np.float32)
        return cls(student, student.handle("ModelCache", config.n_layer), name, [(nothing, nothing)] * config.n_layer)

    def clone(self, name: str) -> Held:
        return Held(self.student, self.student.method(self.handle, "clone", returns="handle"), name, self.kv)

    def append(self, new: KV) -> None:
        """Append rows to every layer."""
        for layer, (k, v) in zip(self.layers, new, strict=True):
            self.student.method(layer, "append", k, v, returns="none")
        self.kv = [
            tuple(np.concatenate(pair, axis=1) for pair in zip(a, b, strict=True))
            for a, b in zip(self.kv, new, strict=True)
        ]

    def expect(self, when: str = "", bug: Callable[[Sequence, KV], Bug | None] = lambda got, right: None) -> None:
        """Fail when other rows are there. bug: the name of the mistake, by what was read of each layer."""
        try:
            got = self.student.read_cache(self.handle)  # in one request, where nothing is amiss
        except StudentError:
            got = []
        if len(got) != len(self.kv):
            got = read_layers(self.student, self.layers)
        wrong = wrong_layers(got, self.kv)
        if wrong:
            n, n_seq = len(self.kv), self.kv[0][0].shape[1]
            lengths = {a.shape[1] for i in wrong if got[i] is not None for a in got[i] if a.ndim == 3}
            rows = in_words(lengths) if lengths else "no"
            where = f"all {n} layers" if len(wrong) == n else f"layers {in_words(wrong)} of 0 to {n - 1}"
            detail = f"holds {rows} rows where {n_seq} are expected" if lengths != {n_seq} else "holds other rows"
            raise Failure(None, f"{_capital(self.name)} {detail}, in {where}{when}.", bug(got, self.kv))


def _clone_cases(cases) -> list[tuple]:
    """Models and numbers of positions, at and beside the sizes of buffers; one model has 12 layers."""
    two, three, four = cases.odd
    return [(two, 1), (three, 5), (two, 15), (four, 16), (two, 17), (cases.trained, 6), (two, 130)]


def _draw_cache(cases, config, n_seq: int, *label: object) -> KV:
    return [draw_kv(cases, config, n_seq, *label, "layer", i) for i in range(config.n_layer)]


# The names of mistakes, by what was read of each layer and what should be there.


def _name_shared_layers(got: Sequence, right: KV) -> Bug | None:
    every = tuple(np.concatenate(side, axis=1) for side in zip(*right, strict=True))
    return None if wrong_layers(got, [every] * len(right)) else own.LAYERS_SHARED


def _name_sharing(grown: KV, n_new: int) -> Callable[[Sequence, KV], Bug | None]:
    """grown: the rows of the other cache, which grew last, by n_new."""

    def name(got: Sequence, right: KV) -> Bug | None:
        if grown[0][0].shape[1] > right[0][0].shape[1] and not wrong_layers(got, grown):
            return own.CLONE_SHALLOW
        begin = grown[0][0].shape[1] - n_new

        def overwritten(a, other):
            return np.concatenate([a[:, :begin], other[:, begin : a.shape[1]], a[:, begin + n_new :]], axis=1)

        shared = [tuple(map(overwritten, pair, others)) for pair, others in zip(right, grown, strict=True)]
        return None if wrong_layers(got, shared) else own.CLONE_SHARES_BUFFER

    return name


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
