"""What a failure says of the numbers, and which bug a sweep over many lengths names."""

import numpy as np
import pytest

from autograder.judge.bugs import Bug
from autograder.judge.compare import Sweep, expect_close
from autograder.judge.framework import Failure

ONE, TWO = Bug("one", "one", "It looks like one."), Bug("two", "two", "It looks like two.")
RIGHT = np.zeros(4)


def swept(*wrong, direct=()):
    """The failure of a sweep with (length, {bug: its numbers}) of results that are all ones."""
    sweep = Sweep()
    for length, numbers in wrong:
        suspects = [(bug, lambda n=n: np.full(4, n)) for bug, n in numbers.items()]
        with sweep.at(length):
            sweep.close(np.ones(4), RIGHT, name="x", where="here", suspects=suspects)
    for length, bug in direct:
        with sweep.at(length):
            raise Failure("wrong", bug)
    with pytest.raises(Failure) as caught:
        sweep.finish()
    return caught.value


def test_a_name_explains_the_greatest_length_that_fails():
    assert swept((1, {ONE: 1}), (9, {ONE: 2, TWO: 1})).bug is None  # at 1 and 9 the names differ
    assert swept((1, {ONE: 1, TWO: 1}), (9, {ONE: 2, TWO: 1})).bug == TWO  # at 1 both explain it
    assert swept((1, {ONE: 1}), (9, {})).bug is None


def test_a_name_explains_one_more_of_the_lengths_that_fail():
    assert swept((9, {ONE: 1})).bug == ONE  # there is no other
    assert swept((9, {ONE: 1}), (5, {ONE: 1}), (2, {TWO: 2})).bug == ONE
    assert swept((9, {ONE: 1}), (5, {TWO: 2}), (2, {})).bug is None


def test_a_bug_named_at_a_small_length_does_not_name_the_greatest():
    assert swept(direct=((1, ONE), (9, None))).bug is None
    assert swept(direct=((1, None), (9, ONE))).bug is None
    assert swept(direct=((1, None), (5, ONE), (9, ONE))).bug == ONE
    assert swept(direct=((1, TWO), (9, ONE))).bug is None


@pytest.mark.parametrize(
    ("n_wrong", "value", "said"),
    [
        (1, 5.0, "; less than 1% of its values differ, the first at id 0"),
        (60, 5.0, "; 6% of its values differ, the first at id 0"),
        (1, np.nan, "has 1 value that is not finite, the first at id 0"),
        (2, np.nan, "has 2 values that are not finite, the first at id 0"),
    ],
)
def test_a_difference_is_reported_with_its_size_and_share(n_wrong, value, said):
    actual = np.zeros(1000)
    actual[:n_wrong] = value
    with pytest.raises(Failure, match=f"logits .*{said}"):
        expect_close(actual, np.zeros(1000), name="logits", where="here", axes=("id",))
