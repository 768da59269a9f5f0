"""The environment that nbgrader runs in."""

from __future__ import annotations

import os
import sys
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


def import_nbgrader() -> None:
    """Import nbgrader in half the time.

    Half of it goes into rfc3987_syntax, with which jsonschema checks internationalized addresses (the format "iri"),
    as it says itself when the package is not there. No schema of a notebook has such a thing.
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
