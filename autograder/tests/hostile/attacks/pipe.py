"""Attacks on the pipe between the grader and the worker."""

# ruff: noqa: E501 - the attacks are short programs in strings

from autograder.tests.hostile.attacks.attack import ZEROS, Attack, every

# What finds the pipe to the grader, and the number of the question that is being answered.
FIND = """
import os, stat, struct, sys
import msgpack

def is_pipe(n):
    try: return stat.S_ISFIFO(os.fstat(n).st_mode)
    except OSError: return False

pipes = [n for n in range(3, 64) if is_pipe(n)]
pipe = max(pipes)

def frame(body):
    return struct.pack('>I', len(body)) + body

def question():
    at = sys._getframe()
    while at is not None:
        if 'number' in at.f_locals and 'request' in at.f_locals:
            return at.f_locals['number']['number'], at.f_locals['request']
        at = at.f_back
    return None, {}
"""
LONG_MESSAGE = """
from autograder.worker import runtime
runtime.Runtime.perform = lambda self, request: {
    'error': {'kind': [1], 'type': {'x': 1}, 'message': '1' * 2**24, 'refusal': 1, 'where': {'cell': [], 'line': 10**18, 'text': {}}}}
"""
BAD_ARRAYS = """
for head in ([['O', [3]]], [['<f4', [2**40]]], [['<f4', [1] * 99]], ['x', 'y'], [['<f4', [-1]]]):
    ext = msgpack.packb(head)
    os.write(pipe, frame(msgpack.packb({'value': msgpack.ExtType(1, struct.pack('>I', len(ext)) + ext)})))
"""
FLOOD = """
body = frame(msgpack.packb({'value': bytes(2**24)}))
for _ in range(4): os.write(pipe, body)
"""
DRIP = """
import time
def write_prefix_cache(path, saved, prefix_ids, weights):
    os.write(pipe, struct.pack('>I', 2**20))
    for _ in range(10**4): os.write(pipe, b'\\0'); time.sleep(0.05)
"""


def on_the_pipe(name: str, about: str, attack: str) -> Attack:
    return Attack(name, about, every(attack + "\nreturn None", FIND))


PIPE = [
    on_the_pipe("pipe-garbage", "Bytes that are no frame.", "os.write(pipe, os.urandom(4096)); os._exit(1)"),
    on_the_pipe("pipe-oversized", "A frame said to be of 4 GB.", "os.write(pipe, struct.pack('>I', 2**32 - 1))"),
    on_the_pipe("pipe-deep", "Lists in lists, a hundred thousand deep.", "os.write(pipe, frame(b'\\x91' * 100000))"),
    on_the_pipe(
        "pipe-many",
        "Ten million empty dicts, one byte each.",
        "os.write(pipe, frame(b'\\xdd' + struct.pack('>I', 10**7) + b'\\x80' * 10**7))",
    ),
    on_the_pipe("pipe-flood", "Large replies that nobody asked for, as fast as they go.", FLOOD),
    on_the_pipe("pipe-closed", "The pipe closed.", "for n in pipes: os.close(n)"),
    Attack("pipe-drip", "A reply of one byte a moment.", ZEROS | {"write-prefix-cache": FIND + DRIP}),
    on_the_pipe(
        "pipe-forged",
        "A reply of its own with the question's number, before the worker's.",
        "number, request = question()\nos.write(pipe, frame(msgpack.packb({'value': 1, 'number': number})))",
    ),
    on_the_pipe(
        "pipe-ahead",
        "Replies to the next hundred questions.",
        "for n in range(100): os.write(pipe, frame(msgpack.packb({'value': 1, 'number': n})))",
    ),
    on_the_pipe(
        "pipe-bad-arrays", "Arrays of a million dimensions, of objects, of fewer bytes than they say.", BAD_ARRAYS
    ),
    Attack(
        "pipe-long-message",
        "An error whose message is megabytes of digits, and whose place is a list.",
        ZEROS,
        LONG_MESSAGE,
    ),
]
