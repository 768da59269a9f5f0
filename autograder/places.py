"""The paths of the course's repository, and the name of the file that makes a folder a course."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # of a clone; the installed package has no solutions/ and no course/ in it
SOLUTIONS = ROOT / "solutions"
CONFIG = "nbgrader_config.py"
