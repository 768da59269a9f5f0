"""The grader's end of a worker's two pipes: sends and receives frames by a deadline, whatever the worker does.

A worker may read nothing, write a byte a second, announce gigabytes or close its end; `send` and `receive` still return
by their deadline. Data that was not requested stays in the pipe.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
import time
from typing import Any, BinaryIO

from autograder.worker import protocol

_PIECE = 2**16  # what a pipe holds


class PolledPipes:
    """Waits for the pipes themselves, so no thread has to wake up for a frame. Needs poll, which Windows lacks."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO):
        self._requests, self._replies = requests, replies
        for end in (requests, replies):
            os.set_blocking(end.fileno(), False)  # this end only; the worker's own waits as ever
        self._writable, self._readable = select.poll(), select.poll()
        self._writable.register(requests, select.POLLOUT)
        self._readable.register(replies, select.POLLIN)

    def send(self, frame: bytes, deadline: float) -> None:
        """Write the frame; raises TimeoutError if the worker does not read it in time. A closed pipe is no error."""
        rest = memoryview(frame)
        while rest:
            try:
                rest = rest[os.write(self._requests.fileno(), rest) :]
            except BlockingIOError:
                _wait(self._writable, deadline)
            except (OSError, ValueError):  # the worker closed its end, or has been closed
                return

    def receive(self, deadline: float, max_bytes: int = protocol.MAX_FRAME_BYTES) -> bytes | None:
        """The next frame's body, or None at the end of the stream; raises ProtocolError or TimeoutError.

        A frame that announces more than max_bytes is not read.
        """
        head = self._read(protocol.HEAD_BYTES, deadline)
        if not head:
            return None
        size = protocol.body_size(head, max_bytes)
        body = self._read(size, deadline)
        if len(body) < size:
            raise protocol.ProtocolError("the stream ended inside a frame")
        return body

    def _read(self, size: int, deadline: float) -> bytes:
        """This many bytes, or fewer at the end of the stream."""
        data = bytearray()  # grows with what arrives, not with what was announced
        while len(data) < size:
            _wait(self._readable, deadline)  # even if data is available: a steady flow must end, too
            piece = os.read(self._replies.fileno(), min(size - len(data), _PIECE))
            if not piece:
                break
            data += piece
        return bytes(data)

    def close(self) -> None:
        """Close the pipes. Call it after the worker has ended."""
        with contextlib.suppress(OSError):
            self._requests.close()
        self._replies.close()


def _wait(poll: Any, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise TimeoutError


class ThreadedPipes:
    """The same with a thread that reads, and one for each long frame to write."""

    _SHORT = 2**12  # what an empty pipe takes at once, on every platform

    def __init__(self, requests: BinaryIO, replies: BinaryIO):
        self._requests, self._replies = requests, replies
        self._asked: queue.Queue[int | None] = queue.Queue()  # the maximum length of each awaited frame
        self._frames: queue.Queue[bytes | Exception | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, frame: bytes, deadline: float) -> None:
        if len(frame) <= self._SHORT:
            self._write(frame)
        else:  # a worker that does not read must not stop the grader
            threading.Thread(target=self._write, args=(frame,), daemon=True).start()

    def receive(self, deadline: float, max_bytes: int = protocol.MAX_FRAME_BYTES) -> bytes | None:
        self._asked.put(max_bytes)
        try:
            frame = self._frames.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(frame, Exception):
            raise frame
        return frame

    def _write(self, frame: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._requests.write(frame)
            self._requests.flush()

    def _read(self) -> None:
        """Read one frame for each `receive`; data that was not requested stays in the pipe."""
        while (max_bytes := self._asked.get()) is not None:
            try:
                self._frames.put(protocol.read_frame(self._replies, max_bytes))
            except (protocol.ProtocolError, OSError, ValueError) as error:
                self._frames.put(error)

    def close(self) -> None:
        self._asked.put(None)
        with contextlib.suppress(OSError):
            self._requests.close()
        self._reader.join(timeout=2)
        if not self._reader.is_alive():  # a pipe that another process holds open cannot be closed while it is read
            self._replies.close()


Pipes = PolledPipes if hasattr(select, "poll") else ThreadedPipes
