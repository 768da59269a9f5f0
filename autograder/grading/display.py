"""The display run: a submission's own cells run once more, for the text and charts on its page of feedback.

It is off unless the course asks for it, comes after the scores, and decides none. The cells run in a new process of
the worker's sandbox, under the worker's limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.sandbox.client import Cell, Worker, WorkerGone
from autograder.worker.outputs import MAX_CELL, MAX_NOTEBOOK, Kept

SECONDS = 60.0


@dataclass(frozen=True)
class Shown:
    """The outputs of each cell, by its label, and why there are not all of them."""

    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    problem: str = ""


def show(cells: list[Cell], given: Path | None, start_worker: Callable[[Path | None], Worker], seconds: float) -> Shown:
    """Run the cells, for so many seconds at most. Whatever goes wrong is the result's `problem`."""
    until = time.monotonic() + seconds
    outputs: dict[str, list[dict[str, Any]]] = {}
    room = MAX_NOTEBOOK
    try:
        with start_worker(given) as worker:
            for cell in cells:
                request = {"op": "show_cell", "label": cell.label, "source": cell.source, "max_bytes": 4 * MAX_CELL}
                reply = worker.request(request, doing="running its cells", seconds=max(0.1, until - time.monotonic()))
                kept = _looked_through(reply["value"], min(MAX_CELL, room))
                room -= kept.used
                if kept.all():
                    outputs[cell.label] = kept.all()
    except WorkerGone as gone:
        return Shown(outputs, f"the {seconds:g} s for them are used up" if gone.timed_out else gone.reason)
    except Exception as error:  # of the sandbox, or of a reply that is none
        return Shown(outputs, f"the process that runs them failed ({type(error).__name__})")
    return Shown(outputs)


def _looked_through(value: Any, room: int) -> Kept:
    """What may be kept of a reply. It comes from the student's process, so its word is not taken."""
    kept = Kept(room)
    for output in value["outputs"]:
        kept.add(output["output_type"], output)
    kept.cut = kept.cut or value["cut"] is True
    return kept
