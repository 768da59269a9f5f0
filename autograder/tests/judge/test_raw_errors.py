"""Terse errors of Python and NumPy get a phrase that explains them."""

import math

import numpy as np
import pytest

from autograder.judge.student import StudentError, local_student


class Layer:
    keys = property(lambda self: None)

    def store(self, keys):
        self.keys = keys


def recursive(x):
    return 1 + recursive(x)


def read_only(x):
    weights = np.zeros(2)
    weights.setflags(write=False)
    weights += x


@pytest.mark.parametrize(
    ("function", "means"),
    [
        (lambda x: Layer().keys.shape, "keys before the first append"),
        (lambda x: np.zeros((3, 5, 5)) + np.zeros((3, 1, 9)), "agree from the last axis on"),
        (lambda x: np.zeros((2, 3)).__setitem__(slice(1), np.zeros((2, 3))), "it is assigned to"),
        (lambda x: np.zeros((2, 3)) @ np.zeros((2, 3)), "b's last but one"),
        (lambda x: np.dot(np.zeros((2, 3)), np.zeros((2, 3))), "b's last but one"),
        (lambda x: np.zeros((4, 2, 3)) @ np.zeros((2, 3, 2)), "must agree, or be 1 in one"),
        (lambda x: np.float64(x) @ np.zeros((2, 3)), "a function without return"),
        (lambda x: np.einsum("ij,jk->ik", np.zeros((2, 3)), np.zeros((4, 5))), "agree from the last axis on"),
        (lambda x: Layer.store.shape, "parentheses or the line @property"),
        (lambda x: Layer().store.shape, "parentheses or the line @property"),
        (lambda x: np.zeros((2, 3)) - np.zeros((2, 3)).mean(axis=1), "keepdims=True"),
        (lambda x: math.tanh(np.zeros(2)), "take arrays"),
        (lambda x: np.zeros((2, 3, 4)).transpose(1, 0), "each axis of the array once"),
        (lambda x: Layer().store(x), "under another name"),
        (read_only, "make a new array"),
        (recursive, "use a loop"),
    ],
)
def test_a_raw_error_is_explained(function, means):
    with pytest.raises(StudentError) as raised:
        local_student({"f": function}).plain("f", 1)
    assert means in raised.value.cause


def test_numpys_message_about_a_product_is_shown_without_its_signature():
    with pytest.raises(StudentError) as raised:
        local_student({"f": lambda x: np.zeros((2, 3)) @ np.zeros((5, 3))}).plain("f", 1)
    expected = "in a product a @ b, a's last axis is 3 long, and b's last but one is 5 long"
    assert raised.value.sentence == f"f raised ValueError: {expected}."


def test_other_errors_are_unchanged():
    def raises(x):
        raise ValueError("an empty prompt")

    with pytest.raises(StudentError) as raised:
        local_student({"f": raises}).plain("f", 1)
    assert ";" not in raised.value.sentence
