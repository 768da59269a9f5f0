"""The bugs that only the checks of failure-modes meet, by the functions in which they are met."""

from autograder.judge.bugs.failure_modes import ids, key, prompt, template

__all__ = ["ids", "key", "prompt", "template"]
