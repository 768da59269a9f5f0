"""An output that is a widget where widgets run, and static everywhere else."""

from __future__ import annotations

from typing import Any


class Shown:
    """The value of a cell's last line. Subclasses fill `box` with ipywidgets and define the static output."""

    box: Any  # an ipywidgets widget

    def still(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The MIME bundle, and its metadata, for a page, an editor or a printed notebook without widgets."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        bundle, metadata = self.still()
        live = self.box._repr_mimebundle_() or {}
        live = live[0] if isinstance(live, tuple) else live
        return {**bundle, **{kind: data for kind, data in live.items() if kind != "text/plain"}}, metadata
