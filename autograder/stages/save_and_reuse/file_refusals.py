"""The check that a file that does not fit is refused."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.student import Handle, Student, StudentError
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.files import READ, WRITE, expect_back, file_name, write_to
from autograder.stages.save_and_reuse.shared import case, expect_refusals, expect_same
from autograder.toolkit.model import GPT2Config
from autograder.toolkit.model.weights import tensors_of

LARGE_TENSORS = GPT2Config(n_layer=1, n_head=2, n_embd=64, n_ctx=16, n_vocab=600)  # of up to 150 kB
Refusal = tuple[str, Bug | None, str, str, JudgeModel]
FINGERPRINT_BITS = 32  # as of a CRC; four hexadecimal digits tell too few models apart
FACTS = ("fingerprint", "prefix_len", "dtype", "layout")


@check("A file that does not fit is refused", points=2)
def cache_file_refusals(student: Student, cases: Cases) -> None:
    """read_prefix_cache gives a ValueError for another model's cache and for a damaged file, and changes no cache."""
    model = cases.odd[1]  # with a layer, and a block, that is neither the first nor the last
    n_vocab, p = model.config.n_vocab, 6
    ids = [0, *cases.ids(model, p - 2, "prefix"), n_vocab - 1]  # the borders are inside
    kv = model.reference.run(ids).kv
    cache = student.make_cache(model, kv)
    before = student.read_cache(cache)
    good = file_name(cases, "good")
    data = write_to(student, good, cache, ids, model, case(model, p))
    weights = student.keep(model)
    back, _ = expect_back(student, good, weights, ids, before, "a file that fits")

    def put(what: str, data: bytes) -> str:
        path = file_name(cases, what)
        student.write_file(path, data)
        return path

    def of_other_models() -> Iterator[Refusal]:
        large = random_judge_model(LARGE_TENSORS, cases.number("large"))
        of_large = file_name(cases, "large")
        student.handle(WRITE, of_large, student.make_cache(large, large.reference.run(ids).kv), ids, large)
        late = _late_changes(large, cases.rng("late"))
        for content, changes in ((data, _other_models(model, cases)), (student.read_file(of_large), late)):
            for difference, other in changes:
                what = f"the cache of a model that differs in {difference}"
                yield what, own.OTHER_MODEL_ACCEPTED, READ, put(what, content), other
        what = "the cache of another model, in a file that was read before"
        student.replace(weights)  # with the next, which has its id()
        yield what, None, READ, good, student.keep(random_judge_model(model.config, cases.number("another")))

    def written() -> Iterator[Refusal]:
        """The writer may refuse as well; a file that it leaves all the same must not be readable."""
        for what, rows, some_ids in _that_do_not_fit(kv, ids, n_vocab):
            path = file_name(cases, what)
            try:
                student.handle(WRITE, path, student.make_cache(model, rows), some_ids, model)
            except StudentError as error:
                if not error.refusal:
                    raise
            if student.file_exists(path):
                yield what, None, READ, path, model
            if in_our_format:
                yield what, None, READ, put(f"made with {what}", _made(rows, some_ids, data)), model

    def damaged() -> Iterator[Refusal]:
        for what, n in (("a file cut in half", len(data) // 2), ("a file without its last bytes", len(data) - 8)):
            path = put(what, data[:n])
            try:  # some formats fill up their last block, and nothing is lost with the filling
                expect_back(student, path, model, ids, before, what)
            except (Failure, StudentError):
                yield what, None, READ, path, model
        yield "an empty file", None, READ, put("empty", b""), model
        yield "a file of something else", None, READ, put("noise", cases.rng("noise").bytes(len(data))), model
        for what, changed in _files_of_no_writer(data, model.config) if in_our_format else ():
            yield f"a file {what}", None, READ, put(what, changed), model

    in_our_format = _in_our_format(data, kv, ids)
    expect_refusals(student, itertools.chain(of_other_models(), written(), damaged()))
    files = [data, *_written_for_others(student, cache, ids, model, cases)]
    if (n := _bits_that_differ(list(map(_in_order, files)) if in_our_format else files)) < FINGERPRINT_BITS:
        detail = f"Files of one cache for {len(files)} models differ in {count(n, 'bit')}: too few to tell models apart"
        raise Failure(f"{detail} ({case(model, p)}).", own.OTHER_MODEL_ACCEPTED)
    expect_same(before, student.read_cache(back), case(model, p), "reading files that do not fit")
    expect_back(student, put("once more", data), model, ids, before, "a file that fits, after those that do not")


def _other_models(model: JudgeModel, cases: Cases) -> Iterator[tuple[str, JudgeModel]]:
    """(the difference, the model): in everything, in one number of each kind of tensor, in the order, in the config."""
    rng, tensors = cases.rng("places"), tensors_of(model.weights)
    for i in range(3):
        yield "all its weights", random_judge_model(model.config, cases.number("another", i))
    kinds = dict.fromkeys(name.split(".", 2)[-1] if name.startswith("h.") else name for name in tensors)
    for i, kind in enumerate(kinds):  # in all blocks, and away from the ends of the tensor
        name = kind if kind in tensors else f"h.{i % model.config.n_layer}.{kind}"
        array = tensors[name].copy()
        edge = 17 if array.size > 40 else 0
        place = rng.integers(edge, array.size - edge)
        array.flat[place] = np.nextafter(array.flat[place], np.float32(np.inf))
        yield f"one number of {name}", model.patched(name, array)
    name = "h.0.mlp.c_fc.weight"
    # What is exchanged shows in no sum; np.sum begins with flat[0] + flat[8], and so gives the same to the last bit.
    for places in ((0, 8), rng.choice(tensors[name].size, 2, replace=False)):
        array = tensors[name].copy()
        array.flat[list(places)] = array.flat[list(places[::-1])]
        yield f"the order of two numbers of {name}", model.patched(name, array)
    for one, two in (("h.0.attn.c_proj.weight", "h.1.attn.c_proj.weight"), ("h.2.ln_1.bias", "h.2.ln_2.bias")):
        yield f"the order of {one} and {two}", model.patched(one, tensors[two]).patched(two, tensors[one])
    heads = replace(model.config, n_head=model.config.n_embd // model.config.n_head)
    yield "the number of its heads", random_judge_model(heads, model.spec["seed"])


def _written_for_others(
    student: Student, cache: Handle, ids: list[int], model: JudgeModel, cases: Cases
) -> Iterator[bytes]:
    """The files of the same cache for other models of its shape: only fingerprints differ in them."""
    for i in range(12):
        path = file_name(cases, "for another", i)
        student.handle(WRITE, path, cache, ids, random_judge_model(model.config, cases.number("another", i)))
        yield student.read_file(path)


def _bits_that_differ(files: list[bytes]) -> int:
    """In how many bits the files differ, of which a byte has 8, and a hexadecimal digit 4; 0 if two are equal."""
    n = min(map(len, files))
    rows = np.array([np.frombuffer(file, np.uint8, n) for file in files])
    rows = rows[:, np.ptp(rows, axis=0) > 0]
    digits = np.isin(rows, list(b"0123456789abcdefABCDEF")).all(axis=0)
    return int(np.where(digits, 4, 8).sum()) if len(set(files)) == len(files) else 0


def _late_changes(model: JudgeModel, rng: np.random.Generator) -> Iterator[tuple[str, JudgeModel]]:
    """One number changed, after the part of a large tensor that a quick fingerprint covers."""
    for name in ("wte.weight", "h.0.mlp.c_fc.weight"):
        array = tensors_of(model.weights)[name].copy()
        array.flat[-rng.integers(20, 200)] += 0.25
        yield f"one number near the end of a large {name}", model.patched(name, array)


def _that_do_not_fit(kv: KV, ids: list[int], n_vocab: int) -> Iterator[tuple[str, KV, list[int]]]:
    """(what is wrong, rows, ids)."""
    p, last = len(ids), len(kv) - 1
    yield "ids that are one fewer than the rows", kv, ids[:-1]
    yield "ids that are one more than the rows", kv, [*ids, ids[0]]
    yield "a last layer that is one row short", [*kv[:-1], *part_of_rows(kv[-1:], 0, p - 1)], ids
    for outside in (n_vocab, -1, 2 * n_vocab):
        yield f"the prefix id {outside}", kv, [*ids[:2], outside, *ids[3:]]
    for layer, part, place, value in (
        (0, "keys", (0, 0, 0), np.nan),
        (1, "values", (-1, p // 2, 1), np.nan),
        (1, "keys", (0, p // 2, -1), -np.inf),
        (last, "values", (-1, -1, -1), np.inf),
    ):
        pairs = [[k.copy(), v.copy()] for k, v in kv]
        pairs[layer][("keys", "values").index(part)][place] = value
        yield f"{value:g} among the {part} of layer {layer}", [(k, v) for k, v in pairs], ids


# Files in the course's format that no writer makes


def _made(kv: KV, ids: list[int], like: bytes) -> bytes:
    """Such a file, with the facts of another but for the number of ids."""
    facts = _header(like)[0].get("__metadata__", {})
    arrays = {"prefix_ids": np.array(ids, np.int64)}
    for i, pair in enumerate(kv):
        for part, array in zip(("keys", "values"), pair, strict=True):
            arrays[f"layers.{i}.{part}"] = np.ascontiguousarray(array, np.float32)
    return save(arrays, {**facts, "prefix_len": str(len(ids))} if facts else None)


def _header(data: bytes) -> tuple[dict, bytes]:
    """(the header, what follows it)."""
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def _in_order(data: bytes) -> bytes:
    """A file whose header is sorted, because the library writes it in an order that varies."""
    header, rest = _header(data)
    return json.dumps(header, sort_keys=True).encode() + rest


def _in_our_format(data: bytes, kv: KV, ids: list[int]) -> bool:
    try:
        return set(load(data)) == set(load(_made(kv, ids, data)))
    except (SafetensorError, TypeError):
        return False


def _files_of_no_writer(data: bytes, config: GPT2Config) -> Iterator[tuple[str, bytes]]:
    """(what is wrong, the file)."""
    tensors, (header, rest) = load(data), _header(data)
    facts = header.get("__metadata__", {})
    first, last = "layers.0.keys", f"layers.{config.n_layer - 1}.values"
    ids, keys = tensors["prefix_ids"], tensors[first]
    many = config.n_ctx + 1
    long = {n: np.resize(a, (many,) if a.ndim == 1 else (*a.shape[:1], many, *a.shape[2:])) for n, a in tensors.items()}
    for what, changed, other_facts in (
        *((f"without {name}", {name: None}, {}) for name in ("prefix_ids", first, last)),
        ("without the last layer", {last: None, last.replace("values", "keys"): None}, {}),
        ("with prefix_ids of float64", {"prefix_ids": ids.astype(np.float64)}, {}),
        ("with prefix_ids of two axes", {"prefix_ids": ids[:, None]}, {}),
        ("with keys of float16", {first: keys.astype(np.float16)}, {}),
        ("with keys of float64", {first: keys.astype(np.float64)}, {}),
        ("with keys whose first two axes are exchanged", {first: np.ascontiguousarray(keys.swapaxes(0, 1))}, {}),
        ("with more than n_ctx ids", long, {"prefix_len": str(many)} if facts else {}),
        *((f"without the fact {field}", {}, {field: None}) for field in FACTS if field in facts),
        *(
            (f"with another {field}", {}, {field: "1" if field == "prefix_len" else "x"})
            for field in FACTS
            if field in facts
        ),
    ):
        parts = (
            {k: v for k, v in {**old, **new}.items() if v is not None}
            for old, new in ((tensors, changed), (facts, other_facts))
        )
        yield what, save(*parts)
    if facts:
        yield "without metadata", save(tensors)
    header[last]["dtype"] = "BF16"  # the same bytes, of which twice as many numbers are read
    header[last]["shape"][-1] *= 2
    text = json.dumps(header).encode()
    yield "with an array of bfloat16, which NumPy does not have", len(text).to_bytes(8, "little") + text + rest
