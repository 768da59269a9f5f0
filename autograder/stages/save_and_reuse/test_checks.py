"""What the tables of submissions do not cover: the solution's errors and files field by field, cheats, many seeds."""

import builtins
import functools
import hashlib
import json
import re
import struct
import types
import zlib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from autograder.bench.solved import solved
from autograder.judge.framework import checks_of, find_check, run_check
from autograder.judge.student import Student, local_student
from autograder.toolkit.model import GPT2Config, random_model
from autograder.toolkit.model.weights import tensors_of
from autograder.worker.runtime import Runtime

STAGE = "save-and-reuse"
TOGETHER = (
    "reuse-equals-recompute",
    "position-continues",
    "saved-stays-pristine",
    "requests-in-turn",
    "cache-is-used",
)
CONFIG = GPT2Config(n_layer=2, n_head=3, n_embd=12, n_ctx=16, n_vocab=29)
IDS = [5, 0, 28, 7]


@pytest.fixture(scope="module")
def course():
    return solved(STAGE)


@pytest.fixture(scope="module")
def weights():
    return random_model(CONFIG, seed=3)


@pytest.fixture
def saved(course, weights):
    return course.save_prefix_cache(IDS, weights)


def test_a_wrong_prefix_len_stays_silent_in_the_solution(course, weights, saved):
    """Stage 5 shows what it does to the numbers."""
    right, wrong = (course.generate_with_prefix(saved, n, [3, 4], weights) for n in (4, 0))
    assert np.abs(right - wrong).max() > 0.1


# The solution's files: one field wrong at a time


@pytest.fixture
def file(course, weights, saved, tmp_path):
    path = tmp_path / "prefix.safetensors"
    course.write_prefix_cache(path, saved, IDS, weights)
    return path


def _facts(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size])["__metadata__"]


@pytest.mark.parametrize("field", ["fingerprint", "prefix_len", "dtype", "layout"])
@pytest.mark.parametrize("value", [None, "something else"])
def test_a_fact_that_is_missing_or_wrong_is_named(course, weights, file, field, value):
    facts = _facts(file)
    facts.pop(field)
    if value is not None:
        facts[field] = value
    save_file(load_file(file), file, facts)
    with pytest.raises(ValueError, match=f"^{field}: "):
        course.read_prefix_cache(file, weights)


def test_a_file_without_metadata_is_refused(course, weights, file):
    save_file(load_file(file), file)
    with pytest.raises(ValueError, match=r"^fingerprint: "):
        course.read_prefix_cache(file, weights)


@pytest.mark.parametrize("change", [lambda ids: None, lambda ids: ids[:-1], lambda ids: ids[:0]])
def test_ids_of_another_number_are_named(course, weights, file, change):
    facts, tensors = _facts(file), load_file(file)
    changed = change(tensors.pop("prefix_ids"))
    if changed is not None:
        tensors["prefix_ids"] = changed
    save_file(tensors, file, facts)
    with pytest.raises(ValueError, match=r"^prefix_len: "):
        course.read_prefix_cache(file, weights)


def test_no_damaged_byte_gives_another_error(course, weights, file):
    """A byte changed anywhere is refused with a ValueError, or is one of a number's and changes that number alone."""
    data, rng = file.read_bytes(), np.random.default_rng(0)
    places = [*range(0, 1200, 3), *rng.integers(0, len(data), 100)]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= int(rng.integers(1, 256))
        file.write_bytes(damaged)
        try:
            saved, ids = course.read_prefix_cache(file, weights)
        except ValueError as error:
            assert ": " in str(error)
        else:
            assert len(saved) == len(ids) == 4


def test_the_writer_refuses_what_the_reader_would(course, weights, saved, tmp_path):
    path = tmp_path / "bad"
    for ids in (IDS[:-1], [*IDS, 1], [*IDS[:-1], 29]):
        with pytest.raises(ValueError):
            course.write_prefix_cache(path, saved, ids, weights)
    assert not path.exists()


# The checks


def _results(course, seed, **replaced):
    namespace = {**vars(course), **replaced}
    namespace["__name__"] = "student"
    return {c.id: run_check(c, local_student(namespace), seed) for c in checks_of(STAGE)}


@pytest.mark.parametrize("seed", range(3))
def test_the_solution_passes_with_any_seed(course, seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {i: r.message for i, r in _results(course, seed).items() if not r.passed} == {}


def _result(check_id, course, **replaced):
    """The result of one check that needs no files."""
    return run_check(find_check(check_id), local_student({**vars(course), **replaced, "__name__": "student"}), 1)


def _constant(value):
    return lambda saved, prefix_len, suffix_ids, weights: np.full(weights.config.n_vocab, value)


def _raises(*arguments):
    raise ValueError("no")


@pytest.mark.parametrize(
    "garbage",
    [
        {"generate_with_prefix": _constant(0.0), "read_prefix_cache": lambda path, weights: (None, [])},
        {"generate_with_prefix": _constant(np.nan), "read_prefix_cache": lambda path, weights: None},
        {"generate_with_prefix": lambda *arguments: None, "write_prefix_cache": lambda *arguments: None},
        {"generate_with_prefix": _raises, "read_prefix_cache": _raises},
    ],
    ids=["zeros", "nan", "none", "raises"],
)
def test_garbage_gets_nothing(course, garbage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def save_zeros(prefix_ids, weights):
        config, saved = weights.config, course.ModelCache(weights.config.n_layer)
        for layer in saved.layers:
            zeros = np.zeros((config.n_head, len(prefix_ids), config.head_dim), np.float32)
            layer.append(zeros, zeros)
        return saved

    results = _results(course, 1, save_prefix_cache=save_zeros, **garbage)
    assert [i for i, r in results.items() if r.passed] == []


def test_a_layer_whose_cache_is_not_read_is_found(course):
    """Right answers for what was saved, and the middle layer's keys from a private copy made when saving."""
    copies = []

    def save(prefix_ids, weights):
        saved = course.save_prefix_cache(prefix_ids, weights)
        copies.append(saved.clone())
        return saved

    def reuse(saved, prefix_len, suffix_ids, weights):
        cache = saved.clone()
        for kept in copies:
            a, b = kept.layers[0].keys, cache.layers[0].keys
            if a.shape == b.shape and np.allclose(a, b, atol=1e-4):
                cache.layers[1] = kept.clone().layers[1]
        return course.advance(suffix_ids, prefix_len, weights, cache)

    result = _result("cache-is-used", course, save_prefix_cache=save, generate_with_prefix=reuse)
    assert "Other keys in layer 1 of the cache change nothing" in result.message


def test_the_failing_prefix_lengths_are_listed(course, tmp_path, monkeypatch):
    """Wrong at multiples of 8 only, as when a chunk ends exactly at the prefix."""
    monkeypatch.chdir(tmp_path)

    def reuse(saved, prefix_len, suffix_ids, weights):
        return course.generate_with_prefix(saved, prefix_len - (prefix_len % 8 == 0), suffix_ids, weights)

    results = _results(course, 1, generate_with_prefix=reuse)
    assert "Failing prefix lengths: 8, 16" in results["reuse-equals-recompute"].message
    assert results["reuse-equals-recompute"].bug.key == "positions-shifted--1"


@pytest.mark.parametrize(
    "position",
    [
        lambda n, p, s: n if s == 1 else p,
        lambda n, p, s: n if 4 < s < 16 else p,
        lambda n, p, s: n if s > 8 else p,
        lambda n, p, s: n if p > n + 1 else p,
        lambda n, p, s: p or n,
    ],
    ids=["one token", "a few tokens", "many tokens", "far too large", "none"],
)
def test_a_prefix_len_that_is_ignored_in_some_cases_is_named(course, position):
    def reuse(saved, prefix_len, suffix_ids, weights):
        cache = saved.clone()
        return course.advance(suffix_ids, position(len(cache), prefix_len, len(suffix_ids)), weights, cache)

    result = _result("position-continues", course, generate_with_prefix=reuse)
    assert result.bug.key == "prefix-len-ignored"


@pytest.mark.parametrize("size", [8, 16, 50, 64, 100, 128, 256])
def test_chunks_that_begin_at_a_wrong_position_are_found(course, size):
    def in_chunks(ids, position, weights, cache):
        for i in range(0, len(ids), size):
            logits = course.advance(ids[i : i + size], position + i // size, weights, cache)
        return logits

    def save(prefix_ids, weights):
        saved = course.ModelCache(weights.config.n_layer)
        in_chunks(prefix_ids, 0, weights, saved)
        return saved

    def reuse(saved, prefix_len, suffix_ids, weights):
        return in_chunks(suffix_ids, prefix_len, weights, saved.clone())

    assert not _result("saved-prefix-exact", course, save_prefix_cache=save).passed
    if size < 256:  # no suffix is as long as that: who decodes it token by token would pay for it in every marking
        assert not _result("reuse-equals-recompute", course, generate_with_prefix=reuse).passed


def _grows(n_suffix):
    def reuse(course, saved, prefix_len, suffix_ids, weights):
        cache = saved if len(suffix_ids) == n_suffix else saved.clone()
        return course.advance(suffix_ids, prefix_len, weights, cache)

    return reuse


def _resets(n_suffix):
    def reuse(course, saved, prefix_len, suffix_ids, weights):
        return course.advance(suffix_ids, 0 if len(suffix_ids) == n_suffix else prefix_len, weights, saved.clone())

    return reuse


@pytest.mark.parametrize(
    ("wrong", "bug"),
    [
        (_grows(1), "saved-cache-grows"),
        (_grows(3), "saved-cache-grows"),
        (_resets(1), "positions-reset"),
        (_resets(3), "positions-reset"),
    ],
    ids=["grows by 1", "grows by 3", "resets 1", "resets 3"],
)
def test_the_points_for_reuse_are_given_together_or_not_at_all(course, wrong, bug):
    results = {i: _result(i, course, generate_with_prefix=functools.partial(wrong, course)) for i in TOGETHER}
    assert {i: r.bug and r.bug.key for i, r in results.items()} == dict.fromkeys(TOGETHER, bug)
    told = "saved-stays-pristine" if bug == "positions-reset" else "reuse-equals-recompute"
    assert results[told].message.startswith("Reuse counts as a whole")


def test_answers_remembered_by_the_cache_they_came_from_are_found(course):
    answers = {}

    def reuse(saved, prefix_len, suffix_ids, weights):
        key = (id(saved), prefix_len, tuple(suffix_ids), weights.config)
        if key not in answers:
            answers[key] = saved, course.generate_with_prefix(saved, prefix_len, suffix_ids, weights)
        return answers[key][1]

    assert "One row more" in _result("cache-is-used", course, generate_with_prefix=reuse).message


@pytest.mark.parametrize(
    ("left", "words"), [(0, "the saved cache has no layers any more"), (1, "the saved cache has 1 layer instead of 2")]
)
def test_a_saved_cache_that_loses_layers_is_described(course, left, words):
    def reuse(saved, prefix_len, suffix_ids, weights):
        logits = course.generate_with_prefix(saved, prefix_len, suffix_ids, weights)
        del saved.layers[left:]
        return logits

    message = _result("saved-stays-pristine", course, generate_with_prefix=reuse).message
    assert f"After a request, {words} (for a prefix of 7 tokens" in message


def _digest(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "fingerprint",
    [
        lambda tensors: _digest(*(a.tobytes()[-64:] for a in tensors.values())),
        lambda tensors: _digest(*(a.tobytes()[:64] for a in tensors.values())),
        lambda tensors: _digest(*(a.ravel()[-1:].tobytes() for a in tensors.values())),
        lambda tensors: str([float(a.sum(dtype=np.float64)) for a in tensors.values()]),
        lambda tensors: str([(a.min(), a.max(), a.mean(), a.std()) for a in tensors.values()]),
        lambda tensors: _digest(*(a.tobytes() for name, a in tensors.items() if ".attn." not in name)),
        lambda tensors: _digest(*(a.tobytes() for name, a in tensors.items() if not name.endswith(".bias"))),
        lambda tensors: _digest(*(a.tobytes() for name, a in tensors.items() if "h.1." not in name)),
        lambda tensors: _digest(*(a.tobytes() for name, a in tensors.items() if "ln_f" not in name)),
        lambda tensors: _digest(*(a.tobytes()[:8192] for a in tensors.values())),
        lambda tensors: _digest(*(np.round(a, 3).tobytes() for a in tensors.values())),
        lambda tensors: _digest(*(a.astype(np.float16).tobytes() for a in tensors.values())),
        lambda tensors: str(sum(zlib.crc32(a.tobytes()) for a in tensors.values())),
        lambda tensors: str(sorted((name.split(".")[-2:], _digest(a.tobytes())) for name, a in tensors.items())),
        lambda tensors: str(sorted((name[:3], _digest(a.tobytes())) for name, a in tensors.items())),
        lambda tensors: str([(a.mean(), a.std(), a.ravel()[:32].tolist()) for a in tensors.values()]),
    ],
    ids=["last 64 bytes", "first 64 bytes", "last number", "sums", "statistics", "no attention", "no bias", "one block",
         "no ln_f", "first 8 kB", "rounded", "float16", "sum of checksums", "blocks in any order",
         "tensors in any order", "statistics and 32 numbers"],
)  # fmt: skip
def test_a_fingerprint_of_a_part_of_the_model_is_found(course, fingerprint, seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def facts(prefix_ids, weights):
        return original(prefix_ids, weights) | {"fingerprint": str(weights.config) + fingerprint(tensors_of(weights))}

    original = course.cache_facts
    result = _of_the_file(course, seed, cache_facts=facts)
    assert not result.passed
    assert result.bug.key == "changed-model-accepted"


@pytest.mark.parametrize(
    "accepts",
    [
        lambda name, a: np.isfinite(a.max()),
        lambda name, a: np.isfinite(a.min()),
        lambda name, a: ".1." in name or np.isfinite(a).all(),
        lambda name, a: not (np.isnan if "keys" in name else np.isinf)(a).any(),
        lambda name, a: not (np.isinf if "keys" in name else np.isnan)(a).any(),
        lambda name, a: np.isfinite(a[:, -1]).all(),
        lambda name, a: np.isfinite(a[:, 0]).all(),
        lambda name, a: np.isfinite(a[0]).all(),
    ],
    ids=["maximum", "minimum", "outer layers", "NaN in keys", "NaN in values", "last row", "first row", "first head"],
)
def test_what_is_not_finite_is_found_wherever_it_stands(course, accepts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def check(tensors, weights):
        replaced = {n: np.ones_like(a) if n != "prefix_ids" and accepts(n, a) else a for n, a in tensors.items()}
        course.check_tensors(replaced, weights)

    result = _of_the_file(course, 1, check_tensors=check)
    assert result.bug.key == "not-finite-accepted"


def _round_trip(course, renew=None, **replaced):
    """The result of cache-file-round-trip; renew: what another process does not have is let go."""
    perform = Runtime({**vars(course), **replaced, "__name__": "student"}).perform
    return run_check(find_check("cache-file-round-trip"), Student(perform, renew), 1)


@pytest.mark.parametrize(
    "key",
    [lambda path, saved: path.read_bytes(), lambda path, saved: (len(saved.layers), len(saved))],
    ids=["content", "length"],
)
def test_a_reader_that_hands_out_one_cache_twice_is_found(course, key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    caches = {}

    def read(path, weights):
        new, ids = course.read_prefix_cache(path, weights)
        saved = caches.setdefault(key(Path(path), new), new)
        if not isinstance(key(Path(path), new), bytes):
            saved.layers[:] = new.layers
        return saved, ids

    assert not _round_trip(course, read_prefix_cache=read).passed


def test_a_fingerprint_that_differs_between_processes_is_found(course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    salts = [1]

    def facts(prefix_ids, weights):
        told = course.cache_facts(prefix_ids, weights)
        return told | {"fingerprint": str(hash((told["fingerprint"], salts[-1])))}

    own = {name: _with(course, name, cache_facts=facts) for name in ("write_prefix_cache", "read_prefix_cache")}
    assert _round_trip(course, **own).passed
    assert "in another process" in _round_trip(course, lambda _: salts.append(2), **own).message


@pytest.mark.parametrize("keeps", ["its path", "its content in memory"])
def test_a_file_that_is_not_enough_is_found(course, keeps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = {}

    def write(path, saved, prefix_ids, weights):
        course.write_prefix_cache(path, saved, prefix_ids, weights)
        data = Path(path).read_bytes()
        token = str(path) if keeps == "its path" else str(len(kept))
        kept[token] = data
        Path(path).write_text(token)

    def read(path, weights):
        token = Path(path).read_text()
        if token not in kept or (keeps == "its path" and token != str(path)):
            raise ValueError("file: unknown")
        Path("own").write_bytes(kept[token])
        return course.read_prefix_cache("own", weights)

    result = _round_trip(course, lambda _: kept.clear(), write_prefix_cache=write, read_prefix_cache=read)
    assert ("another name" if keeps == "its path" else "in another process") in result.message


def _with(course, function, **replaced):
    """A function of the course's that finds other functions where it looks for some."""
    names = {**vars(course), **replaced, "__builtins__": builtins}
    return types.FunctionType(getattr(course, function).__code__, names)


def _of_the_file(course, seed, **replaced):
    """The result of cache-file-refusals, with what the writer and the reader call replaced."""
    own = {name: _with(course, name, **replaced) for name in ("write_prefix_cache", "read_prefix_cache")}
    return run_check(find_check("cache-file-refusals"), local_student({**vars(course), **own}), seed)


def test_what_a_writer_leaves_behind_when_it_refuses_must_not_be_readable(course, tmp_path, monkeypatch):
    """It saves first and looks afterwards, and the reader relies on it."""
    monkeypatch.chdir(tmp_path)
    paths = []

    def save_first(tensors, weights):
        save_file(tensors, paths[-1], course.cache_facts(tensors["prefix_ids"].tolist(), weights))
        course.check_tensors(tensors, weights)

    write_then_look = _with(course, "write_prefix_cache", check_tensors=save_first)

    def write(path, saved, prefix_ids, weights):
        paths.append(path)
        write_then_look(path, saved, prefix_ids, weights)

    read = _with(course, "read_prefix_cache", check_tensors=lambda tensors, weights: None)
    student = local_student({**vars(course), "write_prefix_cache": write, "read_prefix_cache": read})
    result = run_check(find_check("cache-file-refusals"), student, 1)
    assert not result.passed
    assert "returned a cache" in result.message


def test_a_save_that_returns_no_cache_is_told_in_every_check_that_needs_one(course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def logits_only(prefix_ids, weights):
        return course.prefill(prefix_ids, weights, course.ModelCache(weights.config.n_layer))

    results = _results(course, 1, save_prefix_cache=logits_only)
    lost = {i: r.bug and r.bug.key for i, r in results.items() if not r.passed}
    assert len(lost) == 7 and set(lost.values()) == {"not-a-cache"}
    assert [results[i].message for i in lost if "save_prefix_cache returned no cache" not in results[i].message] == []


def test_of_many_cases_that_fail_three_are_listed(course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def trusting(path, weights):
        tensors, saved = load_file(path), course.ModelCache(weights.config.n_layer)
        for i, layer in enumerate(saved.layers):
            layer.append(tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"])
        return saved, tensors["prefix_ids"].tolist()

    result = _results(course, 1, read_prefix_cache=trusting)["cache-file-refusals"]
    assert result.message.count(";") <= 4 and re.search(r"; \d+ more\.", result.message), result.message
