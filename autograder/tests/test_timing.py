"""What the notebooks rely on when they measure."""

import time

import pytest

from autograder.toolkit import timing
from autograder.toolkit.timing import Comparison, Measurement, compare, measure


def sleeper(seconds):
    return lambda: time.sleep(seconds)


def test_a_measurement_reports_median_and_quartiles():
    result = Measurement((5.0, 1.0, 2.0, 3.0, 4.0))
    assert result.median == 3.0
    assert result.spread == (2.0, 4.0)
    assert result.best == 1.0
    assert str(result) == "3 s (2 to 4, 5 runs)"


def test_warmup_calls_are_made_and_not_counted():
    calls = []
    result = measure(lambda: calls.append(len(calls)), repeats=4, warmup=3)
    assert len(calls) == 7
    assert len(result.samples) == 4


def test_setup_gives_each_call_something_fresh_and_its_time_is_not_counted():
    seen = []

    def setup():
        time.sleep(0.2)
        return object()

    result = measure(seen.append, repeats=3, warmup=1, setup=setup)
    assert len(set(map(id, seen))) == 4
    assert result.median < 0.1


def test_functions_are_measured_in_turn_and_in_changing_order():
    order = []
    compare({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, repeats=2, warmup=0)
    assert order == ["a", "b", "b", "a"]


def test_a_ratio_compares_medians():
    slow, fast = Measurement((3.0, 8.0, 900.0)), Measurement((2.0, 0.5, 2.0))
    assert Comparison({"slow": slow, "fast": fast}).ratio("slow", "fast") == 4


def test_a_slower_function_measures_slower():
    result = compare({"slow": sleeper(0.03), "fast": sleeper(0.0)}, repeats=3)
    assert result["slow"].best >= 0.03
    assert set(result) == {"slow", "fast"}


def test_labels_may_be_numbers():
    result = compare({8: sleeper(0.001), 16: sleeper(0.001)}, repeats=1)
    assert list(result) == [8, 16]
    assert str(result).splitlines()[1].startswith("16  ")


def test_a_comparison_names_the_machine():
    assert timing.machine() in str(compare({"a": sleeper(0)}, repeats=1))


def test_a_setup_for_an_unknown_function_is_refused():
    with pytest.raises(ValueError, match="'cold' is none of the functions: 'a'"):
        compare({"a": sleeper(0)}, setup={"cold": lambda: None})
    with pytest.raises(ValueError, match="repeats must be 1 or more"):
        measure(sleeper(0), repeats=0)


def test_an_exception_of_the_function_propagates():
    with pytest.raises(ZeroDivisionError):
        measure(lambda: 1 / 0)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.0123456, "0.0123"), (9.999, "10"), (12345, "12300"), (1.5, "1.5"), (-2, "-2")]
)
def test_numbers_have_three_digits_and_no_exponent(value, text):
    assert timing.plain(value) == text


def test_the_machine_line_states_the_threads(monkeypatch):
    monkeypatch.setattr(timing, "threads", lambda: 1)
    assert ", 1 thread, NumPy " in timing.machine()
    monkeypatch.setattr(timing, "threads", lambda: 8)
    assert ", 8 threads, NumPy " in timing.machine()


def test_a_sweep_gives_a_measurement_of_each_function_at_each_size():
    seen = []
    series = timing.sweep((2, 4), {"a": lambda n: seen.append(n), "b": lambda n: None}, repeats=3)
    assert {label: xs for label, (xs, _) in series.items()} == {"a": [2, 4], "b": [2, 4]}
    assert [len(one.samples) for one in series["a"][1]] == [3, 3]
    assert seen == [2] * 4 + [4] * 4


def test_a_sweep_hands_each_call_what_setup_made_for_it():
    made, used = [], []

    def setup(n):
        made.append([n])
        return made[-1]

    timing.sweep((2, 3), {"a": lambda n, fresh: used.append((n, fresh))}, setup=setup, repeats=2)
    assert used == [(2, [2])] * 3 + [(3, [3])] * 3
    assert all(fresh is one for (_, fresh), one in zip(used, made, strict=True))
