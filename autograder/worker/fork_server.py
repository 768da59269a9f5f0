"""The process in the sandbox that the student's processes are forked from, one after the other.

Starting Python and NumPy takes longer than most checks, so that is done once for many submissions. Nothing of a
student's ever runs in this process, and what runs in a forked one can neither signal nor trace it; its memory and its
files are closed to them. Each has a folder of its own. Before the next one is forked, the last has ended and all that
it wrote is gone. Where something of it stays, this process ends, and the sandbox with it.
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
DONE = b"\0"  # the answer to END; to WAIT it is the exit status, as a shell counts
_PR_SET_DUMPABLE = 4  # 0: what is in /proc/PID of a process is not for its own user either, see proc(5)


def serve(control: socket.socket, requests: BinaryIO, replies: BinaryIO) -> None:
    """Do what is asked for on `control`, and end with it. Returns in a new process, with its pipes as the streams.

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


_SIZES = 32  # Python keeps objects of up to 16, 32, ... 512 bytes in places of their own
_kept: list[object] = []


def _reseed() -> None:
    """What differs by chance between two processes differs here too: addresses, and the states of generators."""
    np.random.seed()  # Python's own has seen to itself at the fork
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
