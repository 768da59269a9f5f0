"""The notebook of a graded submission, with each check's message and score in its cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from autograder.grading.scores import check_message, is_check, is_graded, score_outputs
from autograder.judge.framework import Result
from autograder.notebooks.regions import inside


def graded_notebook(
    trusted: dict[str, Any],
    results: Mapping[str, Result],
    version: str,
    shown: Mapping[str, list[dict[str, Any]]],
    rubrics: Mapping[str, str],
) -> str:
    """The JSON of the trusted notebook with the results put in.

    results: by the check's id. version: of the checks. shown: outputs of the display run, by cell id. rubrics: by the
    question's name.
    """
    when = now()
    cells = []
    for cell in trusted["cells"]:
        if is_check(cell):
            result = results[cell["metadata"]["nbgrader"]["grade_id"]]
            about = {
                "bug": result.bug.key if result.bug else None,
                "checks_version": version,
                "graded_at": when,
                "passed": result.passed,
            }
            outputs = score_outputs(result.score, check_message(result, version, when))
            cell = {**cell, "metadata": {**cell["metadata"], "autograder": about}, "outputs": outputs}
        elif cell["cell_type"] == "code":
            cell = {**cell, "outputs": shown.get(cell["id"], [])}
        cells += [cell, *_rubric(cell, rubrics)]
    # On one line, because Python writes JSON with an indent ten times more slowly
    return json.dumps({**trusted, "cells": cells}, ensure_ascii=False, sort_keys=True) + "\n"


def _rubric(cell: dict[str, Any], rubrics: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The rubric below an answer. It is for the assistant alone, so the page of feedback leaves it out."""
    name = cell["metadata"].get("nbgrader", {}).get("grade_id")
    if name in rubrics:
        metadata = {"autograder": {"rubric": True}}
        yield {"cell_type": "markdown", "id": f"rubric-{name}"[:64], "metadata": metadata, "source": rubrics[name]}


def rubrics_of(source_notebook: dict[str, Any]) -> dict[str, str]:
    """The rubric of each question that a person grades, by the question's name."""
    return {
        cell["metadata"]["nbgrader"]["grade_id"]: inside("".join(cell["source"]))
        for cell in source_notebook["cells"]
        if is_graded(cell) and not is_check(cell)
    }


def now() -> str:
    """The time in UTC, in ISO 8601."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
