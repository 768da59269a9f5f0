"""The grader's end of a worker's two pipes: frames, and misbehaving workers."""

import os
import struct
import threading
import time

import pytest

from autograder.sandbox import pipes, processes
from autograder.sandbox.client import Cell, Worker
from autograder.worker import protocol

HERE = [pipes.ThreadedPipes, *([pipes.PolledPipes] if hasattr(pipes.select, "poll") else [])]


class Ends:
    """Pipes, and the file numbers at the worker's end."""

    def __init__(self, kind):
        self.requests, to_worker = os.pipe()
        from_worker, self.replies = os.pipe()
        self.pipes = kind(os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb"))

    def close(self, *ends):
        for end in ends or ("requests", "replies"):
            if getattr(self, end) is not None:
                os.close(getattr(self, end))
                setattr(self, end, None)


@pytest.fixture(params=HERE, ids=lambda kind: kind.__name__)
def ends(request):
    ends = Ends(request.param)
    yield ends
    ends.close()
    ends.pipes.close()


def soon(seconds=0.3):
    return time.monotonic() + seconds


def frame(body):
    return struct.pack(">I", len(body)) + body


def test_frames_arrive_in_both_directions_and_in_order(ends):
    ends.pipes.send(frame(b"question"), soon())
    assert os.read(ends.requests, 100) == frame(b"question")
    os.write(ends.replies, frame(b"one") + frame(b"") + frame(b"three"))
    assert [ends.pipes.receive(soon()) for _ in range(3)] == [b"one", b"", b"three"]


def test_a_frame_longer_than_the_pipe_arrives(ends):
    body = os.urandom(2**20)

    def worker():
        with open(ends.requests, "rb", closefd=False) as requests:
            echo = frame(protocol.read_frame(requests))
        with open(ends.replies, "wb", closefd=False) as replies:
            replies.write(echo)

    thread = threading.Thread(target=worker)
    thread.start()
    ends.pipes.send(frame(body), soon(10))
    assert ends.pipes.receive(soon(10)) == body
    thread.join()


def test_a_worker_that_does_not_read_does_not_stop_the_grader(ends):
    deadline = soon()
    with pytest.raises(TimeoutError):
        ends.pipes.send(frame(bytes(2**20)), deadline)
        ends.pipes.receive(deadline)
    assert time.monotonic() < deadline + 5


def test_a_silent_worker_has_until_the_deadline(ends):
    deadline = soon()
    with pytest.raises(TimeoutError):
        ends.pipes.receive(deadline)
    assert deadline <= time.monotonic() < deadline + 5


@pytest.mark.parametrize(("piece", "pause"), [(b"\0", 0.05), (bytes(2**16), 0.0)])
def test_an_endless_frame_has_until_the_deadline(ends, piece, pause):
    os.write(ends.replies, struct.pack(">I", protocol.MAX_FRAME_BYTES))
    stop = threading.Event()
    os.set_blocking(ends.replies, False)

    def drip():
        while not stop.is_set():
            try:
                os.write(ends.replies, piece)
            except BlockingIOError:
                time.sleep(0.001)
            time.sleep(pause)

    thread = threading.Thread(target=drip)
    thread.start()
    deadline = soon(0.05)  # a steady flow would bring the whole frame in some more tenths of a second
    try:
        with pytest.raises(TimeoutError):
            ends.pipes.receive(deadline)
        assert time.monotonic() < deadline + 5
    finally:
        stop.set()
        thread.join()


def test_the_end_of_the_stream_differs_from_a_frame_cut_off(ends):
    os.write(ends.replies, frame(b"last"))
    ends.close("replies")
    assert ends.pipes.receive(soon()) == b"last"
    assert ends.pipes.receive(soon()) is None


@pytest.mark.parametrize(
    "start", [b"\0\0", struct.pack(">I", 9) + b"half", struct.pack(">I", protocol.MAX_FRAME_BYTES + 1)]
)
def test_invalid_frames_are_errors(ends, start):
    os.write(ends.replies, start)
    ends.close("replies")
    with pytest.raises(protocol.ProtocolError):
        ends.pipes.receive(soon())


def test_a_worker_that_closed_its_end_makes_no_error_when_it_is_written_to(ends):
    ends.close("requests")
    ends.pipes.send(frame(b"short"), soon())
    ends.pipes.send(frame(bytes(2**20)), soon())


@pytest.mark.parametrize("kind", HERE)
def test_a_worker_answers_over_either(kind, monkeypatch):
    monkeypatch.setattr(processes, "Pipes", kind)
    with Worker() as worker:
        assert worker.run_cell(Cell("long", "x = 1" + "\n" * 2**20)) is None
        assert worker.run_cell(Cell("short", "y = x")) is None
