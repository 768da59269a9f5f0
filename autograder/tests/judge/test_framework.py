"""Checks as a whole: what every stage's list of checks must be like."""

import pytest

from autograder.judge.framework import checks_of, find_check
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
        assert check.points >= 1
        assert check.title and not check.title.endswith(".")
        assert check.run.__doc__ and check.property.endswith(".")


def test_a_check_is_found_by_its_id_in_whatever_stage():
    assert find_check("position-continues").stage == "save-and-reuse"
    with pytest.raises(ValueError, match="There is no check 'nonsense'"):
        find_check("nonsense")
