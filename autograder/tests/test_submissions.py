"""The grader, graded: every right submission gets all points, every wrong one loses exactly the checks it should."""

import collections
import functools
import importlib.util
import re

import jupytext
import numpy as np
import pytest

from autograder.judge.framework import checks_of, run_check
from autograder.judge.student import Student
from autograder.notebooks.given import given_source
from autograder.places import SOLUTIONS
from autograder.stages import GRADED_STAGES, find_stage
from autograder.tests.submissions import Right, Wrong, submissions_of
from autograder.worker.client import Cell, Worker

HIDDEN_SEED = 20_011  # any seed but the visible one


def _stages_with_submissions():
    return [
        s.name
        for s in GRADED_STAGES
        if importlib.util.find_spec(f"autograder.tests.submissions.{s.module}") is not None
    ]


STAGES = _stages_with_submissions()
ALL = [pytest.param(stage, s, id=f"{stage}/{s.name}") for stage in STAGES for s in submissions_of(stage)]


@functools.cache
def setup_cells(stage_name):
    notebook = jupytext.read(SOLUTIONS / f"{find_stage(stage_name).module}.py")
    return [Cell(c.metadata["setup"], c.source) for c in notebook.cells if "setup" in c.metadata]


@pytest.fixture(scope="session")
def asked():
    """The lists of ids that a sample submission was asked about in a check, by stage, submission and check."""
    return collections.defaultdict(set)


@pytest.fixture(scope="session")
def grade(tmp_path_factory, asked):
    """Grades a sample submission in a worker, once."""
    folder = tmp_path_factory.mktemp("given")

    @functools.cache
    def graded(stage_name, name, seed=HIDDEN_SEED):
        stage = find_stage(stage_name)
        submission = next(s for s in submissions_of(stage_name) if s.name == name)
        given = folder / f"{stage.module}_given.py"
        if not given.exists():
            given.write_text(given_source(stage) or "", encoding="utf-8")  # none for the first stage
        cells = setup_cells(stage_name) + [Cell(m, s) for m, s in submission.sources(stage).items()]
        with Worker(given) as worker:
            for cell in cells:
                error = worker.run_cell(cell)
                assert error is None, f"{cell.label}: {error}"
            results = {}
            for check in checks_of(stage_name):
                lists = asked[stage_name, name, check.id]

                def perform(request, lists=lists):
                    lists.update(lists_in(request))
                    return worker.request(request)

                results[check.id] = run_check(check, Student(perform), seed)
            return results

    return graded


@pytest.mark.parametrize(("stage", "submission"), [p for p in ALL if isinstance(p.values[1], Right)])
def test_a_right_submission_gets_every_point(grade, stage, submission):
    results = grade(stage, submission.name)
    assert {c: r.message for c, r in results.items() if not r.passed} == {}


@pytest.mark.parametrize(("stage", "submission"), [p for p in ALL if isinstance(p.values[1], Wrong)])
def test_a_wrong_submission_loses_exactly_its_checks(grade, stage, submission):
    results = grade(stage, submission.name)
    lost = {c for c, r in results.items() if not r.passed}
    assert lost - set(submission.also) == set(submission.loses)


@pytest.mark.parametrize(
    ("stage", "submission"), [p for p in ALL if isinstance(p.values[1], Wrong) and p.values[1].bug is not None]
)
def test_a_wrong_submission_is_told_its_bug_and_no_other(grade, stage, submission):
    named = {r.bug.key for r in grade(stage, submission.name).values() if r.bug is not None}
    assert named == {submission.bug}


@pytest.mark.parametrize("stage", STAGES)
def test_every_check_is_lost_by_some_wrong_submission(stage):
    lost = {check for s in submissions_of(stage) if isinstance(s, Wrong) for check in s.loses}
    assert {c.id for c in checks_of(stage)} - lost == set()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_has_enough_submissions(stage):
    wrong = [s for s in submissions_of(stage) if isinstance(s, Wrong)]
    right = [s for s in submissions_of(stage) if isinstance(s, Right)]
    assert len(wrong) >= 12
    assert len(right) >= 5  # the solution and four other styles


def test_at_least_nine_wrong_submissions_in_ten_are_named():
    wrong = [s for stage in STAGES for s in submissions_of(stage) if isinstance(s, Wrong)]
    assert sum(s.bug is not None for s in wrong) >= 0.9 * len(wrong)


@pytest.mark.parametrize("stage", STAGES)
def test_two_wrong_submissions_never_share_a_name(stage):
    keys = [s.bug for s in submissions_of(stage) if isinstance(s, Wrong) and s.bug is not None]
    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize(("stage", "submission"), [p for p in ALL if isinstance(p.values[1], Wrong)])
def test_a_message_prints_no_hidden_input(grade, asked, stage, submission):
    for check_id, result in grade(stage, submission.name).items():
        assert not shows(result.message, asked[stage, submission.name, check_id]), result.message


def test_every_list_of_ids_that_is_asked_is_looked_for(grade, asked):
    assert grade("save-and-reuse", "solution")
    ids = asked["save-and-reuse", "solution", "reuse-equals-recompute"]
    assert len(ids) > 30
    assert all(shows(f"It fails for {list(some)}.", {some}) for some in ids)
    assert not shows("It fails for 12 of 400 tokens, first for [9, 9, 9].", ids)


def shows(message, lists):
    """Whether a message prints three ids in a row of one of the lists, as lists are printed."""
    printed = (re.findall(r"\d+", text) for text in re.findall(r"\d+(?:[,\s]+\d+){2,}", message))
    numbers = {run for text in printed for run in runs(text)}
    return any(tuple(map(str, run)) in numbers for some in lists for run in runs(some)) if numbers else False


def runs(items):
    return zip(items, items[1:], items[2:], strict=False)


def lists_in(request):
    """The lists of three token ids or more in what a student's process is asked."""
    if isinstance(request, np.ndarray):
        request = request.tolist() if request.dtype.kind in "iu" else ()
    parts = list(
        request.values() if isinstance(request, dict) else request if isinstance(request, (list, tuple)) else ()
    )
    if len(parts) > 2 and all(type(part) is int for part in parts):
        yield tuple(parts)
    for part in parts:
        yield from lists_in(part)
