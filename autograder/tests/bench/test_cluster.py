"""The benchmark of a cluster: what a run includes, and the simulated class."""

import importlib.util
import os

import pytest

from autograder.stages import find_stage

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="distributed is not installed"),
    pytest.mark.skipif(os.name != "posix", reason="starts a cluster"),
]
STAGE = find_stage("save-and-reuse")


def test_a_measured_run_excludes_its_first_tenth_and_earlier_grading():
    from autograder.bench.cluster import Meter, Sample

    meter = Meter()
    meter.samples = [Sample(n + 1, 0.0, 0.0, 1.0) for n in range(5)]
    meter.samples += [Sample(6 + n, 10.0 + n, 0.1 * n, 100.0) for n in range(20)]
    run = meter.run(4, before=5)
    assert (run.submissions, run.seconds) == (17, 17.0)
    assert run.throughput == 1.0 and run.parent == pytest.approx(0.1)


def test_a_simulated_class_that_is_killed_and_run_again_loses_nothing(tmp_path):
    from autograder.bench.large_class import simulate

    found = simulate(tmp_path, STAGE, 40, threads=4, seconds=0.01)
    assert 0 < found.before < 40 and found.wrong == 0 and found.stored == 40
    assert found.run.workers == 4 and found.run.submissions > 0
