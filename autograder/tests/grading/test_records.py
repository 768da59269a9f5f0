"""What was found out about a submission: on disk whole or not at all, whatever is in it, for those who may read it."""

import os
import stat

import pytest

from autograder.grading.records import Record, read_record, record_path, unreadable, write_record, write_report

ZOE = Record("04-save-and-reuse", "zoe", "graded", "2026-01-31T12:00:00Z", "abc", score=3.0)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_half_a_character_of_a_file_name_is_kept(tmp_path):
    odd = Record(ZOE.assignment, "zoe", "graded", ZOE.graded_at, "abc", file=os.fsdecode(b"caf\xe9.ipynb"))
    write_record(tmp_path, odd)
    assert read_record(tmp_path, ZOE.assignment, "zoe") == odd
    assert write_report(tmp_path, ZOE.assignment).read_text(encoding="utf-8").isascii()


def test_what_cannot_be_written_leaves_the_record_as_it_was_and_nothing_beside_it(tmp_path):
    write_record(tmp_path, ZOE)
    with pytest.raises(TypeError):
        write_record(
            tmp_path, Record(ZOE.assignment, "zoe", "graded", ZOE.graded_at, "abc", notes=[{"sentence": object()}])
        )
    path = record_path(tmp_path, ZOE.assignment, "zoe")
    assert list(path.parent.iterdir()) == [path] and read_record(tmp_path, ZOE.assignment, "zoe") == ZOE


@pytest.mark.skipif(os.name != "posix", reason="looks at modes")
@pytest.mark.parametrize(
    ("mask", "group", "expected"), [(0o022, False, 0o644), (0o077, False, 0o600), (0o022, True, 0o664)]
)
def test_who_may_read_a_record_is_for_the_umask_to_say_and_for_groupshared(tmp_path, mask, group, expected):
    before = os.umask(mask)
    try:
        write_record(tmp_path, ZOE, group)
        report = write_report(tmp_path, ZOE.assignment, group)
    finally:
        os.umask(before)
    path = record_path(tmp_path, ZOE.assignment, "zoe")
    assert mode(path) == mode(report) == expected
    assert path.parent.stat().st_mode & 0o2020 == (0o2020 if group else 0)


def test_a_record_that_is_not_there_or_is_damaged_is_not_called_unreadable(tmp_path):
    assert unreadable(tmp_path, ZOE.assignment, "zoe") is None
    path = record_path(tmp_path, ZOE.assignment, "zoe")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    assert unreadable(tmp_path, ZOE.assignment, "zoe") is None and read_record(tmp_path, ZOE.assignment, "zoe") is None
