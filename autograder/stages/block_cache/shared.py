"""What the checks of the store share: prompts, rows that tell whose they are, and a store beside the plain one."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure
from autograder.judge.plurals import count
from autograder.judge.student import Handle, Student
from autograder.stages.block_cache.plain_store import RIGHT, PlainStore, Rules
from autograder.worker.arguments import KeysOfBits

STRONG = KeysOfBits(128)  # for the checks that are not about block_keys
WEAK = KeysOfBits(4)  # equal by chance before long
IN_ONE_QUESTION = 250


def context_of(tenant: str) -> dict[str, str]:
    """A context that differs in the tenant alone."""
    return {"model": "5eed", "dtype": "float32", "positions": "wpe from 0", "tenant": tenant}


def kv_of(token_ids: Sequence[int], tenant: str, shape: tuple[int, int, int] = (1, 1, 1)) -> np.ndarray:
    """Rows that depend on all ids up to theirs and on the tenant, [n_layer, 2, n_head, n_seq, head_dim], in float32.

    shape: n_layer, n_head and head_dim.
    """
    n_layer, n_head, head_dim = shape
    seen, marks = zlib.crc32(tenant.encode()), []
    for token_id in token_ids:
        seen = zlib.crc32(int(token_id).to_bytes(4, "big"), seen)
        marks.append(seen % 4096)
    places = np.arange(n_layer * 2 * n_head * head_dim).reshape(n_layer, 2, n_head, 1, head_dim)
    return (places * 4096.0 + np.array(marks).reshape(-1, 1)).astype(np.float32)


def blocks_of(rows: np.ndarray, block_size: int, n: int) -> list[np.ndarray]:
    """The first n blocks of rows such as kv_of gives."""
    return [rows[:, :, :, i * block_size : (i + 1) * block_size] for i in range(n)]


def make_cache(student: Student, rows: np.ndarray) -> Handle:
    """A cache of the student's with these rows."""
    return student.cache_with([(keys, values) for keys, values in rows])


def make_store(student: Student, capacity: int, block_size: int, **options: Any) -> Handle:
    """A store of the student's, with keys that are not the student's."""
    return student.handle("BlockStore", capacity, block_size, **{"key": STRONG, **options})


def same_rows(actual: Any, expected: Sequence[np.ndarray]) -> bool:
    """Whether match gave just these blocks, to the bit."""
    return (
        isinstance(actual, list)
        and len(actual) == len(expected)
        and all(isinstance(a, np.ndarray) and np.array_equal(a, b) for a, b in zip(actual, expected, strict=True))
    )


def expect_arrays(run: Any, of: str = "") -> None:
    """A Failure unless match gave a list of arrays. of: which store's match, where that matters."""
    if not (isinstance(run, list) and all(isinstance(rows, np.ndarray) for rows in run)):
        raise Failure(f"match{of} gave no list of arrays, one for each block.")


def draw_prompts(cases: Cases, block_size: int, n: int, *label: Any) -> list[list[int]]:
    """n prompts of up to 5 blocks and some tokens, most of which begin as an earlier one does."""
    rng = cases.rng("prompts", block_size, *label)
    prompts: list[list[int]] = []
    for _ in range(n):
        ids = rng.integers(0, 50, rng.integers(1, 5 * block_size + block_size)).tolist()
        if prompts and rng.random() < 0.75:
            other = prompts[rng.integers(len(prompts))]
            shared = int(rng.integers(len(other) // block_size + 1)) * block_size  # branches at a border, and
            shared = min(len(other), shared + int(rng.integers(2)) * int(rng.integers(block_size)))  # within a block
            ids = other[:shared] + ids
        prompts.append(ids[: 6 * block_size])
    return prompts


@dataclass(frozen=True)
class Call:
    """match or put of one prompt."""

    name: str
    ids: list[int]
    tenant: str = "a"


@dataclass(frozen=True)
class Run:
    """Calls of one store, in order."""

    calls: Sequence[Call]
    capacity: int
    block_size: int
    shape: tuple[int, int, int] = (1, 1, 1)  # n_layer, n_head and head_dim

    def predicted(self, rules: Rules = RIGHT) -> list[int]:
        """For each call, how many blocks match finds, and how many are held after put."""
        plain = PlainStore(self.capacity, self.block_size, rules)
        return [len(plain) if n is None else n for n in (getattr(plain, c.name)(c.ids, c.tenant) for c in self.calls)]

    def asked_of(self, student: Student) -> list[Any]:
        """For each call, the list that match gives, and what len says after put."""
        store = make_store(student, self.capacity, self.block_size)
        put = {(tuple(call.ids), call.tenant): call for call in self.calls if call.name == "put"}
        caches = {key: make_cache(student, kv_of(call.ids, call.tenant, self.shape)) for key, call in put.items()}
        questions = []
        for call in self.calls:
            own = (caches[tuple(call.ids), call.tenant],) if call.name == "put" else ()
            questions.append((call.name, (call.ids, context_of(call.tenant), *own)))
            questions += [("__len__", ())] * (call.name == "put")
        seen: list[Any] = []
        for i in range(0, len(questions), IN_ONE_QUESTION):
            seen += student.each_method(store, questions[i : i + IN_ONE_QUESTION])
        answers = [(name, answer) for (name, _), answer in zip(questions, seen, strict=True) if name != "put"]
        for name, answer in answers:
            if name == "match":
                expect_arrays(answer)
            elif type(answer) is not int:
                raise Failure("__len__ gave no whole number.")
        return [answer for _, answer in answers]


def expect_as_plain(student: Student, runs: Sequence[Run], suspects: Sequence[tuple[Bug, Rules]] = ()) -> None:
    """Pass when stores of the student's find and hold what plain ones do, after each of the calls.

    suspects: wrong rules; a bug is named when its rules, and no other bug's, explain all that was seen.
    """
    answers = [run.asked_of(student) for run in runs]
    found = [[a if isinstance(a, int) else len(a) for a in run] for run in answers]
    for run, of_run, seen in zip(runs, answers, found, strict=True):
        for i, (call, right) in enumerate(zip(run.calls, run.predicted(), strict=True)):
            store = f"a store of {count(run.capacity, 'block')} of {count(run.block_size, 'token')}"
            where = f"in {store}, after {count(i, 'call')} of match and put"
            if seen[i] != right:
                what = "match found" if call.name == "match" else "after put the store held"
                prompt = f"a prompt of {count(len(call.ids), 'token')}"
                due = f"{right} {'is' if right == 1 else 'are'} right"
                detail = f"For {prompt}, {what} {count(seen[i], 'block')} where {due} ({where})."
                explain = {bug for bug, rules in suspects if [run.predicted(rules) for run in runs] == found}
                raise Failure(detail, explain.pop() if len(explain) == 1 else None)
            rows = blocks_of(kv_of(call.ids, call.tenant, run.shape), run.block_size, right)
            if call.name == "match" and not same_rows(of_run[i], rows):
                raise Failure(f"match gave other rows than those that were put in ({where}).")
