"""The base of the errors that a user can fix."""

from __future__ import annotations


class UserError(Exception):
    """An error that the user can fix; its message is one sentence with the remedy."""
