"""The table in samples.py, tested."""

from autograder.stages.sample_tests import SampleTable


class TestBlockCache(SampleTable):
    stage = "block-cache"
    same_for_all = frozenset({"keys-full-blocks", "keys-chained", "keys-context"})  # any keys that differ will do
