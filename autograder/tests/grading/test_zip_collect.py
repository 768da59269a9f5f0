"""`nbgrader zip_collect` with the course's configuration: the names that learning platforms give to files."""

import re
import shutil
import subprocess
import zipfile

import pytest
from traitlets.config import PyFileConfigLoader

from autograder.places import CONFIG, ROOT
from autograder.tests.course import NAME, STAGE, Course

COLLECTED = {
    "Doe Jane_123456_assignsubmission_file_save_and_reuse.ipynb": ("Doe Jane", "save_and_reuse"),
    "Doe Jane_123456_assignsubmission_file/save_and_reuse.ipynb": ("Doe Jane", "save_and_reuse"),
    "Doe Jane_123456_assignsubmission_file_/my_save_and_reuse.ipynb": ("Doe Jane", "my_save_and_reuse"),
    "course-Stage 4-98/Doe Jane_123456_assignsubmission_file_work/work/save_and_reuse.ipynb":
        ("Doe Jane", "save_and_reuse"),
    "doejane_123_456_save_and_reuse.ipynb": ("doejane", "save_and_reuse"),
    "doejane_LATE_123_456_save_and_reuse-1.ipynb": ("doejane", "save_and_reuse"),
    "doejane_123_456_final (2).ipynb": ("doejane", "final (2)"),
    "submissions/doejane_123_456_homework/part/save_and_reuse.ipynb": ("doejane", "save_and_reuse"),
    "jdoe_save_and_reuse.ipynb": ("jdoe", "save_and_reuse"),
    "j_doe_forward_pass.ipynb": ("j_doe", "forward_pass"),
}  # fmt: skip
PASSED_OVER = ["save_and_reuse.ipynb", "notes.ipynb", "jdoe_notes.ipynb", "__MACOSX/._jdoe_save_and_reuse.ipynb",
               "doejane_123_456_work/.ipynb_checkpoints.ipynb"]  # fmt: skip


@pytest.fixture(scope="module")
def pattern():
    config = PyFileConfigLoader(CONFIG, path=str(ROOT / "course")).load_config()
    return config.FileNameCollectorPlugin.named_regexp


@pytest.mark.parametrize("above", ["/home_of/jane_save_and_reuse/course/downloaded/x/extracted/", "C:\\x\\extracted\\"])
@pytest.mark.parametrize("name", COLLECTED)
def test_a_file_name_gives_the_student_and_the_notebook(pattern, above, name):
    found = re.match(pattern, above + (name.replace("/", "\\") if "\\" in above else name))
    assert found and (found["student_id"], found["file_id"]) == COLLECTED[name]


@pytest.mark.parametrize("name", PASSED_OVER)
def test_a_file_name_without_a_student_is_skipped(pattern, name):
    assert re.match(pattern, f"/course/downloaded/{STAGE.assignment}/extracted/{name}") is None


def test_a_download_becomes_submissions_that_are_graded(tmp_path):
    course = Course(tmp_path / "course")
    archive = course.folder / "downloaded" / STAGE.assignment / "archive"
    archive.mkdir(parents=True)
    course.hand_in("anybody", {})
    notebook = course.path("anybody")
    with zipfile.ZipFile(archive / "Stage 4.zip", "w") as download:
        download.write(notebook, f"Doe Jane_123456_assignsubmission_file_{NAME}")
        download.write(notebook, f"Roe Rick_123457_assignsubmission_file_{STAGE.module} (1).ipynb")
    shutil.copy(notebook, archive / f"jdoe_{NAME}")
    shutil.rmtree(course.folder / "submitted")
    collected = course.run("zip_collect", STAGE.assignment)
    assert collected.returncode == 0, collected.stderr
    graded = course.run("autograde", STAGE.assignment)
    assert graded.returncode == 0, graded.stderr
    for student in ("Doe Jane", "Roe Rick", "jdoe"):
        assert None not in course.scores(student).values()


def test_what_was_downloaded_is_not_committed():
    path = f"course/downloaded/{STAGE.assignment}/archive/jdoe_{NAME}"
    ignored = subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT)
    if ignored.returncode == 128:
        pytest.skip("this is not a git checkout")
    assert ignored.returncode == 0
