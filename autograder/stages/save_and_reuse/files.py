"""The check that a file gives back what was written."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import KEYS_VALUES_SWAPPED, LAYERS_SORTED_AS_TEXT
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV
from autograder.judge.student import Handle, Student, StudentError
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import append_rows, case, expect_same, same_bits
from autograder.toolkit.model import GPT2Config

FOLDER = "Saved prefixes"
WRITE, READ = "write_prefix_cache", "read_prefix_cache"


@check("What is written is what is read, to the bit", points=1, watches=("write_prefix_cache",))
def cache_file_round_trip(student: Student, cases: Cases) -> None:
    """write_prefix_cache writes exactly at path; read_prefix_cache gives back the same cache and ids, bit for bit."""
    small, middle, _ = cases.odd
    wide = cases.random_model(GPT2Config(n_layer=1, n_head=1, n_embd=2, n_ctx=8, n_vocab=70_001))  # past 16 bits
    files = []
    student.write_file(f"{FOLDER}/another", b"")
    for model, p, path in (
        (small, small.config.n_ctx, "prefix.safetensors"),
        (middle, 1, "saved prefix"),
        (wide, 7, "wide"),
        (cases.deep, 5, "prefix.v1.bin"),  # more than 10 layers
        (small, 3, "prefix.safetensors"),  # over the first file
        (small, 3, f"{FOLDER}/prefix.safetensors"),
    ):
        ids, where = cases.ids(model, p, path), case(model, p)
        ids[-1] = model.config.n_vocab - 1
        cache = student.make_cache(model, model.reference.run(ids).kv)
        before = student.read_cache(cache)
        data = write_to(student, path, cache, ids, model, where)
        expect_same(before, student.read_cache(cache), where, "writing it to a file")
        moved = file_name(cases, "moved", len(files))  # what is read must be in the file, and in nothing else
        student.write_file(moved, data)
        back, pair = expect_back(student, moved, model, ids, before, f"from its bytes under another name, {where}")
        expect_back(student, path, model, ids, before, where)
        files.append((back, pair, data, model, ids, before, where))
    for back, pair, _, _, ids, before, _ in files:
        if not same_bits(student.read_cache(back), before):
            raise Failure("A cache that was read is no longer what it was after other files were read.")
        if student.method(pair, "__getitem__", 1, returns="ids") != ids:
            raise Failure("The ids that were read are no longer what they were after other files were read.")
    try:
        append_rows(student, back, before)
    except StudentError:
        pass  # such a cache cannot be appended to
    else:
        expect_back(student, path, model, ids, before, "after rows were appended to what was read before")
    if student.begin_anew():
        for i, (_, _, data, model, ids, before, where) in enumerate(files[:2]):
            path = file_name(cases, "elsewhere", i)
            student.write_file(path, data)
            expect_back(student, path, model, ids, before, f"in another process, {where}")


def _are_views(actual: KV, right: KV) -> bool:
    """Whether in each array the first head is right and another is not, as of a buffer with room for more rows."""
    pairs = [(a, b) for some, others in zip(actual, right, strict=True) for a, b in zip(some, others, strict=True)]
    return all(a.shape == b.shape and np.array_equal(a[0], b[0]) and not np.array_equal(a, b) for a, b in pairs)


def file_name(cases: Cases, *label: object) -> str:
    """A name that does not tell what is in the file."""
    return f"{cases.number('file', *label) % 10**9}.safetensors"


def write_to(student: Student, path: str, cache: Handle, ids: list[int], model: JudgeModel, where: str) -> bytes:
    """What write_prefix_cache writes at the path; Failure when there is no file."""
    student.handle(WRITE, path, cache, ids, model)
    if not student.file_exists(path):
        raise Failure(f"After write_prefix_cache, there is no file at the path given ({where}).")
    return student.read_file(path)


def expect_back(student: Student, path: str, model: JudgeModel | Handle, ids: list[int], kv: KV, where: str) -> tuple:
    """The cache that read_prefix_cache gives, which must be this one, with these ids; and the pair that it gives."""
    try:
        pair = student.handle(READ, path, model)
    except StudentError as error:
        raise Failure(f"A file that fits is not read: {error.sentence[:-1]} ({where}).") from None
    try:
        back = student.method(pair, "__getitem__", 0, returns="handle")
        back_ids = student.method(pair, "__getitem__", 1, returns="ids")
    except StudentError:
        raise Failure("read_prefix_cache does not return a pair (saved, prefix_ids).") from None
    if back_ids != ids:
        raise Failure(f"The prefix ids that came back are not those that were written ({where}).")
    actual = student.read_cache(back)
    if same_bits(actual, kv):
        return back, pair
    suspects = (
        (KEYS_VALUES_SWAPPED, [(v, k) for k, v in kv]),
        (own.VIEW_WRITTEN, [tuple(a.swapaxes(0, 1).reshape(a.shape) for a in pair) for pair in kv]),  # of token-major
        (LAYERS_SORTED_AS_TEXT, [kv[i] for i in sorted(range(len(kv)), key=str)]),
    )
    bug = next((bug for bug, wrong in suspects if same_bits(actual, wrong)), None)
    if bug is None and len(actual) == len(kv) and _are_views(actual, kv):
        bug = own.VIEW_WRITTEN
    raise Failure(f"The keys and values that came back are not those that were written ({where}).", bug)
