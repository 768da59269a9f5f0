"""The grader's side of a display run: starts its process, takes what it sends, and ends it with all that it started."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.display.outputs import MAX_CELL, MAX_NOTEBOOK, Kept
from autograder.sandbox.client import Cell
from autograder.sandbox.isolation import end_group, isolation
from autograder.sandbox.pipes import Pipes
from autograder.worker import protocol

SECONDS = 60.0
_MORE_SECONDS = 5.0  # until a process that did not end by itself is ended


@dataclass(frozen=True)
class Shown:
    """The outputs of each cell, by its label, and why there are not all of them."""

    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    problem: str = ""


class DisplayRun:
    """The run over one notebook, begun when it is made. `shown` waits for its end."""

    def __init__(self, cells: list[Cell], given: Path | None, seconds: float):
        self._cells, self._seconds = cells, seconds
        self._until = time.monotonic() + seconds
        self._request = {
            "cells": [cell.source for cell in cells],
            "given": str(given.resolve()) if given else None,
            "sandboxed": isolation().complete,  # as this process found it, so that it cannot change now
            "until": self._until,
        }
        self._folder = tempfile.TemporaryDirectory(prefix="autograder-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-m", "autograder.display"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            start_new_session=True,
        )
        self._pipes = Pipes(self._process.stdin, self._process.stdout)

    def shown(self) -> Shown:
        """What the cells showed, when all have run, or the time is over, or nothing more can come."""
        outputs: dict[str, list[dict[str, Any]]] = {}
        try:
            self._pipes.send(protocol.encode(self._request), self._until + _MORE_SECONDS)
            problem = self._collect(outputs)
        except Exception as error:
            problem = f"the process that reads them failed ({type(error).__name__})"
        finally:
            self.close()
        if problem and time.monotonic() >= self._until:
            problem = f"the {self._seconds:g} s for them are used up"
        return Shown(outputs, problem)

    def _collect(self, outputs: dict[str, list[dict[str, Any]]]) -> str:
        """Take what is sent into outputs until the end; gives the reason when that is not the end of the cells.

        The process has read what a student's kernel sent, so its word is not taken: all goes through Kept once more.
        """
        room = MAX_NOTEBOOK
        for cell in self._cells:
            message = self._next()
            if message is None:
                return "the process that reads them ended"
            if "problem" in message:
                return str(message["problem"])[:200]
            kept = Kept(min(MAX_CELL, room))
            for output in message["outputs"]:
                kept.add(output["output_type"], output)
            kept.cut = kept.cut or message["cut"] is True
            room -= kept.used
            if kept.all():
                outputs[cell.label] = kept.all()
        last = self._next()
        return "the process that reads them ended" if last is None else str(last["problem"])[:200]

    def _next(self) -> Any:
        frame = self._pipes.receive(self._until + _MORE_SECONDS)
        return None if frame is None else protocol.decode(frame)

    @property
    def closed(self) -> bool:
        return self._process.stdin.closed

    def close(self) -> None:
        """End the process and its kernel; remove its folder."""
        if self.closed:
            return
        end_group(self._process)
        self._pipes.close()
        self._folder.cleanup()
