"""The benchmarks' results as tables for a terminal and for README.md."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from autograder.bench.goals import SHARED, Goal, bytes_line, line, text_slopes
from autograder.bench.grading import Grading
from autograder.bench.memory import Held
from autograder.bench.reuse import Reuse
from autograder.bench.speed import DECODE, PREFILL, PREFIX, SUFFIX, Speed
from autograder.toolkit.timing import Measurement, plain, time_unit

GOAL_HEAD = ("goal", "at most", "measured", "")


def goal_rows(goals: Sequence[Goal]) -> list[tuple[str, ...]]:
    """The rows under GOAL_HEAD."""
    return [(g.what, f"{g.most:g} {g.unit}".strip(), f"{plain(g.value)} {g.unit}".strip(), g.verdict) for g in goals]


def goals_table(goals: Sequence[Goal]) -> Table:
    return _table("Goals", GOAL_HEAD, goal_rows(goals))


def short(measurement: Measurement | float) -> str:
    """A time with its unit."""
    seconds = measurement.median if isinstance(measurement, Measurement) else measurement
    scale, unit = time_unit(seconds)
    return f"{plain(seconds * scale)} {unit}"


HEAD = ("P", "S", "tokens", "cold", "control", "reused", "shared", "faster", "ideal", "of ideal")
LEGEND = (
    "P and S: tokens of prefix and suffix. Tokens: through the model, cold and reused. Times: medians in ms. "
    "Control: a cold request with another prefix of the same length. Reused: on a clone. Shared: on a shared prefix, "
    "without a clone. Faster: cold / reused. Ideal: (P + S) / S. Of ideal: ideal / faster; at 1 every token would "
    "cost the same."
)


def reuse_rows(results: Sequence[Reuse]) -> list[tuple[str, ...]]:
    """The rows under HEAD."""
    return [
        (
            str(r.prefix),
            str(r.suffix),
            f"{r.prefix + r.suffix} / {r.suffix}",
            *(plain(m.median * 1e3) for m in (r.cold, r.control, r.reused, r.shared)),
            f"{r.speedup:.1f}x",
            f"{r.ideal:.1f}x",
            f"{r.short_of_ideal:.2f}",
        )
        for r in results
    ]


def reuse_table(results: Sequence[Reuse], model: str) -> Table:
    table = _table(f"A cold request against one that reuses a saved prefix, model {model}", HEAD, reuse_rows(results))
    table.caption, table.caption_justify = LEGEND, "left"
    return table


SPEED_HEAD = ("GPT-2 small", "NumPy", "transformers", "limit", "to transformers", "to the limit")


def speed_rows(speed: Speed) -> list[tuple[str, ...]]:
    """The rows under SPEED_HEAD; times in ms."""
    rows = [
        *((f"prefill of {n:,} tokens", ("prefill", n), (n, n)) for n in PREFILL),
        *((f"decode, {n:,} tokens cached", ("decode", n), (1, n + 1)) for n in DECODE),
        (f"reuse, {PREFIX} + {SUFFIX} tokens", ("reuse", PREFIX, SUFFIX), (SUFFIX, PREFIX + SUFFIX)),
        (SHARED, ("share", PREFIX, SUFFIX), (SUFFIX, PREFIX + SUFFIX)),
    ]
    cells = []
    for what, call, work in rows:
        own, limit = speed.time("solutions", *call).median, speed.limit(*work)
        peer_call = ("reuse", *call[1:]) if call[0] == "share" else call  # its deepcopy is its only way
        peer = speed.time("transformers", *peer_call).median if speed.has_peer else None
        cells.append(
            (
                what,
                plain(own * 1e3),
                plain(peer * 1e3) if peer else "",
                plain(limit * 1e3),
                f"{own / peer:.2f}" if peer else "",
                f"{own / limit:.2f}",
            )
        )
    return cells


def speed_notes(speed: Speed) -> list[str]:
    """What the times rest on, and how they grow."""
    limits, slopes = speed.limits, text_slopes(speed)
    notes = [
        f"Times in ms: medians of one run with {speed.threads} threads, the engines in turn. The limit: the matrix "
        f"products of the pass at {plain(limits.flops / 1e9)} GFLOP/s, or its weights and cache read at "
        f"{plain(limits.read / 1e9)} GB/s, whichever takes longer; both are the best that NumPy reached in this run.",
        f"A whole text of n tokens takes time in proportion to n^{slopes['cached']:.2f} with the cache and to "
        f"n^{slopes['recompute']:.2f} by recompute (fitted from {DECODE[0]} to {DECODE[-1]:,} tokens). Each cached "
        f"token makes a decode step longer by {plain(line(speed) * 1e6)} µs; reading its bytes alone would, by "
        f"{plain(bytes_line(speed) * 1e6)} µs.",
    ]
    if not speed.has_peer:
        notes.append("PyTorch and transformers are not installed, so the comparison with them is left out.")
    return notes


_PARTS = {"weights": "weights", "attend": "attend", "gelu": "gelu", "layer_norm": "norm", "rest": "rest"}
PARTS_HEAD = ("where the time goes, in ms", *_PARTS.values())
PARTS_NOTE = (
    "weights: the matrix products with weights, measured by themselves; norm: layer norm; rest: additions, new arrays "
    "and the cache."
)


def parts_rows(speed: Speed) -> list[tuple[str, ...]]:
    """The rows under PARTS_HEAD: medians over the rounds."""
    return [
        (what, *(plain(1e3 * float(np.median([parts[key] for parts in rounds]))) for key in _PARTS))
        for what, rounds in speed.parts.items()
    ]


def parts_table(speed: Speed) -> Table:
    table = _table("", PARTS_HEAD, parts_rows(speed))
    table.caption, table.caption_justify = PARTS_NOTE, "left"
    return table


def speed_table(speed: Speed) -> Table:
    table = _table("Random weights of GPT-2 small's shape, 124 million", SPEED_HEAD, speed_rows(speed))
    table.caption, table.caption_justify = "\n".join(speed_notes(speed)), "left"
    return table


def held_note(held: Held) -> str:
    """What a reuse adds to the memory in use."""
    return (
        f"A reuse on a clone holds {held.clone / 1e6:.2f} MB more, on a shared prefix {held.shared / 1e6:.2f} MB; its "
        f"suffix's rows take {held.suffix / 1e6:.2f} MB."
    )


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Texts to the left in the first column, all else to the right."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for number, column in enumerate(head):
        is_text = not number and not rows[0][0].isdigit()
        table.add_column(column, justify="left" if is_text else "right", no_wrap=not is_text)
    for row in rows:
        table.add_row(*row)
    return table


def grading_rows(grading: Grading) -> list[tuple[str, str]]:
    return [
        (f"{grading.checks} checks in a worker that has started", short(grading.all_checks)),
        ("checks per second", f"{grading.checks_per_second:.0f}"),
        ("`autograder test`, from the command to its last line", short(grading.command)),
        ("`nbgrader autograde`, each submission", short(grading.autograde_each)),
        (
            f"`nbgrader autograde`, start of a run (from runs with 1 and {grading.submissions})",
            short(grading.autograde_start),
        ),
    ]


def grading_table(grading: Grading) -> Table:
    return _table("Marking save-and-reuse", ("", ""), grading_rows(grading))
