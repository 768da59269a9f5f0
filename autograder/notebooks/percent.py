"""Reads a Python file as cells: the percent format of jupytext, VS Code and Spyder, or one cell for a plain file.

A test checks that it finds the same cells as jupytext in the stage scripts. jupytext itself takes two seconds to
import, too long for `autograder test`.
"""

from __future__ import annotations

import json
import re

from autograder.notebooks.document import Document, DocumentCell

_HEADER = re.compile(r"^# ?%%(?!%)[ \t]*(.*)$")
_KEY = re.compile(r"""(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[\w.+-]+)""")


def parse_python(text: str) -> Document:
    """The document in a Python file's text."""
    cells: list[DocumentCell] = []
    header: str | None = None
    lines: list[str] = []
    for line in [*text.split("\n"), "# %%"]:
        match = _HEADER.match(line)
        if match is None:
            lines.append(line)
            continue
        body = "\n".join(lines)
        if header is not None or (body.strip() and not _is_jupytext_header(body)):
            cells.append(_cell(len(cells), header or "", body))
        header, lines = match.group(1), []
    return Document(tuple(cells))


def _is_jupytext_header(body: str) -> bool:
    lines = [line for line in body.strip().split("\n") if line.strip()]
    return lines[0].strip() == "# ---" and all(line.startswith("#") for line in lines)


def _cell(index: int, header: str, body: str) -> DocumentCell:
    is_markdown = re.search(r"\[(markdown|md|raw)\]", header) is not None
    values = {key: _value(value) for key, value in _KEY.findall(header)}
    source = re.sub(r"^# ?", "", body, flags=re.MULTILINE) if is_markdown else body
    tags = values.get("tags")
    marks = [values[m] for m in ("setup", "solution", "check", "written") if isinstance(values.get(m), str)]
    return DocumentCell(
        index=index,
        type="markdown" if is_markdown else "code",
        source=source.strip("\n"),
        grade_id=marks[0] if marks else None,
        tags=tuple(t for t in tags if isinstance(t, str)) if isinstance(tags, list) else (),
        is_grade="check" in values or "written" in values,
        is_solution="solution" in values or "written" in values,
    )


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
