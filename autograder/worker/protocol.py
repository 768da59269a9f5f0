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

MAX_FRAME_BYTES = 256 * 2**20
ARRAY_CODE = 1
ARRAY_DTYPES = frozenset(
    np.dtype(name).str for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")
)
_MAX_NDIM = 8


class ProtocolError(Exception):
    """What came over the pipe is not a valid frame."""


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
    body = data[4 + size :]
    if len(body) != math.prod(shape) * np.dtype(dtype).itemsize:
        raise ProtocolError("the array's bytes do not fit its shape")
    return np.frombuffer(body, dtype).reshape(shape).copy()


def encode(message: Any) -> bytes:
    """The frame of a message made of None, bool, int, float, str, bytes, list, dict and arrays."""
    body = msgpack.packb(message, default=_encode_extra)
    if len(body) > MAX_FRAME_BYTES:
        raise ProtocolError(f"a message of {len(body)} bytes is over the limit of {MAX_FRAME_BYTES}")
    return struct.pack(">I", len(body)) + body


def decode(body: bytes) -> Any:
    """The message in a frame's body; ProtocolError for anything malformed."""
    try:
        return msgpack.unpackb(body, ext_hook=_decode_extra, strict_map_key=False)
    except ProtocolError:
        raise
    except Exception as error:
        raise ProtocolError(f"not a message: {type(error).__name__}") from None


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next frame's body, None at the end of the stream; ProtocolError when it is too large or cut off."""
    head = _read_exactly(stream, 4)
    if head is None:
        return None
    (size,) = struct.unpack(">I", head)
    if size > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame of {size} bytes is over the limit of {MAX_FRAME_BYTES}")
    body = _read_exactly(stream, size)
    if body is None:
        raise ProtocolError("the stream ended inside a frame")
    return body


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
