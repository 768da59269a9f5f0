"""`autograder grade`: what it says when it cannot do what was asked. How it marks: tests/grading/test_class_run.py."""

import re

import pytest

from autograder.cli.errors import UserError
from autograder.cli.grade import find_course, run
from autograder.stages import UnknownStage
from autograder.tests.course import STAGE, Course

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
    """Gives the configuration's path, and puts it back afterwards."""
    path = here / "nbgrader_config.py"
    text = path.read_text(encoding="utf-8")
    yield path
    path.write_text(text, encoding="utf-8")


def test_a_stage_that_does_not_exist_or_has_no_checks(here):
    with pytest.raises(UnknownStage, match="There is no stage 'kv'; the stages are start-here, forward-pass,"):
        grade("kv")
    with pytest.raises(UserError, match="Nothing is graded in start-here; the stages with checks are forward-pass,"):
        grade("start-here")


def test_the_course_is_found_from_where_one_stands(here, tmp_path, monkeypatch):
    assert find_course(None) == here
    monkeypatch.chdir(here / "submitted" / "anna")
    assert find_course(None) == here
    monkeypatch.chdir(tmp_path)
    (tmp_path / "course").symlink_to(here)
    assert find_course(None) == tmp_path / "course"
    assert find_course(here) == here


def test_a_course_that_is_not_there(tmp_path, monkeypatch):
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
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_marked(here, tmp_path, option):
    with pytest.raises(UserError, match=r"cannot be written; name a file in a folder that can\.$"):
        grade(**{option: tmp_path / "nowhere" / "marks"})
    assert not (here / "autograded").exists()


def test_a_configuration_that_cannot_be_read(config):
    config.write_text("c = get_config(\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"nbgrader_config\.py cannot be used \(SyntaxError: "):
        grade()


def test_a_configuration_that_would_run_the_students_code_here_marks_nothing(config):
    config.write_text(config.read_text("utf-8").replace("c.Autograde.exporter_class", "ours"), encoding="utf-8")
    with pytest.raises(UserError, match=r"does not set c\.Autograde\.exporter_class"):
        grade()


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
    assert re.fullmatch(r"04-save-and-reuse: 1 graded, 0 not graded, \d+ s", lines[-1])
