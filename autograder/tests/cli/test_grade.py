"""`autograder grade`: its errors and its tables. How it grades: tests/grading/test_class_run.py."""

import csv
import os
import re
import shutil
import subprocess

import pytest

from autograder.cli.errors import UserError
from autograder.cli.find import find_course
from autograder.cli.grade import distribution, run, write_csv
from autograder.grading.outcome import STALE, Line, Outcome
from autograder.grading.records import Record
from autograder.stages import UnknownStage
from autograder.tests.command import autograder, run_nbgrader
from autograder.tests.course import STAGE, Course
from autograder.tests.grading_class import ENVIRONMENT, GRADE

OPTIONS = {"course": None, "students": (), "jobs": None, "force": False, "csv_path": None, "json_path": None}


def grade(*stages, **options):
    return run(stages, **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A course in which one student has handed in an unsolved notebook."""
    course = Course(tmp_path_factory.mktemp("course"))
    course.hand_in("anna", {})
    return course


@pytest.fixture
def here(built, monkeypatch):
    monkeypatch.chdir(built.folder)  # comes back from where the command goes
    return built.folder


@pytest.fixture
def config(here):
    """The configuration's path; the file is restored afterwards."""
    path = here / "nbgrader_config.py"
    text = path.read_text(encoding="utf-8")
    yield path
    path.write_text(text, encoding="utf-8")


def test_a_stage_that_does_not_exist_or_has_no_checks(here):
    with pytest.raises(UnknownStage, match="There is no stage 'kv'; the stages are start-here, forward-pass,"):
        grade("kv")
    with pytest.raises(UserError, match="Nothing is graded in start-here; the stages with checks are forward-pass,"):
        grade("start-here")


def test_the_course_is_found_from_the_current_folder(here, tmp_path, monkeypatch):
    assert find_course(None) == here
    monkeypatch.chdir(here / "submitted" / "anna")
    assert find_course(None) == here
    monkeypatch.chdir(tmp_path)
    (tmp_path / "course").symlink_to(here)
    assert find_course(None) == tmp_path / "course"
    assert find_course(here) == here


def test_a_course_that_does_not_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"There is no nbgrader_config.py in this folder, .* --course PATH\.$"):
        grade()
    with pytest.raises(UserError, match=r"is not a course folder: it has no nbgrader_config\.py\.$"):
        grade(course=tmp_path)


def test_nothing_handed_in(here):
    with pytest.raises(UserError, match=r"^Nothing was handed in for 02-kv-cache \(in .*/submitted/STUDENT/\)\.$"):
        grade("kv-cache")
    with pytest.raises(UserError, match=r"^ben, c\* handed in nothing for 04-save-and-reuse \(in "):
        grade(STAGE.name, students=("anna", "ben", "c*"))
    with pytest.raises(UserError, match=r"^ben handed in nothing for any stage \(in "):
        grade(students=("ben",))


@pytest.mark.parametrize("option", ["csv_path", "json_path"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_graded(here, tmp_path, option):
    with pytest.raises(UserError, match=r"cannot be written; name a file in a folder that can\.$"):
        grade(**{option: tmp_path / "nowhere" / "scores"})
    assert not (here / "autograded").exists()


@pytest.mark.skipif(os.name != "posix", reason="makes a pipe with a name")
@pytest.mark.parametrize("option", ["csv_path", "json_path"])
def test_a_path_that_is_not_an_ordinary_file_is_not_replaced(here, tmp_path, option):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(os.devnull)
    for name in ("pipe", "link"):
        with pytest.raises(UserError, match=r"is not an ordinary file and would be replaced; name another\.$"):
            grade(**{option: tmp_path / name})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"] and (tmp_path / "pipe").is_fifo()


def test_a_configuration_that_cannot_be_read(config):
    config.write_text("c = get_config(\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"nbgrader_config\.py cannot be used \(SyntaxError: "):
        grade()


def test_a_configuration_that_would_run_students_code_in_this_process_grades_nothing(config):
    config.write_text(config.read_text("utf-8").replace("c.Autograde.exporter_class", "ours"), encoding="utf-8")
    with pytest.raises(UserError, match=r"does not set c\.Autograde\.exporter_class"):
        grade()


def test_a_student_whom_the_configuration_leaves_out(config):
    config.write_text(
        config.read_text("utf-8") + "c.CourseDirectory.student_id_exclude = 'anna,ben'\n", encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"student_id_exclude in nbgrader_config\.py leaves out anna; change it, or"):
        grade(students=("anna",))


def test_a_course_path_that_nbgrader_reads_as_a_pattern(here, tmp_path):
    folder = shutil.copytree(here, tmp_path / "course [2026]")
    autograded = run_nbgrader(["autograde", STAGE.assignment], folder, ENVIRONMENT)
    for done in (autograder("grade", STAGE.name, cwd=folder), autograded):
        assert done.returncode != 0 and "course [2026]: it reads *, ? and [ in a path as patterns" in done.stderr, done


def test_a_course_that_was_not_built(here, capfd):
    with_source = here / "source"
    with_source.rename(here / "moved")
    try:
        with pytest.raises(UserError, match=r"save_and_reuse\.ipynb is missing; run: autograder build$"):
            grade()
    finally:
        (here / "moved").rename(with_source)
    assert "Traceback" not in capfd.readouterr().err


def test_all_stages_when_none_is_named(here, capsys):
    assert grade() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].endswith("points of 14, and how many have them: 0 (1); median 0")
    assert re.fullmatch(r"04-save-and-reuse: 1 graded, 0 not graded, \d+ s", lines[-1])


def test_a_stage_that_cannot_be_graded_does_not_prevent_grading_and_reporting_the_others(here, tmp_path, capsys):
    for stage in ("02-kv-cache", "05-failure-modes"):
        (here / "submitted" / "anna" / stage).mkdir()
    table = tmp_path / "scores.csv"
    with pytest.raises(UserError) as problem:
        grade(csv_path=table)
    assert re.fullmatch(
        r"\S+kv_cache\.ipynb is missing; run: autograder build \S+failure_modes\.ipynb is missing; .*",
        str(problem.value),
    )
    assert re.fullmatch(r"04-save-and-reuse: 1 graded.*, 0 not graded, \d+ s", capsys.readouterr().out.splitlines()[-1])
    assert [row["student"] for row in rows(table)] == ["anna"]
    for stage in ("02-kv-cache", "05-failure-modes"):
        (here / "submitted" / "anna" / stage).rmdir()


def test_a_name_that_the_terminal_cannot_encode_does_not_end_the_run(built):
    built.hand_in("Zo\u00eb", {})
    built.path("Zo\u00eb").write_text("{")
    run = subprocess.run(
        GRADE, cwd=built.folder, env=ENVIRONMENT | {"PYTHONIOENCODING": "ascii"}, capture_output=True, text=True
    )
    assert run.returncode == 1 and "Traceback" not in run.stderr, run.stderr
    assert re.search(r"^  Zo\\xeb +NOT GRADED  save_and_reuse\.ipynb is not valid JSON", run.stdout, re.MULTILINE)
    assert re.fullmatch(r"04-save-and-reuse: 1 graded.*, 1 not graded, \d+ s", run.stdout.splitlines()[-1])


def test_the_missing_sandbox_is_reported_once_on_stderr(built):
    run = autograder("grade", STAGE.name, cwd=built.folder, AUTOGRADER_SANDBOX="limits")
    assert run.stderr.count("Not sandboxed: ") == 1 and "Not sandboxed" not in run.stdout


def test_the_points_of_a_class_and_their_median():
    assert distribution([14.0, 3.5, 14.0, 12.0], 14.0) == (
        "points of 14, and how many have them: 14 (2), 12 (1), 3.5 (1); median 13"
    )


# The table of --csv


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def record(student, **values):
    return Record(STAGE.assignment, student, "graded", "2026-01-31T12:00:00Z", "abc", **values)


def outcome(*lines):
    return Outcome(STAGE.assignment, 1, 0, 0, lines, 1.0, None)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1"])
def test_nothing_in_the_table_is_a_formula_to_a_spreadsheet(tmp_path, text):
    write_csv(tmp_path / "scores.csv", [(outcome(), [record(text, score=-1.5, reason=f"{text}\nforged")])])
    (row,) = rows(tmp_path / "scores.csv")
    assert row["student"].startswith("'") and row["reason"].startswith("'") and row["score"] == "-1.5"
    assert len((tmp_path / "scores.csv").read_text(encoding="utf-8").splitlines()) == 2


def test_the_table_lists_scores_that_are_out_of_date(tmp_path):
    lines = [Line("anna", STALE, "graded with other checks")]
    write_csv(tmp_path / "scores.csv", [(outcome(*lines), [record("anna"), record("ben")])])
    assert [row["stale"] for row in rows(tmp_path / "scores.csv")] == ["graded with other checks", ""]


@pytest.mark.skipif(os.name != "posix", reason="looks at modes")
@pytest.mark.parametrize("mask", [0o077, 0o022])
def test_the_mode_of_the_table_follows_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_csv(tmp_path / "scores.csv", [(outcome(), [record("anna")])])
    finally:
        os.umask(before)
    assert (tmp_path / "scores.csv").stat().st_mode & 0o777 == 0o666 & ~mask
    assert len(list(tmp_path.iterdir())) == 1
