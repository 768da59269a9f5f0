"""The checks of block_keys."""

from __future__ import annotations

from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.student import Student
from autograder.stages.block_cache import bugs
from autograder.stages.block_cache.shared import context_of

SHORTEST = 16  # characters of a key


Question = tuple[list[int], int, dict[str, str]]  # the arguments of block_keys


def _keys(student: Student, asked: list[Question]) -> list[list[str]]:
    """The keys of each question: at least one where there are two full blocks or more."""
    answers = student.each_plain("block_keys", [(args, {}) for args in asked])
    for (ids, size, _), keys in zip(asked, answers, strict=True):
        if not (isinstance(keys, list) and all(isinstance(key, str) for key in keys) and (keys or len(ids) < 2 * size)):
            detail = f"For {count(len(ids), 'id')} in blocks of {size}, block_keys gave no list of strings."
            raise Failure(detail)
    return answers


@check("Each full block has a key", points=1, watches=("block_keys",))
def keys_full_blocks(student: Student, cases: Cases) -> None:
    """Each full block has a key, the rest has none; a key is the same whatever comes after it, and in any process."""
    asked = []
    for size in (1, 3, 4, 16):
        ids = cases.rng("ids", size).integers(0, 1000, 5 * size + 1).tolist()
        lengths = {0, 1, size - 1, size, size + 1, 2 * size - 1, 2 * size, 3 * size + 1, 5 * size, 5 * size + 1}
        asked += [(ids[:n], size, context_of("a")) for n in sorted(lengths)]
    answers = _keys(student, asked)
    longest = {size: keys for (_, size, _), keys in zip(asked, answers, strict=True)}  # the last of each size
    for (ids, size, _), keys in zip(asked, answers, strict=True):
        what, n = f"{count(len(ids), 'id')} in blocks of {size}", len(ids) // size
        if len(keys) != n:
            raise Failure(f"For {what}, block_keys gave {count(len(keys), 'key')} where {n} are due.")
        if keys != longest[size][:n]:
            raise Failure(f"{what} have other keys than a longer prompt that begins with them.")
    short = min((key for keys in answers for key in keys), key=len)
    if len(short) < SHORTEST:
        raise Failure(f"A key has {count(len(short), 'character')}; {SHORTEST} are the least.")
    with student.elsewhere():
        there = _keys(student, asked)
    if there != answers or (student.begin_anew() and _keys(student, asked) != answers):
        causes = "Python's hash(), the process's number, the date or the folder"
        raise Failure(f"Another process gets other keys for the same arguments, as from {causes}.")


@check("A key depends on its block and on all blocks before it", points=1)
def keys_chained(student: Student, cases: Cases) -> None:
    """Where an id differs, the keys of its block and of all blocks after it differ, and those before it do not."""
    size, n_blocks = 4, 5
    rng = cases.rng("ids")
    ids = (1 + rng.permutation(900)[: size * n_blocks]).tolist()  # without 0, which takes the place of each
    changed = []  # the place of the first id that differs, and the ids
    for place in range(len(ids)):
        for other in (ids[place] + 1000, ids[place] + 65536, 0):
            changed.append((place, [*ids[:place], other, *ids[place + 1 :]]))
    changed.append((0, [*ids[size : 2 * size], *ids[:size], *ids[2 * size :]]))  # two blocks exchanged
    changed += [(place, [*ids[:place], *ids[place : place + 2][::-1], *ids[place + 2 :]]) for place in (0, 5, 10)]
    pairs = [(ids, other, place) for place, other in changed]
    pairs.append(([1, 23, 4, 5] * n_blocks, [12, 3, 4, 5] * n_blocks, 0))
    pairs.append(([0, 7, 8, 9] * n_blocks, [7, 0, 8, 9] * n_blocks, 0))
    pairs.append(([1, 2, 3, 45] * n_blocks, [1, 2, 34, 5] * n_blocks, 2))
    answers = _keys(student, [(a, size, context_of("a")) for pair in pairs for a in pair[:2]])
    for (_, _, place), one, two in zip(pairs, answers[::2], answers[1::2], strict=True):
        first = place // size
        for i, (a, b) in enumerate(zip(one, two, strict=False)):
            if (a == b) != (i < first):
                detail = (
                    f"An id of block {first} was changed, and block {i} has {'the same' if a == b else 'another'} key."
                )
                raise Failure(detail, bugs.KEYS_UNCHAINED if i > first else None)
    repeated = _keys(student, [(ids[:size] * n_blocks, size, context_of("a"))])[0]
    if len(set(repeated)) != len(repeated):
        detail = f"Of {n_blocks} blocks with the same ids in one prompt, two have one key."
        raise Failure(detail, bugs.KEYS_UNCHAINED)


@check("A key depends on every fact of the context", points=1)
def keys_context(student: Student, cases: Cases) -> None:
    """Contexts that differ in any fact have other keys in every block; the order of the facts makes no difference."""
    ids = cases.rng("ids").integers(0, 1000, 13).tolist()
    facts = context_of("a")
    others = [
        {**facts, name: value}
        for name, text in facts.items()
        for value in (text + "x", text[:-1], "", "é", text.upper(), f" {text}")
    ]
    others += [
        {name: text for name, text in facts.items() if name != "tenant"},
        {"tenants" if name == "tenant" else name: text for name, text in facts.items()},
        {**facts, "layout": "n_head, n_seq, head_dim"},
        {**facts, "model": facts["dtype"], "dtype": facts["model"]},
        {**facts, "model": "5ee", "dtype": "dfloat32"},
        {**facts, "model": "eed", "dtype": "float325"},
        {**facts, "positions": "wpe from ", "tenant": "0a"},
        {**facts, "tenant": 'a", "x": "y'},
    ]
    others += [  # two facts in one, as they stand where facts are joined
        {"model": "5eed", "dtype": "float32", "positions": f"wpe from 0{between}tenant{equals}a"}
        for between in (";", "|", ",", "&", "/", " ", "\n", "; ", ", ")
        for equals in ("=", ":", ": ", " ")
    ]
    same = dict(reversed(list(facts.items())))
    own, turned, *rest = _keys(student, [(ids, 4, c) for c in (facts, same, *others)])
    if own != turned:
        raise Failure("The same facts in another order give other keys.")
    for context, keys in zip(others, rest, strict=True):
        equal = [i for i, (a, b) in enumerate(zip(own, keys, strict=False)) if a == b]
        if equal:
            differs = sorted(name for name in facts.keys() | context.keys() if facts.get(name) != context.get(name))
            detail = f"A context that differs in {' and '.join(differs)} gives block {equal[0]} the same key."
            raise Failure(detail)
