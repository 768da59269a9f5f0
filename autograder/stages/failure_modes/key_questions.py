"""What cache_key is asked: many arguments, all different, so that all keys must differ.

They differ in what a hurried key loses: one letter or id, capitals, empty strings, letters moved between two fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise, permutations, product

import numpy as np

FIELDS = ("model", "tokenizer", "dtype", "layout", "positions", "tenant")

SEPARATORS = ("|", ",", ":", "/", "-", "_", " ", "\n", "\0", ", ")
BORDERS = (
    *("", *SEPARATORS, "\t", ";", "#", "\x1f", "\x1e", "::", "||", "--", "__", ".", "&", "@", " | ", "~", "+", "*"),
    *("$", "=", "; ", ": ", " - ", "->", "=>", "<sep>", "[sep]", "[SEP]", "\r\n", '","', '", "', "','", "', '"),
)
NAMES = [before + "{}" + after for before, after in product(("|", ",", ";", "&", "\n", " ", ", ", "; "), "=:")]
BETWEEN_WORDS = (*BORDERS[:40], "  ", "//", "/./", "/x/../")
ENDINGS = (*("é", "ü", "漢", "字", "e\u0301", "?", "&#233;", "\\xe9", "\\u00e9"), "\0", "/", " ")
FOR_NOTHING = ("", "default", "None", "none", "null", "public", "-")  # what stands for an empty string
N_PARITIES = 2048  # so many make sums with powers of an odd factor equal modulo 2**64


@dataclass(frozen=True)
class Question:
    """The arguments of cache_key; fields in the order of FIELDS."""

    ids: tuple[int, ...]
    fields: tuple[str, ...]

    @property
    def named(self) -> dict[str, str]:
        return dict(zip(FIELDS, self.fields, strict=True))

    def having(self, **fields: str) -> Question:
        return Question(self.ids, tuple({**self.named, **fields}.values()))

    def with_ids(self, ids: Sequence[int]) -> Question:
        return Question(tuple(ids), self.fields)


def draw_question(rng: np.random.Generator, word: Sequence[str]) -> Question:
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789")
    fields = [f"{w}{''.join(rng.choice(letters, 20))}/{''.join(rng.choice(letters, 41))}"[:64] for w in word[:6]]
    return Question(tuple((rng.permutation(500)[:40] + 1).tolist()), tuple(fields))


def questions(first: Question, word: Sequence[str]) -> dict[Question, str]:
    """Different questions, the plainest first, each with what it is about."""
    short = Question((7,), tuple(f"{field[0]}{i}" for i, field in enumerate(FIELDS)))
    kinds = {
        "one string is another": _one_field(first, word),
        "one id is another, missing or added": _one_id(first),
        "an id has more than 16 bits": (first.with_ids([i + 2**k for i in first.ids]) for k in (16, 17)),
        "letters or ids stand in another field": _moved(short, word),
        "strings are easily taken for one": _alike(short, word),
        "letters or ids make up for each other in a sum": _sums(short),
    }
    about = {first: ""}
    for kind, some in kinds.items():
        for question in some:
            about.setdefault(question, kind)
    return about


def _one_field(first: Question, word: Sequence[str]) -> Iterator[Question]:
    for field, value in first.named.items():
        others = [word[10] + value[::-1], f"z{value[value.index('/') :]}", value.upper(), f" {value}"]
        for at in (0, len(value) // 2 + 8, len(value) - 1):
            others.append(f"{value[:at]}{'x' if value[at] != 'x' else 'y'}{value[at + 1 :]}")
        others += [value[0] * n + end for n in (300, 70_000) for end in "ab"]
        yield from (first.having(**{field: other}) for other in others)
    for a, b in combinations(FIELDS, 2):
        yield first.having(**{a: first.named[b], b: first.named[a]})


def _one_id(first: Question) -> Iterator[Question]:
    ids, n = list(first.ids), len(first.ids)
    lists = [[*ids[:i], ids[i] + more, *ids[i + 1 :]] for i in (0, 1, n // 2, n - 2, n - 1) for more in (1, 777, 4999)]
    for step in (2**k for k in range(1, 16)):
        lists += [[*ids[:-1], ids[-1] + step], [ids[0] + step, *ids[1:]]]
    lists += [ids[:-1], ids[1:], [*ids, ids[-1]], [*ids[:-2], ids[-1], ids[-2]], [ids[0] + 1, *ids[1:-1], ids[-1] - 1]]
    for n, places in ((1600, (128, 800, 1599)), (8200, (8199,))):
        many = [(40_000 + i) % 50_000 for i in range(n)]  # ids as large as GPT-2's
        lists += [many, *([*many[:i], many[i] + 1, *many[i + 1 :]] for i in places)]
    return map(first.with_ids, lists)


def _alike(short: Question, word: Sequence[str]) -> Iterator[Question]:
    alike, names = Question((7,), ("x",) * len(FIELDS)), Question((7,), FIELDS)
    yield names
    for field in FIELDS:
        yield from (names.having(**{field: field + end}) for end in ENDINGS)
        yield from (alike.having(**{field: text}) for text in FOR_NOTHING)
        paths = ("a/b", "a/b/", *(word[0] + mark + word[1] for mark in BETWEEN_WORDS))
        yield from (short.having(**{field: text}) for text in paths)


def _sums(short: Question) -> Iterator[Question]:
    """Also such as are equal in a sum with the powers of a factor."""
    parities = [bin(i).count("1") % 2 for i in range(N_PARITIES)]
    lists = [[1, 23], [12, 3], [1, 2, 3], [123], [11, 1], [1, 11], [9, 50, 60, 70, 9], [9, 51, 58, 71, 9]]
    lists += [[4000, 4000, 5], *([4001, 4000 - factor, 5] for factor in (31, 33, 37, 131, 257, 1009))]
    tenants = ["ano", *(f"b{chr(ord('n') - factor)}o" for factor in (31, 33, 37))]
    for turned in (0, 1):
        lists.append([400 + (p ^ turned) for p in parities])
        tenants.append("".join("ab"[p ^ turned] for p in parities))
    yield from map(short.with_ids, lists)
    yield from (short.having(tenant=tenant) for tenant in tenants)


def _moved(short: Question, word: Sequence[str]) -> Iterator[Question]:
    """The same letters, divided between two arguments at another place, for many borders that a key may put there."""
    usual = list(dict.fromkeys((*pairwise(FIELDS), *pairwise(sorted(FIELDS)))))  # as they are given, or by name
    beside = [pair for pair in permutations(FIELDS, 2) if "layout" in pair]  # in whatever order, it is beside one
    pairs = list(dict.fromkeys((*usual, *beside)))
    borders = [(border, pair) for border, pair in product(BORDERS, pairs)]
    borders += [(form.format(name), pair) for form, pair in product(NAMES, usual) for name in (pair[1], pair[1][0])]
    for border, (a, b) in borders:
        yield from _divided(short, word, a, b, border)
    x, y, z = word[:3]
    for a, b in usual:  # with the length of each before it, both are 11 15 xxxxxxxxx 5 yyyyy
        yield short.having(**{a: "1", b: "xxxxxxxxx5yyyyy"})
        yield short.having(**{a: "15xxxxxxxxx", b: "yyyyy"})
    for mark, (a, b) in product(SEPARATORS, pairs):
        yield short.having(**{a: x + mark, b: y})
        yield short.having(**{a: x, b: mark + y})
    for mark, last in product(SEPARATORS, ("positions", "model")):  # a backslash before a separator, or at an end
        yield short.having(dtype=f"{x}\\", layout=y, **{last: f"{z}{mark}{x}"})
        yield short.having(dtype=f"{x}{mark}{y}", layout=f"{z}\\", **{last: x})
    for mark, field in product(("", *SEPARATORS), FIELDS):  # an id at one end of a field
        yield short.having(**{field: f"{x}{mark}1"}).with_ids([2, 3])
        yield short.having(**{field: f"1{mark}{x}"}).with_ids([2, 3])
        yield from (short.having(**{field: x}).with_ids(ids) for ids in ([1, 2, 3], [2, 3, 1], [12, 3], [2, 31]))


def _divided(question: Question, word: Sequence[str], a: str, b: str, border: str) -> tuple[Question, Question]:
    """Two questions with the same letters, of which the middle ones are in field a or in field b."""
    x, y, z = word[:3]
    return question.having(**{a: f"{x}{border}{y}", b: z}), question.having(**{a: x, b: f"{y}{border}{z}"})


def borders_in(key: str, first: Question, word: Sequence[str]) -> Iterator[Question]:
    """The same for what stands between two fields in a key that can be read."""
    places = sorted((key.find(value), name) for name, value in first.named.items() if value in key)
    borders = ((a, b, key[at + len(first.named[a]) : then]) for (at, a), (then, b) in pairwise(places))
    return chain.from_iterable(_divided(first, word, a, b, border) for a, b, border in borders if len(border) <= 60)
