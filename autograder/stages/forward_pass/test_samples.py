"""The table in samples.py, tested."""

from autograder.stages.sample_tests import SampleTable


class TestForwardPass(SampleTable):
    stage = "forward-pass"
