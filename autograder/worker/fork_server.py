"""The process in the sandbox from which the student's processes are forked, one at a time.

Starting Python and NumPy takes longer than most checks, so it is done once for many submissions. No student code ever
runs in this process, and the forked processes can neither signal nor trace it, nor read its memory or files. Each has a
folder of its own. The next one is forked only after the last has ended and its files are removed. If something of it
stays, this process ends, and the sandbox with it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
from typing import BinaryIO

import numpy as np

from autograder.worker.folders import empty
from autograder.worker.limits import end_with_the_parent

BEGIN, END, WAIT = b"b", b"e", b"w"  # a new process, on two pipes; end it; wait until it ends by itself
DONE = b"\0"  # the answer to END; the answer to WAIT is the exit status, as in a shell
_PR_SET_DUMPABLE = 4  # 0: even the process's own user cannot read /proc/PID, see proc(5)


def serve(control: socket.socket, requests: BinaryIO, replies: BinaryIO) -> None:
    """Serve requests on `control` until it closes. Returns only in a new process, whose pipes are its streams.

    A new process works in its home directory, which is below the working directory of this one.
    """
    folder, home = os.getcwd(), os.environ["HOME"]
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    end_with_the_parent()
    child: int | None = None
    while True:
        asked, pipes, _, _ = socket.recv_fds(control, 1, 2)
        if asked == BEGIN:
            os.mkdir(home)
            child = os.fork()
            if child == 0:
                control.close()
                prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
                os.chdir(home)
                os.dup2(pipes[0], requests.fileno())
                os.dup2(pipes[1], replies.fileno())
                _reseed()
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
            empty(folder)
            control.send(DONE)
        else:  # the grader is gone
            os._exit(0)


_SIZES = 32  # Python has separate pools for objects of up to 16, 32, ... 512 bytes
_kept: list[object] = []


def _reseed() -> None:
    """Make addresses and the states of random generators differ, as they do between two ordinary processes."""
    np.random.seed()  # Python's own generator reseeds itself after a fork
    for size, count in enumerate(os.urandom(_SIZES)):
        if size == 0:
            _kept.extend(object() for _ in range(count))
        elif size == 1:
            _kept.extend(10**9 + i for i in range(count))
        else:
            _kept.extend(bytes(16 * size - 31) for _ in range(count))
    for size, count in enumerate(os.urandom(224)):  # of what is larger, free places of the same size are taken first
        _kept.extend(bytes(512 + 16 * size) for _ in range(count % 8))
    _kept.append(mmap.mmap(-1, mmap.PAGESIZE * (1 + os.urandom(1)[0])))  # and the largest lie one below the other
