"""The checks of ModelCache and its clone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.compare import Sweep, in_words
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.student import Handle, StudentError
from autograder.judge.words import count
from autograder.stages.kv_cache import bugs as own
from autograder.stages.kv_cache.shared import STAGE, configs, draw_kv, read_layers, wrong_layers


@check(stage=STAGE, id="model-cache-layers", points=1, title="A ModelCache has n_layer layers of its own")
def model_cache_layers(student, cases):
    """ModelCache(n_layer) has n_layer LayerCaches that share no rows; its len() is the number of cached positions."""
    two, three, four = configs(cases)
    one = replace(two, n_layer=1)
    for config in (three, two, four, one, cases.trained.config):  # with two layers, twice as many may mean many things
        cache = student.handle("ModelCache", config.n_layer)
        about = f"a cache of {count(config.n_layer, 'layer')}"
        layers = _layers(student, cache, config.n_layer, about)
        lengths, kv = [student.length(cache)], []
        for n_new in (1, 6):
            new = [draw_kv(cases, config, n_new, "layers", i, n_new) for i in range(config.n_layer)]
            _append(student, layers, new)
            kv = [_joined(a, b) for a, b in zip(kv, new, strict=True)] if kv else new
            got = student.read_cache(cache, _capital(about))
            wrong = wrong_layers(got, kv)
            if wrong:
                if got and all(k.shape[1] == kv[0][0].shape[1] * config.n_layer for k, _ in got):
                    raise Failure(None, f"Every layer of {about} holds the rows of all layers.", own.LAYERS_SHARED)
                detail = f"{_capital(about)} holds other rows than were appended, in {_of(wrong, config.n_layer)}"
                raise Failure(None, f"{detail}: look at the checks of LayerCache first.")
            lengths.append(student.length(cache))
        suspects = {
            own.LENGTH_COUNTS_LAYERS: [config.n_layer, config.n_layer],
            own.LENGTH_SUMMED: [config.n_layer, 7 * config.n_layer],
            own.LENGTH_COUNTS_HEADS: [config.n_head, config.n_head],
            own.LENGTH_COUNTS_APPENDS: [1, 2],
            own.LENGTH_COUNTS_TWICE: [2, 14],
            own.LENGTH_OF_LAST_APPEND: [1, 6],
        }
        right = (0, 1, 7)
        if tuple(lengths) != right:
            i = next(i for i in range(3) if lengths[i] != right[i])
            bug = next((bug for bug, values in suspects.items() if lengths[1:] == values), None)
            here = count(right[i], "position")
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
        about = f"the clone of a cache of {n_layer} layers and {count(n_seq, 'position')}"
        kv = _draw_cache(cases, model.config, n_seq, "clone")
        with sweep.at(n_seq):
            original = student.make_cache(model, kv)
            clone = student.method(original, "clone", returns="handle")
            layers = _layers(student, clone, n_layer, about)
            got = _read_whole(student, clone, layers)
            wrong = wrong_layers(got, kv)
            if wrong:
                _blame_original(student, student.make_cache(model, kv), kv)
                detail = f"{_capital(about)} holds other rows than the original in {_of(wrong, n_layer)}."
                raise Failure(None, detail, _name_clone(got, kv))
            if wrong_layers(_read_whole(student, original, _layers(student, original, n_layer, "the original")), kv):
                detail = f"After clone(), the original of {count(n_seq, 'position')} does not hold its rows any more."
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
        if error.unwritten:
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
                if wrong_layers(_read_whole(student, handle, layers[name]), kv):
                    detail = "does not hold the rows that were there before cloning: get the check above to pass first"
                    raise Failure(None, f"{_capital(name)} {detail}.")
            expected = dict.fromkeys(held, kv)
            turns = ("the clone", "the original", "a second clone", "a clone of the clone", "the clone", "the original")
            for turn, name in enumerate(turns):
                n_new = 1 if turn < 4 else 18  # past the end of a buffer, too
                new = _draw_cache(cases, config, n_new, "turn", turn)
                _append(student, layers[name], new)
                expected[name] = [_joined(a, b) for a, b in zip(expected[name], new, strict=True)]
                for other in (name, *(h for h in held if h != name)):
                    got = _read_whole(student, held[other], layers[other])
                    wrong = wrong_layers(got, expected[other])
                    if wrong:
                        where = f"{_of(wrong, n_layer)}, cloned at {count(n_seq, 'position')}"
                        detail = f"{_capital(other)} holds wrong rows after {name} grew by {n_new} ({where})."
                        bug = None if other == name else _name_sharing(got, expected[other], wrong)
                        raise Failure(None, detail, bug)
    sweep.finish()
    _expect_clones_of_a_growing_cache(student, cases)


def _expect_clones_of_a_growing_cache(student, cases) -> None:
    """A clone of a cache that is still empty, and one after each of two appends to it."""
    config = configs(cases)[0]
    n_layer, kv, clones = config.n_layer, [], []
    original = student.handle("ModelCache", n_layer)
    layers = _layers(student, original, n_layer, f"a cache of {n_layer} layers")
    for n_new in (2, 3, 0):
        clone = student.method(original, "clone", returns="handle")
        if kv:
            _expect_clone(student, clone, kv)
        clones.append(clone)
        if n_new:
            new = _draw_cache(cases, config, n_new, "growing")
            _append(student, layers, new)
            kv = [_joined(a, b) for a, b in zip(kv, new, strict=True)] if kv else new
    new = _draw_cache(cases, config, 1, "in the clone")
    _append(student, _layers(student, clones[0], n_layer, "the clone of an empty cache"), new)
    for name, handle, right in (("clone", clones[0], new), ("original", original, kv)):
        got = student.read_cache(handle, f"the {name}")
        wrong = wrong_layers(got, right)
        if wrong:
            detail = f"Cloned while it was empty, the {name} holds wrong rows after both grew ({_of(wrong, n_layer)})."
            raise Failure(None, detail, own.CLONE_OF_EMPTY if _name_sharing(got, right, wrong) else None)


def _expect_clone(student, clone: Handle, kv: KV) -> None:
    """The clone of a cache that has been cloned before has the rows kv."""
    try:
        held = student.read_cache(clone, "the clone")
    except StudentError:
        held = [None] * len(kv)  # as without rows
    wrong, n_seq = wrong_layers(held, kv) if len(held) == len(kv) else list(range(len(kv))), kv[0][0].shape[1]
    if wrong:
        older = student.length(clone)
        outdated = older < n_seq and (not older or not wrong_layers(held, part_of_rows(kv, 0, older)))
        detail = f"A clone of a cache of {count(n_seq, 'position')} that was cloned before with fewer holds other rows"
        raise Failure(None, f"{detail} in {_of(wrong, len(kv))}.", own.CLONE_OUTDATED if outdated else None)


def _append(student, layers: Sequence[Handle], kv: KV) -> None:
    for layer, (k, v) in zip(layers, kv, strict=True):
        student.method(layer, "append", k, v, returns="none")


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
    wrong = wrong_layers(_read_whole(student, cache, layers), kv)
    if wrong:
        detail = f"A cache does not hold the {count(kv[0][0].shape[1], 'row')} appended to it in {_of(wrong, len(kv))}"
        raise Failure(None, f"{detail}, so clones cannot be judged: get the checks above to pass first.")


def _clone_cases(cases) -> list[tuple]:
    """Models and numbers of positions, at and beside the sizes of buffers; one model has 12 layers."""
    two, three, four = cases.odd
    return [(two, 1), (three, 5), (two, 15), (four, 16), (two, 17), (cases.trained, 6), (two, 130)]


def _name_clone(got: Sequence, right: KV) -> Bug | None:
    n_seq = right[0][0].shape[1]
    if n_seq == 1:  # a clone that loses one row looks like an empty one
        return None
    for part in (slice(0, n_seq - 1), slice(1, n_seq)):
        if not wrong_layers(got, [(k[:, part], v[:, part]) for k, v in right]):
            return own.CLONE_ROW_LOST
    filled = [i for i, pair in enumerate(got) if pair is not None and pair[0].shape[1:2] != (0,)]
    if not filled:
        return own.CLONE_EMPTY
    if len(filled) < len(got):
        return own.CLONE_LAYERS_MISSING if len(filled) == 1 else None
    if any(not wrong_layers(got, [right[i]] * len(right)) for i in (0, -1)):
        return own.CLONE_LAYERS_ALIKE
    for mixed in ([(v, k) for k, v in right], [(k, k) for k, _ in right], [(v, v) for _, v in right]):
        if not wrong_layers(got, mixed):
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


def _draw_cache(cases, config, n_seq: int, *label: object) -> KV:
    return [draw_kv(cases, config, n_seq, *label, "layer", i) for i in range(config.n_layer)]


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
    n_layers = student.length(layers)
    if n_layers != n_layer:
        raise Failure(None, f"{_capital(about)} has {count(n_layers, 'layer')}.", own.NUMBER_OF_LAYERS)
    return [student.method(layers, "__getitem__", i, returns="handle") for i in range(n_layer)]


def _read_whole(student, cache: Handle, layers: Sequence[Handle]) -> list[tuple[np.ndarray, np.ndarray] | None]:
    """What read_layers gives, in one request where nothing is amiss."""
    try:
        got = student.read_cache(cache)
    except StudentError:
        return read_layers(student, layers)
    return got if len(got) == len(layers) else read_layers(student, layers)


def _of(layers: list[int], n_layer: int) -> str:
    if len(layers) == n_layer:
        return f"all {n_layer} layers"
    return f"layer{'s' if len(layers) > 1 else ''} {in_words(layers)} of 0 to {n_layer - 1}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
