"""What can go wrong with a notebook or a stage's script, each told in one sentence with the remedy."""

from __future__ import annotations


class NotebookError(ValueError):
    """A notebook cannot be used. Jupyter shows the message alone, without a traceback through this package."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


class BuildError(ValueError):
    """The assignments cannot be built; the message names the script and the cell."""
