"""Output that grows while it is computed: one text, several texts that race, or a table of requests."""

from __future__ import annotations

import html
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_REFRESH_SECONDS = 0.05
_WRAPPED = "white-space:pre-wrap;word-break:normal"  # JupyterLab's own style breaks lines within words


class _Page:
    """One output that is replaced as it grows; outside a notebook, plain text printed once at the end."""

    def __init__(self) -> None:
        from IPython import get_ipython

        self._handle: Any = None
        self._last = 0.0
        self._live = getattr(get_ipython(), "kernel", None) is not None

    def show(self, as_html: str, as_text: str, last: bool = False) -> None:
        if not self._live:
            if last:
                print(as_text)
            return
        now = time.monotonic()
        if not last and now - self._last < _REFRESH_SECONDS:
            return
        self._last = now
        from IPython.display import display

        bundle = {"text/html": as_html, "text/plain": as_text}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def stream(tokenizer: Any, prompt_ids: Iterable[int], new_ids: Iterator[int]) -> None:
    """Show a text while it is generated: the prompt, then each id as `new_ids` yields it."""
    page, prompt, ids = _Page(), tokenizer.decode(list(prompt_ids)), []

    def show(last: bool = False) -> None:
        text = tokenizer.decode(ids)
        as_html = f"<pre style='{_WRAPPED}'>{html.escape(prompt)}<b>{html.escape(text)}</b></pre>"
        page.show(as_html, prompt + text, last)

    for token_id in new_ids:
        ids.append(token_id)
        show()
    show(last=True)


@dataclass
class _Lane:
    steps: Iterator[int]
    ids: list[int] = field(default_factory=list)
    seconds: float = 0.0  # its own, as if it ran alone
    over: bool = False

    def step(self) -> None:
        begin = time.perf_counter()
        try:
            self.ids.append(next(self.steps))
        except StopIteration:
            self.over = True
        self.seconds += time.perf_counter() - begin


def race(tokenizer: Any, lanes: Mapping[str, Iterator[int]]) -> dict[str, float]:
    """Let several generators race; returns the seconds of each.

    lanes: for each name, an iterator that yields token ids. Each has its own clock, which runs only while it computes;
    the one with the earliest clock goes next. So the race is as fair as if each had its own machine.
    """
    page, running = _Page(), {name: _Lane(iter(steps)) for name, steps in lanes.items()}

    def show(last: bool = False) -> None:
        told = {
            name: f"{len(lane.ids)} tokens, {lane.seconds:.2f} s{', finished' if lane.over else ''}"
            for name, lane in running.items()
        }
        texts = {name: tokenizer.decode(lane.ids) for name, lane in running.items()}
        cells = "".join(
            f"<td style='vertical-align:top;text-align:left;width:45%'><b>{html.escape(name)}</b><br>{told[name]}"
            f"<pre style='{_WRAPPED}'>{html.escape(texts[name])}</pre></td>"
            for name in running
        )
        plain = "\n".join(f"{name}: {told[name]}" for name in running)
        page.show(f"<table style='width:100%'><tr>{cells}</tr></table>", plain, last)

    while waiting := [lane for lane in running.values() if not lane.over]:
        min(waiting, key=lambda lane: lane.seconds).step()
        show()
    show(last=True)
    return {name: lane.seconds for name, lane in running.items()}


def live_table(rows: Iterable[Mapping[str, Any]], last_line: str = "") -> list[dict[str, Any]]:
    """Show a table that grows by a row whenever `rows` yields one; returns all rows.

    rows: dicts with the same keys, the column headings. last_line: a sentence below it, which may name sums of number
    columns in braces, such as "{computed} of {tokens} tokens were computed".
    """
    page, seen = _Page(), []

    def show(last: bool = False) -> None:
        heads = list(seen[0]) if seen else []
        cells = [[_cell(row[head]) for head in heads] for row in seen]
        sums = {h: sum(row[h] for row in seen) for h in heads if all(isinstance(r[h], (int, float)) for r in seen)}
        line = last_line.format_map(_Sums({head: _cell(value) for head, value in sums.items()}))
        aligned = ["" if h in sums else " style='text-align:left'" for h in heads]  # words; numbers stay at the right
        body = "".join(f"<tr>{_cells('td', aligned, row)}</tr>" for row in cells)
        head = _cells("th", aligned, heads)
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)] if heads else []
        lines = [[c.rjust(w) if h in sums else c.ljust(w) for h, c, w in zip(heads, row, widths, strict=True)]
                 for row in [heads, *cells]]  # fmt: skip
        plain = "\n".join("  ".join(row).rstrip() for row in lines)
        page.show(f"<table><tr>{head}</tr>{body}</table><p>{html.escape(line)}</p>", f"{plain}\n{line}".strip(), last)

    for row in rows:
        seen.append(dict(row))
        show()
    show(last=True)
    return seen


def _cells(tag: str, styles: list[str], texts: list[str]) -> str:
    return "".join(f"<{tag}{style}>{html.escape(text)}</{tag}>" for style, text in zip(styles, texts, strict=True))


class _Sums(dict):
    def __missing__(self, key: str) -> str:
        raise ValueError(f"last_line names {key!r}, which is no column of numbers")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
