"""Where there is no sandbox: it is said once, or refused; and what no sandbox can tell."""

import json
import os

import jupytext
import pytest

from autograder.grading.grade import grade_submission
from autograder.notebooks.given import given_source
from autograder.places import SOLUTIONS
from autograder.sandbox.client import Cell
from autograder.stages import find_stage
from autograder.stages.sample_tests import shared_worker
from autograder.stages.samples import solved_cells
from autograder.tests.command import autograder
from autograder.tests.course import CHECKS, STAGE, Course
from autograder.tests.hostile.attacks import ZEROS

WITHOUT = {"AUTOGRADER_SANDBOX": "limits"}
REQUIRED = "--SubmissionExporter.require_sandbox=True"
NOT_ALLOWED = "--SubmissionExporter.allow_unsandboxed=False"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Two submissions graded without a sandbox; then runs that require one, of everybody and of root alone."""
    course = Course(tmp_path_factory.mktemp("without"))
    course.hand_in("honest")
    course.hand_in("zeros", ZEROS)
    course.first = course.run("autograde", STAGE.assignment, **WITHOUT)
    course.refused = course.run("autograde", STAGE.assignment, "--force", REQUIRED, **WITHOUT)
    course.not_allowed = course.run("autograde", STAGE.assignment, "--force", NOT_ALLOWED, **WITHOUT)
    return course


def test_autograder_grade_refuses_as_well(course):
    run = autograder("grade", STAGE.name, "--force", "--course", course.folder, "--require-sandbox", **WITHOUT)
    assert run.returncode == 2
    assert "Nothing was graded. Not sandboxed: " in run.stdout + run.stderr
    assert course.scores("honest") == {i: c.points for i, c in CHECKS.items()}


def test_scores_are_the_same(course):
    assert course.scores("honest") == {i: c.points for i, c in CHECKS.items()}
    assert course.scores("zeros") == dict.fromkeys(CHECKS, 0)


def test_a_run_reports_missing_isolation_once_before_grading(course):
    before, *after = course.first.stderr.split("Not sandboxed: AUTOGRADER_SANDBOX asks for limits; ")
    assert course.first.returncode == 0 and len(after) == 1 and "graded in" not in before


def test_the_report_has_it_for_each_submission(course):
    report = json.loads((course.folder / "autograded" / f"report-{STAGE.assignment}.json").read_text(encoding="utf-8"))
    assert all(r["isolation"].startswith("Not sandboxed: ") for r in report) and len(report) == 2


def test_a_course_that_requires_the_sandbox_grades_nothing_and_keeps_what_was_graded(course):
    assert course.refused.returncode == 1
    assert "Nothing was graded. Not sandboxed: " in course.refused.stderr
    assert course.scores("honest") == {i: c.points for i, c in CHECKS.items()}
    assert course.path("honest", "autograded").exists()


def test_root_grades_nothing_without_a_sandbox_unless_the_course_allows_it(course):
    assert course.not_allowed.returncode == (os.geteuid() == 0)
    refused = "Nothing was graded. Root grades only in a sandbox: AUTOGRADER_SANDBOX asks for limits; "
    assert (refused in course.not_allowed.stderr) == (os.geteuid() == 0)


# What only the student's process can know

FORGED_COUNT = """
from autograder.worker import runtime
def _counted(self, request):
    reply = self._invoke(self.namespace[request['name']], request)
    prompt, n_new = request['args'][:2]
    return {**reply, 'tokens': len(prompt) + n_new - 1}
runtime.Runtime._counted = _counted
"""
RECOMPUTES = """
def generate(prompt_ids, n_new, weights):
    if len(prompt_ids) + n_new - 1 > weights.config.n_ctx: raise ValueError('too long')
    ids = list(prompt_ids)
    for _ in range(n_new):
        ids.append(int(prefill(ids, weights, ModelCache(weights.config.n_layer)).argmax()))
    return ids[len(prompt_ids):]
"""


def outcome(tmp_path, generate, own):
    """Which checks of prefill-decode pass with this generate."""
    stage = find_stage("prefill-decode")
    given = tmp_path / "given.py"
    given.write_text(given_source(stage), encoding="utf-8")
    script = jupytext.read(SOLUTIONS / f"{stage.module}.py")
    cells = [Cell(c.metadata["setup"], c.source) for c in script.cells if "setup" in c.metadata]
    cells += [Cell(mark, source) for mark, source in (solved_cells(stage.name) | {"generate": generate}).items()]
    result = grade_submission([Cell("own", own), *cells], stage, 7, given, start_worker=shared_worker)
    return {r.id: r.passed for r in result.results}


def test_a_count_of_tokens_can_be_forged_and_the_numbers_cannot(tmp_path):
    honest = outcome(tmp_path, RECOMPUTES, "")
    assert [check for check, passed in honest.items() if not passed] == ["generate-work"]
    assert all(outcome(tmp_path, RECOMPUTES, FORGED_COUNT).values())  # which nothing here can tell
    zeros = "def generate(prompt_ids, n_new, weights):\n    return [0] * n_new"
    assert not any(outcome(tmp_path, zeros, FORGED_COUNT)[check] for check in ("generate-ids", "generate-work"))
