"""The benchmarks' results as tables for a terminal and for course/MEASURED.md."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from autograder.bench.goals import SHARED, Goal
from autograder.bench.reuse import Reuse
from autograder.bench.serving import Served
from autograder.bench.speed import DECODE, PREFILL, PREFIX, SUFFIX, Speed
from autograder.toolkit.timing import plain

GOAL_HEAD = ("goal", "at most", "measured", "")


def goal_rows(goals: Sequence[Goal]) -> list[tuple[str, ...]]:
    """The rows under GOAL_HEAD."""
    return [(g.what, f"{g.most:g}", plain(g.value), g.verdict) for g in goals]


def goals_table(goals: Sequence[Goal]) -> Table:
    return _table("Goals", GOAL_HEAD, goal_rows(goals))


HEAD = ("P", "S", "tokens", "cold", "control", "reused", "shared", "faster")
LEGEND = (
    "P and S: tokens of prefix and suffix. Tokens: through the model, cold and reused. Times: medians in ms. "
    "Control: a cold request with another prefix of the same length. Reused: on a clone. Shared: on a shared prefix, "
    "without a clone. Faster: cold / reused."
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
    """What the times rest on."""
    limits = speed.limits
    notes = [
        f"Times in ms: medians of one run with {speed.threads} threads, the engines in turn. The limit: the matrix "
        f"products of the pass at {plain(limits.flops / 1e9)} GFLOP/s, or its weights and cache read at "
        f"{plain(limits.read / 1e9)} GB/s, whichever takes longer; both are the best that NumPy reached in this run.",
    ]
    if not speed.has_peer:
        notes.append("PyTorch and transformers are not installed, so the comparison with them is left out.")
    return notes


def speed_table(speed: Speed) -> Table:
    table = _table("Random weights of GPT-2 small's shape, 124 million", SPEED_HEAD, speed_rows(speed))
    table.caption, table.caption_justify = "\n".join(speed_notes(speed)), "left"
    return table


SERVING_HEAD = ("model and trace", "by", "median, ms", "p95, ms", "computed", "fewest", "held, MB")
SERVING_NOTE = (
    "Time to first token of 200 requests. Blocks: stage 6's store. Entries: transformers, with a deep copy of the "
    "longest whole entry; it is told which beginnings prompts share, and saves those too. Both have room for 8,192 "
    "tokens. Computed: tokens through the model. Fewest: what blocks of 16 leave to compute at best."
)


def serving_rows(results: Sequence[Served]) -> list[tuple[str, ...]]:
    """The rows under SERVING_HEAD."""
    return [
        (
            f"{r.model}, {r.trace}",
            r.engine,
            *(plain(seconds * 1e3) for seconds in (r.median, r.p95)),
            f"{r.computed:,}",
            f"{r.least:,}",
            plain(r.bytes / 1e6),
        )
        for r in results
    ]


def serving_table(results: Sequence[Served]) -> Table:
    table = _table(
        "The same requests from a store of blocks and from whole entries", SERVING_HEAD, serving_rows(results)
    )
    table.caption, table.caption_justify = SERVING_NOTE, "left"
    return table


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
