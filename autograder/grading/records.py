"""The record of each submission, in a JSON file of its own, and the report on a whole assignment.

Records are in autograded/.records/ASSIGNMENT/STUDENT.json: each file has one writer, so several processes can grade at
once. nbgrader ignores folders whose names begin with a dot.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from autograder.grading.notes import Note
from autograder.judge.bugs import Bug
from autograder.judge.framework import Result
from autograder.whole_file import share, whole_file

GRADED, NOT_GRADED = "graded", "not graded"


@dataclass(frozen=True)
class Record:
    """The results of a submission when it was last graded, or the reason why it could not be."""

    assignment: str
    student: str
    status: str
    graded_at: str  # UTC, ISO 8601
    checks_version: str
    reason: str = ""  # why it was not graded
    file: str = ""
    digest: str = ""
    score: float | None = None
    max_score: float | None = None
    seconds: float = 0.0
    isolation: str = ""  # the sandbox, such as "bubblewrap", or a sentence about its absence
    checks: tuple[Result, ...] = ()
    notes: tuple[Note, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)  # a digest of each written answer

    @property
    def lost(self) -> tuple[Result, ...]:
        return tuple(result for result in self.checks if not result.passed)

    @property
    def bugs(self) -> tuple[str, ...]:
        """The labels of the named bugs, each once."""
        return tuple(dict.fromkeys(result.bug.label for result in self.checks if result.bug))


def record_of(plain: dict[str, Any]) -> Record:
    """The record in a file's JSON, also of an earlier version; raises ValueError if it is damaged."""
    try:
        checks = tuple(_result_of(check) for check in plain.get("checks", ()))
        notes = tuple(Note(note["kind"], note["cell"], str(note["sentence"])) for note in plain.get("notes", ()))
        record = Record(**{**plain, "checks": checks, "notes": notes})
        numbers = [record.score, record.max_score, record.seconds] if record.status == GRADED else [record.seconds]
        texts = (record.student, record.graded_at, record.checks_version, record.reason, record.isolation)
        if all(isinstance(text, str) for text in texts) and all(map(_is_number, numbers)):
            return record
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"the record is damaged ({error!r})") from None
    raise ValueError("the record is damaged")


def _result_of(plain: dict[str, Any]) -> Result:
    """A result from its JSON. In earlier versions a bug had no sentence, which was the last line of the message, and a
    result had one function instead of places."""
    lists = {name: tuple(plain.get(name, ())) for name in ("places", "roots")}
    result = Result(**{name: value for name, value in plain.items() if name not in ("function", "root")} | lists)
    texts = (result.id, result.title, result.message, result.look, result.cause, *result.places)
    if not all(isinstance(text, str) for text in texts) or not all(map(_is_number, (result.points, result.score))):
        raise ValueError(f"the result of {result.id} is damaged")
    return replace(result, bug=Bug(**{"sentence": "", **plain["bug"]}) if plain["bug"] else None)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def record_path(autograded: Path, assignment: str, student: str) -> Path:
    return autograded / ".records" / assignment / f"{student}.json"


def write_record(autograded: Path, record: Record, group: bool = False) -> None:
    """group: let other accounts of the folder's group replace it."""
    with _file(record_path(autograded, record.assignment, record.student), group) as file:
        file.write(_as_json(record) + "\n")


def read_record(autograded: Path, assignment: str, student: str) -> Record | None:
    """The record of a submission; None if there is none or it cannot be read."""
    try:
        return record_of(json.loads(record_path(autograded, assignment, student).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def unreadable(autograded: Path, assignment: str, student: str) -> str | None:
    """Why this account may not read an existing record; None if it may, or if there is no record."""
    path = record_path(autograded, assignment, student)
    try:
        path.open("rb").close()
    except PermissionError as error:
        return f"{path} cannot be read ({error.strerror})"
    except OSError:
        pass
    return None


def each_record(autograded: Path, assignment: str) -> Iterator[Record]:
    """The readable records of an assignment, one at a time, sorted by student."""
    folder = autograded / ".records" / assignment
    for student in sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else ():
        if (record := read_record(autograded, assignment, student)) is not None:
            yield record


def read_records(autograded: Path, assignment: str) -> list[Record]:
    """The readable records of an assignment, as a list."""
    return list(each_record(autograded, assignment))


def write_report(autograded: Path, assignment: str, group: bool = False) -> Path:
    """Write all records of an assignment to one file, autograded/report-ASSIGNMENT.json, with a line for each."""
    path = autograded / f"report-{assignment}.json"
    with _file(path, group) as file:
        file.write("[")
        for number, record in enumerate(each_record(autograded, assignment)):  # one at a time, to save memory
            file.write((",\n" if number else "\n") + _as_json(record))
        file.write("\n]\n")
    return path


def _as_json(record: Record) -> str:
    """The record on one line. An indent, or dataclasses.asdict, would take longer than everything else here."""
    return json.dumps(record, default=vars, ensure_ascii=False)


def _file(path: Path, group: bool) -> AbstractContextManager[TextIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    if group:
        share(path.parent)
    return whole_file(path, group)
