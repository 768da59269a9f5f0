"""The table in samples.py, tested."""

from autograder.stages.sample_tests import SampleTable, asked, grade  # noqa: F401 - the fixtures


class TestBlockCache(SampleTable):
    stage = "block-cache"
