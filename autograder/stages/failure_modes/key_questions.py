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


Told = tuple[Question, str]  # and what is special about it


def draw_question(rng: np.random.Generator, word: Sequence[str]) -> Question:
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789")
    fields = [f"{w}{''.join(rng.choice(letters, 20))}/{''.join(rng.choice(letters, 41))}"[:64] for w in word[:6]]
    return Question(tuple((rng.permutation(500)[:40] + 1).tolist()), tuple(fields))


def questions(first: Question, word: Sequence[str]) -> Iterator[Told]:
    """Different questions, apart from some that come twice."""
    yield first, ""
    short = Question((7,), tuple(f"{field[0]}{i}" for i, field in enumerate(FIELDS)))
    yield from _one_field(first, word)
    yield from _one_id(first)
    yield from _moved(short, word)
    yield from _alike(short, word)
    yield from _sums(short)


def _one_field(first: Question, word: Sequence[str]) -> Iterator[Told]:
    for field, value in first.named.items():
        slash = value.index("/")
        others = {"another string": word[10] + value[::-1], "other letters before the slash": "z" + value[slash:]}
        for what, at in (("first", 0), ("middle", len(value) // 2 + 8), ("last", len(value) - 1)):
            others[f"another {what} letter"] = f"{value[:at]}{'x' if value[at] != 'x' else 'y'}{value[at + 1 :]}"
        others |= {"capitals": value.upper(), "a space before it": f" {value}"}
        others |= {f"{n + 1:,} letters that end with {end}": value[0] * n + end for n in (300, 70_000) for end in "ab"}
        for what, other in others.items():
            yield first.having(**{field: other}), f"{what} in {field}"
    for a, b in combinations(FIELDS, 2):
        yield first.having(**{a: first.named[b], b: first.named[a]}), f"{a} and {b} exchanged"


def _one_id(first: Question) -> Iterator[Told]:
    ids, n = list(first.ids), len(first.ids)
    for i, more in product((0, 1, n // 2, n - 2, n - 1), (1, 777, 4999)):
        yield first.with_ids([*ids[:i], ids[i] + more, *ids[i + 1 :]]), f"another id {i} of {n}"
    for step in (2**k for k in range(1, 16)):
        yield first.with_ids([*ids[:-1], ids[-1] + step]), f"the last id greater by {step:,}"
        yield first.with_ids([ids[0] + step, *ids[1:]]), f"the first id greater by {step:,}"
    yield first.with_ids(ids[:-1]), "one id less at the end"
    yield first.with_ids(ids[1:]), "one id less at the start"
    yield first.with_ids([*ids, ids[-1]]), "the last id twice"
    yield first.with_ids([*ids[:-2], ids[-1], ids[-2]]), "two ids exchanged"
    yield first.with_ids([ids[0] + 1, *ids[1:-1], ids[-1] - 1]), "one id greater by 1 and one less"
    for n, places in ((1600, (128, 800, 1599)), (8200, (8199,))):
        many = [(40_000 + i) % 50_000 for i in range(n)]  # ids as large as GPT-2's
        yield first.with_ids(many), f"{n:,} ids"
        for i in places:
            yield first.with_ids([*many[:i], many[i] + 1, *many[i + 1 :]]), f"another id {i:,} of {n:,}"


def _alike(short: Question, word: Sequence[str]) -> Iterator[Told]:
    """Strings that are easily taken for one, or for none."""
    alike, names = Question((7,), ("x",) * len(FIELDS)), Question((7,), FIELDS)
    yield names, ""
    for field in FIELDS:
        for end in ENDINGS:
            yield names.having(**{field: field + end}), f"{end!a} at the end of {field}"
        for text in FOR_NOTHING:
            yield alike.having(**{field: text}), f"{text!r} for {field}"
        for mark in BETWEEN_WORDS:
            yield short.having(**{field: word[0] + mark + word[1]}), f"{mark!r} between two words of {field}"
        yield short.having(**{field: "a/b"}), f"a path in {field}"
        yield short.having(**{field: "a/b/"}), f"a path that ends with a slash in {field}"


def _sums(short: Question) -> Iterator[Told]:
    """Letters and ids that make up for each other in a sum, also in one with the powers of a factor."""
    what = "letters or ids that make up for each other in a sum"
    parities = [bin(i).count("1") % 2 for i in range(N_PARITIES)]
    lists = [[1, 23], [12, 3], [1, 2, 3], [123], [11, 1], [1, 11], [9, 50, 60, 70, 9], [9, 51, 58, 71, 9]]
    lists += [[4000, 4000, 5], *([4001, 4000 - factor, 5] for factor in (31, 33, 37, 131, 257, 1009))]
    for ids in (*lists, *([400 + (p ^ turned) for p in parities] for turned in (0, 1))):
        yield short.with_ids(ids), what
    for tenant in ("ano", *(f"b{chr(ord('n') - factor)}o" for factor in (31, 33, 37))):
        yield short.having(tenant=tenant), what
    for turned in (0, 1):
        yield short.having(tenant="".join("ab"[p ^ turned] for p in parities)), what


def _moved(short: Question, word: Sequence[str]) -> Iterator[Told]:
    """The same letters, divided between two arguments at another place, for many borders that a key may put there."""
    usual = list(dict.fromkeys((*pairwise(FIELDS), *pairwise(sorted(FIELDS)))))  # as they are given, or by name
    beside = [pair for pair in permutations(FIELDS, 2) if "layout" in pair]  # in whatever order, it is beside one
    pairs = list(dict.fromkeys((*usual, *beside)))
    borders = [(border, pair) for border, pair in product(BORDERS, pairs)]
    borders += [(form.format(name), pair) for form, pair in product(NAMES, usual) for name in (pair[1], pair[1][0])]
    for border, (a, b) in borders:
        yield from moved(short, word, a, b, border)
    what = "letters moved, with separators or backslashes at the ends of fields"
    x, y, z = word[:3]
    for mark, (a, b) in product(SEPARATORS, pairs):
        yield short.having(**{a: x + mark, b: y}), what
        yield short.having(**{a: x, b: mark + y}), what
    for mark, last in product(SEPARATORS, ("positions", "model")):
        yield short.having(dtype=f"{x}\\", layout=y, **{last: f"{z}{mark}{x}"}), what
        yield short.having(dtype=f"{x}{mark}{y}", layout=f"{z}\\", **{last: x}), what
    for mark, field in product(("", *SEPARATORS), FIELDS):
        what = f"an id at one end of {field}"
        yield short.having(**{field: f"{x}{mark}1"}).with_ids([2, 3]), what
        yield short.having(**{field: f"1{mark}{x}"}).with_ids([2, 3]), what
        for ids in ([1, 2, 3], [2, 3, 1], [12, 3], [2, 31]):
            yield short.having(**{field: x}).with_ids(ids), what


def moved(question: Question, word: Sequence[str], a: str, b: str, border: str) -> tuple[Told, Told]:
    """Two questions with the same letters, of which the middle ones are in field a or in field b."""
    x, y, z = word[:3]
    what = f"letters of {a} moved to {b}"
    one, two = {a: f"{x}{border}{y}", b: z}, {a: x, b: f"{y}{border}{z}"}
    return (question.having(**one), what), (question.having(**two), what)


def borders_in(key: str, first: Question, word: Sequence[str]) -> Iterator[Told]:
    """The same for what stands between two fields in a key that can be read."""
    places = sorted((key.find(value), name) for name, value in first.named.items() if value in key)
    borders = ((a, b, key[at + len(first.named[a]) : then]) for (at, a), (then, b) in pairwise(places))
    return chain.from_iterable(moved(first, word, a, b, border) for a, b, border in borders if len(border) <= 60)
