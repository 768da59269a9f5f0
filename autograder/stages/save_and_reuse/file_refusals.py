"""The check that a file that does not fit is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.student import Student, StudentError
from autograder.judge.words import tokens
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.files import expect_back, file_name, write_to
from autograder.stages.save_and_reuse.shared import STAGE, expect_same, finish_refusals
from autograder.stages.save_and_reuse.spoiled_files import spoiled_files
from autograder.toolkit.model import GPT2Config
from autograder.toolkit.model.weights import tensors_of

LARGE_TENSORS = GPT2Config(n_layer=1, n_head=2, n_embd=64, n_ctx=16, n_vocab=600)  # of up to 150 kB


@check(stage=STAGE, id="cache-file-refusals", points=2, title="A file that does not fit is refused")
def cache_file_refusals(student: Student, cases: Cases) -> None:
    """read_prefix_cache gives a ValueError for another model's cache and for a damaged file, and changes no cache."""
    model = cases.odd[1]  # with a layer, and a block, that is neither the first nor the last
    config, p = model.config, 6
    ids = [0, *cases.ids(model, p - 2, "prefix"), config.n_vocab - 1]  # the borders are inside
    kv = model.reference.run(ids).kv
    cache = student.make_cache(model, kv)
    before = student.read_cache(cache)
    good = file_name(cases, "good")
    data = write_to(student, good, cache, ids, model, f"for a prefix of {tokens(p)} on {model.about}")
    back = expect_back(student, good, model, ids, before, "a file that fits")
    failed: list[tuple[str, str, Bug | None]] = []

    def put(what: str, data: bytes) -> str:
        path = file_name(cases, what)
        student.write_file(path, data)
        return path

    def refuse(what: str, bug: Bug | None, path: str, by: JudgeModel = model) -> None:
        try:
            student.handle("read_prefix_cache", path, by)
        except StudentError as error:
            if not error.loud:
                failed.append((what, f"{error.sentence[:-1]}; a ValueError is expected", own.LIBRARY_ERROR))
        else:
            failed.append((what, "read_prefix_cache returned a cache; a ValueError is expected", bug))

    def write(what: str, kv: KV, ids: list[int], by: JudgeModel = model) -> str:
        path = file_name(cases, what)
        student.handle("write_prefix_cache", path, student.make_cache(by, kv), ids, by)
        return path

    def refuse_written(what: str, bug: Bug, kv: KV, ids: list[int]) -> None:
        """The writer may refuse as well; a file that it leaves all the same must not be readable."""
        try:
            path = write(what, kv, ids)
        except StudentError as error:
            if not error.loud:
                failed.append((what, f"{error.sentence[:-1]}, before there was a file to refuse", None))
                return
            path = file_name(cases, what)
            if not student.file_exists(path):
                return
        refuse(what, bug, path)

    def expect_good(when: str) -> None:
        expect_back(student, put(when, data), model, ids, before, f"a file that fits, {when}")

    other = random_judge_model(config, cases.number("another"))
    what = "the cache of another model of the same shape"
    refuse(what, own.OTHER_MODEL_ACCEPTED, write(what, kv, ids, other))
    large = random_judge_model(LARGE_TENSORS, cases.number("large"))
    of_large = write("large", large.reference.run(ids).kv, ids, large)
    for path, changes in (
        (good, _one_number_off(model, cases.rng("places"))),
        (good, _in_another_order(model, cases.rng("exchanged"))),
        (of_large, _late_number_off(large, cases.rng("late"))),
    ):
        for difference, changed in changes:
            what = f"the cache of a model that differs in {difference}"
            refuse(what, own.CHANGED_MODEL_ACCEPTED, path, changed)
    heads = random_judge_model(replace(config, n_head=config.n_embd // config.n_head), model.spec["seed"])
    what = f"the cache of a model with these weights and {heads.config.n_head} heads"
    refuse(what, own.CHANGED_MODEL_ACCEPTED, write(what, heads.reference.run(ids).kv, ids, heads))
    expect_good("after those of other models")
    for what, rows, some_ids in (
        ("ids that are one fewer than the rows", kv, ids[:-1]),
        ("ids that are one more than the rows", kv, [*ids, ids[0]]),
        ("a last layer that is one row short", [*kv[:-1], *part_of_rows(kv[-1:], 0, p - 1)], ids),
    ):
        refuse_written(what, own.OTHER_LENGTHS_ACCEPTED, rows, some_ids)
    for what, wrong_id in (("the prefix id n_vocab", config.n_vocab), ("the prefix id -1", -1)):
        refuse_written(what, own.OUTSIDE_VOCABULARY, kv, [*ids[:2], wrong_id, *ids[3:]])
    for layer, part, place, value in (
        (0, "keys", (0, 0, 0), np.nan),
        (1, "values", (-1, p // 2, 1), np.nan),
        (1, "keys", (0, p // 2, -1), -np.inf),
        (config.n_layer - 1, "values", (-1, -1, -1), np.inf),
    ):
        spoiled = _with_value(kv, layer, part, place, value)
        refuse_written(f"{value:g} among the {part} of layer {layer}", own.NOT_FINITE_ACCEPTED, spoiled, ids)
    for what, damaged in {
        "a file cut in half": data[: len(data) // 2],
        "a file without its last bytes": data[:-8],
        "an empty file": b"",
        "a file of something else": cases.rng("noise").bytes(len(data)),
    }.items():
        path = put(what, damaged)
        if not (damaged and data.startswith(damaged) and _comes_back(student, path, model, ids, before)):
            refuse(what, None, path)  # some formats fill up their last block, and nothing is lost with the filling
    for what, spoiled in spoiled_files(data, config):
        refuse(what, None, put(what, spoiled))
    finish_refusals(failed)
    expect_same(before, student.read_cache(back), model, p, "reading files that do not fit")
    expect_good("after those that do not")


def _comes_back(student: Student, path: str, model: JudgeModel, ids: list[int], kv: KV) -> bool:
    try:
        expect_back(student, path, model, ids, kv, "")
    except (Failure, StudentError):
        return False
    return True


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
        yield f"one number of {name}", model.patched(name, array)


def _late_number_off(model: JudgeModel, rng: np.random.Generator) -> Iterator[tuple[str, JudgeModel]]:
    """The model with one number changed, after the part of a large tensor that a quick fingerprint covers."""
    tensors = tensors_of(model.weights)
    for name in ("wte.weight", "h.0.mlp.c_fc.weight"):
        array = tensors[name].copy()
        array.flat[-rng.integers(20, 200)] += 0.25
        yield f"one number near the end of a large {name}", model.patched(name, array)


def _in_another_order(model: JudgeModel, rng: np.random.Generator) -> Iterator[tuple[str, JudgeModel]]:
    """The model with two numbers of one tensor, or two tensors, exchanged, which no sum shows.

    np.sum begins with flat[0] + flat[8], and so gives the same to the last bit.
    """
    tensors = tensors_of(model.weights)
    name = "h.0.mlp.c_fc.weight"
    for places in ((0, 8), rng.choice(tensors[name].size, 2, replace=False)):
        array = tensors[name].copy()
        array.flat[list(places)] = array.flat[list(places[::-1])]
        yield f"the order of two numbers of {name}", model.patched(name, array)
    for one, two in (("h.0.attn.c_proj.weight", "h.1.attn.c_proj.weight"), ("h.2.ln_1.bias", "h.2.ln_2.bias")):
        yield f"the order of {one} and {two}", model.patched(one, tensors[two]).patched(two, tensors[one])


def _with_value(kv: KV, layer: int, part: str, place: tuple[int, int, int], value: float) -> KV:
    pairs = [[k.copy(), v.copy()] for k, v in kv]
    pairs[layer][("keys", "values").index(part)][place] = value
    return [(k, v) for k, v in pairs]
