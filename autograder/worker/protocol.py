"""Frames and values on the pipe between the grader and the worker.

A frame is a 4-byte big-endian length and a msgpack document. Arrays travel as an extension: dtype, shape, raw
bytes. Nothing on the pipe can name a class or a function, so decoding a hostile frame can only fail.
"""

from __future__ import annotations

import math
import struct
from typing import Any, BinaryIO

import msgpack
import numpy as np

MAX_FRAME_BYTES = 128 * 2**20
HEAD_BYTES = 4  # a frame's length
MAX_VALUES = 300_000  # in one message; an array or a string counts as one
ARRAY_CODE = 1
ARRAY_DTYPES = frozenset(
    np.dtype(name).str for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")
)
_MAX_NDIM = 8


class ProtocolError(Exception):
    """The data from the pipe is not a valid frame."""


def _encode_extra(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        array = np.array(value, dtype=value.dtype.newbyteorder("="), order="C", copy=True, subok=False)
        if array.dtype.str not in ARRAY_DTYPES:
            raise TypeError(f"arrays of dtype {array.dtype} do not travel")
        header = msgpack.packb([array.dtype.str, list(array.shape)])
        return msgpack.ExtType(ARRAY_CODE, struct.pack(">I", len(header)) + header + array.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"values of type {type(value).__name__} do not travel")


def _decode_extra(code: int, data: bytes) -> np.ndarray:
    if code != ARRAY_CODE or len(data) < 4:
        raise ProtocolError("unknown extension")
    (size,) = struct.unpack(">I", data[:4])
    header = msgpack.unpackb(data[4 : 4 + size], max_array_len=_MAX_NDIM, max_map_len=0, max_ext_len=0)
    if not (isinstance(header, list) and len(header) == 2 and isinstance(header[1], list)):
        raise ProtocolError("bad array header")
    dtype, shape = header
    if dtype not in ARRAY_DTYPES or not all(type(n) is int and 0 <= n <= MAX_FRAME_BYTES for n in shape):
        raise ProtocolError("bad array header")
    if len(data) - 4 - size != math.prod(shape) * np.dtype(dtype).itemsize:
        raise ProtocolError("the array's bytes do not fit its shape")
    return np.frombuffer(data, dtype, math.prod(shape), 4 + size).reshape(shape).copy()


def encode(message: Any) -> bytes:
    """The frame of a message that consists of None, bool, int, float, str, bytes, list, dict and arrays."""
    body = msgpack.packb(message, default=_encode_extra)
    if len(body) > MAX_FRAME_BYTES:
        raise ProtocolError(f"a message of {len(body):,} bytes is over the limit of {MAX_FRAME_BYTES:,}")
    return struct.pack(">I", len(body)) + body


def decode(body: bytes) -> Any:
    """The message in a frame's body; raises ProtocolError if it is malformed."""
    _expect_few_values(body)
    try:
        return msgpack.unpackb(body, ext_hook=_decode_extra, strict_map_key=False)
    except ProtocolError:
        raise
    except Exception as error:
        raise ProtocolError(f"not a message: {type(error).__name__}") from None


def _expect_few_values(body: bytes) -> None:
    """Raise ProtocolError for a body that would become millions of Python objects, each far larger than its byte."""
    if len(body) <= MAX_VALUES:  # each takes at least a byte
        return
    at = count = 0
    while at < len(body):
        count += 1
        if count > MAX_VALUES:
            raise ProtocolError(f"a message of more than {MAX_VALUES:,} values")
        first = body[at]
        if 0xA0 <= first < 0xC0:  # a short string, its length in the same byte
            at += 1 + (first & 0x1F)
        elif first in _SIZED:  # a string, bytes or an extension, after its length
            width, more = _SIZED[first]
            at += 1 + width + more + int.from_bytes(body[at + 1 : at + 1 + width], "big")
        else:
            at += _FIXED.get(first, 1)


# MessagePack's first bytes: how many bytes a value takes (a list or a dict counts without what is in it), and, where
# that varies, the width of its length and what follows the length besides the content.
_FIXED = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_FIXED |= {0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18, 0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_SIZED |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}


def read_frame(stream: BinaryIO, max_bytes: int = MAX_FRAME_BYTES) -> bytes | None:
    """The next frame's body, or None at the end of the stream; raises ProtocolError if it is too large or cut off."""
    head = _read_exactly(stream, HEAD_BYTES)
    if head is None:
        return None
    body = _read_exactly(stream, body_size(head, max_bytes))
    if body is None:
        raise ProtocolError("the stream ended inside a frame")
    return body


def body_size(head: bytes, max_bytes: int = MAX_FRAME_BYTES) -> int:
    """The length of a frame's body, from its first four bytes; raises ProtocolError if it is too large or cut off."""
    if len(head) != HEAD_BYTES:
        raise ProtocolError("the stream ended inside a frame")
    (size,) = struct.unpack(">I", head)
    if size > max_bytes:
        raise ProtocolError(f"a frame of {size:,} bytes is over the limit of {max_bytes:,}")
    return size


def _read_exactly(stream: BinaryIO, size: int) -> bytes | None:
    chunks, missing = [], size
    while missing:
        chunk = stream.read(min(missing, 2**20))
        if not chunk:
            if chunks:
                raise ProtocolError("the stream ended inside a frame")
            return None
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)
