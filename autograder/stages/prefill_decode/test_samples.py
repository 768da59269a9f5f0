"""The table in samples.py, tested."""

from autograder.stages.sample_tests import SampleTable


class TestPrefillDecode(SampleTable):
    stage = "prefill-decode"
