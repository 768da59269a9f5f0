"""The display run: runs a submission's cells once more, for the text and charts on its page of feedback.

It is off unless the course turns it on, runs after the scores are decided, and changes none. The cells run in a new
worker process in the same sandbox, under the same limits.
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
    """The outputs of each cell, by its label, and why some are missing, if any are."""

    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    problem: str = ""


def show(cells: list[Cell], given: Path | None, start_worker: Callable[[Path | None], Worker], seconds: float) -> Shown:
    """Run the cells for at most `seconds`. Whatever goes wrong is the result's `problem`."""
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
    except Exception as error:  # from the sandbox, or from a malformed reply
        return Shown(outputs, f"the process that runs them failed ({type(error).__name__})")
    return Shown(outputs)


def _looked_through(value: Any, room: int) -> Kept:
    """The outputs of a reply that may be kept. The student's process sent them, so they are checked again."""
    kept = Kept(room)
    for output in value["outputs"]:
        kept.add(output["output_type"], output)
    kept.cut = kept.cut or value["cut"] is True
    return kept
