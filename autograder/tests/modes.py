"""The sandbox modes that this machine has, so that tests can run in each of them."""

import pytest

from autograder.sandbox.client import Cell
from autograder.sandbox.isolation import MODES, Isolation, try_mode
from autograder.worker.limits import has_system_call_filter

ISOLATIONS = {mode: found for mode in MODES if isinstance(found := try_mode(mode), Isolation)}
filtered = pytest.mark.skipif(not has_system_call_filter(), reason="no system call filter on this machine")


def works(mode):
    return pytest.mark.skipif(mode not in ISOLATIONS, reason=f"{mode} does not work here")


def in_each(*modes):
    """Parametrizes a test or fixture by the Isolation of each of these modes; a mode that does not work is skipped."""
    return [pytest.param(ISOLATIONS.get(mode), id=mode, marks=works(mode)) for mode in modes or MODES]


in_bubblewrap = works("bubblewrap")


def ask(worker, expression, setup="import os, sys"):
    """The value of an expression in the worker, as a plain value, or the description of its error."""
    assert worker.run_cell(Cell("ask", f"{setup}\ndef answer():\n    return {expression}\n")) is None
    reply = worker.request({"op": "call", "name": "answer", "returns": "plain", "args": []})
    return reply.get("value", reply.get("error"))
