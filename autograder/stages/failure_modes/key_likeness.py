"""Texts and ids that are alike, and that a key confuses if it tidies them up, or adds them up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from autograder.stages.failure_modes.bugs import key as bugs
from autograder.stages.failure_modes.keys import Pair, Question

# What stands between two words of a text, in one way and in another
BETWEEN_WORDS = (("  ", " "), (" ", ""), ("\n", " "), ("\t", " "), ("//", "/"), ("/./", "/"), ("/x/../", "/"))
FOR_NOTHING = ("default", "None", "none", "null", "public", "-")  # what may be put in place of an empty text
FACTORS = (31, 33, 37)  # of letters; with a larger one, two ASCII letters cannot make up for each other
FACTORS_OF_IDS = (*FACTORS, 131, 257, 1009)
N_PARITIES = 2048  # so many make sums equal modulo 2**64, whatever odd factor they have


def likeness_pairs(word: Sequence[str]) -> list[Pair]:
    """Pairs of texts, and of lists of ids, that are easily taken for one."""
    first = Question([7], {field: field for field in bugs.KEY_FIELDS})
    return [*_tidied(first, word), *_summed_up(first), *_added_up(first)]


def empty_pairs() -> Iterator[Pair]:
    """Pairs for an empty text that is left out, or that something else stands for."""
    alike = Question([7], dict.fromkeys(bugs.KEY_FIELDS, "x"))
    lacking = {field: alike.having(**{field: ""}) for field in alike.texts}
    for a, b in pairwise(lacking):
        detail = f"With an empty {a}, and with an empty {b} instead, the key is the same."
        yield Pair(lacking[a], lacking[b], detail, bugs.KEY_EMPTY_LOST)
    for field, one in lacking.items():
        for text in FOR_NOTHING:
            detail = f"With an empty {field}, the key is the same as with a certain other one."
            yield Pair(one, one.having(**{field: text}), detail, bugs.KEY_EMPTY_LOST)


def _tidied(first: Question, word: Sequence[str]) -> Iterator[Pair]:
    for field, value in first.texts.items():
        detail = f"With a NUL character behind the {field}, the key is the same."
        yield Pair(first, first.having(**{field: f"{value}\0"}), detail, bugs.KEY_NUL_LOST)
        path = first.having(**{field: "a/b"}), first.having(**{field: "a/b/"})
        yield Pair(*path, f"With a slash at the end of the {field}, the key is the same.", bugs.KEY_NORMALIZED)
        for between, other in BETWEEN_WORDS:
            one, two = (first.having(**{field: word[0] + mark + word[1]}) for mark in (between, other))
            what = "slashes" if "/" in between else "blanks"
            detail = f"With other {what} between two words of the {field}, the key is the same."
            yield Pair(one, two, detail, bugs.KEY_NORMALIZED)


def _added_up(first: Question) -> Iterator[Pair]:
    """What a sum with the powers of a factor does not tell apart: one more here, and the factor less behind it."""

    def pair(what: str, one: Question, two: Question) -> Pair:
        return Pair(
            one, two, f"Certain {what} that make up for each other in a sum give the same key.", bugs.KEY_ADDED_UP
        )

    for factor in FACTORS:
        yield pair("letters", first.having(tenant="ano"), first.having(tenant=f"b{chr(ord('n') - factor)}o"))
    for factor in FACTORS_OF_IDS:
        yield pair("ids", first.with_ids([4000, 4000, 5]), first.with_ids([4001, 4000 - factor, 5]))
    parities = [bin(i).count("1") % 2 for i in range(N_PARITIES)]
    one, two = ("".join("ab"[p ^ turned] for p in parities) for turned in (0, 1))
    yield pair("letters", first.having(tenant=one), first.having(tenant=two))
    many, others = ([400 + (p ^ turned) for p in parities] for turned in (0, 1))
    yield pair("ids", first.with_ids(many), first.with_ids(others))


def _summed_up(first: Question) -> Iterator[Pair]:
    """Ids with the same number, sum, sum weighted by place, first and last one."""
    one, two = first.with_ids([9, 50, 60, 70, 9]), first.with_ids([9, 51, 58, 71, 9])
    detail = "Two lists of ids with the same sums, and the same ids at their ends, give the same key."
    yield Pair(one, two, detail, bugs.KEY_IGNORES_ID_ORDER)
