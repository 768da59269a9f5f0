"""The memory of processes, in MB."""

from __future__ import annotations

import contextlib
import threading

import psutil


def resident_mb(process: psutil.Process) -> float:
    return process.memory_info().rss / 2**20


class PeakMemory:
    """Samples the memory of a process and of all its descendants ten times a second; keeps the peaks, in MB."""

    def __init__(self, pid: int):
        self.own = self.largest = 0.0
        self._process = psutil.Process(pid)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(0.1):
            with contextlib.suppress(psutil.Error):
                self.own = max(self.own, resident_mb(self._process))
                command = self._process.cmdline()  # a child that has only just been forked still shares its memory
                for child in self._process.children(recursive=True):
                    with contextlib.suppress(psutil.Error):  # it has ended
                        if child.cmdline() != command:
                            self.largest = max(self.largest, resident_mb(child))
