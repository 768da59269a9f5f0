"""Imports go one way only, as the contracts in pyproject.toml say."""

import subprocess
import sys
from pathlib import Path

from autograder.places import ROOT


def test_imports_go_one_way():
    program = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
