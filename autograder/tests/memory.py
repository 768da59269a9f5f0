"""The peak memory of a block of code."""

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

_SELF = Path("/proc/self")


@contextlib.contextmanager
def peak_growth():
    """Its `bytes`, once the block is over: the most by which this process was larger in it than before.

    The system's own peak is of the whole life of a process, in which earlier tests may have taken as much.
    """
    if not (_SELF / "clear_refs").exists():
        pytest.skip("only Linux can forget a peak")
    (_SELF / "clear_refs").write_text("5")
    before, growth = _status("VmRSS"), SimpleNamespace(bytes=None)
    yield growth
    growth.bytes = _status("VmHWM") - before


def _status(name):
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", (_SELF / "status").read_text())[1])
