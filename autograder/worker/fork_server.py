"""The process in the sandbox that the student's processes are forked from, one after the other.

Starting Python and NumPy takes longer than most checks, so that is done once for many submissions. Nothing of a
student's ever runs in this process, and what runs in a forked one can neither signal nor trace it; its memory and its
files are closed to them. Before the next one is forked, the last has ended and what it left in folders is gone. Where
something of it stays, this process ends, and the sandbox with it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import sys
from typing import BinaryIO

BEGIN, END, WAIT = b"b", b"e", b"w"  # a new process, on two pipes; end it; wait until it ends by itself
DONE = b"\0"  # the answer to END; to WAIT it is the exit status, as a shell counts
_PR_SET_DUMPABLE = 4  # 0: what is in /proc/PID of a process is not for its own user either, see proc(5)
_WRITABLE = ("/tmp", "/dev/shm")  # in the sandbox, with the working directory


def serve(control: socket.socket, requests: BinaryIO, replies: BinaryIO) -> None:
    """Do what is asked for on `control`, and end with it. Returns in a new process, with its pipes as the streams."""
    there = {folder: set(os.listdir(folder)) for folder in (*_WRITABLE, os.getcwd())}
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    child: int | None = None
    while True:
        asked, pipes, _, _ = socket.recv_fds(control, 1, 2)
        if asked == BEGIN:
            child = os.fork()
            if child == 0:
                control.close()
                prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
                os.dup2(pipes[0], requests.fileno())
                os.dup2(pipes[1], replies.fileno())
                _differ()
            for pipe in pipes:
                os.close(pipe)
            if child == 0:
                return
        elif asked == WAIT and child:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            child = None
            control.send(bytes([code if code >= 0 else 128 - code]))
        elif asked == END:
            if child:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                child = None
            for folder, before in there.items():
                _empty(folder, but=before)
            control.send(DONE)
        else:  # the grader is gone
            os._exit(0)


def _empty(folder: str, but: set[str]) -> None:
    for name in set(os.listdir(folder)) - but:
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _differ() -> None:
    """What differs by chance between two processes differs here too: addresses, and the states of generators."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # Python's own has seen to itself at the fork
    for size, many in enumerate(os.urandom(32)):  # Python keeps objects of each 16 bytes more in places of their own
        _kept.extend(bytes(16 * size - 31) if size > 1 else 10**9 + i if size else object() for i in range(many))


_kept: list[object] = []
