"""The benchmarks: what they count and how they say it, on small inputs."""

import io
import subprocess
import sys

import pytest
from rich.console import Console

from autograder.bench import pictures, report
from autograder.bench.goals import Goal
from autograder.bench.grading import Grading
from autograder.bench.reuse import Reuse, measure_reuse
from autograder.bench.solved import solved
from autograder.bench.speed import DECODE, PREFILL, PREFIX, SUFFIX, Speed
from autograder.model import GPT2Config, random_model
from autograder.timing import Comparison, Measurement


def reuse(prefix=400, suffix=8, cold=0.100, reused=0.0025):
    times = {"cold": cold, "control": cold, "reused": reused}
    return Reuse(
        prefix, suffix, Comparison({label: Measurement((seconds,), label) for label, seconds in times.items()})
    )


GRADING = Grading(
    checks=9,
    all_checks=Measurement((0.45,)),
    command=Measurement((1.2,)),
    autograde_start=3.0,
    autograde_each=0.8,
    submissions=8,
)


def speed():
    """A measurement of every call, which takes a microsecond for each token it names."""
    made = Speed(threads=2)
    made.add("machine", ("flops",), 1e11)
    made.add("machine", ("read",), 1e10)
    calls = [("prefill", n) for n in (*PREFILL, PREFIX + SUFFIX)] + [("decode", n) for n in DECODE]
    calls += [("recompute", n) for n in DECODE] + [("reuse", PREFIX, SUFFIX), ("share", PREFIX, SUFFIX)]
    for engine in ("solutions", "transformers"):
        for call in calls:
            made.add(engine, call, 1e-6 * sum(call[1:]))
    made.parts = {"prefill": [dict.fromkeys(("weights", "attend", "gelu", "layer_norm", "rest"), 0.001)]}
    return made


def shown(table):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_the_ideal_is_the_ratio_of_tokens_and_the_distance_to_it_is_a_ratio():
    result = reuse()
    assert result.ideal == 51
    assert result.speedup == pytest.approx(40)
    assert result.short_of_ideal == pytest.approx(51 / 40)


def test_the_courses_own_functions_are_measured_where_the_model_is_long_enough():
    weights = random_model(GPT2Config(n_layer=1, n_head=2, n_embd=8, n_ctx=20, n_vocab=30), seed=0)
    results = measure_reuse(solved(), weights, prefixes=(4, 12, 13), suffix=8, repeats=2)
    assert [(r.prefix, r.suffix) for r in results] == [(4, 8), (12, 8)]
    assert all(len(r.times[label].samples) == 2 for r in results for label in ("cold", "control", "reused"))


def test_a_goal_says_whether_it_is_met_and_by_how_much_it_is_missed():
    met, missed = Goal("`autograder test`", 2.0, 1.2, "s"), Goal("`autograder test`", 2.0, 2.5, "s")
    assert report.goal_rows([met, missed]) == [
        ("`autograder test`", "2 s", "1.2 s", "met"),
        ("`autograder test`", "2 s", "2.5 s", "missed by 25%"),
    ]


def test_the_tables_fit_a_terminal_and_hold_the_numbers():
    text = shown(report.reuse_table([reuse()], "tiny"))
    assert "400   8   408 / 8    100       100      2.5    40.0x   51.0x       1.27" in text
    assert max(map(len, text.splitlines())) <= 80
    text = shown(report.grading_table(GRADING))
    assert "checks per second" in text
    assert "20" in text


def test_the_readme_table_is_replaced_between_its_marks(tmp_path, monkeypatch):
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- measured: x -->\nearlier numbers\n<!-- end -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr(pictures, "README", readme)
    pictures.write_readme_tables([reuse()], GRADING, speed(), [Goal("`autograder test`", 2.0, 1.2, "s")])
    text = readme.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- measured: x -->\nMeasured on ")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "earlier numbers" not in text
    assert "| 400 | 8 | 408 / 8 | 100 | 100 | 2.5 | 40.0x | 51.0x | 1.27 |" in text
    readme.write_text("no marks", encoding="utf-8")
    with pytest.raises(RuntimeError, match="not exactly one place"):
        pictures.write_readme_tables([reuse()], GRADING, speed(), [Goal("`autograder test`", 2.0, 1.2, "s")])


def test_the_chart_says_what_was_measured():
    weights = random_model(GPT2Config(n_layer=1, n_head=2, n_embd=8, n_ctx=20, n_vocab=30), seed=0)
    text = str(pictures.reuse_chart([reuse(100), reuse(400)], weights))
    assert "length of the prefix (tokens) -> time per request (ms)" in text
    assert "saved prefix reused: 100 -> 2.5, 400 -> 2.5" in text


def test_the_command_has_a_help():
    command = [sys.executable, "-m", "autograder.bench", "--help"]
    assert "--write" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
