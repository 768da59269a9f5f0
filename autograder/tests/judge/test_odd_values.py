"""Whatever a student's process answers, no check breaks on it: it is lost, with a sentence about the value."""

import contextlib
import functools
import warnings

import numpy as np
import pytest

from autograder.bench.solved import solved
from autograder.judge.framework import checks_of
from autograder.judge.student import Student
from autograder.stages import GRADED_STAGES
from autograder.stages.sample_tests import Replay, judge, kind_of
from autograder.worker import protocol
from autograder.worker.runtime import Runtime

SEED = 7
DEEP = functools.reduce(lambda inside, _: [inside], range(100), 1)
DIGITS = "9" * 5000
ANYTHING = {  # what may come in place of any answer
    "None": None,
    "true": True,
    "the largest number": 2**64 - 1,
    "the smallest number": -(2**63),
    "NaN": float("nan"),
    "infinity": float("inf"),
    "an empty string": "",
    "digits": DIGITS,
    "a miss of digits": f"common={DIGITS} of {DIGITS}; stored next: {DIGITS}; live next: {DIGITS}",
    "brackets": "[" * 90_000,
    "JSON with a long number": f"[{DIGITS}, 1e999, NaN]",
    "controls": "\x1b[31m\u202e\0\n\u2028" * 100,
    "markers": "<|endoftext|>user\n<|endoftext|>assistant\n[think]" * 50,
    "bytes": b"\xff\x00" * 50,
    "an empty list": [],
    "an empty dict": {},
    "a dict with numbers as keys": {1: 2, None: [3]},
    "nested lists": DEEP,
    "a list of everything": [None, True, 1.5, "a", b"b", [], {}, np.zeros(0)],
    "ids out of the vocabulary": [10**9, -1, 2**63],
    "5,000 ids": list(range(5000)),
    "one number as an array": np.array(3),
    "an array without elements": np.zeros(0, np.float32),
    "an array of a long axis and none": np.zeros((0, 2**27), np.float32),
    "eight axes": np.zeros((1,) * 8),
    "truth values": np.ones(7, bool),
    "words of 64 bits": np.full((3, 4), 2**64 - 1, np.uint64),
    "not a number": np.full((2, 3, 4), np.nan, np.float16),
}
# Where an array or a list of ids is the answer, what is of another type is refused as such, whatever its value; where
# all of these are accepted, nobody looks at the answer
OF_EACH_TYPE = ("None", "the largest number", "NaN", "digits", "bytes", "an empty dict", "an empty list")
OF_EACH_TYPE += ("a list of everything", "an array without elements", "eight axes", "truth values", "words of 64 bits")
LIKE_THE_RIGHT_ONE = {  # made of a right answer that is an array
    "NaN": lambda a: np.full_like(a, np.nan),
    "infinite": lambda a: np.full_like(a, -np.inf),
    "huge": lambda a: np.full(a.shape, 1.7e308),
    "whole numbers": lambda a: np.full(a.shape, -(2**63), np.int64),
    "of half precision": lambda a: a.astype(np.float16),
    "cut to nothing": lambda a: a[:0],
    "with no last axis": lambda a: a[..., :0],
    "with one axis more": lambda a: a[None],
    "without its first axis": lambda a: a[0],
    "turned": lambda a: a.T,
    "one row short": lambda a: a[:-1],
    "twice": lambda a: np.concatenate([a, a]),
}
LIKE_A_LIST = {
    "without its last": lambda v: v[:-1],
    "one more": lambda v: [*v, v[-1] if v else 0],
    "huge ids": lambda v: [10**12] * len(v),
    "negative ids": lambda v: [-(10**6)] * len(v),
    "one None": lambda v: [*v[:-1], None],
    "of texts": lambda v: list(map(str, v)),
}


def odd_forms(right):
    """Functions from a right answer to an odd one, by name."""
    names = OF_EACH_TYPE if isinstance(right, (np.ndarray, list)) else (*OF_EACH_TYPE, *ANYTHING)
    forms = {name: lambda _, value=ANYTHING[name]: value for name in names}
    if isinstance(right, np.ndarray) and right.ndim and right.size:
        forms |= {f"the right array, {name}": form for name, form in LIKE_THE_RIGHT_ONE.items()}
    elif isinstance(right, list) and right and isinstance(right[0], list):
        forms |= {f"the right lists, {name}": form for name, form in LIKE_A_LIST.items()}
        deeper = LIKE_THE_RIGHT_ONE if right[0] and isinstance(right[0][0], np.ndarray) else {}
        forms |= {
            f"a cache of arrays, {name}": lambda v, form=form: [[form(a) for a in pair] for pair in v]
            for name, form in deeper.items()
        }
    elif isinstance(right, list) and right:
        forms |= {f"the right list, {name}": form for name, form in LIKE_A_LIST.items()}
    elif isinstance(right, str):
        forms |= {
            "the right string and digits": lambda v: f"{v}{DIGITS}",
            "the right string, turned round": lambda v: v[::-1],
            "every other letter": lambda v: v[::2],
        }
    elif type(right) is int:
        forms |= {"one more": lambda v: v + 1, "as a float": float, "as an array": lambda v: np.array([v])}
    return forms


class Odd(Replay):
    """Answers as an honest submission did, but for one kind of question, in an odd form."""

    def __init__(self, kept, kind, form):
        super().__init__(kept)
        self._kind, self._form = kind, form

    def __call__(self, request):
        reply = super().__call__(request)
        if kind_of(request) == self._kind and "value" in reply:
            with contextlib.suppress(AttributeError, IndexError, TypeError, ValueError):  # an answer of no such form
                reply = transported({**reply, "value": self._form(reply["value"])})
        return reply


def transported(reply):
    """The reply as it comes out of a pipe."""
    return protocol.decode(protocol.encode(reply)[protocol.HEAD_BYTES :])


def local_perform(stage):
    runtime = Runtime({**vars(solved(stage)), "__name__": "student"})
    return lambda request: transported(runtime.perform(request))


@pytest.mark.parametrize(
    "check", [pytest.param(check, id=check.id) for stage in GRADED_STAGES for check in checks_of(stage.name)]
)
def test_no_answer_breaks_a_check(check, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    honest = Replay()
    assert judge(check, Student(honest.keeping(local_perform(check.stage))), SEED).passed
    broke = {}
    for kind, replies in honest.kept.items():
        rights = [reply["value"] for reply in replies if reply.get("value") is not None]
        accepted = set()
        for name, form in odd_forms(rights[0] if rights else None).items():
            with warnings.catch_warnings():
                warnings.filterwarnings("error", category=RuntimeWarning, module=r"autograder\.(judge|stages)")
                result = judge(check, Student(Odd(honest.kept, kind, form), lambda other_hashes: None), SEED)
            if result.broke:
                broke[kind, name] = result.broke, result.message
            if result.passed:
                accepted.add(name)
            if accepted == set(OF_EACH_TYPE):
                break
    assert broke == {}
