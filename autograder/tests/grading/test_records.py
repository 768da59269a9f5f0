"""What was found out about a submission: on disk whole or not at all, whatever is in it, for those who may read it."""

import os
import stat
from dataclasses import replace

import pytest

from autograder.grading.notes import Note
from autograder.grading.records import Record, read_record, record_path, unreadable, write_record, write_report
from autograder.grading.stale import why_stale
from autograder.judge.bugs import POSITIONS_RESET
from autograder.judge.framework import Result
from autograder.stages import find_stage

PASSED = Result("saved-length", "The saved cache has the prefix's length", 2.0, 2.0, True)
FAILED = Result("position-continues", "Positions continue", 2.0, 0.0, False, "They do.", POSITIONS_RESET)
ZOE = Record(
    *("04-save-and-reuse", "zoe", "graded", "2026-01-31T12:00:00Z", "2"), score=2.0, max_score=4.0,
    checks=(PASSED, FAILED), notes=(Note("renamed", None, "The notebook was named x.ipynb."),),
)  # fmt: skip
# As it was written when a version was a hash, and a bug had no sentence of its own
BEFORE = """{
 "assignment": "04-save-and-reuse", "student": "zoe", "status": "graded", "graded_at": "2025-11-30T12:00:00Z",
 "checks_version": "042592ae8e", "reason": "", "file": "save_and_reuse.ipynb", "digest": "00", "score": 2.0,
 "max_score": 4.0, "seconds": 1.5, "isolation": "bubblewrap",
 "checks": [
  {"id": "saved-length", "title": "The saved cache has the prefix's length", "passed": true, "score": 2.0,
   "points": 2.0, "message": "", "bug": null},
  {"id": "position-continues", "title": "Positions continue", "passed": false, "score": 0.0, "points": 2.0,
   "message": "They do.", "bug": {"key": "positions-reset", "label": "positions reset to 0"}}
 ],
 "notes": [{"kind": "renamed", "cell": null, "sentence": "The notebook was named x.ipynb."}],
 "answers": {"why-positions": "ab"}
}"""


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(tmp_path, text):
    path = record_path(tmp_path, ZOE.assignment, "zoe")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_record_is_read_as_it_was_written(tmp_path):
    write_record(tmp_path, ZOE)
    assert read_record(tmp_path, ZOE.assignment, "zoe") == ZOE


def test_a_record_of_an_earlier_version_is_read_and_its_scores_are_out_of_date(tmp_path):
    write(tmp_path, BEFORE)
    record = read_record(tmp_path, ZOE.assignment, "zoe")
    without_sentence = replace(POSITIONS_RESET, sentence="", look="")
    assert record.checks == (PASSED, replace(FAILED, bug=without_sentence)) and record.notes == ZOE.notes
    assert record.bugs == ("positions reset to 0",)
    assert "graded with other checks (042592ae8e)" in why_stale(record, tmp_path, find_stage("save-and-reuse"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"score": 2.0,', '"score": "many",'),
        ('"score": 2.0,', '"score": NaN,'),
        ('"student": "zoe"', '"student": 3'),
        ('"id": "saved-length", ', ""),
        ('"id": "saved-length", ', '"id": "saved-length", "look": null, '),
        ('{"key": "positions-reset", ', "{"),
        ('"checks": [', '"checks": [7, '),
        ('"notes": [{', '"notes": [{"more": 1}, {'),
    ],
)
def test_a_damaged_record_is_not_read(tmp_path, old, new):
    assert old in BEFORE
    write(tmp_path, BEFORE.replace(old, new))
    assert read_record(tmp_path, ZOE.assignment, "zoe") is None


def test_half_a_character_of_a_file_name_is_kept(tmp_path):
    odd = replace(ZOE, file=os.fsdecode(b"caf\xe9.ipynb"))
    write_record(tmp_path, odd)
    assert read_record(tmp_path, ZOE.assignment, "zoe") == odd
    assert write_report(tmp_path, ZOE.assignment).read_text(encoding="utf-8").isascii()


def test_a_failed_write_leaves_the_old_record_and_no_other_file(tmp_path):
    write_record(tmp_path, ZOE)
    with pytest.raises(TypeError):
        write_record(tmp_path, replace(ZOE, notes=(Note("odd", None, object()),)))
    path = record_path(tmp_path, ZOE.assignment, "zoe")
    assert list(path.parent.iterdir()) == [path] and read_record(tmp_path, ZOE.assignment, "zoe") == ZOE


@pytest.mark.skipif(os.name != "posix", reason="looks at modes")
@pytest.mark.parametrize(
    ("mask", "group", "expected"), [(0o022, False, 0o644), (0o077, False, 0o600), (0o022, True, 0o664)]
)
def test_the_mode_of_a_record_follows_the_umask_and_groupshared(tmp_path, mask, group, expected):
    before = os.umask(mask)
    try:
        write_record(tmp_path, ZOE, group)
        report = write_report(tmp_path, ZOE.assignment, group)
    finally:
        os.umask(before)
    path = record_path(tmp_path, ZOE.assignment, "zoe")
    assert mode(path) == mode(report) == expected
    assert path.parent.stat().st_mode & 0o2020 == (0o2020 if group else 0)


def test_a_missing_or_damaged_record_is_not_called_unreadable(tmp_path):
    assert unreadable(tmp_path, ZOE.assignment, "zoe") is None
    path = record_path(tmp_path, ZOE.assignment, "zoe")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    assert unreadable(tmp_path, ZOE.assignment, "zoe") is None and read_record(tmp_path, ZOE.assignment, "zoe") is None
