"""The table in samples.py, tested."""

import pytest

from autograder.judge.cases import Cases
from autograder.stages.chat_model.chat import TEXTS, clear_conversation
from autograder.stages.sample_tests import SampleTable
from autograder.stages.samples import Right, Wrong, submissions_of


class TestChatModel(SampleTable):
    stage = "chat-model"


def test_there_are_enough_of_them():
    samples = submissions_of("chat-model")
    assert sum(isinstance(s, Wrong) for s in samples) >= 40
    assert sum(isinstance(s, Right) for s in samples) >= 6


@pytest.mark.parametrize("kind", ["ends", "other"])
def test_an_answer_that_ends_by_itself_has_ids_enough_to_tell_when_each_is_called(kind):
    for seed in range(20):
        first = clear_conversation(Cases(seed, "chat-reuse"), TEXTS[:3], kind).turns[0]
        assert len(first.new_ids) == 3
