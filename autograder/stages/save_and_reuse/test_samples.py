"""The table in samples.py, tested."""

from autograder.stages.sample_tests import SampleTable


class TestSaveAndReuse(SampleTable):
    stage = "save-and-reuse"
