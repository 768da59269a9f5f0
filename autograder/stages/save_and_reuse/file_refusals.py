"""The check that a file that does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.cases import JudgeModel, random_judge_model
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.student import StudentError
from autograder.judge.words import tokens
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.files import expect_bits, file_name, read_back, same_bits, write_to
from autograder.stages.save_and_reuse.shared import STAGE, expect_same, finish_refusals
from autograder.stages.save_and_reuse.spoiled_files import spoiled_files
from autograder.toolkit.model import GPT2Config
from autograder.toolkit.model.weights import tensors_of

LARGE_TENSORS = GPT2Config(n_layer=1, n_head=2, n_embd=64, n_ctx=16, n_vocab=600)  # of up to 150 kB


@check(stage=STAGE, id="cache-file-refusals", points=2, title="A file that does not fit is refused")
def cache_file_refusals(student, cases):
    """read_prefix_cache gives a ValueError for another model's cache and for a damaged file, and changes no cache."""
    model = cases.odd[1]  # with a layer, and a block, that is neither the first nor the last
    config, p = model.config, 6
    ids = [0, *cases.ids(model, p - 2, "prefix"), config.n_vocab - 1]  # the borders are inside
    kv = model.reference.run(ids).kv
    cache = student.make_cache(model, kv)
    before = student.read_cache(cache)
    good = file_name(cases, "good")
    data = write_to(student, good, cache, ids, model, f"for a prefix of {tokens(p)} on {model.about}")
    back, back_ids = read_back(student, good, model)
    if back_ids != ids:
        raise Failure(None, "A file that fits does not come back as it was written.", own.IDS_CHANGED)
    expect_bits(student.read_cache(back), before, "a file that fits")

    def expect_good(when: str) -> None:
        path = file_name(cases, "good", when)
        student.write_file(path, data)
        again, _ = read_back(student, path, model)
        expect_bits(student.read_cache(again), before, f"a file that fits, {when}")

    failed: list[tuple[str, str, Bug | None]] = []
    number = 0

    def attempt(what: str, bug: Bug, make: Callable[[str], object], writer_may_refuse: bool = False) -> None:
        """make(path) leaves a file there; the reader must refuse it, or the writer, where it can know."""
        nonlocal number
        number += 1
        path = file_name(cases, number)
        try:
            make(path)
        except StudentError as error:
            if not (error.loud and writer_may_refuse):
                failed.append((what, f"{error.sentence[:-1]}, before there was a file to refuse", None))
                return
            if not student.file_exists(path):
                return  # what a writer that refuses leaves behind must not be readable, either
        refused(what, bug, path, model)

    def refused(what: str, bug: Bug | None, path: str, by: JudgeModel) -> None:
        try:
            student.handle("read_prefix_cache", path, by)
        except StudentError as error:
            if not error.loud:
                failed.append((what, f"{error.sentence[:-1]}; a ValueError is expected", bug and own.LIBRARY_ERROR))
        else:
            failed.append((what, "read_prefix_cache returned a cache; a ValueError is expected", bug))

    def comes_back_whole(damaged: bytes) -> bool:
        path = file_name(cases, "damaged", len(damaged))
        student.write_file(path, damaged)
        try:
            again, again_ids = read_back(student, path, model)
            return again_ids == ids and same_bits(student.read_cache(again), before)
        except (Failure, StudentError):
            return False

    def written(kv: KV, ids: list[int], by: JudgeModel) -> Callable[[str], object]:
        return lambda path: student.handle("write_prefix_cache", path, student.make_cache(by, kv), ids, by)

    other = random_judge_model(config, cases.number("another"))
    attempt("the cache of another model of the same shape", own.NO_FINGERPRINT, written(kv, ids, other))
    for tensor, changed in _one_number_off(model, cases.rng("places")):
        what = f"the cache of a model that differs in one number of {tensor}"
        refused(what, own.FINGERPRINT_PARTIAL, good, changed)
    for what, changed in _in_another_order(model, cases.rng("exchanged")):
        refused(f"the cache of a model that differs in the order of {what}", own.FINGERPRINT_PARTIAL, good, changed)
    large = random_judge_model(LARGE_TENSORS, cases.number("large"))
    of_large = file_name(cases, "large")
    written(large.reference.run(ids).kv, ids, large)(of_large)
    for tensor, changed in _late_number_off(large, cases.rng("late")):
        what = f"the cache of a model that differs in one number near the end of a large {tensor}"
        refused(what, own.FINGERPRINT_PARTIAL, of_large, changed)
    expect_good("after those of other models")
    heads = random_judge_model(replace(config, n_head=config.n_embd // config.n_head), model.spec["seed"])
    what = f"the cache of a model with these weights and {heads.config.n_head} heads"
    attempt(what, own.CONFIG_NOT_COMPARED, written(heads.reference.run(ids).kv, ids, heads))
    for what, rows, some_ids in (
        ("ids that are one fewer than the rows", kv, ids[:-1]),
        ("ids that are one more than the rows", kv, [*ids, ids[0]]),
        ("a last layer that is one row short", [*kv[:-1], *part_of_rows(kv[-1:], 0, p - 1)], ids),
    ):
        attempt(what, own.LENGTH_NOT_COMPARED, written(rows, some_ids, model), writer_may_refuse=True)
    for wrong_id in (config.n_vocab, -1):
        what = f"the prefix id {'n_vocab' if wrong_id > 0 else wrong_id}"
        outside = written(kv, [*ids[:2], wrong_id, *ids[3:]], model)
        attempt(what, own.FILE_IDS_OUTSIDE, outside, writer_may_refuse=True)
    last = config.n_layer - 1
    for layer, part, place, value in (
        (0, "keys", (0, 0, 0), np.nan),
        (1, "values", (-1, p // 2, 1), np.nan),
        (1, "keys", (0, p // 2, -1), -np.inf),
        (last, "values", (-1, -1, -1), np.inf),
    ):
        spoiled = written(_with_value(kv, layer, part, place, value), ids, model)
        attempt(
            f"{value:g} among the {part} of layer {layer}", own.NOT_FINITE_ACCEPTED, spoiled, writer_may_refuse=True
        )
    expect_good("after those with wrong contents")
    damages = {
        "a file cut in half": data[: len(data) // 2],
        "a file without its last bytes": data[:-8],
        "an empty file": b"",
        "a file of something else": cases.rng("noise").bytes(len(data)),
    }
    for what, damaged in damages.items():
        if damaged and data.startswith(damaged) and comes_back_whole(damaged):
            continue  # some formats fill up their last block, and nothing is lost with the filling
        attempt(what, own.DAMAGE_ACCEPTED, lambda path, damaged=damaged: student.write_file(path, damaged))
    for what, spoiled in spoiled_files(data, config):
        path = file_name(cases, what)
        student.write_file(path, spoiled)
        refused(what, None, path, model)
    finish_refusals(failed)
    expect_same(before, student.read_cache(back), model, p, "reading files that do not fit")
    expect_good("after those that do not")


def _one_number_off(model: JudgeModel, rng: np.random.Generator) -> Iterator[tuple[str, JudgeModel]]:
    """The model with one number's last bit changed, in each kind of tensor, in all blocks, away from the ends of it."""
    tensors = tensors_of(model.weights)
    kinds = {name.split(".", 2)[-1] if name.startswith("h.") else name: None for name in tensors}
    for i, kind in enumerate(kinds):
        name = kind if kind in tensors else f"h.{i % model.config.n_layer}.{kind}"
        array = tensors[name].copy()
        edge = 17 if array.size > 40 else 0
        place = rng.integers(edge, array.size - edge)
        array.flat[place] = np.nextafter(array.flat[place], np.float32(np.inf))
        yield name, model.patched(name, array)


def _late_number_off(model: JudgeModel, rng: np.random.Generator) -> Iterator[tuple[str, JudgeModel]]:
    """The model with one number changed behind what somebody in a hurry looks at of a large tensor."""
    tensors = tensors_of(model.weights)
    for name in ("wte.weight", "h.0.mlp.c_fc.weight"):
        array = tensors[name].copy()
        array.flat[-rng.integers(20, 200)] += 0.25
        yield name, model.patched(name, array)


def _in_another_order(model: JudgeModel, rng: np.random.Generator) -> Iterator[tuple[str, JudgeModel]]:
    """The model with two numbers of one tensor, or two tensors, in each other's place, which no sum shows.

    np.sum begins with flat[0] + flat[8], and so gives the same to the last bit.
    """
    tensors = tensors_of(model.weights)
    name = "h.0.mlp.c_fc.weight"
    for places in ((0, 8), rng.choice(tensors[name].size, 2, replace=False)):
        array = tensors[name].copy()
        array.flat[list(places)] = array.flat[list(places[::-1])]
        yield f"two numbers of {name}", model.patched(name, array)
    for one, two in (("h.0.attn.c_proj.weight", "h.1.attn.c_proj.weight"), ("h.2.ln_1.bias", "h.2.ln_2.bias")):
        yield f"{one} and {two}", model.patched(one, tensors[two]).patched(two, tensors[one])


def _with_value(kv: KV, layer: int, part: str, place: tuple[int, int, int], value: float) -> KV:
    pairs = [[k.copy(), v.copy()] for k, v in kv]
    pairs[layer][("keys", "values").index(part)][place] = value
    return [(k, v) for k, v in pairs]
