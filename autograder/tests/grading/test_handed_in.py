"""When a submission was handed in, by its timestamp.txt. That it is stored: test_nbgrader.py."""

from datetime import datetime

import pytest

from autograder.grading.handed_in import folder_problem, parse_time


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01 12:00:00 UTC",
        "2026-03-01 12:00:00",
        "2026-03-01T12:00:00Z",
        "2026-03-01 14:00:00 +0200",
        "2026-03-01 14:00:00 +02:00",
        "2026-03-01 14:00:00+02:00",
        "2026-03-01 06:30:00 -0530",
        "2026-03-01 13:00:00.000000 CET",
        "2026-03-01 13:00:00 Europe/Berlin",
    ],
)
def test_a_time_in_any_zone_is_the_same_moment(text):
    assert parse_time(text) == datetime(2026, 3, 1, 12)


@pytest.mark.parametrize("text", ["yesterday", "2026-03-01 12:00:00 HERE", "2026-03-01 12:00:00 +2", "2026-13-01"])
def test_a_wrong_timestamp_is_refused_by_name(tmp_path, text):
    (tmp_path / "timestamp.txt").write_text(text, encoding="utf-8")
    assert "does not hold a time such as" in folder_problem(tmp_path)
