"""The verdict on a mutant, and the report."""

import os
import sys
from dataclasses import replace

import pytest

from autograder.judge.bugs import BUGS
from autograder.judge.framework import checks_of
from autograder.mutants import report
from autograder.mutants.__main__ import main
from autograder.mutants.run import Mutant, Verdict, function_of, grade_all, graded_cells, mutants_of
from autograder.stages import GRADED_STAGES, find_stage
from autograder.tests.command import run_command
from autograder.tests.modes import ISOLATIONS

in_a_sandbox = pytest.mark.skipif(set(ISOLATIONS) <= {"limits"}, reason="mutants run in a sandbox only")
STAGE = find_stage("failure-modes")
SOURCES = {  # of the cell longest-common-prefix
    "shortest": "def longest_common_prefix(a, b):\n    return min(len(a), len(b))",
    "same": "def longest_common_prefix(a, b):\n    return next((n for n, (x, y) in enumerate(zip(a, b)) if x != y), "
    "min(len(a), len(b)))",
    "loops": "def longest_common_prefix(a, b):\n    while True:\n        __import__('time').sleep(9)",
}


@pytest.fixture(scope="module")
def graded():
    """The verdicts by name: with every check, and of those that end with the checks up to the first that is lost."""
    mutants = [Mutant(STAGE, "longest-common-prefix", name, source) for name, source in SOURCES.items()]
    every_check, first_only = grade_all(mutants, every_check=True), grade_all(mutants[:2], every_check=False)
    return tuple({verdict.id: verdict for verdict in verdicts} for verdicts in (every_check, first_only))


@in_a_sandbox
def test_a_mistake_is_caught_and_an_equivalent_change_survives(graded):
    for verdicts in graded:
        assert {name: v.caught for name, v in verdicts.items() if name != "loops"} == {"shortest": True, "same": False}


@in_a_sandbox
def test_every_check_is_run_only_where_names_are_wanted(graded):
    every_check, first_only = graded
    assert len(every_check["shortest"].lost) > 1
    assert len(first_only["shortest"].lost) == 1


@in_a_sandbox
def test_a_mutant_that_loops_is_ended_soon(graded):
    verdict = graded[0]["loops"]
    assert verdict.caught and set(verdict.names.values()) >= {"not-finished"}
    assert verdict.seconds < 60  # ten times the usual limit for a call, and a restart, would be more


def test_without_a_sandbox_no_mutant_runs():
    command, limits = [sys.executable, "-m", "autograder.mutants"], {"AUTOGRADER_SANDBOX": "limits"}
    done = run_command(lambda: sys.exit(main()), command, ["failure-modes"], None, os.environ | limits)
    assert done.returncode == 2
    assert done.stderr.startswith("Not sandboxed: AUTOGRADER_SANDBOX asks for limits; ")


def test_what_no_graded_function_calls_has_no_mutants():
    cells = {
        "helper": "def helper(x):\n    return x",
        "graded": "def graded(x):\n    return helper(x)",
        "further": "def further(x):\n    return graded(x)",
    }
    assert list(graded_cells(cells, ["graded"])) == ["helper", "graded"]


def verdict(id, lost=(), names=None, stage="failure-modes"):
    return Verdict(stage, "its cell", id, tuple(lost), names or {}, {}, (), (), 0.1)


def test_survivors_are_those_that_no_list_explains(monkeypatch):
    monkeypatch.setattr(report, "equivalents", lambda stage: {"equal": "the same", "old": "gone", "bare": ""})
    verdicts = [verdict("equal"), verdict("hole"), verdict("caught", ["miss-explained"]), verdict("bare")]
    assert [v.id for v in report.survivors(verdicts)] == ["hole"]
    assert report.stale(verdicts) == ["failure-modes  old", "failure-modes  bare"]


def test_a_name_is_doubtful_in_a_function_where_no_sample_has_that_mistake():
    of_lookup = {"lookup-longest-entry": "lookup-not-longest"}
    verdicts = [verdict("lookup: right", names=of_lookup), verdict("render_chat: wrong", names=of_lookup)]
    assert list(report.doubtful_names(verdicts)) == ["failure-modes  lookup-not-longest  render_chat: wrong"]


def test_a_bug_may_belong_to_a_function_in_which_no_sample_has_it():
    of_the_mask = {"attention-heads": "mask-reversed"}
    verdicts = [verdict(id, names=of_the_mask, stage="forward-pass") for id in ("attention_weights: a", "gelu: b")]
    assert list(report.doubtful_names(verdicts)) == ["forward-pass  mask-reversed  gelu: b"]


def test_a_misleading_hint_is_reported():
    astray = {"saved-prefix-exact": "Look in f.\nThen look in g, and in any function of yours that it calls."}
    found = list(report.astray([verdict("right"), replace(verdict("h: wrong"), astray=astray)]))
    assert found == [f"failure-modes  h: wrong  saved-prefix-exact: {' '.join(astray['saved-prefix-exact'].split())}"]


@pytest.mark.parametrize("stage", GRADED_STAGES, ids=lambda stage: stage.name)
def test_a_list_of_names_holds_existing_bugs_and_functions_that_no_sample_combines(stage, monkeypatch):
    checks_of(stage.name)  # loads the stage's bugs
    listed = {tuple(entry.split(": ")) for entry in report._listed(stage.name, "names.txt")}
    functions = {function_of(mutant.id) for mutant in mutants_of(stage)}
    assert {key for _, key in listed} <= set(BUGS) and {function for function, _ in listed} <= functions
    monkeypatch.setattr(report, "_listed", lambda *args: {})
    assert not report._homes.__wrapped__(stage.name) & listed


def test_a_missing_or_ended_process_is_not_a_doubtful_name():
    assert list(report.doubtful_names([verdict("loops", names={"miss-explained": "not-finished"})])) == []
