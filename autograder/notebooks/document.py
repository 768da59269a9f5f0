"""Reads any notebook file: whatever program saved it, of any format version, with or without metadata.

Only the standard library is used, so that `autograder test` starts at once. Nothing in the file is executed.
"""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.notebooks.errors import NotebookError

MAX_BYTES = 64 * 2**20
MAX_CELLS = 20_000
MAX_LISTS, MAX_COMMAS = 10**6, 5 * 10**6  # a parsed value takes about a hundred bytes, and a file holds many
_CODE, _MARKDOWN, _RAW = "code", "markdown", "raw"
CHECK_CALL = re.compile(r"""^autograder\.check\(\s*["']([\w-]+)["']\s*\)""", re.MULTILINE)
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True)
class DocumentCell:
    """A cell of a submitted notebook, with what its metadata claims; none of it is trusted."""

    index: int  # its place in the notebook, from 0
    type: str  # "code", "markdown" or "raw"
    source: str
    grade_id: str | None = None
    cell_id: str | None = None
    tags: tuple[str, ...] = ()
    is_grade: bool = False
    is_solution: bool = False

    @property
    def place(self) -> str:
        """What to call the cell if it has no name."""
        return f"cell {self.index + 1}"

    @property
    def check_id(self) -> str | None:
        """The id of the check that this cell calls, if it calls one."""
        match = CHECK_CALL.search(self.source) if self.type == _CODE else None
        return match.group(1) if match else None


@dataclass(frozen=True)
class Document:
    """A notebook as read. language: of its kernel, "python" if the file does not say."""

    cells: tuple[DocumentCell, ...]
    language: str = "python"
    skipped: int = 0  # entries of the cell list that are not cells


def read_document(path: str | Path) -> Document:
    """Read an .ipynb file; raises NotebookError if that is not possible."""
    path = Path(path)
    return parse_document(read_bytes(path), path.name)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that may be a notebook; raises NotebookError if it cannot be read or is too large."""
    try:
        if not path.is_file():
            raise NotebookError(f"{path.name} is not there; save the notebook under this name.")
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise NotebookError(
                f"{path.name} is {size / 2**20:.0f} MB, more than {MAX_BYTES // 2**20} MB; "
                "clear the outputs of all cells and save it again."
            )
        return path.read_bytes()
    except OSError as error:
        raise NotebookError(
            f"{path.name} cannot be opened ({error.strerror or error}); let this account read it."
        ) from None


def decode_text(data: bytes, name: str) -> str:
    """The file's text, with Unix line ends and without a byte order mark."""
    encoding = next((e for bom, e in _BOMS if data.startswith(bom)), "utf-8")
    try:
        return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise NotebookError(f"{name} is not a text file in UTF-8, so it is no notebook; use the .ipynb file.") from None


def parse_document(data: bytes, name: str) -> Document:
    """The document in an .ipynb file's bytes."""
    if data.count(b"{") + data.count(b"[") > MAX_LISTS or data.count(b",") > MAX_COMMAS:
        raise NotebookError(f"{name} holds too many values; clear the outputs of all cells and save it again.")
    return document_of(_parse_json(decode_text(data, name), name), name)


def document_of(notebook: Any, name: str) -> Document:
    """The document in a notebook's JSON, of format version 3, 4 or later."""
    if not isinstance(notebook, dict):
        raise NotebookError(f"{name} is not a notebook; use the .ipynb file.")
    entries = _cell_list(notebook)
    if entries is None:
        raise NotebookError(f"{name} has no list of cells, so it is not a notebook; submit the .ipynb file.")
    if len(entries) > MAX_CELLS:
        raise NotebookError(
            f"{name} has {len(entries)} cells, more than {MAX_CELLS}; submit the notebook of the course."
        )
    cells = [_cell(index, entry) for index, entry in enumerate(entries)]
    kept = tuple(cell for cell in cells if cell is not None)
    return Document(kept, _language(notebook), len(cells) - len(kept))


def _parse_json(text: str, name: str) -> Any:
    if not text.strip():
        raise NotebookError(f"{name} is empty; save the notebook again.")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        hint = (
            "; it holds the markers of a merge conflict"
            if re.search(r"^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE)
            else ""
        )
        raise NotebookError(
            f"{name} is not valid JSON (line {error.lineno}){hint}, and JupyterLab cannot open it either; use an "
            "intact copy, such as the one in .ipynb_checkpoints."
        ) from None
    except (RecursionError, ValueError):
        raise NotebookError(f"{name} is not a notebook that can be read; use an intact copy of it.") from None


def _cell_list(notebook: dict[str, Any]) -> list[Any] | None:
    cells = notebook.get("cells")
    if isinstance(cells, list):
        return cells
    worksheets = notebook.get("worksheets")  # format version 3
    if isinstance(worksheets, list):
        found = [sheet.get("cells") for sheet in worksheets if isinstance(sheet, dict)]
        return [cell for cells in found if isinstance(cells, list) for cell in cells]
    return None


def _cell(index: int, entry: Any) -> DocumentCell | None:
    if not isinstance(entry, dict):
        return None
    metadata = _dict(entry.get("metadata"))
    nbgrader = _dict(metadata.get("nbgrader"))
    tags = metadata.get("tags")
    kind = entry.get("cell_type")
    return DocumentCell(
        index=index,
        type=kind if kind in (_CODE, _RAW) else _MARKDOWN,  # version 3 also has "heading" and "html"
        source=_source(entry),
        grade_id=_string(nbgrader.get("grade_id")),
        cell_id=_string(entry.get("id")),
        tags=tuple(t for t in tags if isinstance(t, str)) if isinstance(tags, list) else (),
        is_grade=nbgrader.get("grade") is True,
        is_solution=nbgrader.get("solution") is True,
    )


def _source(entry: dict[str, Any]) -> str:
    source = entry.get("source", entry.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return ""
    source = source.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return source.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate cannot be written to a file


def _language(notebook: dict[str, Any]) -> str:
    metadata = _dict(notebook.get("metadata"))
    spec, info = _dict(metadata.get("kernelspec")), _dict(metadata.get("language_info"))
    said = _string(spec.get("language")) or _string(info.get("name"))
    return "python" if said is None or said.lower() in ("python", "ipython") else said


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
