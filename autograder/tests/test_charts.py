"""The charts: what they show, and that they show it without color."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.text import Text

import autograder
from autograder.judge.reference import Reference
from autograder.toolkit import attention_charts, charts
from autograder.toolkit.chart_style import KINDS
from autograder.toolkit.timing import Measurement, machine


def texts(chart):
    """Every text drawn in a chart."""
    return [text.get_text() for text in chart.figure.findobj(Text) if text.get_text()]


def curve(**options):
    xs = [1, 2, 4, 8]
    series = {"one": (xs, [1, 2, 3, 4]), "two": (xs, [2, 4, 6, 8]), "three": (xs, [1, 1, 1, 1])}
    return charts.line_chart(series, **{"x_label": "length", "y_label": "work", **options})


def test_every_line_is_labeled_and_differs_in_dash_and_marker():
    chart = curve(x_unit="tokens", y_unit="tokens")
    lines = chart.figure.axes[0].get_lines()
    assert {"one", "two", "three", "length (tokens)", "work (tokens)"} <= set(texts(chart))
    assert len({line.get_marker() for line in lines}) == 3
    assert len({str(line._dash_pattern) for line in lines}) == 3


def test_a_linear_axis_begins_at_zero_unless_something_is_below():
    assert curve().figure.axes[0].get_ylim()[0] == 0
    below = charts.line_chart({"a": ([1, 2], [-1, 2])}, x_label="x", y_label="y")
    assert below.figure.axes[0].get_ylim()[0] < -1


def test_labels_do_not_overlap():
    xs = [1, 2, 3]
    chart = charts.line_chart({name: (xs, [1, 2, 3.001]) for name in "abcde"}, x_label="x", y_label="y")
    chart.figure.draw_without_rendering()
    boxes = sorted((Text.get_window_extent(t) for t in chart.figure.axes[0].texts), key=lambda box: box.y0)
    assert len(boxes) == 5
    assert all(lower.y1 <= upper.y0 + 1 for lower, upper in pairwise(boxes))


def test_measurements_are_scaled_and_the_machine_is_named():
    samples = [Measurement((0.010, 0.012, 0.014)), Measurement((0.020, 0.022, 0.024))]
    chart = charts.line_chart({"cold": ([1, 2], samples)}, x_label="n", y_label="time")
    assert "time (ms)" in texts(chart)
    assert machine() in "\n".join(texts(chart)).replace("\n", " ")
    assert chart.figure.axes[0].get_lines()[-1].get_ydata().tolist() == [12, 22]
    assert "1 -> 12, 2 -> 22" in str(chart)
    assert machine() not in "\n".join(texts(curve()))


def test_bytes_are_drawn_in_a_unit_that_fits():
    chart = charts.bar_chart({"cache": 37_748_736}, label="memory", unit="B")
    assert "37.7 MB" in texts(chart)
    assert "memory (MB)" in texts(chart)


def test_slopes_marks_references_and_captions_are_written():
    xs = [1, 2, 4]
    chart = charts.line_chart({"square": (xs, [1, 4, 16])}, x_label="n", y_label="work", log="xy", slopes=True,
                              reference={"ideal": (xs, [1, 1, 1])}, marks={"break-even": 2}, note="A note.",
                              model="the tiny model")  # fmt: skip
    assert {"square\nslope 2.00", "ideal", "break-even", "A note.\nthe tiny model"} <= set(texts(chart))


def test_a_fitted_slope_is_the_exponent():
    xs = np.array([1, 2, 5, 10])
    assert charts.fit_slope(xs, 3 * xs**1.5) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="two points"):
        charts.fit_slope([1], [1])


def test_a_slope_in_a_chart_is_that_of_the_fastest_runs():
    disturbed = [Measurement((size, size, 9.0)) for size in (1.0, 2.0)] + [Measurement((4.0, 50.0, 90.0))]
    chart = charts.line_chart({"a": ([1, 2, 4], disturbed)}, x_label="n", y_label="time", log="xy", slopes=True)
    assert any("slope 1.00" in text for text in texts(chart))


def test_bars_of_one_name_have_one_color_and_no_hatch():
    chart = charts.bar_chart({"64": {"cold": 2, "reused": 1}, "400": {"cold": 9, "reused": 1}}, label="work")
    bars = chart.figure.axes[0].patches
    assert [bar.get_width() for bar in bars] == [2, 1, 9, 1]
    assert bars[0].get_facecolor() == bars[2].get_facecolor() != bars[1].get_facecolor() == bars[3].get_facecolor()
    assert not any(bar.get_hatch() for bar in bars)
    assert {"64", "400"} <= set(texts(chart))


def test_a_heatmap_writes_small_matrices_and_hatches_what_is_missing():
    values = np.array([[0.25, np.nan], [0.5, 0.75]])
    chart = charts.heatmap(values, x_label="key", y_label="query", value_label="weight", x_ticks=[" a", "\n"])
    assert {"0.25", "0.5", "0.75", "␣a", "↵"} <= set(texts(chart))
    assert chart.figure.axes[0].patch.get_hatch()
    big = charts.heatmap(np.ones((40, 40)), x_label="key", y_label="query", value_label="weight")
    assert "1" not in [t.get_text() for t in big.figure.axes[0].texts]


def test_a_token_strip_counts_and_shades_the_shared_prefix():
    chart = charts.token_strip({"A": ["the", " cat", " sat"], "B": ["the", " cat", "\n"]}, positions=True)
    assert {"shared prefix, 2 tokens", "␣cat", "↵", "0", "1", "2"} <= set(texts(chart))
    faces = [patch.get_facecolor() for patch in chart.figure.axes[0].patches[:6]]
    assert [face == to_rgba("white") for face in faces] == [False, False, True] * 2


def test_a_token_strip_shows_positions_of_its_own_and_shortens_a_long_prefix():
    row = [str(i) for i in range(100, 140)]
    chart = charts.token_strip({"reset": [*row, "x"]}, shared=40, positions={"reset": [*range(40), 0]})
    assert "… 32 more …" in texts(chart)
    assert texts(chart).count("0") == 2
    assert "120" not in texts(chart)


def test_jupyter_gets_a_picture_and_a_text():
    data, size = curve(title="Work")._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"].startswith("Work\nlength -> work\none: 1 -> 1, 2 -> 2")
    assert size["image/png"]["width"] > 400


def test_a_chart_can_be_saved(tmp_path):
    curve().save(tmp_path / "chart.svg")
    assert "<svg" in (tmp_path / "chart.svg").read_text(encoding="utf-8")


def test_a_line_needs_as_many_y_as_x():
    with pytest.raises(ValueError, match="there are 2 x and 1 y"):
        charts.line_chart({"a": ([1, 2], [1])}, x_label="x", y_label="y")


def test_charts_do_not_load_pyplot():
    import subprocess
    import sys

    code = "import sys; from autograder.toolkit import charts; print('matplotlib' in sys.modules); \
charts.bar_chart({'a': 1}, label='x').png(); print('matplotlib.pyplot' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]


def test_a_bar_says_whole_numbers_in_full_and_one_token_in_the_singular():
    chart = charts.bar_chart({"cold": 21822, "doubled": 1, "reused": 0.0314}, label="computed", unit="tokens")
    assert str(chart).splitlines()[-3:] == ["cold: 21,822 tokens", "doubled: 1 token", "reused: 0.0314 tokens"]


def test_kinds_of_cells_also_differ_by_hatch_and_are_counted():
    chart = charts.kinds(
        [["computed", "computed", None], ["cached", "cached", "computed"]],
        x_label="position",
        y_label="pass",
        x_ticks=range(3),
        y_ticks=range(2),
        title="Two passes",
    )
    assert str(chart) == "Two passes\n2 x 3 cells: 3 computed, 2 cached"
    cells = chart.figure.axes[0].patches
    assert len(cells) == 5
    assert len({cell.get_hatch() for cell in cells}) == 2


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'seen' is not a kind of cell"):
        charts.kinds([["seen"]], x_label="", y_label="", x_ticks=[0], y_ticks=[0], title="")


# One convention


def test_every_kind_of_cell_has_a_color_and_a_gray_or_hatch_of_its_own_and_a_meaning():
    looks = list(KINDS.values())
    grays = [(round(np.dot(to_rgba(color)[:3], (0.3, 0.6, 0.1)), 1), hatch) for color, hatch in looks]
    assert len(set(looks)) == len(set(grays)) == len(KINDS)
    assert [line.split(":")[0] for line in str(charts.convention()).splitlines()[1:]] == sorted(
        KINDS, key=["computed", "cached", "visible", "hidden"].index
    )


def test_a_shared_prefix_and_what_a_lab_reads_from_the_cache_are_drawn_as_cached():
    strip = charts.token_strip({"A": ["the", " cat"], "B": ["the", " dog"]}).figure.axes[0].patches
    assert strip[0].get_facecolor() == to_rgba(KINDS["cached"][0])
    assert strip[0].get_hatch() == KINDS["cached"][1]
    assert KINDS["cached"][0] in charts.steps_picture(4, 2).svg


def test_with_the_cache_no_earlier_row_of_scores_is_drawn_but_its_keys_and_values_are():
    picture = charts.steps_picture(16, 3)
    assert picture.svg.count("<polygon") == 2  # the triangle of all rows, and the one row
    assert picture.svg.count("fill='url(#cached)'") == 3  # K, V, the legend


# Axes and pages


def test_a_log_axis_has_its_decades_only():
    lengths = [16, 100, 1024]
    chart = charts.line_chart({"a": (lengths, [0.2, 3, 40])}, x_label="n", y_label="s", log="xy")
    axes = chart.figure.axes[0]
    for ticks, (low, high) in ((axes.get_xticks(), axes.get_xlim()), (axes.get_yticks(), axes.get_ylim())):
        seen = [tick for tick in ticks if low <= tick <= high]
        assert len(seen) >= 2
        assert all(np.log10(tick) == pytest.approx(round(np.log10(tick))) for tick in seen)


def test_a_log_axis_of_one_decade_has_more_ticks_than_one():
    chart = charts.line_chart({"a": ([20, 90], [1, 2])}, x_label="n", y_label="s", log="x")
    low, high = chart.figure.axes[0].get_xlim()
    assert len([tick for tick in chart.figure.axes[0].get_xticks() if low <= tick <= high]) >= 2


def test_a_row_of_tokens_wider_than_a_page_is_wrapped():
    tokens = ["abcdefgh"] * 30
    chart = charts.token_strip({"A": tokens}, shared=0)
    rows = {patch.get_y() for patch in chart.figure.axes[0].patches}
    assert len(rows) == 4
    assert len(chart.figure.axes[0].patches) == 30
    assert chart._repr_mimebundle_()[1]["image/png"]["width"] <= 900


# The first stage's pictures


def test_a_row_through_a_block_has_the_models_own_numbers():
    weights = autograder.load_model()
    ids = list(range(40, 48))
    reference = Reference(weights)
    x = weights.wte[ids].astype(float) + weights.wpe[:8]
    for layer in (0, 1):
        steps = attention_charts.row_steps(weights, ids, 3, layer, head=2)
        x = reference.block(x, layer)
        assert steps["x + attention + mlp"] == pytest.approx(x[3], abs=1e-9)
        assert steps["weights"].sum() == pytest.approx(1) and not steps["weights"][4:].any()
        assert steps["mix"].shape == (32,)


def test_three_tokens_by_hand_show_scores_their_scale_the_mask_and_the_weights():
    q, k, v = (
        np.array([[1.0, 1, 0, 0], [0, 2, 0, 0]]),
        np.array([[3.0, 0, 0, 0], [0, 2, 0, 0]]),
        np.array([[10.0], [20]]),
    )
    chart = attention_charts.by_hand(q, k, v, ["The", " king"])
    assert {"1.50", "4", "0.12", "0.88", "␣king", "18.81", "2. divided by sqrt(4)"} <= set(texts(chart))
    hidden = [p for p in chart.figure.axes[0].patches if p.get_hatch() == KINDS["hidden"][1]]
    assert len(hidden) == 2  # one in the scores, one in the weights


def test_the_model_is_drawn_with_its_parts_and_its_shape():
    chart = attention_charts.model_drawing(autograder.GPT2_SMALL)
    assert {"ln_1", "ln_2", "ln_f", "logits\n[n_seq, 50257]", "one block; there are 12, one after the other"} <= set(
        texts(chart)
    )


def test_the_head_that_the_course_shows_looks_at_the_token_before_in_9_of_13_rows():
    weights, tokenizer = autograder.load_both()
    ids = tokenizer.encode("O Romeo, Romeo! wherefore art thou Romeo?")
    largest = [attention_charts.row_steps(weights, ids, i, 6, 2)["weights"].argmax() for i in range(1, len(ids))]
    assert len(largest) == 13
    assert sum(found == i for i, found in enumerate(largest)) == 9


def test_a_head_is_drawn_with_a_frame_around_each_rows_largest_weight():
    weights = np.array([[1.0, 0, 0], [0.3, 0.7, 0], [0.1, 0.8, 0.1]])
    chart = attention_charts.head_map(weights, ["a", "b", "c"], "A head", None)
    frames = {(p.get_x() + 0.5, p.get_y() + 0.5) for p in chart.figure.axes[0].patches}
    assert frames == {(0, 0), (1, 1), (1, 2)}
