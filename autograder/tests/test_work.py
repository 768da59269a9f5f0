"""Counting tokens and bytes around a notebook's functions, and the charts' break-even."""

import numpy as np
import pytest

from autograder.toolkit.reuse_charts import break_even_chart, crossing, request_chart
from autograder.toolkit.reuse_costs import LongModel
from autograder.toolkit.timing import Measurement
from autograder.toolkit.work import bytes_held, counting


def test_tokens_given_to_the_named_functions_are_counted_and_no_others():
    names = {"step": lambda token, position: position, "many": len, "other": len}
    with counting(names, "step", "many") as work:
        assert names["step"](7, position=3) == 3
        assert names["many"]([1, 2, 3]) == 3
        names["other"]([1, 2])
    assert work.tokens == 4
    names["many"]([1])
    assert work.tokens == 4


def test_the_functions_are_restored_after_an_error():
    names = {"many": len}
    with pytest.raises(TypeError), counting(names, "many"):
        names["many"](None)
    assert names["many"] is len


def test_bytes_are_those_of_the_result():
    assert 80_000 <= bytes_held(lambda: np.zeros(10_000)) < 90_000
    assert bytes_held(lambda: np.zeros(10_000).sum()) < 10_000


def test_two_lines_meet_where_their_costs_are_equal():
    assert crossing([0, 8], [0, 1664], [200, 264]) == 1
    measured = [[Measurement((value,)) for value in ys] for ys in ([0.0, 8.0], [2.0, 6.0])]
    assert crossing([0, 8], *measured) == pytest.approx(4)


def test_the_break_even_is_graded_in_its_chart():
    lines = {"nothing saved": [0, 416, 832], "prefix saved first": [200, 216, 232]}
    chart = break_even_chart([0, 2, 4], lines, y_label="work", y_unit="tokens", title="Tokens run", model=None)
    assert "break-even: 1.00 requests" in [text.get_text() for text in chart.figure.axes[0].texts]


def test_the_ideal_request_is_its_share_of_the_whole():
    times = {n: {"nothing saved": Measurement((n / 100,)), "saved prefix": Measurement((0.1,))} for n in (8, 24)}
    chart = request_chart(times, n_suffix=8, model=None)
    assert "ideal: 8 -> 40, 24 -> 60" in str(chart)  # in ms: 80 * 8 / 16 and 240 * 8 / 32


class Rows(list):
    def clone(self):
        return Rows(self)


def test_a_cost_counts_what_is_computed_and_leaves_the_entry_unchanged():
    fed = []

    def prefill(ids, weights, cache):
        assert len(cache) + len(ids) <= weights.config.n_ctx
        cache.extend(ids)
        fed.append(len(ids))

    long = LongModel(prefill, lambda n_layer: Rows(), n_vocab=50)
    entry = type("Entry", (), {"token_ids": [1] * 300, "cache": long.save([1] * 300)})
    assert fed == [256, 44]
    cold, reused = long.cost([1] * 310), long.cost([1] * 310, entry)
    assert (cold.tokens, cold.units) == (310, 310**2)
    assert (reused.tokens, reused.units) == (10, 310**2 - 300**2)
    assert len(entry.cache) == 300
    assert cold.against(reused).startswith("310 tokens computed, not 10; ")
