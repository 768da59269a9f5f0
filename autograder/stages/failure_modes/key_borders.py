"""What ends one field must not be able to begin the next, whatever a student's separator is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations, product

from autograder.judge.bugs import Bug
from autograder.stages.failure_modes.bugs import key as bugs
from autograder.stages.failure_modes.keys import Pair, Question

COMMON = ("", "|", ",", ":", "/", "-", "_", " ", "\n", "\0", ", ")
RARE = (
    *("\t", ";", "#", "\x1f", "\x1e", "::", "||", "|||", "--", "__", ".", "&", "@", " | ", "\\", "~", "+", "*", "$"),
    *("%", "^", "=", "; ", ": ", " - ", " / ", "##", "###", "->", "=>", "<sep>", "<SEP>", "[sep]", "[SEP]", "\r\n"),
    *('","', '", "', "','", "', '"),
)
INSTEAD = ("_", " ", "-", "")  # of a separator in a field, where it is replaced
BETWEEN_NAMED = ("|", ",", ";", "&", "\n", " ", ", ", "/")
AFTER_A_NAME = ("=", ":")
RARE_AFTER_A_NAME = (": ", " = ", "-", "_", "")
LONGEST_BORDER = 60

Texts = dict[str, str]


def border_pairs(word: Sequence[str]) -> list[Pair]:
    """Pairs that a key confuses if it puts ids and fields together without a border that holds."""
    fields = {field: f"{field[0]}{i}" for i, field in enumerate(bugs.KEY_FIELDS)}
    return [
        *_ids_alone(fields),
        *_fields(fields, word),
        *_replaced_separators(fields, word),
        *_marked_separators(fields, word),
        *_ids_and_fields(fields, word),
    ]


def _ids_alone(fields: Texts) -> Iterator[Pair]:
    for a, b in (([1, 23], [12, 3]), ([1, 2, 3], [123]), ([11, 1], [1, 11])):
        shorter = f"{len(a)} ids and {len(b)} {'id' if len(b) == 1 else 'ids'} with the same digits give the same key."
        yield Pair(Question(a, fields), Question(b, fields), shorter, bugs.KEY_IDS_RUN_TOGETHER)


def _fields(fields: Texts, word: Sequence[str]) -> Iterator[Pair]:
    """In whatever order a student writes the fields, layout stands beside another one."""
    usual = dict.fromkeys((*pairwise(fields), *pairwise(sorted(fields))))  # as they are given, or sorted by name
    beside = dict.fromkeys(pair for pair in permutations(fields, 2) if "layout" in pair)
    usually_beside = [pair for pair in usual if pair in beside]
    for separator in COMMON:
        for a, b in usual | beside:
            yield _moved(fields, word, a, b, separator)
    for separator in RARE:
        for a, b in usually_beside:
            yield _moved(fields, word, a, b, separator)
    for before, after in product(BETWEEN_NAMED, AFTER_A_NAME):
        for a, b in beside if after != "=" else usual | beside:
            yield _moved(fields, word, a, b, f"{before}{b}{after}")
        for a, b in usually_beside:
            yield _moved(fields, word, a, b, f"{before}{b[0]}{after}")
    for before, after in product(BETWEEN_NAMED, RARE_AFTER_A_NAME):
        for a, b in usually_beside:
            yield _moved(fields, word, a, b, f"{before}{b}{after}")


def _marked_separators(fields: Texts, word: Sequence[str]) -> Iterator[Pair]:
    """Pairs for a separator that is doubled in a field, or has a backslash before it, which itself has none."""
    detail = "Separators and backslashes at the ends of fields, divided between them in another way, give the same key."
    a, b, c = word[:3]
    for separator in COMMON[1:]:
        for before, after in (("dtype", "layout"), ("layout", "positions"), ("layout", "model")):
            one = {**fields, before: a + separator, after: b}
            two = {**fields, before: a, after: separator + b}
            yield Pair(Question([7], one), Question([7], two), detail, bugs.KEY_SEPARATOR_IN_FIELD)
        for last in ("positions", "model"):
            one = {**fields, "dtype": f"{a}\\", "layout": b, last: f"{c}{separator}{a}"}
            two = {**fields, "dtype": f"{a}{separator}{b}", "layout": f"{c}\\", last: a}
            yield Pair(Question([7], one), Question([7], two), detail, bugs.KEY_SEPARATOR_IN_FIELD)


def _replaced_separators(fields: Texts, word: Sequence[str]) -> Iterator[Pair]:
    """Pairs for a separator that is taken out of a field, or replaced there."""
    for separator, field in product(COMMON[1:], ("model", "tenant")):
        one = Question([7], {**fields, field: word[0] + separator + word[1]})
        for other in INSTEAD:
            if other != separator:
                detail = (
                    f"With something else in place of a mark between two words of the {field}, the key is the same."
                )
                two = one.having(**{field: word[0] + other + word[1]})
                yield Pair(one, two, detail, bugs.KEY_SEPARATOR_REPLACED)


def _moved(fields: Texts, word: Sequence[str], a: str, b: str, border: str) -> Pair:
    """The same letters, divided between fields a and b at another place."""
    left, middle, right = word[:3]
    one = Question([7], {**fields, a: f"{left}{border}{middle}", b: right})
    two = Question([7], {**fields, a: left, b: f"{middle}{border}{right}"})
    holding = ", when they hold the separator too" if border else ""
    detail = f"The same letters, divided between {a} and {b} at another place{holding}, give the same key."
    return Pair(one, two, detail, _bug(border))


def _bug(border: str) -> Bug:
    return bugs.KEY_SEPARATOR_IN_FIELD if border else bugs.KEY_RUNS_TOGETHER


def _ids_and_fields(fields: Texts, word: Sequence[str]) -> Iterator[Pair]:
    for separator in COMMON[:8]:
        for field in fields:
            detail = f"An id written at the end or start of the {field} instead gives the same key."
            texts = {**fields, field: word[0]}
            for text, ids in (
                (f"{word[0]}{separator}1", [1, 2, 3] if separator else [12, 3]),
                (f"1{separator}{word[0]}", [2, 3, 1] if separator else [2, 31]),
            ):
                one, two = Question([2, 3], {**fields, field: text}), Question(ids, texts)
                yield Pair(one, two, detail, _bug(separator))


def readable_pairs(key: str, fields: Texts, word: Sequence[str]) -> list[Pair]:
    """The same for what stands between two fields in a key that can be read."""
    places = sorted((key.find(value), name) for name, value in fields.items() if value in key)
    pairs = []
    for (at, a), (then, b) in pairwise(places):
        border = key[at + len(fields[a]) : then]
        if len(border) <= LONGEST_BORDER:
            pairs.append(_moved(fields, word, a, b, border))
    return pairs
