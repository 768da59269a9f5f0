"""What the benchmarks count, and the memory of a reuse on a shared prefix, measured."""

import numpy as np
import pytest

from autograder.bench import goals, report
from autograder.bench.limits import Limits, pass_bytes, pass_flops
from autograder.bench.memory import measure_held
from autograder.bench.solved import solved
from autograder.bench.speed import DECODE, PASSES, PREFILL, PREFIX, SUFFIX, Speed
from autograder.model import GPT2_SMALL, GPT2Config, random_model, tensors_of

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
def test_a_shared_prefix_gives_the_logits_of_a_clone_and_stays_as_it_is(course, weights, n_prefix, n_suffix):
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


def test_a_reuse_on_a_shared_prefix_holds_memory_for_its_suffix_alone(course, weights):
    """However long the prefix is; a clone holds the prefix once more."""
    short, long = (measure_held(course, weights, n_prefix, n_suffix=16) for n_prefix in (50, 250))
    assert short.suffix == long.suffix == course.kv_cache_bytes(CONFIG, 16)
    assert abs(long.shared - short.shared) < 0.1 * long.suffix
    assert long.suffix <= long.shared < 2.5 * long.suffix
    assert long.clone > course.kv_cache_bytes(CONFIG, 250 + 16)


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


def test_a_goal_says_by_how_much_it_is_missed():
    assert goals.Goal("x", 2.0, 2.0).verdict == "met"
    assert goals.Goal("x", 2.0, 3.0).verdict == "missed by 50%"


def made_up(engines):
    """A Speed in which decoding takes 20 ms and 1 µs for each token cached, and everything else 100 ms a token."""
    speed = Speed(threads=2)
    speed.add("machine", ("flops",), 100e9)
    speed.add("machine", ("read",), 50e9)
    for engine in engines:
        for n in DECODE:
            speed.add(engine, ("decode", n), 0.02 + 1e-6 * n)
            speed.add(engine, ("recompute", n), 0.1 * n)
        for n in (*PREFILL, PREFIX + SUFFIX):
            speed.add(engine, ("prefill", n), 0.1 * n)
        speed.add(engine, ("reuse", PREFIX, SUFFIX), 1.6)
        speed.add(engine, ("share", PREFIX, SUFFIX), 0.8)
    one = {"weights": 0.02, "attend": 0.003, "gelu": 0.002, "layer_norm": 0.001, "rest": 0.004}
    speed.parts = {what: [one, one, dict.fromkeys(one, 9.0)] for what in PASSES}
    return speed


def test_slopes_and_the_ideal():
    speed = made_up(["solutions"])
    assert goals.line(speed) == pytest.approx(1e-6)
    assert goals.bytes_line(speed) == pytest.approx(2 * 12 * 768 * 4 / 50e9)
    assert goals.text_slopes(speed)["cached"] == pytest.approx(1, abs=0.03)
    assert goals.text_slopes(speed)["recompute"] == pytest.approx(2, abs=0.1)
    assert goals.short_of_ideal(speed, "share") == pytest.approx(1)
    assert goals.short_of_ideal(speed, "reuse") == pytest.approx(2)


def test_tables_with_and_without_transformers():
    both, alone = made_up(["solutions", "transformers"]), made_up(["solutions"])
    names = {g.what for g in goals.speed_goals(both)} - {g.what for g in goals.speed_goals(alone)}
    assert len(names) == 6 and all("transformers" in name for name in names)
    assert not any("left out" in note for note in report.speed_notes(both))
    assert "PyTorch and transformers are not installed" in report.speed_notes(alone)[-1]
    for speed in (both, alone):
        assert {len(row) for row in report.speed_rows(speed)} == {len(report.SPEED_HEAD)}
        assert report.speed_table(speed).row_count == len(PREFILL) + len(DECODE) + 2
        assert report.goals_table(goals.speed_goals(speed)).row_count == len(goals.speed_goals(speed))


def test_where_the_time_of_a_pass_goes(monkeypatch):
    from autograder.bench import engine

    monkeypatch.setattr(engine, "CONFIG", CONFIG)
    solutions = engine.Solutions(1)
    plain = solutions.f.advance.__globals__["attend"]
    for n_new, n_past in ((100, 0), (1, 100)):
        parts = solutions.parts(n_new, n_past)
        assert set(parts) == {"weights", "attend", "gelu", "layer_norm", "rest"}
        assert all(seconds > 0 for key, seconds in parts.items() if key != "rest")
    assert solutions.f.advance.__globals__["attend"] is plain
    assert len(solutions.saved(100)) == 100


def test_the_published_shape_has_its_published_size():
    assert pass_bytes(GPT2_SMALL, 0) == 4 * (124_439_808 - 1024 * 768)


def test_the_readme_gets_its_tables_and_its_chart(tmp_path, monkeypatch):
    from autograder.bench import pictures
    from autograder.bench.grading import Grading
    from autograder.bench.reuse import Reuse
    from autograder.timing import Comparison, Measurement

    second = Measurement((1.0, 1.0, 1.0))
    speed = made_up(["solutions", "transformers"])
    reuse = [Reuse(400, 8, Comparison({"cold": second, "control": second, "reused": second}))]
    grading = Grading(9, second, second, 1.0, 1.0, 8)
    monkeypatch.setattr(pictures, "README", tmp_path / "README.md")
    pictures.README.write_text(
        "a\n<!-- measured: by make bench-figures -->\nBEFORE\n<!-- end -->\nb\n", encoding="utf-8"
    )
    pictures.write_readme_tables(reuse, grading, speed, goals.speed_goals(speed))
    written = pictures.README.read_text(encoding="utf-8")
    assert written.startswith("a\n<!-- measured") and written.endswith("<!-- end -->\nb\n") and "BEFORE" not in written
    assert written.count("\n|---") + written.count("\n|--:") == 5  # tables
    assert "| decode behind 512 | 20 | 3 | 2 | 1 | 4 |" in written
    assert "(course/images/speed.png)" in written
    assert "| decode at 512, to transformers | 0.65 | 1 | missed by 54% |" in written
    pictures.speed_chart(speed).save(tmp_path / "speed.png")
    assert (tmp_path / "speed.png").stat().st_size > 10_000
