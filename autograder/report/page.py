"""The page about a class, as one HTML file: no other file, address or program is needed to read it.

Names and messages come from students, so every text goes through `text`, and the page's policy lets no script or style
run but the ones whose hashes it gives.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from autograder.grading.outcome import NOT_GRADED_LINE, NOTE, STALE
from autograder.plain_text import JOINERS, visible
from autograder.report import drawing
from autograder.report.collect import NOT_MARKED, ClassReport, Row, Topic

_HERE = Path(__file__).resolve().parent
_MAX_TEXT = 3000
_BUGS_OF_A_CHECK = 4  # are named beside it; all are named further down
_NUMBERS = ("Nothing", "One thing", "Two things", "Three things")
_WHAT = {NOT_GRADED_LINE: "not graded", NOT_MARKED: "not marked", STALE: "out of date", NOTE: "repaired or odd"}


def text(value: Any, limit: int = _MAX_TEXT) -> str:
    """A text as HTML. What is invisible or would turn the writing direction is replaced."""
    whole = str(value)
    if len(whole) > limit:
        whole = f"{whole[:limit]} ..."
    return escape(visible(whole, keep="\n" + JOINERS), quote=True)


def name(student: str) -> str:
    """A student's name, which may be written from right to left without moving its neighbors."""
    return f"<bdi>{text(student, 120)}</bdi>"


def page(report: ClassReport, now: datetime | None = None) -> str:
    style, script = (_HERE.joinpath(file).read_text(encoding="utf-8") for file in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    title = f"{report.stage.number}. {report.stage.title}"
    parts = [
        f"<h1>{text(title)}: the class</h1>",
        _summary(report, now or datetime.now(timezone.utc)),
        _topics(report),
        "<h2>Scores</h2>",
        drawing.score_histogram(report.scores, report.most) if report.scores else "<p>Nothing was graded.</p>",
        _checks(report),
        _remarks(report),
        _bugs(report),
        _students(report),
        _time(report),
    ]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{text(title)}: the class</title>
<style>{style}</style>
</head>
<body>
<main>
{drawing.patterns()}
{chr(10).join(filter(None, parts))}
</main>
<script>{script}</script>
</body>
</html>
"""


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _summary(report: ClassReport, now: datetime) -> str:
    n_graded = len(report.graded)
    counts = [f"{n_graded} graded"]
    counts += [f"{report.count(what)} {_WHAT[what]}" for what in (NOT_GRADED_LINE, NOT_MARKED) if report.count(what)]
    lines = [f"{_count(len(report.rows), 'submission')}: {', '.join(counts)}."]
    if report.graded:
        lines.append(f"Median {report.median:g} of {report.most:g} points; {report.full} of {n_graded} have them all.")
    if report.not_judged:
        parts = (f"{text(label)} ({_count(count, 'student')})" for label, count in report.not_judged)
        lines.append(f"Some checks had nothing to look at: {', '.join(parts)}.")
    warnings = [text(sentence) for sentence in report.not_isolated]
    if stale := report.count(STALE):
        verb = "is" if stale == 1 else "are"
        warnings.insert(0, f"The marks of {_count(stale, 'submission')} {verb} out of date; see what to know below.")
    last = max((row.graded_at for row in report.graded), default="")
    graded = f"Last graded {text(last.replace('T', ' ').replace('Z', ' UTC'))}. " if last else ""
    soft = (
        f"{graded}Page written {now:%Y-%m-%d %H:%M} UTC. The scores are the checks'; what is marked by hand is not in "
        "them. No student is named before the heading What to know."
    )
    paragraphs = [f"<p>{' '.join(lines)}</p>", *(f"<p class='warning'>{warning}</p>" for warning in warnings)]
    return "\n".join([*paragraphs, f"<p class='soft'>{soft}</p>"])


def _topics(report: ClassReport) -> str:
    head = f"<h2>{_NUMBERS[len(report.topics)]} to talk about</h2>"
    if not report.topics:
        return head + "<p>No check was failed by what is written.</p>"
    return f"{head}<ol class='topics'>{''.join(_topic(t, len(report.graded)) for t in report.topics)}</ol>"


def _topic(topic: Topic, of: int) -> str:
    sentence = text(topic.sentence, 600)
    if not topic.named:
        sentence += " No known mistake explains the numbers; the messages below say more."
    costs = "; ".join(text(title, 200) for title in topic.titles)
    return (
        f"<li><h3>{text(topic.label, 200)}</h3><p class='many'>{len(topic.students)} of {_count(of, 'student')}</p>"
        f"<p>{sentence}</p>" + (f"<p class='soft'>Costs: {costs}.</p>" if topic.named else "") + "</li>"
    )


def _checks(report: ClassReport) -> str:
    """The checks, the one that most fail first."""
    ordered = sorted(report.checks, key=lambda check: (-check.failed, check.number))
    rows = []
    for check in ordered:
        bugs = [f"{text(label, 200)} ({count})" for label, count in check.bugs[:_BUGS_OF_A_CHECK]]
        if len(check.bugs) > _BUGS_OF_A_CHECK:
            bugs.append(f"{len(check.bugs) - _BUGS_OF_A_CHECK} more")
        total = check.passed + check.failed
        rows.append(
            f"<tr><td class='number'>{check.number}</td><th scope='row' class='wide'>{text(check.title, 200)}</th>"
            f"<td class='number'>{check.points:g}</td><td class='number'>{check.failed} of {total}</td>"
            f"<td>{drawing.outcome_bar(check)}</td>"
            f"<td class='wide'>{', '.join(bugs)}</td></tr>"
        )
    heads = ("No.", "check", "points", "failed", "share", "named bugs, and how often")
    return _section(
        "Checks, most failed first", drawing.legend(), _table("checks", heads, rows, {"No.", "points", "failed"})
    )


def _remarks(report: ClassReport) -> str:
    head = "What to know before the marks go out"
    if not report.remarks:
        return _section(head, "<p>Nothing was repaired, everything is graded, and no mark is out of date.</p>")
    rows = [
        f"<tr><td>{_WHAT[remark.what]}</td><td class='wide'>{text(remark.sentence, 600)}</td>"
        f"<td>{_names(remark.students)}</td></tr>"
        for remark in report.remarks
    ]
    return _section(head, _table("remarks", ("what", "why", "students"), rows))


def _bugs(report: ClassReport) -> str:
    if not report.bugs:
        return ""
    rows = [
        f"<tr><th scope='row'>{text(bug.label, 200)}</th><td class='number'>{len(bug.students)}</td>"
        f"<td>{_names(bug.students)}</td></tr>"
        for bug in report.bugs
    ]
    return _section("Who met which bug", _table("bugs", ("bug", "students", "who"), rows, {"students"}))


def _students(report: ClassReport) -> str:
    checks = report.checks
    heads = [_head("student", "student", "text", "ascending"), _head("score", f"score (of {report.most:g})", "number")]
    for check in checks:
        spoken = f"{check.number}. {text(check.title, 200)}"
        full = f"<span aria-hidden='true'>{check.number}</span><span class='hidden'>{spoken}</span>"
        heads.append(_head(f"check {check.number}", full, "number", tip=check.title))
    heads += [_head("named bug", "named bug, and messages", "text"), _head("seconds", "seconds", "number")]
    body = "\n".join(_student(row, [check.id for check in checks]) for row in report.rows)
    numbers = "".join(f"<li>{check.number}. {text(check.title, 200)} ({check.points:g})</li>" for check in checks)
    return _section(
        "Students",
        "<p class='soft on-screen'>A heading sorts the table by its column, and again the other way round.</p>",
        f"<ul class='plain soft'>{numbers}</ul>",
        "<p id='sorted' class='hidden' role='status'></p>",
        "<div class='scroll tall' role='region' aria-label='Students' tabindex='0'><table id='students'>"
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>\n{body}\n</tbody></table></div>",
    )


def _head(label: str, shown: str, kind: str, sort: str = "", tip: str = "") -> str:
    """A column's head; the page's script makes a button of it."""
    sorted_now = f" aria-sort='{sort}'" if sort else ""
    title = f" title='{text(tip, 200)}'" if tip else ""
    side = "check" if tip else "number" if kind == "number" else "name"
    return (
        f"<th scope='col' class='{side}' data-sort='{kind}' data-name='{text(label)}'{sorted_now}{title}>{shown}</th>"
    )


def _student(row: Row, checks: Iterable[str]) -> str:
    cells = [f"<th scope='row' data-value='{text(row.student, 120)}'>{name(row.student)}</th>"]
    cells.append(f"<td class='number'>{'' if row.score is None else f'{row.score:g}'}</td>")
    for check in checks:
        mark = row.marks.get(check)
        if mark is None:
            cells.append("<td class='check'></td>")
        else:
            cells.append(f"<td class='check{'' if mark.passed else ' lost'}'>{mark.score:g}</td>")
    labels = ", ".join(text(label, 200) for label in row.bugs)
    cells.append(f"<td class='wide' data-value='{labels}'>{_messages(row, labels)}</td>")
    cells.append(f"<td class='number'>{'' if row.seconds is None else f'{row.seconds:.1f}'}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _messages(row: Row, labels: str) -> str:
    if row.score is None:
        return "not graded"
    if not row.lost:
        return ""
    told = "".join(f"<dt>{text(m.title, 200)}</dt><dd>{text(m.message)}</dd>" for m in row.lost)
    return f"<details><summary>{labels or 'no bug named'}</summary><dl>{told}</dl></details>"


def _time(report: ClassReport) -> str:
    if not report.seconds:
        return ""
    slowest = sorted(report.graded, key=lambda row: -(row.seconds or 0))[:3]
    named = ", ".join(f"{name(row.student)} {row.seconds:.1f} s" for row in slowest)
    total = sum(report.seconds)
    words = (
        f"{total:.0f} s of marking in all, one submission after the other; {median(report.seconds):.1f} s for the "
        f"median submission. Slowest: {named}."
    )
    return _section("Time", f"<p>{words}</p>", drawing.seconds_histogram(report.seconds))


def _names(students: Iterable[str]) -> str:
    return ", ".join(map(name, students))


def _table(label: str, heads: Iterable[str], rows: Iterable[str], numbers: Iterable[str] = ()) -> str:
    head = "".join(f"<th scope='col'{' class=number' * (h in numbers)}>{text(h)}</th>" for h in heads)
    return (
        f"<div class='scroll' role='region' aria-label='{label}' tabindex='0'><table id='{label}'>"
        f"<thead><tr>{head}</tr></thead><tbody>\n{chr(10).join(rows)}\n</tbody></table></div>"
    )


def _section(head: str, *parts: str) -> str:
    return "\n".join([f"<h2>{head}</h2>", *parts])
