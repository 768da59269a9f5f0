"""Text and tables that grow: the final output, and who is ahead in a race."""

import pytest

import autograder
from autograder.toolkit.play import live


class Words:
    """A tokenizer whose token i is the letter i."""

    @staticmethod
    def decode(ids):
        return "".join(chr(97 + i) for i in ids)


def test_a_stream_ends_with_prompt_and_text(capsys):
    autograder.stream(Words, [0, 1], iter([2, 3]))
    assert capsys.readouterr().out == "abcd\n"


def test_in_a_race_every_clock_runs_only_while_its_lane_computes(monkeypatch, capsys):
    now = 0.0
    order = []

    def lane(name, seconds):
        nonlocal now
        for i in range(3):
            now += seconds
            order.append(name)
            yield i

    monkeypatch.setattr(live.time, "perf_counter", lambda: now)
    seconds = autograder.race(Words, {"slow": lane("slow", 4.0), "fast": lane("fast", 1.0)})
    assert seconds == {"slow": 12.0, "fast": 3.0}
    assert order == ["slow", "fast", "fast", "fast", "slow", "slow"]
    assert "fast: 3 tokens, 3.00 s, finished" in capsys.readouterr().out


def test_a_table_grows_by_rows_and_ends_with_sums(capsys):
    rows = ({"user": f"u{i}", "computed": 3, "tokens": 1000} for i in range(2))
    assert len(autograder.live_table(rows, "{computed} of {tokens} tokens were computed.")) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "user  computed  tokens",
        "u0           3   1,000",
        "u1           3   1,000",
        "6 of 2,000 tokens were computed.",
    ]


def test_a_sum_of_no_column_is_refused():
    with pytest.raises(ValueError, match="last_line names 'users'"):
        autograder.live_table([{"user": "a"}], "{users}")
