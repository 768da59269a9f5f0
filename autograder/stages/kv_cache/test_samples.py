"""The table in samples.py, tested."""

from autograder.stages.sample_tests import SampleTable


class TestKVCache(SampleTable):
    stage = "kv-cache"
