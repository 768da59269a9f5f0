"""Hidden inputs come from a secret of the course: nobody can foresee them, and a re-grade has the same ones."""

import os
import stat

import pytest

from autograder.course_secret import SeedError, course_secret
from autograder.grading.seed import code_digest, student_key, submission_seed
from autograder.sandbox.client import Cell

SECRET = b"0123456789abcdef"


def test_the_secret_is_made_once_for_its_owner_alone(tmp_path):
    secret = course_secret(tmp_path)
    assert course_secret(tmp_path) == secret and len(secret) == 32
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_courses_have_different_secrets(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert course_secret(tmp_path / "a") != course_secret(tmp_path / "b")


@pytest.mark.parametrize("content", ["", "short", "zz" * 32, "ab"])
def test_a_damaged_secret_is_not_replaced_silently(tmp_path, content):
    (tmp_path / ".autograder-seed").write_text(content)
    with pytest.raises(SeedError, match="does not hold a secret; restore it"):
        course_secret(tmp_path)
    assert (tmp_path / ".autograder-seed").read_text() == content


@pytest.mark.parametrize("meanwhile", [None, "ab" * 32])
def test_a_file_system_without_hard_links_is_enough(tmp_path, monkeypatch, meanwhile):
    """Also when another process makes the secret at the same moment."""

    def refused(source, target):
        if meanwhile:
            target.write_text(meanwhile)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    secret = course_secret(tmp_path)
    assert course_secret(tmp_path) == secret and secret == bytes.fromhex(meanwhile or secret.hex())
    (path,) = tmp_path.iterdir()
    assert path.name == ".autograder-seed" and (meanwhile or stat.S_IMODE(path.stat().st_mode) == 0o600)


def test_a_secret_that_cannot_be_read_or_made_is_reported(tmp_path, monkeypatch):
    with pytest.raises(SeedError, match=r"/nowhere/\.autograder-seed cannot be used \(No such file or directory\)"):
        course_secret(tmp_path / "nowhere")
    course_secret(tmp_path)
    monkeypatch.setattr(type(tmp_path), "read_text", _not_for_you)
    with pytest.raises(
        SeedError, match=r"\(Permission denied\); its owner has to permit it: chgrp GROUP and chmod 640"
    ):
        course_secret(tmp_path)


def _not_for_you(*args, **kwargs):
    raise PermissionError(13, "Permission denied")


def seed(secret=SECRET, student="alice", code="c0de"):
    return submission_seed(student_key(secret, student), code)


def test_a_seed_is_repeatable_and_depends_on_secret_student_and_code():
    others = [seed(secret=b"another secret.."), seed(student="bob"), seed(code="0ther")]
    assert seed() == seed()
    assert len({seed(), *others}) == 4
    assert all(0 <= number < 2**63 for number in (seed(), *others))


def test_the_digest_covers_everything_that_the_process_receives_of_the_cells():
    """Their names are in co_filename: an empty cell that moves the others makes other inputs."""
    cells = [Cell("cell 1", "x = 1"), Cell("cell 2", "y = 2")]
    assert code_digest(cells) == code_digest(list(cells))
    others = [
        [Cell("cell 1", "x = 1"), Cell("cell 3", "y = 2")],
        [Cell("cell 1", "x = 1"), Cell("cell 2", "y = 3")],
        [Cell("cell 1", "x = 1")],
        cells[::-1],
    ]
    assert code_digest(cells) not in map(code_digest, others)
