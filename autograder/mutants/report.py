"""The report on the verdicts: unlisted survivors, outdated lists, and names and hints that may be wrong."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from autograder.judge.bugs import NOTHING_TO_JUDGE
from autograder.mutants.hints import function_at
from autograder.mutants.run import Verdict
from autograder.stages import find_stage
from autograder.stages.samples import Wrong, solved_cells, submissions_of

BEFORE_REASON = "  # "


def equivalents(stage_name: str) -> dict[str, str]:
    """The mutants that no check can tell from the solution, with the reason: the stage's equivalent.txt."""
    return _listed(stage_name, "equivalent.txt")


def _listed(stage_name: str, name: str) -> dict[str, str]:
    """The entries of one of a stage's lists, each with its reason."""
    path = Path(__file__).parents[1] / "stages" / find_stage(stage_name).module / name
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    listed = (line.partition(BEFORE_REASON) for line in lines if line.strip() and not line.startswith("#"))
    return {id.strip(): reason.strip() for id, _, reason in listed}


def survivors(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The mutants that keep all points and are not listed as equivalent."""
    return [v for v in verdicts if not v.caught and v.id not in equivalents(v.stage)]


def stale(verdicts: list[Verdict]) -> list[str]:
    """The entries listed as equivalent that are not survivors, or have no reason."""
    found = []
    for stage in dict.fromkeys(v.stage for v in verdicts):
        survived = {v.id for v in verdicts if v.stage == stage and not v.caught}
        for id, reason in equivalents(stage).items():
            if id not in survived or not reason:
                found.append(f"{stage}  {id}")
    return found


def doubtful_names(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Names given for a change in a function where no sample has that bug."""
    silent = {bug.key for bug in NOTHING_TO_JUDGE}
    for verdict in verdicts:
        for key in sorted(set(verdict.names.values()) - silent):
            if (verdict.function, key) not in _homes(verdict.stage):
                yield f"{verdict.stage}  {key}  {verdict.id}"


@functools.cache
def _homes(stage_name: str) -> set[tuple[str, str | None]]:
    """Where a bug is: the functions in which a wrong sample has it, and those of names.txt, as FUNCTION: KEY."""
    wrong = (sample for sample in submissions_of(stage_name) if isinstance(sample, Wrong))
    cells = solved_cells(stage_name)
    found = {(function_at(cells[cell], old), sample.bug) for sample in wrong for cell, old, _ in sample.changes}
    listed = (entry.split(": ") for entry in _listed(stage_name, "names.txt"))
    return found | {(function, key) for function, key in listed}


def astray(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Hints that do not lead to the change."""
    for verdict in verdicts:
        for check, look in verdict.astray.items():
            yield f"{verdict.stage}  {verdict.id}  {check}: {' '.join(look.splitlines())}"


def text(verdicts: list[Verdict]) -> str:
    """The whole report."""
    lines = [f"{'stage':<16}{'mutants':>9}{'caught':>9}{'named':>9}{'equivalent':>12}{'survive':>9}"]
    left = survivors(verdicts)
    for stage in dict.fromkeys(v.stage for v in verdicts):
        own = [v for v in verdicts if v.stage == stage]
        caught, named = sum(v.caught for v in own), sum(bool(v.names) for v in own)
        surviving = sum(v.stage == stage for v in left)
        listed = len(own) - caught - surviving
        lines.append(f"{stage:<16}{len(own):>9}{caught:>9}{named:>9}{listed:>12}{surviving:>9}")
    sections = {
        "Survivors: equivalent, to be listed with a reason, or a hole in the checks": _ids(left),
        "Listed as equivalent, and caught, gone, or without a reason": stale(verdicts),
        "Checks that could not judge": [f"{v.stage}  {v.id}  {s}" for v in verdicts for s in v.broken],
        "Warnings of the judge": [f"{v.stage}  {v.id}  {s}" for v in verdicts for s in v.warnings],
        "Slower than the solution, with all points": [
            f"{v.stage}  {v.id}  {v.slower:.1f} times" for v in verdicts if v.slower is not None
        ],
        "Names of bugs that no sample has in the changed function": doubtful_names(verdicts),
        "Where to look does not reach the change": astray(verdicts),
    }
    for title, entries in sections.items():
        if entries := list(entries):
            lines += ["", f"{title} ({len(entries)}):", *(f"  {entry}" for entry in entries)]
    return "\n".join(lines)


def _ids(verdicts: Iterable[Verdict]) -> list[str]:
    return [f"{v.stage}  {v.id}" for v in verdicts]
