"""Turns an error into one sentence on the terminal and an exit status."""

from __future__ import annotations

import sys

from autograder.toolkit.errors import UserError as UserError

EXIT_FAILED = 1  # the command ran, and found something wrong
EXIT_USAGE = 2  # the command could not run as asked
EXIT_STOPPED = 130  # typer's status for an interrupt from the keyboard


def report(error: BaseException) -> int:
    """Print the error's sentence to stderr and return the exit status; raises any other error."""
    if not isinstance(error, UserError):
        raise error
    print(f"autograder: {error}", file=sys.stderr)
    return EXIT_USAGE
