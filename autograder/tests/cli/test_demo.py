"""`make demo`: nbgrader grades real notebooks, and the table shows each."""

import json

import pytest

from autograder.cli.sample_class import UNSOLVED, a_class_of
from autograder.cli.scores_table import gradebook_scores
from autograder.grading.records import read_records
from autograder.judge.framework import checks_of
from autograder.places import ROOT
from autograder.stages import GRADED_STAGES, find_stage
from autograder.stages.samples import Right, Wrong
from autograder.tests.command import autograder

STAGE = find_stage("kv-cache")  # the soonest graded


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder that `autograder demo` leaves, and its output."""
    folder = tmp_path_factory.mktemp("demo") / "class"
    without_environment = {"COLUMNS": "160", "PATH": "/usr/bin:/bin"}
    result = autograder("demo", "--stage", STAGE.name, "--folder", folder, **without_environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder, result.stdout


def sample_class():
    return {s.name: s for s in a_class_of(STAGE)}


def test_every_right_submission_has_every_point_and_every_wrong_one_loses_its_checks(demo):
    folder, _ = demo
    scores = gradebook_scores(folder, STAGE)
    points = {check.id: check.points for check in checks_of(STAGE.name)}
    assert set(scores) == {*sample_class(), UNSOLVED}
    for name, submission in sample_class().items():
        loses, also = (set(submission.loses), set(submission.also)) if isinstance(submission, Wrong) else (set(), set())
        lost = {check for check, score in scores[name].items() if score == 0}
        assert lost - also == loses, name
        assert scores[name] == {check: 0 if check in lost else most for check, most in points.items()}, name


def test_the_class_has_several_right_and_several_wrong_submissions():
    for stage in GRADED_STAGES:
        chosen = a_class_of(stage)
        assert sum(isinstance(s, Right) for s in chosen) == 5
        assert sum(isinstance(s, Wrong) for s in chosen) == 12


def test_the_class_has_the_styles_and_the_mistakes_that_people_show_first():
    right = ["lists", "concatenated", "token-major", "float64", "strict-length"]
    wrong = {"positions-reset", "positions-plus-one", "saved-cache-mutated", "shallow-clone", "one-layer-cloned"}
    wrong |= {"prefix-one-short", "first-suffix-logits", "recomputes", "raises", UNSOLVED}
    chosen = {s.name: s for s in a_class_of(find_stage("save-and-reuse"))}
    assert [name for name, s in chosen.items() if isinstance(s, Right)] == right
    assert wrong < {name for name, s in chosen.items() if isinstance(s, Wrong)}


def test_the_table_has_a_row_for_each_submission_with_its_points_and_its_bug(demo):
    folder, shown = demo
    scores = gradebook_scores(folder, STAGE)
    records = {record.student: record for record in read_records(folder / "autograded", STAGE.assignment)}
    for name in scores:
        (row,) = [line.split() for line in shown.splitlines() if line.split()[:1] == [name]]
        points = [f"{scores[name][check.id]:g}" for check in checks_of(STAGE.name)]
        assert row[1 : len(points) + 2] == [*points, f"{sum(scores[name].values()):g}"]
        for check in records[name].checks:
            if check.bug:
                assert check.bug.label in " ".join(row[len(points) + 2 :])


def test_every_feedback_page_says_what_failed(demo):
    folder, shown = demo
    assert f"{folder}/feedback/STUDENT/02-kv-cache/kv_cache.html" in shown
    titles = {check.id: check.title for check in checks_of(STAGE.name)}
    scores = gradebook_scores(folder, STAGE)
    for name in sample_class():
        page = (folder / "feedback" / name / STAGE.assignment / f"{STAGE.module}.html").read_text(encoding="utf-8")
        for check, title in titles.items():
            assert (f"Not passed: {title}" in page) == (scores[name][check] == 0)


def test_what_was_handed_in_is_the_released_notebook_with_other_solution_cells(demo):
    folder, _ = demo
    released = json.loads((folder / "release" / STAGE.assignment / f"{STAGE.module}.ipynb").read_text(encoding="utf-8"))
    path = folder / "submitted" / "clone-shallow" / STAGE.assignment / f"{STAGE.module}.ipynb"
    submitted = json.loads(path.read_text(encoding="utf-8"))
    different = [
        cell["metadata"]["nbgrader"]
        for cell, original in zip(submitted["cells"], released["cells"], strict=True)
        if "".join(cell["source"]) != "".join(original["source"])
    ]
    assert different
    assert all(nbgrader["solution"] and not nbgrader["grade"] for nbgrader in different)


def test_a_second_demo_replaces_the_first_and_nothing_else(demo, tmp_path):
    folder, _ = demo
    assert (folder / ".sample-class").exists()
    other = tmp_path / "mine"
    other.mkdir()
    (other / "work.txt").write_text("mine")
    assert autograder("demo", "--folder", other).returncode == 2
    assert (other / "work.txt").read_text() == "mine"


def test_make_demo_calls_it_and_git_ignores_its_folder():
    assert "$(PY) -m autograder demo" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "demo-class/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
