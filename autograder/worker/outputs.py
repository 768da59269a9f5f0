"""Keeps the text and PNG pictures that cells show, up to 100 kB per cell."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from typing import Any

MAX_CELL = 100_000  # bytes of one cell's outputs
MAX_NOTEBOOK = 4_000_000  # of all cells together
CUT = "[The rest of this cell's output was left out: there is more than 100 kB of it.]\n"
_EACH = 100  # added to the size of each output, so that empty ones are limited too
_MAX_SHOWN = 2000  # pixels of a picture's side on the page
_MAX_PIXELS = 2**24  # of a picture, which a browser decodes completely

_PNG = b"\x89PNG\r\n\x1a\n"
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.?")
_WRITTEN_OVER = re.compile(r"(?m)^[^\n]*\r(?=[^\r\n])")  # a progress bar returns to the start of its line


class Kept:
    """Collects the outputs of one cell, in nbformat's form. Adding an output never raises."""

    def __init__(self, room: int = MAX_CELL):
        self.outputs: list[dict[str, Any]] = []
        self.cut = False  # whether something was left out
        self.used = 0  # bytes
        self._room = room

    def add(self, kind: Any, content: Any) -> None:
        """Keep the permitted parts of an output of this kind, "stream" or "display_data"."""
        if self.cut or not isinstance(content, dict) or not isinstance(kind, str):
            return
        if kind == "stream":
            self._stream("stderr" if str(content.get("name")) == "stderr" else "stdout", content.get("text"))
        elif kind == "display_data":
            self._display(content.get("data"), content.get("metadata"))

    def all(self) -> list[dict[str, Any]]:
        """The outputs; if some were left out, a last line says so."""
        return [*self.outputs, _stream_output("stderr", CUT)] if self.cut else self.outputs

    def _stream(self, name: str, text: Any) -> None:
        if not isinstance(text, str):
            return
        self.cut = len(text) > 2 * MAX_CELL  # do not process many megabytes for the little that is shown
        text = _shown(text[: 2 * MAX_CELL])
        if not (self.outputs and self.outputs[-1].get("name") == name):
            if not text or self.used + _EACH >= self._room:
                self.cut = self.cut or bool(text)
                return
            self.used += _EACH
            self.outputs.append(_stream_output(name, ""))
        output = self.outputs[-1]
        before = output["text"]
        if "\r" in before[-1:] + text:  # the new text may overwrite the last line
            start = before.rfind("\n") + 1
            self.used -= len(before[start:].encode())
            before, text = before[:start], _WRITTEN_OVER.sub("", before[start:] + text)
        kept = text.encode()[: max(0, self._room - self.used)].decode(errors="ignore")
        self.cut = self.cut or len(kept) < len(text)
        self.used += len(kept.encode())
        output["text"] = before + kept

    def _display(self, data: Any, metadata: Any) -> None:
        data = data if isinstance(data, dict) else {}
        output: dict[str, Any] = {"output_type": "display_data", "data": {}, "metadata": {}}
        text, picture = data.get("text/plain"), data.get("image/png")
        if any(isinstance(value, str) and len(value) > 2 * MAX_CELL for value in (text, picture)):
            self.cut = True
            return
        if isinstance(text, str):
            output["data"]["text/plain"] = _WRITTEN_OVER.sub("", _shown(text))
        if isinstance(picture, str) and (png := _png(picture)) is not None:
            output["data"]["image/png"] = base64.b64encode(png).decode("ascii")
            output["metadata"] = _shown_size(metadata)
        if self.used + _size(output) > self._room:
            self.cut = True
        elif output["data"]:
            self.used += _size(output)
            self.outputs.append(output)


def _stream_output(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def _size(output: dict[str, Any]) -> int:
    """The size of a display output in bytes: its text, and its picture as a file."""
    data = output["data"]
    return _EACH + len(data.get("text/plain", "").encode()) + len(data.get("image/png", "")) * 3 // 4


def _shown(text: str) -> str:
    """The text without escape sequences, control characters and marks of writing direction."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    return "".join(c for c in text if c.isprintable() or c in "\n\t\r")


def _png(text: str) -> bytes | None:
    """The picture's bytes; None if it is not exactly one PNG."""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if _is_png(data) else None


def _is_png(data: bytes) -> bool:
    """Whether the bytes are one complete PNG of a reasonable size: chunks with right checksums, from IHDR to IEND."""
    names, at = [], len(_PNG)
    while data.startswith(_PNG) and at + 12 <= len(data) and names[-1:] != [b"IEND"]:
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data) or zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            return False
        names.append(data[at + 4 : at + 8])
        at = end
    width, height = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    in_order = names[:1] == [b"IHDR"] and b"IDAT" in names and names[-1:] == [b"IEND"]
    return in_order and at == len(data) and 0 < width * height <= _MAX_PIXELS


def _shown_size(metadata: Any) -> dict[str, Any]:
    """The size at which to show the picture, if it is given in whole numbers."""
    said = metadata.get("image/png") if isinstance(metadata, dict) else None
    sizes = [said.get(key) for key in ("width", "height")] if isinstance(said, dict) else []
    if not sizes or not all(type(size) is int and 0 < size <= _MAX_SHOWN for size in sizes):
        return {}
    return {"image/png": dict(zip(("width", "height"), sizes, strict=True))}
