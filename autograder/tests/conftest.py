"""How the tests are shared out among processes, so that none is left with a long file when the others are done."""

import os

import pytest

_LONGEST_FIRST = ("display/test_run", "test_submissions", "grading", "hostile", "display", "broken", "cli")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than there are processors: half of the time, a test waits for a deadline or for another process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + 1


def pytest_collection_modifyitems(items):
    """Files that take minutes begin first. A file's tests stay together and in their order."""

    def rank(item):
        path = item.path.relative_to(os.path.dirname(__file__)).as_posix()
        return next((i for i, start in enumerate(_LONGEST_FIRST) if path.startswith(start)), len(_LONGEST_FIRST))

    items.sort(key=rank)
