"""What a cell defines, and what it is called for students, whom JupyterLab shows no id."""

from __future__ import annotations

import re

_DEFINED = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+([^\W\d]\w*)", re.MULTILINE)


def defined_names(source: str) -> list[str]:
    """The functions and classes defined at the top level of a cell, read from its text: the cell need not compile."""
    return list(dict.fromkeys(_DEFINED.findall(source)))


def seen_as(source: str, otherwise: str) -> str:
    """The cell by what it defines first, "the cell with LayerCache"; `otherwise` where it defines nothing."""
    return f"the cell with {names[0]}" if (names := defined_names(source)) else otherwise
