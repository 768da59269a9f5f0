"""The charts of what the student's own functions cost, in seconds and bytes: stages 1 to 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.toolkit.chart_style import Chart, number
from autograder.toolkit.charts import Series, bar_chart, line_chart
from autograder.toolkit.timing import machine

_ONE_LAYER = "12 heads of 64 in float32, the size of a layer of GPT-2 small."


def next_token(series: Series, model: Any) -> Chart:
    """Seconds for one more token, at each length of the sequence so far."""
    title = "The longer the text, the slower the next token"
    return _seconds(series, "length of the sequence so far", "time for one new token", title, model)


def filling(series: Series) -> Chart:
    """Seconds to append positions one by one to a layer's cache, by ways to keep the rows; lines of slope 1 and 2."""
    lengths, times = next(iter(series.values()))
    ends = lengths[0], lengths[-1]
    powers = {f"slope {k}": (ends, [number(times[0]) * (n / lengths[0]) ** k for n in ends]) for k in (1, 2)}
    return _powers(series, "positions appended one by one", "total time", "Filling one layer's cache", note=_ONE_LAYER,
                   slopes=False, reference=powers)  # fmt: skip


def one_layer(series: Series) -> Chart:
    """Seconds of one layer's attention for one more token."""
    title = "One layer's attention for the next token"
    return _powers(series, "positions so far (tokens)", "attention for one more token", title, note=_ONE_LAYER)


def one_token(series: Series, model: Any) -> Chart:
    """Seconds for one new token, by its position."""
    title = "One token: with the cache its position hardly matters"
    return _powers(series, "position of the new token", "time for one new token", title, model=model)


def whole_text(series: Series, model: Any) -> Chart:
    """Seconds for a whole text, as sums of the measured seconds of one token."""
    note = f"Sums of the measured times of one token. {machine()}"
    return _powers(series, "length of the text (tokens)", "time paid so far", "The whole text: a square and a line",
                   model=model, note=note)  # fmt: skip


def first_token(series: Series, model: Any) -> Chart:
    """Seconds until the first new token, by the length of the prompt."""
    title = "The same work is faster in one pass"
    return _seconds(series, "length of the prompt", "time to first token", title, model)


def token_in_memory(n_bytes: Mapping[str, int]) -> Chart:
    """The bytes that each model's KV cache takes for one token."""
    return bar_chart(
        n_bytes,
        label="KV cache for one token, in half precision",
        unit="B",
        title="The memory bill",
        note="In parentheses: heads of keys and values, of heads of queries.",
    )


def text_in_memory(lengths: Sequence[int], gigabytes: Mapping[str, Sequence[float]]) -> Chart:
    """The gigabytes of one text's KV cache, beside a card of 24 GB."""
    return line_chart(
        {name.split(" (")[0]: (lengths, values) for name, values in gigabytes.items()},
        x_label="length of a text",
        x_unit="tokens",
        y_label="KV cache of one text",
        y_unit="GB",
        log="xy",
        reference={"a 24 GB card": ((lengths[0], lengths[-1]), (24, 24))},
        title="The bill grows in proportion to the text",
        note="Half precision, computed. Lengths beyond what a model was trained for only show the arithmetic. A card "
        "also has to hold the model itself: 7 billion parameters take about 14 GB in half precision.",
    )


def _seconds(series: Series, x_label: str, y_label: str, title: str, model: Any) -> Chart:
    return line_chart(series, x_label=x_label, x_unit="tokens", y_label=y_label, y_unit="s", title=title, model=model)


def _powers(series: Series, x_label: str, y_label: str, title: str, slopes: bool = True, **more: Any) -> Chart:
    """Seconds on two logarithmic axes, each line with its slope, which is the exponent."""
    return line_chart(
        series, x_label=x_label, y_label=y_label, y_unit="s", log="xy", slopes=slopes, title=title, **more
    )
