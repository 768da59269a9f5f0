"""The benchmarks: what they count and how they say it, and the memory of a reuse on a shared prefix, measured."""

import contextlib
import io
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from autograder.bench import chat, goals, pictures, report
from autograder.bench.chat import CALLS, ChatTimes
from autograder.bench.limits import Limits, pass_bytes, pass_flops
from autograder.bench.reuse import Reuse, measure_reuse
from autograder.bench.serving import Served, measure_serving
from autograder.bench.solved import solved
from autograder.bench.speed import DECODE, PREFILL, PREFIX, SUFFIX, Speed
from autograder.toolkit.model import GPT2_SMALL, GPT2Config, random_model, tensors_of
from autograder.toolkit.timing import Comparison, Measurement

CONFIG = GPT2Config(n_layer=3, n_head=2, n_embd=32, n_ctx=300, n_vocab=50)


@pytest.fixture(scope="module")
def course():
    return solved(sharing=True)


@pytest.fixture(scope="module")
def weights():
    return random_model(CONFIG, seed=1)


def ids(n, seed=0):
    return np.random.default_rng(seed).integers(0, CONFIG.n_vocab, n).tolist()


def content(cache):
    return b"".join(array.tobytes() for layer in cache.layers for array in (layer.keys, layer.values))


# Sharing


@pytest.mark.parametrize(("n_prefix", "n_suffix"), [(1, 1), (7, 1), (60, 8), (200, 100)])
def test_a_shared_prefix_gives_the_logits_of_a_clone_and_stays_unchanged(course, weights, n_prefix, n_suffix):
    tokens = ids(n_prefix + n_suffix)
    saved = course.save_prefix_cache(tokens[:n_prefix], weights)
    before = content(saved)
    cache = course.SharedCache(saved)
    logits = course.generate_sharing(cache, n_prefix, tokens[n_prefix:], weights)
    expected = course.generate_with_prefix(saved, n_prefix, tokens[n_prefix:], weights)
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    assert len(cache) == n_prefix + n_suffix
    assert content(saved) == before


def test_requests_on_one_shared_prefix_take_turns(course, weights):
    tokens, other = ids(30), ids(30, seed=1)
    saved = course.save_prefix_cache(tokens[:20], weights)
    one, two = course.SharedCache(saved), course.SharedCache(saved)
    for i in range(20, 30):
        last = course.generate_sharing(one, i, tokens[i : i + 1], weights)
        course.generate_sharing(two, i, other[i : i + 1], weights)
    whole = course.prefill(tokens, weights, course.ModelCache(CONFIG.n_layer))
    np.testing.assert_allclose(last, whole, atol=1e-4)


def test_nobody_can_write_to_a_shared_prefix(course, weights):
    layer = course.SharedCache(course.save_prefix_cache(ids(5), weights)).layers[0]
    with pytest.raises(ValueError, match="read-only"):
        layer.prefix_keys[0, 0, 0] = 1


# Limits


def test_a_pass_reads_every_weight_but_wpe_and_the_cache_once(course, weights):
    cache = course.save_prefix_cache(ids(9), weights)
    arrays = [array for name, array in tensors_of(weights).items() if name != "wpe.weight"]
    assert pass_bytes(CONFIG, 9) == sum(array.nbytes for array in arrays) + len(content(cache))


def test_a_pass_computes_what_its_products_need():
    one = GPT2Config(n_layer=1, n_head=1, n_embd=1, n_ctx=9, n_vocab=1)
    # one token: 12 weights, one key and one value, one logit; each a multiplication and an addition
    assert pass_flops(one, n_new=1, n_seq=1) == 2 * (12 + 2 + 1)
    # the last two of five: they see 4 and 5 positions
    assert pass_flops(one, n_new=2, n_seq=5) == 2 * (2 * 12 + 2 * (4 + 5) + 1)


def test_the_limit_is_the_slower_of_arithmetic_and_reading():
    n_bytes, n_flops = pass_bytes(CONFIG, 10), pass_flops(CONFIG, 10, 10)
    assert Limits(flops=1e30, read=1.0).seconds(CONFIG, 10, 10) == n_bytes
    assert Limits(flops=1.0, read=1e30).seconds(CONFIG, 10, 10) == n_flops


# Goals and tables


def reuse(prefix=400, suffix=8, cold=0.100, reused=0.0025, shared=0.002):
    times = {"cold": cold, "control": cold, "reused": reused, "shared": shared}
    return Reuse(
        prefix, suffix, Comparison({label: Measurement((seconds,), label) for label, seconds in times.items()})
    )


def shown(table):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(table.shown())
    return console.export_text()


def test_a_goal_says_whether_it_is_met_and_by_how_much_it_is_missed():
    met, missed = goals.Goal("decode", 2.0, 1.2), goals.Goal("decode", 2.0, 2.5)
    rows = report.goals_table([met, missed]).rows
    assert rows == [("decode", "2", "1.2", "met"), ("decode", "2", "2.5", "missed by 25%")]


def test_the_tables_fit_a_terminal_and_hold_the_numbers():
    text = shown(report.reuse_table([reuse()], "tiny"))
    assert "400  8  408 / 8   100      100     2.5       2   40.0x" in text
    assert max(map(len, text.splitlines())) <= 80


def made_up(engines):
    """A Speed in which decoding takes 20 ms and 1 µs for each token cached, and everything else 100 ms a token."""
    speed = Speed(threads=2)
    speed.add("machine", ("flops",), 100e9)
    speed.add("machine", ("read",), 50e9)
    for engine in engines:
        for n in DECODE:
            speed.add(engine, ("decode", n), 0.02 + 1e-6 * n)
        for n in PREFILL:
            speed.add(engine, ("prefill", n), 0.1 * n)
        speed.add(engine, ("reuse", PREFIX, SUFFIX), 1.6)
        speed.add(engine, ("share", PREFIX, SUFFIX), 0.8)
    return speed


def test_tables_with_and_without_transformers():
    both, alone = made_up(["solutions", "transformers"]), made_up(["solutions"])
    names = {g.what for g in goals.speed_goals(both)} - {g.what for g in goals.speed_goals(alone)}
    assert len(names) == 7 and all("transformers" in name for name in names)
    assert "left out" not in report.speed_table(both).note
    assert "PyTorch and transformers are not installed" in report.speed_table(alone).note
    for table in (report.speed_table(both), report.speed_table(alone)):
        assert {len(row) for row in table.rows} == {len(table.head)}
        assert len(table.rows) == table.shown().row_count == len(PREFILL) + len(DECODE) + 2


def test_the_published_shape_has_its_published_size():
    assert pass_bytes(GPT2_SMALL, 0) == 4 * (124_439_808 - 1024 * 768)


def test_a_limit_of_a_reuse_is_one_read_of_the_weights_and_the_cache():
    speed = made_up(["solutions"])
    speed.add("machine", ("flops",), 1e12)
    (goal,) = [goal for goal in goals.speed_goals(speed) if goal.what.startswith("reuse")]
    assert goal.value == pytest.approx(1.6 / (pass_bytes(GPT2_SMALL, PREFIX + SUFFIX) / 50e9))


def test_a_part_that_is_measured_again_replaces_its_section():
    titles = pictures.SECTIONS
    of_chat = [report.goals_table([goals.Goal("decode", 2.0, 2.5)], "A note.")]
    page = pictures.page_with("", titles["chat"], "a laptop", of_chat)
    page = pictures.page_with(page, titles["reuse"], "a laptop", [report.reuse_table([reuse()], "tiny")])
    again = pictures.page_with(page, titles["reuse"], "a server", [report.reuse_table([reuse(cold=0.2)], "tiny")])
    assert again.startswith("# What was measured\n") and again.endswith("| decode | 2 | 2.5 | missed by 25% |\n")
    assert [line[3:] for line in again.splitlines() if line.startswith("## ")] == [titles["reuse"], titles["chat"]]
    assert "| 400 | 8 | 408 / 8 | 200 | 200 | 2.5 | 2 | 80.0x |\n\n## " in again and "| 40.0x |" in page
    assert again.count("a laptop") == again.count("a server") == 1
    assert "A note.\n\n| goal | at most | measured |  |\n|---|--:|--:|--:|\n" in again


def test_the_courses_own_functions_are_measured_where_the_model_is_long_enough():
    weights = random_model(GPT2Config(n_layer=1, n_head=2, n_embd=8, n_ctx=20, n_vocab=30), seed=0)
    results = measure_reuse(solved(sharing=True), weights, prefixes=(4, 12, 13), suffix=8, repeats=2)
    assert [(r.prefix, r.suffix) for r in results] == [(4, 8), (12, 8)]
    assert all(len(r.times[label].samples) == 2 for r in results for label in ("cold", "control", "reused", "shared"))


def test_the_chart_says_what_was_measured():
    weights = random_model(GPT2Config(n_layer=1, n_head=2, n_embd=8, n_ctx=20, n_vocab=30), seed=0)
    text = str(pictures.reuse_chart([reuse(100), reuse(400)], weights))
    assert "length of the prefix (tokens) -> time per request (ms)" in text
    assert "saved prefix reused: 100 -> 2.5, 400 -> 2.5" in text


def test_the_command_has_a_help():
    command = [sys.executable, "-m", "autograder.bench", "--help"]
    assert "--write" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


# The traces of stage 6

SERVING = [
    Served("tiny", "one system prompt", "blocks", 8, [0.003, 0.001, 0.002], [0.001] * 3, 30, 30, 1_000_000, 0.0005),
    Served("tiny", "one system prompt", "entries", 0, [0.006, 0.002, 0.004], [0.003] * 3, 60, 0, 2_000_000, 0.0005),
    Served("tiny", "one system prompt", "blocks", 16, [0.003, 0.003, 0.003], [0.001] * 3, 40, 35, 1_000_000, 0.0005),
    Served("tiny", "chats", "blocks", 8, [0.002], [0.001], 33, 30, 3_000_000, 0),
]


def test_the_goals_of_serving_are_the_fewest_tokens_and_half_the_time_of_the_shared_prompt():
    met = goals.serving_goals(SERVING)
    assert [(g.what.split(": ")[0], g.value, g.most) for g in met] == [
        ("tiny, one system prompt", 1.0, 1.0),
        ("tiny, one system prompt", 0.5, 0.5),
        ("tiny, chats", pytest.approx(1.1), 1.0),
    ]
    first, second, *_, last = (row[1:] for row in report.serving_table(SERVING).rows)
    assert first == ("blocks of 8", "2", "2.9", "1", "0.5", "30", "30", "1")
    assert second == ("entries", "4", "5.8", "3", "0.5", "60", "", "2")
    assert last[4] == ""


def test_the_course_serves_a_trace_with_the_fewest_tokens(monkeypatch):
    monkeypatch.setattr("autograder.bench.serving.peer_installed", lambda: False)
    served, *others = measure_serving(n=12, runs={"tiny": ("one system prompt",)})
    assert [(r.engine, r.block) for r in (served, *others)] == [("blocks", size) for size in (8, 4, 16)]
    for result in (served, *others):
        assert result.computed == result.least and len(result.seconds) == 12
        assert all(0 < in_model < seconds for seconds, in_model in zip(result.seconds, result.passes, strict=True))
    assert served.bytes > 12 * 25 * 2 * 128 * 4 * 8  # the 25 blocks of the system prompt, in 12 layers


# The chat model of stage 7


def chat_times(engines):
    times = ChatTimes("a model", threads=2, repeats=1, weights_and_cache=1_000_000_000)
    for engine in engines:
        factor = 1 if engine == "solution" else 2
        times.peak[engine] = factor * 1_100_000_000
        for call, seconds in zip(CALLS, (6.0, 20.0, 0.04, 0.3), strict=True):
            times.seconds[engine, call] = [factor * seconds]
    return times


def test_the_goals_of_the_chat_model_are_beside_transformers_a_cold_prompt_and_what_has_to_be_held():
    met = goals.chat_goals(chat_times(["solution", "transformers"]))
    assert [(g.most, g.value) for g in met] == [
        *((most, 0.5) for most in (1.25, 1.4, 0.5, 0.9)), (0.1, pytest.approx(0.05)), (1.2, pytest.approx(1.1))
    ]  # fmt: skip
    assert len(goals.chat_goals(chat_times(["solution"]))) == 2


def test_the_table_of_the_chat_model_with_and_without_transformers():
    both, alone = (
        report.chat_table(chat_times(["solution", "transformers"])),
        report.chat_table(chat_times(["solution"])),
    )
    assert both.rows[0] == ("prefill of 2,432 tokens", "6000", "12000", "0.50")
    assert alone.rows[3] == ("reuse, 2,328 + 104 tokens", "300", "", "")
    assert both.rows[4] == ("most memory, in MB", "1100", "2200", "0.50")
    assert "not installed" in alone.note and "not installed" not in both.note


def test_the_chat_model_is_measured_from_the_engines_answers(monkeypatch):
    """With an engine that answers at once: calls are measured in rounds, and memory before a reuse."""
    asked = []

    class Fast:
        def __call__(self, *call):
            asked.append(call)
            return [0.0] * 50 if call[0] == "logits" else 7 if call == ("peak",) else 0.5

    monkeypatch.setattr(chat, "peer_installed", lambda: False)
    monkeypatch.setattr(chat, "is_fetched", lambda name: False)
    monkeypatch.setattr(
        chat, "_random_weights", lambda place: (place / "model.safetensors").write_bytes(b"1") and place
    )
    monkeypatch.setattr(chat, "engines", lambda names, threads: contextlib.nullcontext({"llama": Fast()}))
    times = chat.measure_chat(repeats=2)
    assert times.best("solution", chat.REUSE) == 0.5 and len(times.seconds["solution", chat.COLD]) == 2
    assert asked.index(("peak",)) < asked.index(("decode", chat.PREFIX))
    assert times.peak == {"solution": 7} and "Random weights" in times.model
