"""How the tests are shared out among processes, and what says more where an assertion fails."""

import pytest

from autograder.toolkit.threads import processors

pytest.register_assert_rewrite("autograder.stages.sample_tests")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than there are processors: many a test waits for a deadline or for another process."""
    return processors() + 1
