"""The environment that nbgrader runs in."""

from __future__ import annotations

import os
import sys
import sysconfig
import warnings


def put_own_programs_on_path() -> None:
    """Put the programs of this Python environment first on PATH, even if the environment is not activated."""
    own = sysconfig.get_path("scripts")
    parts = os.environ.get("PATH", "").split(os.pathsep)
    if parts[0] != own:
        os.environ["PATH"] = os.pathsep.join([own, *(p for p in parts if p and p != own)])


def silence_known_warnings() -> None:
    """Silence a harmless warning that nbgrader's models cause in recent SQLAlchemy releases at each new submission."""
    warnings.filterwarnings("ignore", message="Object of type .* not in session", module=r"nbgrader\.api")


def import_nbgrader() -> None:
    """Import nbgrader in half the time.

    The other half goes into rfc3987_syntax, which jsonschema imports if it is installed, to check the format "iri". No
    schema of a notebook uses that format.
    """
    if "nbgrader" in sys.modules:
        return
    absent = "rfc3987_syntax" not in sys.modules
    if absent:
        sys.modules["rfc3987_syntax"] = None  # an import of it fails with ImportError
    try:
        import nbgrader  # noqa: F401
    finally:
        if absent:
            del sys.modules["rfc3987_syntax"]
