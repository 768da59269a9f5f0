"""Waiting for other threads and processes."""

import time


def wait_until(condition, seconds=10.0):
    """Whether the condition becomes true within `seconds`."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
