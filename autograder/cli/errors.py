"""The one place where an error becomes one sentence on the terminal and an exit status."""

from __future__ import annotations

import sys

EXIT_FAILED = 1  # the command did its work, and what it looked at is not right
EXIT_USAGE = 2  # the command could not do its work as asked
EXIT_STOPPED = 130  # typer's, for an interrupt from the keyboard


class UserError(Exception):
    """Something the person at the keyboard can put right; its text is one sentence with the remedy."""


# Errors of other parts that are already sentences for a person. Looked up by name, so that nothing is imported for it.
_SENTENCES = (
    ("autograder.stages", "UnknownStage"),
    ("autograder.toolkit.model.config", "ModelError"),
    ("autograder.course_secret", "SeedError"),
    ("autograder.sandbox.isolation", "SandboxMissing"),
    ("autograder.notebooks.errors", "BuildError"),
    ("autograder.notebooks.errors", "NotebookError"),
)


def is_for_people(error: BaseException) -> bool:
    """Whether the text of this error is a sentence with a remedy."""
    kinds = [UserError]
    for module, name in _SENTENCES:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type):
            kinds.append(kind)
    return isinstance(error, tuple(kinds))


def report(error: BaseException) -> int:
    """Print the error's sentence to stderr and give the exit status; raises what is not for people."""
    if not is_for_people(error):
        raise error
    print(f"autograder: {error}", file=sys.stderr)
    return EXIT_USAGE
