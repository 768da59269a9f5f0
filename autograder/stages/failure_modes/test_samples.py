"""The table in samples.py, tested."""

from autograder.stages.sample_tests import SampleTable, answered, asked, grade  # noqa: F401 - the fixtures


class TestFailureModes(SampleTable):
    stage = "failure-modes"
    same_for_all = frozenset(
        {"common-prefix", "key-separates", "log-of-candidates", "lookup-longest-entry", "lookup-leaves-a-token"}
    )
