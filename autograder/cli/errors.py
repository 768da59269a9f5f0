"""Turns an error into one sentence on the terminal and an exit status."""

from __future__ import annotations

import sys

EXIT_FAILED = 1  # the command ran, and found something wrong
EXIT_USAGE = 2  # the command could not run as asked
EXIT_STOPPED = 130  # typer's status for an interrupt from the keyboard


class UserError(Exception):
    """An error that the user can fix; its message is one sentence with the remedy."""


# Errors of other modules whose messages are sentences for the user. Looked up by name, so that none is imported here.
_SENTENCES = (
    ("autograder.stages", "UnknownStage"),
    ("autograder.toolkit.model.config", "ModelError"),
    ("autograder.course_secret", "SeedError"),
    ("autograder.sandbox.isolation", "SandboxMissing"),
    ("autograder.notebooks.errors", "BuildError"),
    ("autograder.notebooks.errors", "NotebookError"),
)


def is_for_people(error: BaseException) -> bool:
    """Whether the error's message is a sentence with a remedy."""
    kinds = [UserError]
    for module, name in _SENTENCES:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type):
            kinds.append(kind)
    return isinstance(error, tuple(kinds))


def report(error: BaseException) -> int:
    """Print the error's sentence to stderr and return the exit status; raises any other error."""
    if not is_for_people(error):
        raise error
    print(f"autograder: {error}", file=sys.stderr)
    return EXIT_USAGE
