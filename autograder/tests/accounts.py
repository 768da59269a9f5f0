"""The accounts that grade in tests: this one and, if it is root, also an ordinary one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autograder.places import ROOT

UID = 65533  # of nobody else's


@dataclass(frozen=True)
class Account:
    """How to run a command as this account: its Python, and its options for subprocess.run."""

    python: str = sys.executable
    options: dict[str, Any] = field(default_factory=dict)
    home: Path | None = None

    def owns(self, folder: Path) -> None:
        """Make it the owner of a folder that the test made, with all its contents."""
        if "user" in self.options:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, UID, UID, follow_symlinks=False)


@contextmanager
def account(name: str) -> Iterator[Account]:
    """This account, or an ordinary one; skips the test if there is no ordinary one."""
    if name == "this":
        yield Account()
        return
    if os.geteuid() != 0:
        pytest.skip("this account is an ordinary one")
    home = Path(tempfile.mkdtemp(prefix="account-"))  # pytest's folders are closed to others
    try:
        home.chmod(0o755)
        options = {"user": UID, "group": UID, "extra_groups": []}
        python = next((p for p in _pythons(home) if _imports(p, options)), None)
        if python is None:
            pytest.skip(
                "an ordinary account can neither use this Python nor another of its version with the packages here"
            )
        made = Account(python, options, home)
        made.owns(home)
        yield made
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _pythons(home: Path) -> Iterator[str]:
    """This Python; then the system's of the same version in an environment that links to what is installed here."""
    yield sys.executable
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    system = shutil.which(version, path="/usr/bin:/usr/local/bin")
    if system is not None and os.path.realpath(system) != os.path.realpath(sys.executable):
        subprocess.run([system, "-m", "venv", "--without-pip", str(home / "env")], check=True, capture_output=True)
        linked = home / "env" / "lib" / version / "site-packages" / "linked.pth"
        linked.write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n", encoding="utf-8")
        yield str(home / "env" / "bin" / "python")


def _imports(python: str, options: dict[str, Any]) -> bool:
    command = [python, "-c", "import autograder.worker.runtime, nbgrader"]
    try:
        return (
            subprocess.run(command, cwd="/", env={"HOME": "/"}, capture_output=True, check=False, **options).returncode
            == 0
        )
    except OSError:
        return False
