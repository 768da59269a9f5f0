"""What the table of samples does not cover: the solution's errors and files field by field, cheats, many seeds."""

import builtins
import hashlib
import re
import types
import zlib

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from autograder.bench.solved import solved
from autograder.judge.framework import checks_of, find_check, run_check
from autograder.judge.student import Student
from autograder.stages.save_and_reuse.samples import TOGETHER
from autograder.toolkit.model import GPT2Config, random_model
from autograder.toolkit.model.weights import tensors_of
from autograder.worker.runtime import Runtime

STAGE = "save-and-reuse"
CONFIG = GPT2Config(n_layer=2, n_head=3, n_embd=12, n_ctx=16, n_vocab=29)
IDS = [5, 0, 28, 7]


@pytest.fixture(scope="module")
def course():
    return solved(STAGE)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# The solution's files: one field wrong at a time


@pytest.fixture(scope="module")
def weights():
    return random_model(CONFIG, seed=3)


@pytest.fixture
def file(course, weights, tmp_path):
    path = tmp_path / "prefix.safetensors"
    course.write_prefix_cache(path, course.save_prefix_cache(IDS, weights), IDS, weights)
    return path


@pytest.mark.parametrize("field", ["fingerprint", "prefix_len", "dtype", "layout"])
@pytest.mark.parametrize("value", [None, "something else"])
def test_a_fact_that_is_missing_or_wrong_is_named(course, weights, file, field, value):
    with safe_open(file, framework="np") as opened:
        facts = {**opened.metadata(), field: value}
    save_file(load_file(file), file, {name: text for name, text in facts.items() if text is not None})
    with pytest.raises(ValueError, match=f"^{field}: "):
        course.read_prefix_cache(file, weights)


@pytest.mark.parametrize("some", [None, np.array(IDS[:-1]), np.array([], int)])
def test_ids_of_another_number_are_named(course, weights, file, some):
    with safe_open(file, framework="np") as opened:
        facts = opened.metadata()
    tensors = load_file(file) | {"prefix_ids": some}
    save_file({name: array for name, array in tensors.items() if array is not None}, file, facts)
    with pytest.raises(ValueError, match=r"^prefix_len: "):
        course.read_prefix_cache(file, weights)


def test_no_damaged_byte_gives_another_error(course, weights, file):
    """A byte changed anywhere is refused with a ValueError, or is one of a number's and changes that number alone."""
    data, rng = file.read_bytes(), np.random.default_rng(0)
    for place in [*range(0, 1200, 3), *rng.integers(0, len(data), 100)]:
        damaged = bytearray(data)
        damaged[place] ^= int(rng.integers(1, 256))
        file.write_bytes(damaged)
        try:
            saved, ids = course.read_prefix_cache(file, weights)
        except ValueError as error:
            assert ": " in str(error)
        else:
            assert len(saved) == len(ids) == 4


def test_the_writer_refuses_what_the_reader_would(course, weights, tmp_path):
    path, saved = tmp_path / "bad", course.save_prefix_cache(IDS, weights)
    for ids in (IDS[:-1], [*IDS, 1], [*IDS[:-1], 29]):
        with pytest.raises(ValueError):
            course.write_prefix_cache(path, saved, ids, weights)
    assert not path.exists()


# The checks


def _result(check_id, course, seed=1, renew=None, **replaced):
    """The result of a check with some of the solution's functions replaced; renew: what lets go of a process's own."""
    perform = Runtime({**vars(course), **replaced, "__name__": "student"}).perform
    return run_check(find_check(check_id), Student(perform, renew), seed)


def _failed(course, seed=1, **replaced):
    """The results of the checks that fail."""
    results = {c.id: _result(c.id, course, seed, **replaced) for c in checks_of(STAGE)}
    return {check_id: result for check_id, result in results.items() if not result.passed}


def _always(value):
    return lambda saved, p, ids, weights: np.full(weights.config.n_vocab, value)


@pytest.mark.parametrize("reuse", [_always(0.0), _always(np.nan), lambda *arguments: None], ids=["0", "nan", "None"])
def test_garbage_gets_nothing(course, reuse):
    def save(prefix_ids, weights):
        config, saved = weights.config, course.ModelCache(weights.config.n_layer)
        for layer in saved.layers:
            layer.append(*np.zeros((2, config.n_head, len(prefix_ids), config.head_dim), np.float32))
        return saved

    def read(path, weights):
        return None, []

    failed = _failed(course, save_prefix_cache=save, generate_with_prefix=reuse, read_prefix_cache=read)
    assert len(failed) == len(checks_of(STAGE))


@pytest.mark.parametrize(
    "what", [np.zeros(CONFIG.n_vocab, np.float32), None, ("cache", "logits")], ids=lambda w: type(w).__name__
)
def test_what_is_saved_must_be_a_cache(course, what):
    result = _result("saved-prefix-exact", course, save_prefix_cache=lambda *arguments: what)
    assert f"the result is no ModelCache but of type {type(what).__name__}" in result.message
    assert result.look.startswith("Look in save_prefix_cache, at what it returns.")


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


def test_the_failing_prefix_lengths_are_listed(course):
    """Wrong at multiples of 8 only, as when a chunk ends exactly at the prefix."""

    def reuse(saved, prefix_len, suffix_ids, weights):
        return course.generate_with_prefix(saved, prefix_len - (prefix_len % 8 == 0), suffix_ids, weights)

    result = _result("reuse-equals-recompute", course, generate_with_prefix=reuse)
    assert "Failing prefix lengths: 8, 16" in result.message
    assert result.bug.key == "positions-shifted--1"


@pytest.mark.parametrize(
    "position",
    [
        lambda n, p, s: n if s == 1 else p,  # one token
        lambda n, p, s: n if 4 < s < 16 else p,  # a few
        lambda n, p, s: n if s > 8 else p,  # many
        lambda n, p, s: n if p > n + 1 else p,  # far too large
        lambda n, p, s: p or n,  # none
    ],
)
def test_a_prefix_len_that_is_ignored_in_some_cases_is_named(course, position):
    def reuse(saved, prefix_len, suffix_ids, weights):
        cache = saved.clone()
        return course.advance(suffix_ids, position(len(cache), prefix_len, len(suffix_ids)), weights, cache)

    assert _result("position-continues", course, generate_with_prefix=reuse).bug.key == "prefix-len-ignored"


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
    assert not _result("reuse-equals-recompute", course, generate_with_prefix=reuse).passed


@pytest.mark.parametrize("n_suffix", [1, 3])
@pytest.mark.parametrize("bug", ["saved-cache-grows", "positions-reset"])
def test_the_points_for_reuse_are_given_together_or_not_at_all(course, bug, n_suffix):
    """Wrong for suffixes of one length alone."""

    def reuse(saved, prefix_len, suffix_ids, weights):
        wrong = len(suffix_ids) == n_suffix
        cache = saved if wrong and bug == "saved-cache-grows" else saved.clone()
        position = 0 if wrong and bug == "positions-reset" else prefix_len
        return course.advance(suffix_ids, position, weights, cache)

    results = {i: _result(i, course, generate_with_prefix=reuse) for i in TOGETHER}
    assert {i: r.bug and r.bug.key for i, r in results.items()} == dict.fromkeys(TOGETHER, bug)
    if bug == "saved-cache-grows":
        assert results["reuse-equals-recompute"].message.startswith("Reuse counts as a whole")


def test_answers_remembered_by_the_cache_they_came_from_are_found(course):
    answers = {}

    def reuse(saved, prefix_len, suffix_ids, weights):
        key = (id(saved), prefix_len, tuple(suffix_ids), weights.config)
        if key not in answers:
            answers[key] = saved, course.generate_with_prefix(saved, prefix_len, suffix_ids, weights)
        return answers[key][1]

    assert "One row more" in _result("cache-is-used", course, generate_with_prefix=reuse).message


def test_a_saved_cache_that_loses_layers_is_described(course):
    def reuse(saved, prefix_len, suffix_ids, weights):
        logits = course.generate_with_prefix(saved, prefix_len, suffix_ids, weights)
        del saved.layers[1:]
        return logits

    message = _result("saved-stays-pristine", course, generate_with_prefix=reuse).message
    assert (
        "After a request, the saved cache has 1 layer of 7 rows instead of 2 layers of 7 rows (for a prefix of 7 tokens"
        in message
    )


# The file


def _with(course, function, **replaced):
    """A function of the course's that finds other functions where it looks for some."""
    names = {**vars(course), **replaced, "__builtins__": builtins}
    return types.FunctionType(getattr(course, function).__code__, names)


def _of_the_file(check_id, course, seed=1, renew=None, **replaced):
    """The result of a check of files, with what the writer and the reader call replaced."""
    own = {name: _with(course, name, **replaced) for name in ("write_prefix_cache", "read_prefix_cache")}
    return _result(check_id, course, seed, renew, **own)


def _digest(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _digest_without(part):
    return lambda tensors: _digest(*(a.tobytes() for name, a in tensors.items() if part not in name))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "fingerprint",
    [
        lambda tensors: _digest(*(a.tobytes()[-64:] for a in tensors.values())),
        lambda tensors: _digest(*(a.tobytes()[:64] for a in tensors.values())),
        lambda tensors: _digest(*(a.tobytes()[:8192] for a in tensors.values())),
        _digest_without(".attn."),
        _digest_without(".bias"),
        _digest_without("h.1."),
        _digest_without("ln_f"),
        lambda tensors: str([float(a.sum(dtype=np.float64)) for a in tensors.values()]),
        lambda tensors: str([(a.mean(), a.std(), a.ravel()[:32].tolist()) for a in tensors.values()]),
        lambda tensors: _digest(*(a.astype(np.float16).tobytes() for a in tensors.values())),
        lambda tensors: str(sum(zlib.crc32(a.tobytes()) for a in tensors.values())),
        lambda tensors: str(sorted((name.split(".")[-2:], _digest(a.tobytes())) for name, a in tensors.items())),
    ],
    ids=["last 64 bytes", "first 64 bytes", "first 8 kB", "no attention", "no bias", "one block", "no ln_f", "sums",
         "statistics and 32 numbers", "float16", "sum of checksums", "blocks in any order"],
)  # fmt: skip
def test_a_fingerprint_of_a_part_of_the_model_is_found(course, fingerprint, seed):
    def facts(prefix_ids, weights):
        own = {"fingerprint": str(weights.config) + fingerprint(tensors_of(weights))}
        return course.cache_facts(prefix_ids, weights) | own

    result = _of_the_file("cache-file-refusals", course, seed, cache_facts=facts)
    assert result.bug.key == "other-model-accepted"


@pytest.mark.parametrize(
    "accepts",
    [
        lambda name, a: np.isfinite(a.max()),
        lambda name, a: np.isfinite(a.min()),
        lambda name, a: ".1." in name or np.isfinite(a).all(),  # outer layers
        lambda name, a: not (np.isnan if "keys" in name else np.isinf)(a).any(),
        lambda name, a: not (np.isinf if "keys" in name else np.isnan)(a).any(),
        lambda name, a: np.isfinite(a[:, -1]).all(),  # the last row
        lambda name, a: np.isfinite(a[:, 0]).all(),
        lambda name, a: np.isfinite(a[0]).all(),  # the first head
    ],
)
def test_what_is_not_finite_is_found_wherever_it_stands(course, accepts):
    def check(tensors, weights):
        replaced = {n: np.ones_like(a) if n != "prefix_ids" and accepts(n, a) else a for n, a in tensors.items()}
        course.check_tensors(replaced, weights)

    result = _of_the_file("cache-file-refusals", course, check_tensors=check)
    assert re.search(r"For (nan|-?inf) among the (keys|values) of layer \d, .* returned as if", result.message)


def test_a_fingerprint_that_differs_between_processes_is_found(course):
    salts = [1]

    def facts(prefix_ids, weights):
        told = course.cache_facts(prefix_ids, weights)
        return told | {"fingerprint": str(hash((told["fingerprint"], salts[-1])))}

    assert _of_the_file("cache-file-round-trip", course, cache_facts=facts).passed
    result = _of_the_file("cache-file-round-trip", course, renew=lambda _: salts.append(2), cache_facts=facts)
    assert "in another process" in result.message


@pytest.mark.parametrize(("told", "words"), [("path", "another name"), ("number", "in another process")])
def test_a_file_that_is_not_enough_is_found(course, told, words):
    """The content stays in memory, found by the path or by a number."""
    kept = {}

    def save(tensors, path, facts):
        token = str(path) if told == "path" else str(len(kept))
        save_file(tensors, "own", facts)
        with open("own", "rb") as file:
            kept[token] = file.read()
        with open(path, "w") as file:
            file.write(token)

    def read(path, weights):
        with open(path) as file:
            token = file.read()
        if token not in kept or (told == "path" and token != str(path)):
            raise ValueError("file: unknown")
        with open("own", "wb") as file:
            file.write(kept[token])
        return course.read_prefix_cache("own", weights)

    own = {"write_prefix_cache": _with(course, "write_prefix_cache", save_file=save), "read_prefix_cache": read}
    assert words in _result("cache-file-round-trip", course, renew=lambda _: kept.clear(), **own).message


def test_what_a_writer_leaves_behind_when_it_refuses_must_not_be_readable(course):
    """It saves first and looks afterwards, and the reader relies on it."""
    paths = []

    def save_first(tensors, weights):
        save_file(tensors, paths[-1], course.cache_facts(tensors["prefix_ids"].tolist(), weights))
        course.check_tensors(tensors, weights)

    write_then_look = _with(course, "write_prefix_cache", check_tensors=save_first)

    def write(path, *arguments):
        paths.append(path)
        write_then_look(path, *arguments)

    read = _with(course, "read_prefix_cache", check_tensors=lambda tensors, weights: None)
    result = _result("cache-file-refusals", course, write_prefix_cache=write, read_prefix_cache=read)
    assert "read_prefix_cache returned as if nothing were wrong" in result.message


def test_of_many_cases_that_fail_three_are_listed(course):
    def trusting(path, weights):
        tensors, saved = load_file(path), course.ModelCache(weights.config.n_layer)
        for i, layer in enumerate(saved.layers):
            layer.append(tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"])
        return saved, tensors["prefix_ids"].tolist()

    message = _result("cache-file-refusals", course, read_prefix_cache=trusting).message
    assert message.count(";") <= 4 and re.search(r"; \d+ more\.", message), message
