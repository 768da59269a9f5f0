"""Waiting for what other threads and processes do."""

import time


def wait_until(condition, seconds=10.0):
    """Whether the condition holds, at the latest after so many seconds."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
