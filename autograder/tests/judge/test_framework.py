"""Checks as a whole: what every stage's list of checks must be like."""

import warnings

import numpy as np
import pytest

from autograder.judge.framework import Check, checks_of, find_check, run_check
from autograder.judge.student import local_student
from autograder.stages import GRADED_STAGES

STAGES = [pytest.param(s, id=s.name) for s in GRADED_STAGES]


@pytest.mark.parametrize("stage", STAGES)
def test_a_function_is_watched_by_one_check_at_most(stage):
    """Changing an input costs one check and no other."""
    watched = [name for check in checks_of(stage.name) for name in check.watches]
    assert sorted(watched) == sorted(set(watched))
    assert watched  # somebody looks


@pytest.mark.parametrize("stage", STAGES)
def test_every_check_has_points_a_title_and_a_property(stage):
    for check in checks_of(stage.name):
        assert check.points >= 1 and check.graded
        assert check.title and not check.title.endswith(".")
        assert check.run.__doc__ and check.property.endswith(".")


def test_a_check_of_any_stage_is_found_by_its_id():
    assert find_check("position-continues").stage == "save-and-reuse"
    with pytest.raises(ValueError, match="There is no check 'nonsense'"):
        find_check("nonsense")


def test_numpy_warns_of_what_the_student_computes_and_not_of_what_the_judge_does_with_it():
    def run(student, cases):
        """It overflows."""
        np.exp(student.array("f") * 1000)

    check = Check("kv-cache", "overflows", 1, "It overflows", run)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for f in (lambda: np.ones(3), lambda: np.ones(3) / np.zeros(3)):
            assert run_check(check, local_student({"f": f}), seed=0).passed
    assert [str(w.message) for w in warned] == ["divide by zero encountered in divide"]
