"""The benchmarks' results as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autograder.bench.chat import CALLS, IN_A_ROUND, ChatTimes, in_words
from autograder.bench.goals import SHARED, Goal
from autograder.bench.reuse import WAYS, Reuse
from autograder.bench.serving import BLOCK, ROOM, Served
from autograder.bench.speed import DECODE, PREFILL, PREFIX, SUFFIX, THREADS, Speed
from autograder.bench.tables import Table
from autograder.toolkit.chat_lab.server import CHUNK
from autograder.toolkit.timing import plain

NO_PEER = "PyTorch and transformers are not installed, so the comparison with them is left out."


def goals_table(goals: Sequence[Goal], note: str = "") -> Table:
    rows = [(g.what, f"{g.most:g}", plain(g.value), g.verdict) for g in goals]
    return Table("Goals", ("goal", "at most", "measured", ""), rows, note)


def reuse_table(results: Sequence[Reuse], model: str) -> Table:
    rows = [
        (
            str(r.prefix),
            str(r.suffix),
            f"{r.prefix + r.suffix} / {r.suffix}",
            *(plain(r.times[way].median * 1e3) for way in WAYS),
            f"{r.speedup:.1f}x",
        )
        for r in results
    ]
    return Table(
        f"A cold request against one that reuses a saved prefix, model {model}",
        ("P", "S", "tokens", "cold", "control", "reused", "shared", "faster"),
        rows,
        "P and S: tokens of prefix and suffix. Tokens: through the model, cold and reused. Times: medians in ms. "
        "Control: a cold request with another prefix of the same length. Reused: on a clone. Shared: on a shared "
        "prefix, without a clone. Faster: cold / reused.",
    )


def speed_table(speed: Speed) -> Table:
    rows = [
        *((f"prefill of {n:,} tokens", ("prefill", n), (n, n)) for n in PREFILL),
        *((f"decode, {n:,} tokens cached", ("decode", n), (1, n + 1)) for n in DECODE),
        (f"reuse, {PREFIX} + {SUFFIX} tokens", ("reuse", PREFIX, SUFFIX), (SUFFIX, PREFIX + SUFFIX)),
        (SHARED, ("share", PREFIX, SUFFIX), (SUFFIX, PREFIX + SUFFIX)),
    ]
    cells = []
    for name, call, work in rows:
        own, limit = speed.time("solutions", *call).median, speed.limit(*work)
        peer_call = ("reuse", *call[1:]) if call[0] == "share" else call  # its deepcopy is its only way
        peer = speed.time("transformers", *peer_call).median if speed.has_peer else None
        cells.append((name, *_beside(own, peer), plain(limit * 1e3), f"{own / limit:.2f}"))
    limits = speed.limits
    note = (
        f"Times in ms: medians of one run with {speed.threads} threads, the engines in turn. The limit: the matrix "
        f"products of the pass at {plain(limits.flops / 1e9)} GFLOP/s, or its weights and cache read at "
        f"{plain(limits.read / 1e9)} GB/s, whichever takes longer; both are the best that NumPy reached in this run."
    )
    head = ("GPT-2 small", "NumPy", "transformers", "to transformers", "limit", "to the limit")
    return Table(
        "Random weights of GPT-2 small's shape, 124 million",
        head,
        cells,
        note if speed.has_peer else f"{note} {NO_PEER}",
    )


def serving_table(results: Sequence[Served]) -> Table:
    rows = [
        (
            f"{r.model}, {r.trace}",
            f"blocks of {r.block}" if r.block else "entries",
            *(plain(seconds * 1e3) for seconds in (r.median, r.p95, float(np.median(r.passes)))),
            plain(r.limit * 1e3) if r.limit else "",
            f"{r.computed:,}",
            f"{r.least:,}" if r.block else "",
            plain(r.bytes / 1e6),
        )
        for r in results
    ]
    return Table(
        "The same requests from a store of blocks and from whole entries",
        ("model and trace", "by", "median, ms", "p95, ms", "pass, ms", "limit, ms", "computed", "fewest", "held, MB"),
        rows,
        f"Time to first token of {len(results[0].seconds)} requests, with 1 thread for the tiny model and {THREADS} "
        f"for the other. Blocks: stage 6's store. Entries: transformers, with a deep copy of the longest whole entry; "
        f"it is told which prefixes prompts share, and saves those too. Entries and blocks of {BLOCK} take turns; "
        f"the other sizes come after them. All have room for {ROOM:,} tokens. Pass: the median of the part that is "
        f"spent in the model. Limit: the matrix products of a request's own tokens at the speed of large ones, or one "
        f"read of weights and cache. Computed: tokens through the model. Fewest: what blocks of this size leave to "
        f"compute at best.",
    )


def chat_table(times: ChatTimes) -> Table:
    names = [name for name in ("solution", "transformers") if name in times.peak]
    rows = []
    for call in CALLS:
        own, *peer = (times.best(name, call) for name in names)
        rows.append((in_words(call), *_beside(own, peer[0] if peer else None)))
    own, *peer = (times.peak[name] / 1e9 for name in names)
    rows.append(("most memory, in MB", *_beside(own, peer[0] if peer else None)))
    note = (
        f"{times.model}, float32, {times.threads} threads. Times in ms: the best of {times.repeats} rounds, each of "
        f"one prefill of each length and {IN_A_ROUND['reuse']} decodes and reuses, the engines in turn and each in a "
        f"process of its own. NumPy: the solution's functions, which take a long prompt in chunks of {CHUNK} tokens, "
        f"as the notebook's server does. transformers: the whole prompt at once, and a deep copy for each reuse. "
        f"Memory: of the whole process, after the prefill of the most tokens; weights and cache alone are "
        f"{plain(times.weights_and_cache / 1e6)} MB."
    )
    head = ("chat model", "NumPy", "transformers", "to transformers")
    return Table("The chat model beside transformers", head, rows, note if peer else f"{note} {NO_PEER}")


def _beside(own: float, peer: float | None) -> tuple[str, str, str]:
    """Seconds as milliseconds, those of transformers, and the ratio of the two."""
    return plain(own * 1e3), plain(peer * 1e3) if peer else "", f"{own / peer:.2f}" if peer else ""
