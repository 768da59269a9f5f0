"""The bugs that only the checks of failure-modes meet, by the functions in which they are met."""

from autograder.stages.failure_modes.bugs import ids, key, prompt, template

__all__ = ["ids", "key", "prompt", "template"]
