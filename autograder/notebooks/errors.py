"""The errors of notebooks and stage scripts; each message is one sentence with the remedy."""

from __future__ import annotations

from autograder.plain_text import one_line
from autograder.toolkit.errors import UserError


class NotebookError(UserError, ValueError):
    """A notebook cannot be used. Jupyter shows the message alone, without a traceback through this package.

    The message is one line that is safe to show in a terminal, whatever the file's name is.
    """

    def __init__(self, message: str):
        super().__init__(one_line(message, 2000))

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


class BuildError(UserError, ValueError):
    """The assignments cannot be built; the message names the script and the cell."""
