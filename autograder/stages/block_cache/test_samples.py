"""The table in samples.py, tested."""

from autograder.stages.sample_tests import SampleTable, answered, asked, grade  # noqa: F401 - the fixtures


class TestBlockCache(SampleTable):
    stage = "block-cache"
