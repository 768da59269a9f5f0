"""A Dask cluster on this machine, for measurements and tests; its scheduler and workers listen on loopback only."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


class LocalCluster:
    """Processes of their own, so that one can be killed."""

    def __init__(self, folder: Path, threads: int):
        """threads: of each worker."""
        self.folder, self._threads = folder, threads
        self.environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(folder)}
        self.workers: list[subprocess.Popen[str]] = []
        self._log = (folder / "dask.log").open("a")
        options = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
        self.scheduler = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_scheduler", *options],
            env=self.environment, cwd=folder, stdout=self._log, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        for line in self.scheduler.stderr:
            if found := re.search(r"Scheduler at:\s+(tcp://\S+)", line):
                self.address = found[1]
                break
        self._drain = subprocess.Popen(["cat"], stdin=self.scheduler.stderr, stdout=self._log)

    def add(self, number: int = 1) -> None:
        options = ["--nthreads", str(self._threads), "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        options += ["--local-directory", str(self.folder)]
        for _ in range(number):
            command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, *options]
            self.workers.append(
                subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=self._log, stderr=self._log)
            )

    def wait(self, seconds: float = 120) -> None:
        """Wait until every worker that was added and is still running has connected."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(sum(w.poll() is None for w in self.workers), timeout=seconds)

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()  # the graders of a worker see that it is gone, and end by themselves
        for process in (*self.workers, self.scheduler, self._drain):
            process.wait()
        self._log.close()


def exit_on_sigterm() -> None:
    """Make SIGTERM raise SystemExit, so that the processes that this one started end with it."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


@contextlib.contextmanager
def local_cluster(folder: Path, workers: int, threads: int = 1) -> Iterator[LocalCluster]:
    """A cluster with this many workers, until the block ends."""
    cluster = LocalCluster(folder, threads)
    try:
        cluster.add(workers)
        cluster.wait()
        yield cluster
    finally:
        cluster.close()
