"""Collects the contents of a class's page from its records. It grades nothing, and does not read the gradebook."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from autograder.grading.outcome import NOT_GRADED_LINE, NOTE, STALE
from autograder.grading.records import GRADED, Record, read_records, record_of, unreadable
from autograder.grading.stale import why_stale
from autograder.grading.submission import recorded_name
from autograder.judge.bugs import NOTHING_TO_JUDGE
from autograder.judge.framework import Result, checks_of
from autograder.stages import Stage

NOT_YET_GRADED = "not yet graded"
N_TOPICS = 3
_NOTHING_TO_JUDGE = {bug.key for bug in NOTHING_TO_JUDGE}
_KINDS = (NOT_GRADED_LINE, NOT_YET_GRADED, STALE, NOTE)


@dataclass(frozen=True)
class CheckCounts:
    """The results of a class in one check: every submission is counted once."""

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
    """A topic for the lecture: a named bug, or a check that many fail without a known cause."""

    label: str
    sentence: str
    students: tuple[str, ...]
    titles: tuple[str, ...]  # of the checks that it costs
    named: bool


@dataclass(frozen=True)
class Remark:
    """A sentence that the assistant has to know, and the submissions that it is about."""

    what: str
    sentence: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class ClassReport:
    stage: Stage
    rows: tuple[Record, ...]  # by student
    checks: tuple[CheckCounts, ...]  # in their own order
    bugs: tuple[Topic, ...]  # every named bug, the most frequent first
    topics: tuple[Topic, ...]  # what to talk about
    not_judged: tuple[tuple[str, int], ...]  # why a check had nothing to judge, and for how many students
    remarks: tuple[Remark, ...]
    not_isolated: tuple[str, ...]

    @property
    def graded(self) -> tuple[Record, ...]:
        return tuple(row for row in self.rows if row.status == GRADED)

    @property
    def scores(self) -> list[float]:
        return [row.score or 0.0 for row in self.graded]

    @property
    def seconds(self) -> list[float]:
        return [row.seconds for row in self.graded]

    @property
    def most(self) -> float:
        return max((row.max_score or 0.0 for row in self.graded), default=0.0)

    @property
    def median(self) -> float:
        return median(self.scores)

    @property
    def median_seconds(self) -> float:
        return median(self.seconds)

    @property
    def full(self) -> int:
        return sum(row.score == row.max_score for row in self.graded)

    def count(self, what: str) -> int:
        return len({student for remark in self.remarks if remark.what == what for student in remark.students})


def collect(submitted: Path, autograded: Path, stage: Stage, excluded: Sequence[str] = ()) -> ClassReport | None:
    """The report on a stage, without excluded students; None if nothing has been graded.

    submitted and autograded: nbgrader's folders of these names.
    """
    records = _records(autograded, stage)
    folders = {recorded_name(p.parent.name): p for p in sorted(submitted.glob(f"*/{stage.assignment}")) if p.is_dir()}
    folders = {student: folder for student, folder in folders.items() if not student.startswith(".")}
    unread = {p.stem for p in (autograded / ".records" / stage.assignment).glob("*.json")} - set(records)
    if not records and not unread:
        return None
    rows, remarks = [], []
    for student in sorted({*records, *folders, *unread}.difference(excluded)):
        record = records.get(student)
        rows.append(record or Record(stage.assignment, student, NOT_YET_GRADED, "", ""))
        if record is None:
            sentence = "handed in, and not graded yet."
            if reason := unreadable(autograded, stage.assignment, student):
                sentence = f"{reason}; let this account read it."
            elif student in unread:
                sentence = "its record cannot be read; nbgrader autograde --force grades it again."
            remarks.append((NOT_YET_GRADED, sentence, student))
        elif record.status != GRADED:
            remarks.append((NOT_GRADED_LINE, record.reason or "nbgrader could not go on with it.", student))
        else:
            remarks += [(NOTE, note.sentence, student) for note in record.notes]
            why = why_stale(record, folders.get(student, submitted / student), stage)
            remarks += [(STALE, f"{why}.", student)] if why else []
    return _report(stage, rows, remarks)


def _records(autograded: Path, stage: Stage) -> dict[str, Record]:
    """The records by student, or from the file of the whole assignment if their folder was not copied along."""
    found: Iterable[Record] = read_records(autograded, stage.assignment)
    if not (autograded / ".records" / stage.assignment).is_dir():
        try:
            plain = json.loads((autograded / f"report-{stage.assignment}.json").read_text(encoding="utf-8"))
            found = [record_of(values) for values in plain]
        except (OSError, ValueError, TypeError):
            found = ()
    return {record.student: record for record in found}


def _report(stage: Stage, rows: Sequence[Record], remarks: Sequence[tuple[str, str, str]]) -> ClassReport:
    bugs = _topics(rows, named=True)
    return ClassReport(
        stage=stage,
        rows=tuple(rows),
        checks=_check_counts(stage, rows),
        bugs=bugs,
        topics=(*bugs, *_topics(rows, named=False))[:N_TOPICS],
        not_judged=_not_judged(rows),
        remarks=_grouped(remarks),
        not_isolated=tuple(dict.fromkeys(row.isolation for row in rows if " " in row.isolation)),
    )


def _is_judged(result: Result) -> bool:
    """Whether the check had something to judge."""
    return not (result.bug and result.bug.key in _NOTHING_TO_JUDGE)


def _check_counts(stage: Stage, rows: Sequence[Record]) -> tuple[CheckCounts, ...]:
    """The stage's checks in order, then those that are only in the records."""
    known = {check.id: (check.title, float(check.points)) for check in checks_of(stage.name)}
    results: dict[str, list[Result]] = {}
    for result in (result for row in rows for result in row.checks):
        known[result.id] = result.title, result.points
        results.setdefault(result.id, []).append(result)
    counts = []
    for number, (check_id, (title, points)) in enumerate(known.items(), 1):
        lost = [result for result in results.get(check_id, ()) if not result.passed]
        bugs = Counter(result.bug.label for result in lost if result.bug)
        counts.append(
            CheckCounts(
                number=number,
                id=check_id,
                title=title,
                points=points,
                passed=len(results.get(check_id, ())) - len(lost),
                named=sum(bool(r.bug) and _is_judged(r) for r in lost),
                not_judged=sum(not _is_judged(r) for r in lost),
                unnamed=sum(not r.bug for r in lost),
                bugs=tuple(sorted(bugs.items(), key=lambda item: (-item[1], item[0]))),
            )
        )
    return tuple(counts)


def _not_judged(rows: Sequence[Record]) -> tuple[tuple[str, int], ...]:
    counts = ((bug.label, sum(bug.label in row.bugs for row in rows)) for bug in NOTHING_TO_JUDGE)
    return tuple((label, count) for label, count in counts if count)


def _sentence(result: Result) -> str:
    """The sentence of the named bug (in a record of an earlier version, the message's last line), or the property."""
    if result.bug is None:
        return result.message.partition("\n")[0]
    return result.bug.sentence or result.message.strip().rpartition("\n")[2]


def _topics(rows: Sequence[Record], named: bool) -> tuple[Topic, ...]:
    """The named bugs, or the checks that fail without one, most frequent first.

    Of two with the same number, the one that costs more points is first.
    """
    found: dict[str, list[tuple[str, Result]]] = {}  # the students, and the failed check of each
    for row in rows:
        for result in row.lost:
            if bool(result.bug) == named and _is_judged(result):
                found.setdefault(result.bug.label if result.bug else result.title, []).append((row.student, result))
    topics = []
    for label, met in found.items():
        students = tuple(dict.fromkeys(student for student, _ in met))
        titles = tuple(dict.fromkeys(result.title for _, result in met))
        points = sum(result.points - result.score for _, result in met)
        topics.append((-len(students), -points, label, Topic(label, _sentence(met[0][1]), students, titles, named)))
    return tuple(topic for *_, topic in sorted(topics, key=lambda item: item[:3]))


def _grouped(remarks: Sequence[tuple[str, str, str]]) -> tuple[Remark, ...]:
    together: dict[tuple[str, str], list[str]] = {}
    for what, sentence, student in remarks:
        together.setdefault((what, sentence), []).append(student)
    ordered = sorted(together.items(), key=lambda item: _KINDS.index(item[0][0]))
    return tuple(Remark(what, sentence, tuple(students)) for (what, sentence), students in ordered)
