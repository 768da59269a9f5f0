"""Configures pytest: parallel processes, the folder that they share, and assertion rewriting for sample_tests."""

import os
import shutil
import tempfile

import pytest

from autograder.grading.environment import import_nbgrader
from autograder.toolkit.threads import processors

import_nbgrader()

pytest.register_assert_rewrite("autograder.stages.sample_tests")


def pytest_configure(config):
    """The folder for what is built once for all processes of a run; they inherit its name."""
    if "AUTOGRADER_TESTS" not in os.environ:
        os.environ["AUTOGRADER_TESTS"] = tempfile.mkdtemp(prefix="autograder-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop("AUTOGRADER_TESTS")))
    os.environ.setdefault("AUTOGRADER_JOBS", "1")  # tests run side by side already, and each grader takes a second


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than there are processors, because many tests wait for a deadline or another process."""
    return processors() + 1
