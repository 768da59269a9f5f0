"""The table in samples.py, tested."""

from autograder.stages.sample_tests import SampleTable, answered, asked, grade  # noqa: F401 - the fixtures
from autograder.stages.samples import Right, Wrong, submissions_of


class TestChatModel(SampleTable):
    stage = "chat-model"


def test_there_are_enough_of_them():
    samples = submissions_of("chat-model")
    assert sum(isinstance(s, Wrong) for s in samples) >= 40
    assert sum(isinstance(s, Right) for s in samples) >= 6
