"""Whether a hint leads to the change."""

import pytest

from autograder.mutants.hints import function_at, reaches

CELLS = {
    "helpers": "def helper(x):\n    return x\n\ndef other(x):\n    return x\n",
    "kept": "class Kept:\n    def __init__(self):\n        self.n = 0\n    def grow(self):\n        self.n += 1\n",
    "f": "def f(x):\n    y = helper(x)\n    return Kept().grow() + y\n",
}


@pytest.mark.parametrize(
    ("look", "reached"),
    [
        ("Look in f.", {"f"}),
        ("Look in f and other.", {"f", "other"}),
        ("Look in f, and in any function of yours that it calls.", {"f", "helper", "Kept", "Kept.__init__",
         "Kept.grow"}),
        ("Look in Kept.grow.", {"Kept", "Kept.grow"}),
        ("Look in Kept (__init__, grow).", {"Kept", "Kept.__init__", "Kept.grow"}),
        ("Look at line 3 of the cell with f: return Kept().grow() + y", {"f", "Kept", "Kept.__init__", "Kept.grow"}),
        ("Look at line 2 of the cell with f: y = helper(x)", {"f", "helper"}),
        ("Look at line 5 of the cell with Kept: self.n += 1\nThen look in other.", {"Kept", "Kept.grow", "other"}),
        ('Begin with the check "other is right": f builds on helper.', {"f", "helper", "Kept", "Kept.__init__",
         "Kept.grow"}),
    ],
)  # fmt: skip
def test_a_hint_reaches_what_it_names_and_what_that_calls_where_it_says_so(look, reached):
    functions = ("f", "helper", "other", "Kept", "Kept.__init__", "Kept.grow")
    assert {function for function in functions if reaches(look, function, CELLS)} == reached


def test_a_change_outside_of_any_function_is_reached():
    assert reaches("Look in f.", "", CELLS)


@pytest.mark.parametrize(("text", "function"), [("y =", "f"), ("\n    return Kept", "f"), ("self.n +=", "Kept.grow")])
def test_the_function_of_a_text_is_the_innermost(text, function):
    assert function_at(CELLS["kept" if "self" in text else "f"], text) == function
