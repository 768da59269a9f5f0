"""From the records of a class to what its page shows. Nothing is graded here, and the gradebook is not read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from autograder.grading.outcome import NOT_GRADED_LINE, NOTE, STALE
from autograder.grading.records import GRADED, Record, read_records, unreadable
from autograder.grading.stale import why_stale
from autograder.grading.submission import recorded_name
from autograder.judge.bugs import NOTHING_TO_JUDGE
from autograder.judge.framework import checks_of
from autograder.stages import Stage

NOT_MARKED = "not marked"
N_TOPICS = 3
_NOTHING_TO_JUDGE = {bug.key for bug in NOTHING_TO_JUDGE}
_KINDS = (NOT_GRADED_LINE, NOT_MARKED, STALE, NOTE)


@dataclass(frozen=True)
class Mark:
    """What came out of one check of one submission."""

    check: str
    title: str
    points: float
    score: float
    passed: bool
    message: str
    bug: str  # the label; empty when none was named
    judged: bool  # False where there was nothing to look at

    @property
    def sentence(self) -> str:
        """The last of the message: the bug's, when one is named."""
        return self.message.strip().rpartition("\n")[2]

    @property
    def property(self) -> str:
        """The first of the message: what must hold."""
        return self.message.strip().partition("\n")[0]


@dataclass(frozen=True)
class Row:
    """One submission. What was not graded has neither score nor marks."""

    student: str
    score: float | None = None
    most: float | None = None
    seconds: float | None = None
    graded_at: str = ""
    isolation: str = ""
    marks: dict[str, Mark] = field(default_factory=dict)

    @property
    def bugs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(mark.bug for mark in self.marks.values() if mark.bug))

    @property
    def lost(self) -> tuple[Mark, ...]:
        return tuple(mark for mark in self.marks.values() if not mark.passed)


@dataclass(frozen=True)
class CheckCounts:
    """How a class did at one check: every submission is counted once."""

    number: int
    id: str
    title: str
    points: float
    passed: int
    named: int
    not_judged: int
    unnamed: int
    bugs: tuple[tuple[str, int], ...]  # label and submissions, the most frequent first

    @property
    def failed(self) -> int:
        return self.named + self.not_judged + self.unnamed


@dataclass(frozen=True)
class Topic:
    """Something to talk about: a named bug, or a check that many fail for no known reason."""

    label: str
    sentence: str
    students: tuple[str, ...]
    titles: tuple[str, ...]  # of the checks that it costs
    named: bool


@dataclass(frozen=True)
class Remark:
    """What the assistant has to know about some submissions, which share it word for word."""

    what: str
    sentence: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class ClassReport:
    stage: Stage
    rows: tuple[Row, ...]  # by student
    checks: tuple[CheckCounts, ...]  # in their own order
    bugs: tuple[Topic, ...]  # every named bug, the most frequent first
    topics: tuple[Topic, ...]  # what to talk about
    not_judged: tuple[tuple[str, int], ...]  # what left a check nothing to look at, and for how many students
    remarks: tuple[Remark, ...]
    not_isolated: tuple[str, ...]

    @property
    def graded(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.score is not None)

    @property
    def scores(self) -> list[float]:
        return [row.score for row in self.graded if row.score is not None]

    @property
    def seconds(self) -> list[float]:
        return [row.seconds for row in self.graded if row.seconds is not None]

    @property
    def most(self) -> float:
        return max((row.most for row in self.graded if row.most is not None), default=0.0)

    @property
    def median(self) -> float:
        return median(self.scores)

    @property
    def full(self) -> int:
        return sum(row.score == row.most for row in self.graded)

    def count(self, what: str) -> int:
        return len({student for remark in self.remarks if remark.what == what for student in remark.students})


def collect(submitted: Path, autograded: Path, stage: Stage, excluded: Sequence[str] = ()) -> ClassReport | None:
    """The report on a stage, without the students excluded; None when nothing of it has been marked.

    submitted and autograded: the folders of the course that nbgrader calls so.
    """
    records = _records(autograded, stage)
    folders = {recorded_name(p.parent.name): p for p in sorted(submitted.glob(f"*/{stage.assignment}")) if p.is_dir()}
    folders = {student: folder for student, folder in folders.items() if not student.startswith(".")}
    unread = {p.stem for p in (autograded / ".records" / stage.assignment).glob("*.json")} - set(records)
    if not records and not unread:
        return None
    rows, remarks = [], []
    for student in sorted({*records, *folders, *unread}.difference(excluded)):
        row, said = _row(student, records.get(student))
        rows.append(row)
        remarks += said
        if student not in records:
            sentence = "handed in, and not marked yet."
            if reason := unreadable(autograded, stage.assignment, student):
                sentence = f"{reason}; let this account read it."
            elif student in unread:
                sentence = "its record cannot be read; nbgrader autograde --force grades it again."
            remarks.append((NOT_MARKED, sentence, student))
        elif row.score is not None:
            why = why_stale(records[student], folders.get(student, submitted / student), stage)
            remarks += [(STALE, f"{why}.", student)] if why else []
    return _report(stage, rows, remarks)


def _records(autograded: Path, stage: Stage) -> dict[str, Record]:
    """By student. The one file over the assignment is read where the folder of single ones was not copied along."""
    found: Iterable[Record] = read_records(autograded, stage.assignment)
    if not (autograded / ".records" / stage.assignment).is_dir():
        try:
            plain = json.loads((autograded / f"report-{stage.assignment}.json").read_text(encoding="utf-8"))
            found = [Record(**values) for values in plain]
        except (OSError, ValueError, TypeError):
            found = ()
    return {record.student: record for record in found if isinstance(record.student, str)}


def _row(student: str, record: Record | None) -> tuple[Row, list[tuple[str, str, str]]]:
    if record is None:
        return Row(student), []
    if record.status != GRADED:
        return Row(student), [(NOT_GRADED_LINE, str(record.reason) or "nbgrader could not go on with it.", student)]
    try:
        marks = {str(plain["id"]): _mark(plain) for plain in record.checks}
        notes = [(NOTE, str(note["sentence"]), student) for note in record.notes]
        score, most, seconds = map(_number, (record.score, record.max_score, record.seconds))
    except (KeyError, TypeError, ValueError):
        sentence = "its record is damaged; nbgrader autograde --force grades it again."
        return Row(student), [(NOT_GRADED_LINE, sentence, student)]
    row = Row(student, score, most, seconds, str(record.graded_at), str(record.isolation), marks)
    return row, notes


def _mark(plain: dict[str, Any]) -> Mark:
    bug = plain["bug"] or {"key": "", "label": ""}
    return Mark(
        check=str(plain["id"]),
        title=str(plain["title"]),
        points=_number(plain["points"]),
        score=_number(plain["score"]),
        passed=bool(plain["passed"]),
        message=str(plain["message"]),
        bug=str(bug["label"]),
        judged=bug["key"] not in _NOTHING_TO_JUDGE,
    )


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not a number of points or seconds")
    return number


def _report(stage: Stage, rows: Sequence[Row], remarks: Sequence[tuple[str, str, str]]) -> ClassReport:
    checks = _check_counts(stage, rows)
    bugs = _named_bugs(rows)
    unexplained = _unexplained(rows)
    return ClassReport(
        stage=stage,
        rows=tuple(rows),
        checks=checks,
        bugs=bugs,
        topics=(*bugs, *unexplained)[:N_TOPICS],
        not_judged=_not_judged(rows),
        remarks=_grouped(remarks),
        not_isolated=tuple(dict.fromkeys(row.isolation for row in rows if " " in row.isolation)),
    )


def _check_counts(stage: Stage, rows: Sequence[Row]) -> tuple[CheckCounts, ...]:
    """The stage's checks in their order, then those that only the records know."""
    known = {check.id: (check.title, float(check.points)) for check in checks_of(stage.name)}
    for row in rows:
        known |= {mark.check: (mark.title, mark.points) for mark in row.marks.values()}
    counts = []
    for number, (check_id, (title, points)) in enumerate(known.items(), 1):
        marks = [row.marks[check_id] for row in rows if check_id in row.marks]
        bugs: dict[str, int] = {}
        for mark in marks:
            if mark.bug and not mark.passed:
                bugs[mark.bug] = bugs.get(mark.bug, 0) + 1
        counts.append(
            CheckCounts(
                number=number,
                id=check_id,
                title=title,
                points=points,
                passed=sum(m.passed for m in marks),
                named=sum(not m.passed and bool(m.bug) and m.judged for m in marks),
                not_judged=sum(not m.passed and not m.judged for m in marks),
                unnamed=sum(not m.passed and not m.bug for m in marks),
                bugs=tuple(sorted(bugs.items(), key=lambda item: (-item[1], item[0]))),
            )
        )
    return tuple(counts)


def _not_judged(rows: Sequence[Row]) -> tuple[tuple[str, int], ...]:
    counts = ((bug.label, sum(bug.label in row.bugs for row in rows)) for bug in NOTHING_TO_JUDGE)
    return tuple((label, count) for label, count in counts if count)


def _named_bugs(rows: Sequence[Row]) -> tuple[Topic, ...]:
    found: dict[str, list[tuple[str, Mark]]] = {}
    for row in rows:
        for mark in row.lost:
            if mark.bug and mark.judged:
                found.setdefault(mark.bug, []).append((row.student, mark))
    return _topics({label: (marks[0][1].sentence, marks) for label, marks in found.items()}, named=True)


def _unexplained(rows: Sequence[Row]) -> tuple[Topic, ...]:
    """The checks that are failed for a reason without a name, with the property that does not hold."""
    found: dict[str, list[tuple[str, Mark]]] = {}
    for row in rows:
        for mark in row.lost:
            if not mark.bug:
                found.setdefault(mark.title, []).append((row.student, mark))
    return _topics({title: (marks[0][1].property, marks) for title, marks in found.items()}, named=False)


def _topics(found: dict[str, tuple[str, list[tuple[str, Mark]]]], named: bool) -> tuple[Topic, ...]:
    """The one that most students meet first; of two with as many, the one that costs more points."""
    topics = []
    for label, (sentence, marks) in found.items():
        students = tuple(dict.fromkeys(student for student, _ in marks))
        titles = tuple(dict.fromkeys(mark.title for _, mark in marks))
        points = sum(mark.points - mark.score for _, mark in marks)
        topics.append((-len(students), -points, label, Topic(label, sentence, students, titles, named)))
    return tuple(topic for *_, topic in sorted(topics, key=lambda item: item[:3]))


def _grouped(remarks: Sequence[tuple[str, str, str]]) -> tuple[Remark, ...]:
    together: dict[tuple[str, str], list[str]] = {}
    for what, sentence, student in remarks:
        together.setdefault((what, sentence), []).append(student)
    ordered = sorted(together.items(), key=lambda item: _KINDS.index(item[0][0]))
    return tuple(Remark(what, sentence, tuple(students)) for (what, sentence), students in ordered)
