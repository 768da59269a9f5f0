"""The environment that nbgrader runs in."""

from __future__ import annotations

import os
import sysconfig
import warnings


def put_own_programs_on_path() -> None:
    """Make the programs of this Python environment found first, also when its folder was not activated."""
    own = sysconfig.get_path("scripts")
    parts = os.environ.get("PATH", "").split(os.pathsep)
    if parts[0] != own:
        os.environ["PATH"] = os.pathsep.join([own, *(p for p in parts if p and p != own)])


def silence_known_warnings() -> None:
    """nbgrader's models make recent SQLAlchemy releases warn at every new submission, of nothing that matters here."""
    warnings.filterwarnings("ignore", message="Object of type .* not in session", module=r"nbgrader\.api")
