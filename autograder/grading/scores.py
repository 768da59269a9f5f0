"""A check's result in the form that a notebook cell shows and nbgrader reads."""

from __future__ import annotations

import hashlib
import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from autograder.judge.framework import Result

MAX_MESSAGE = 4000
_WIDTH = 76  # of a message: neither the feedback page nor the formgrader in JupyterLab breaks lines


@dataclass(frozen=True)
class ForGradebook:
    """What the gradebook stores of a graded submission."""

    scores: Mapping[str, float | None]  # by the cell's name; None for those given by hand
    unanswered: frozenset[str] = frozenset()  # solution and answer cells that are still as released


def score_outputs(score: float, message: str) -> list[dict[str, Any]]:
    """The outputs of a check cell: the message, then the score as the plain number that nbgrader reads.

    nbgrader reads any output on stderr as 0 points; the number must be finite and within range.
    """
    return [
        {"output_type": "stream", "name": "stdout", "text": message[:MAX_MESSAGE].rstrip("\n") + "\n"},
        {
            "output_type": "execute_result",
            "execution_count": None,
            "data": {"text/plain": repr(float(score))},
            "metadata": {},
        },
    ]


def is_graded(cell: Any) -> bool:
    """Whether a notebook's cell has points, given by a check or by hand."""
    return bool(cell["metadata"].get("nbgrader", {}).get("grade", False))


def is_check(cell: Any) -> bool:
    """Whether a check gives the cell's points."""
    return is_graded(cell) and cell["cell_type"] == "code" and not cell["metadata"]["nbgrader"].get("solution", False)


def answers(notebook: Any) -> dict[str, str]:
    """A digest of each answer that a person grades, by the cell's name."""
    return {
        cell["metadata"]["nbgrader"]["grade_id"]: hashlib.sha256("".join(cell["source"]).encode()).hexdigest()
        for cell in notebook["cells"]
        if is_graded(cell) and not is_check(cell)
    }


def on_scale(result: Result, max_points: float) -> Result:
    """The result with points on the gradebook's scale, which is the one that counts."""
    share = result.score / result.points if result.points else 0.0
    if not math.isfinite(share) or not math.isfinite(max_points) or max_points < 0:
        raise ValueError(f"{result.id} has no score that can be stored")
    return replace(result, points=max_points, score=float(min(max(share, 0.0), 1.0) * max_points))


def check_message(result: Result, version: str, when: str) -> str:
    """The text that the student reads in the check's cell."""
    points = f"{result.score:g} / {result.points:g} points"
    lines = [f"{'Passed' if result.passed else 'Not passed'}: {result.title} ({points})"]
    lines += [wrapped for line in result.told().splitlines() for wrapped in _wrap(line)]
    lines.append(f"[checks {version}, graded {when}]")
    return "\n".join(lines)


def _wrap(line: str) -> list[str]:
    """The line wrapped, with later lines indented, so that no line begins with a student's words."""
    return textwrap.wrap(line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) or [""]
