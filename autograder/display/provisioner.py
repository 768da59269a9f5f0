"""Starts the kernel of a display run where the grader's workers run: in bubblewrap, else with the platform's limits.

The kernel has no network and may make no socket. So its sockets are made here, in a folder that it cannot see, and
handed to it already listening; all it may do is to accept who connects to them, which is this process alone.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import zmq.asyncio
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerBase
from traitlets import Bool, Unicode

from autograder.sandbox.bubblewrap import INSIDE, INSIDE_GIVEN, bwrap_command
from autograder.sandbox.processes import environment
from autograder.worker import limits

SOCKETS = "kernel"  # their names are kernel-1, kernel-2, ... in the working directory
PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4}
_HEARTBEAT = {"hb_port": 5}  # which nobody answers: whether the kernel lives is seen by its process
_MAX_MESSAGE = 32 * 2**20  # bytes; who sends a longer one is disconnected
_MAX_WAITING = 2  # messages that came and were not yet read, of each socket


class SandboxProvisioner(KernelProvisionerBase):
    """Launches autograder.worker.kernel. `sandboxed` is what the grader found out about this machine."""

    given = Unicode(None, allow_none=True)
    sandboxed = Bool(False)
    _process: subprocess.Popen | None = None

    @property
    def has_process(self) -> bool:
        return self._process is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        manager = self.parent
        manager.transport, manager.ip = "ipc", SOCKETS
        for name, number in (PORTS | _HEARTBEAT).items():
            setattr(manager, name, number)
        self.connection_info = manager.get_connection_info()
        command = [sys.executable, "-I", "-B", "-m", "autograder.worker.kernel", str(limits.memory_bytes())]
        given = Path(self.given) if self.given else None
        if given is not None:
            command.append(INSIDE_GIVEN if self.sandboxed else str(given))
        return {"cmd": bwrap_command(given) + command if self.sandboxed else command}

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        listening = {port: _listening(f"{SOCKETS}-{port}") for port in PORTS.values()}
        files = {port: listener.fileno() for port, listener in listening.items()}
        home = os.getcwd()
        self._process = subprocess.Popen(
            cmd,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=files.values(),
            env=environment(INSIDE if self.sandboxed else home),
        )
        for listener in listening.values():
            listener.close()
        key = self.connection_info["key"].decode()
        told = {"connection": {**self.connection_info, "key": key}, "files": files}
        with self._process.stdin as pipe:
            pipe.write(json.dumps(told).encode())
        return self.connection_info

    async def poll(self) -> int | None:
        return self._process.poll() if self._process else 0

    async def wait(self) -> int | None:
        return self._process.wait() if self._process else 0

    async def send_signal(self, signum: int) -> None:
        """No signal reaches into the sandbox; a kernel is ended, never interrupted."""

    async def kill(self, restart: bool = False) -> None:
        if self._process:
            self._process.kill()

    async def terminate(self, restart: bool = False) -> None:
        await self.kill(restart)

    async def cleanup(self, restart: bool = False) -> None:
        """Nothing: the folder with the sockets is the grader's."""


class Manager(AsyncKernelManager):
    """jupyter_client's, with our provisioner whatever kernels are installed, and clients that take no flood."""

    def client(self, **kwargs: Any) -> Any:
        context = zmq.asyncio.Context()
        context.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE)
        context.setsockopt(zmq.RCVHWM, _MAX_WAITING)
        return super().client(context=context, **kwargs)


def manager(given: str | None, sandboxed: bool) -> Manager:
    """A manager of one sandboxed kernel; its sockets are in the working directory."""
    made = Manager(connection_file="connection.json")
    made.provisioner = SandboxProvisioner(parent=made, given=given, sandboxed=sandboxed)
    return made


def _listening(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()
    listener.setblocking(False)
    return listener
