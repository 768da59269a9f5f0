"""The check that a file gives back what was written."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.words import count, tokens
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import STAGE, append_rows, expect_same

FOLDER = "Saved prefixes"
_ENDINGS = (".npz", ".npy", ".safetensors", ".st", ".json", ".bin", ".pkl", ".zip")


@check(
    stage=STAGE,
    id="cache-file-round-trip",
    points=1,
    title="What is written is what is read, to the bit",
    watches=("write_prefix_cache",),
)
def cache_file_round_trip(student, cases):
    """write_prefix_cache writes exactly at path; read_prefix_cache gives back the same cache and ids, bit for bit."""
    small, middle, _ = cases.odd
    read, files = [], []
    student.write_file(f"{FOLDER}/another", b"")
    for model, p, path in (
        (small, small.config.n_ctx, "prefix.safetensors"),
        (middle, 1, "saved prefix"),
        (cases.trained, 5, "prefix.v1.bin"),
        (small, 3, "prefix.safetensors"),  # over the first file
        (small, 3, f"{FOLDER}/prefix.safetensors"),
    ):
        ids = cases.ids(model, p, path)
        where = f"for a prefix of {tokens(p)} on {model.about}"
        cache = student.make_cache(model, model.reference.run(ids).kv)
        before = student.read_cache(cache)
        data = write_to(student, path, cache, ids, model, where)
        expect_same(before, student.read_cache(cache), model, p, "writing it to a file")
        moved = file_name(cases, "moved", len(read))  # what is read must be in the file, and in nothing else
        files.append((data, model, ids, before, where))
        student.write_file(moved, data)
        try:
            back, back_ids = read_back(student, moved, model)
        except StudentError as error:
            if not error.stub and _reads(student, path, model):
                detail = f"The file's bytes under another name cannot be read: {error.sentence[:-1]} ({where})."
                raise Failure(None, detail, own.NOT_IN_THE_FILE) from None
            raise
        if back_ids != ids:
            raise Failure(
                None, f"The prefix ids that came back are not those that were written ({where}).", own.IDS_CHANGED
            )
        expect_bits(student.read_cache(back), before, where)
        expect_bits(student.read_cache(read_back(student, path, model)[0]), before, where)
        read.append((back, before))
    for back, before in read:
        if not same_bits(student.read_cache(back), before):
            detail = "A cache that was read is no longer what it was after other files were read."
            raise Failure(None, detail, own.READ_CACHES_SHARED)
    _expect_another_cache_each_time(student, path, model, back, before)
    if student.begin_anew():
        _expect_files_to_be_enough(student, cases, files)


def write_to(student: Student, path: str, cache: Handle, ids: list[int], model: JudgeModel, where: str) -> bytes:
    """What write_prefix_cache writes at the path; Failure when there is no file."""
    student.handle("write_prefix_cache", path, cache, ids, model)
    if not student.file_exists(path):
        detail = f"After write_prefix_cache, there is no file at the path given ({where})."
        raise Failure(None, detail, _elsewhere(student, path))
    return student.read_file(path)


def _elsewhere(student: Student, path: str) -> Bug | None:
    """How the file got another name, if it did."""
    if any(student.file_exists(path + ending) for ending in _ENDINGS):
        return own.SUFFIX_ADDED_TO_PATH
    return own.FOLDER_DROPPED if path.startswith(FOLDER) else None


def _expect_another_cache_each_time(student: Student, path: str, model: JudgeModel, back: Handle, kv: KV) -> None:
    """What a request appends to a cache that was read is not in the next one that is read from the same bytes."""
    try:
        append_rows(student, back, kv)
    except StudentError:
        return  # such a cache cannot be appended to
    if not same_bits(student.read_cache(read_back(student, path, model)[0]), kv):
        detail = "After rows were appended to a cache that was read, the same file gives them too."
        raise Failure(None, detail, own.READ_CACHES_SHARED)


def file_name(cases: Cases, *label: object) -> str:
    """A name that does not tell what is in the file."""
    return f"{cases.number('file', *label) % 10**9}.safetensors"


def _expect_files_to_be_enough(student: Student, cases: Cases, files: list[tuple]) -> None:
    """In a new process, where there is nothing but the files' bytes."""
    for i, (data, model, ids, before, where) in enumerate(files):
        path = file_name(cases, "elsewhere", i)
        student.write_file(path, data)
        try:
            back, back_ids = read_back(student, path, model)
        except StudentError as error:
            detail = f"In another process the file's bytes cannot be read: {error.sentence[:-1]} ({where})."
            whole = len(data) > sum(a.nbytes for pair in before for a in pair) / 4  # float32 of float64, and packed
            again = file_name(cases, "written there", i)
            of_this_process = whole and _writes_and_reads(student, again, before, ids, model)
            raise Failure(None, detail, own.FACTS_OF_A_PROCESS if of_this_process else own.NOT_IN_THE_FILE) from None
        if back_ids != ids or not same_bits(student.read_cache(back), before):
            raise Failure(
                None, f"In another process, something else is read from the file ({where}).", own.NOT_IN_THE_FILE
            )


def _reads(student: Student, path: str, model: JudgeModel) -> bool:
    try:
        student.handle("read_prefix_cache", path, model)
    except StudentError:
        return False
    return True


def _writes_and_reads(student: Student, path: str, kv: KV, ids: list[int], model: JudgeModel) -> bool:
    try:
        student.handle("write_prefix_cache", path, student.make_cache(model, kv), ids, model)
    except StudentError:
        return False
    return _reads(student, path, model)


def read_back(student: Student, path: str, model: JudgeModel) -> tuple[Handle, list[int]]:
    """What read_prefix_cache returns: (saved, prefix_ids)."""
    pair = student.handle("read_prefix_cache", path, model)
    try:
        return student.method(pair, "__getitem__", 0, returns="handle"), student.method(
            pair, "__getitem__", 1, returns="ids"
        )
    except StudentError:
        raise Failure(None, "read_prefix_cache does not return a pair (saved, prefix_ids).") from None


def same_bits(a: KV, b: KV) -> bool:
    return len(a) == len(b) and all(
        np.array_equal(x, y) for one, two in zip(a, b, strict=True) for x, y in zip(one, two, strict=True)
    )


def expect_bits(kv: KV, written: KV, where: str) -> None:
    if same_bits(kv, written):
        return
    bug = None
    with np.errstate(over="ignore"):
        for suspect, wrong in (
            (own.FILE_HALF_PRECISION, [(k.astype(np.float16), v.astype(np.float16)) for k, v in written]),
            (own.FILE_KEYS_VALUES_SWAPPED, [(v, k) for k, v in written]),
            (own.FILE_LAYERS_AS_TEXT, [written[i] for i in sorted(range(len(written)), key=str)]),
            (own.ONE_WRITTEN_TWICE, [(k, k) for k, _ in written]),
            (own.ONE_WRITTEN_TWICE, [(v, v) for _, v in written]),
        ):
            if same_bits(kv, wrong):
                bug = suspect
    first_heads = [[(k[:1], v[:1]) for k, v in cache] for cache in (kv, written)]
    if bug is None and same_bits(*first_heads):
        bug = own.VIEW_WRITTEN
    if len(kv) != len(written):
        raise Failure(None, f"{count(len(kv), 'layer')} came back of {len(written)} ({where}).", bug)
    for layer, (new, old) in enumerate(zip(kv, written, strict=True)):
        for name, n, o in zip(("keys", "values"), new, old, strict=True):
            if not np.array_equal(n, o):
                how = f"of shape {list(n.shape)} instead of {list(o.shape)}" if n.shape != o.shape else "changed"
                raise Failure(None, f"The {name} of layer {layer} came back {how} ({where}).", bug)
