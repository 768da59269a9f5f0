"""The labs' drawings, as SVG and HTML: the same for a live lab and for a static picture.

They can be read in grayscale, and every picture has a label that says what it shows (role="img").
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from autograder.toolkit.chart_style import KINDS
from autograder.toolkit.costs import Decoding, NextRequest
from autograder.toolkit.visible import visible

_INK, _GRAY = "#111111", "#595959"
_COMPUTED, _CACHED = KINDS["computed"][0], "url(#cached)"
# What is read from the cache has the hatch that it has in every chart
_HATCH = (
    "<defs><pattern id='cached' width='5' height='5' patternUnits='userSpaceOnUse' patternTransform='rotate(45)'>"
    f"<rect width='5' height='5' fill='{KINDS['cached'][0]}'/><path d='M0 0v5' stroke='{_GRAY}'/></pattern></defs>"
)
_FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"
_SIDE = 230  # of a panel's square, in pixels
_EXTENTS = (12, 24, 48, 96, 192, 384, 768, 1536)  # tokens that a panel has room for


class Picture:
    """A drawing that Jupyter shows; `str` is its description in words."""

    def __init__(self, svg: str, words: str) -> None:
        self.svg = svg
        self.words = words

    def __str__(self) -> str:
        return self.words

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"image/svg+xml": self.svg, "text/plain": self.words}

    def save(self, path) -> None:
        """Write the SVG to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


def steps_picture(n_prompt: int = 16, n_steps: int = 2) -> Picture:
    """The last of n_steps passes, with everything recomputed and with the KV cache, and the total costs so far."""
    decoding = Decoding(n_prompt, use_cache=True, n_steps=n_steps)
    return Picture(steps_svg(decoding), steps_words(decoding))


def steps_words(decoding: Decoding) -> str:
    """Lab 1's numbers in a sentence or two."""
    if decoding.n_steps == 0:
        return f"A prompt of {_count(decoding.n_prompt, 'token')}; nothing has run yet."
    without, with_cache = _both(decoding)
    n_seq = decoding.n_seq()
    rows = _count(n_seq if decoding.n_steps == 1 else 1, "row")
    return (
        f"Step {decoding.n_steps} with {_count(n_seq, 'token')}: recomputing fills a triangle of {n_seq} rows and "
        f"costs {_units(without.units())}, the KV cache fills {rows} and costs {_units(with_cache.units())}. "
        f"Paid so far: {_units(without.paid)} by recomputing, {_units(with_cache.paid)} with the cache."
    )


def steps_svg(decoding: Decoding, chosen: bool = False) -> str:
    """The growing triangle beside the growing row. `chosen` marks the side that the lab is set to."""
    without, with_cache = _both(decoding)
    n_seq = decoding.n_seq() or decoding.n_prompt
    extent = next((e for e in _EXTENTS if e >= n_seq), n_seq)
    first_row = n_seq if decoding.n_steps > 1 else 1  # the first row that the cache's side computes
    parts = [_HATCH]
    for x, title, one, row in (
        (30, "Every step recomputes", without, 1),
        (340, "With the KV cache", with_cache, first_row),
    ):
        mark = chosen and one.use_cache == decoding.use_cache
        parts += _panel(x, title, one, row, n_seq, extent, mark)
    parts += _legend(30, 350)
    parts += _bars(30, 390, without.paid, with_cache.paid)
    return _svg(600, 464, parts, steps_words(decoding))


def _both(decoding: Decoding) -> tuple[Decoding, Decoding]:
    return tuple(Decoding(decoding.n_prompt, use_cache, decoding.n_steps) for use_cache in (False, True))


def _panel(x, title, decoding, first_row, n_seq, extent, mark) -> list[str]:
    """The scores of one step, rows first_row to n_seq of the triangle, and the keys and values that they are made from.

    Scores are never kept: of the rows above first_row, only the keys and values exist.
    """
    top, cell = 44, _SIDE / extent
    started = decoding.n_steps > 0
    parts = [
        _text(x, 18, title + (" (chosen)" if mark else ""), size=13, weight="bold"),
        _text(x, 35, _panel_note(decoding, first_row, n_seq), size=11.5, color=_GRAY),
        f"<rect x='{x}' y='{top}' width='{_SIDE}' height='{_SIDE}' fill='white' stroke='{_INK if mark else '#BBBBBB'}' "
        f"stroke-width='{2.4 if mark else 1}'/>",
        _stairs(x, top, cell, first_row, n_seq, started),
    ]
    if extent <= 24:
        parts.append(_grid(x, top, cell, n_seq))
    for y, name in ((top + _SIDE + 6, "K"), (top + _SIDE + 21, "V")):
        parts.append(_text(x - 5, y + 10, name, size=10, color=_GRAY, anchor="end"))
        for begin, end, fill in (
            (0, first_row - 1, _CACHED),
            (first_row - 1, n_seq, _COMPUTED if started else "white"),
        ):
            box = f"x='{x + begin * cell:.1f}' y='{y}' width='{(end - begin) * cell:.1f}' height='12'"
            parts.append(f"<rect {box} fill='{fill}' stroke='{_GRAY}' stroke-width='0.8'/>" if end > begin else "")
    parts.append(_text(x, top + _SIDE + 47, "key and value at position 0, 1, ...", size=10, color=_GRAY))
    parts.append(
        f"<text {_FONT} font-size='10' fill='{_GRAY}' text-anchor='end' "
        f"transform='translate({x - 7} {top}) rotate(-90)'>query at position 0, 1, ...</text>"
    )
    return parts


def _panel_note(decoding: Decoding, first_row: int, n_seq: int) -> str:
    if decoding.n_steps == 0:
        return f"{_count(n_seq, 'token')} to prefill"
    if first_row == 1:
        return f"this step: {_count(n_seq, 'row')}, {_units(decoding.units())}"
    return f"this step: 1 row of {n_seq}, {_units(decoding.units())}"


def _stairs(x, y, cell, first, last, computed) -> str:
    """Rows first to last (from 1) of the triangle; row i is i cells long."""
    points = [(0, first - 1)]
    for row in range(first, last + 1):
        points += [(row, row - 1), (row, row)]
    points.append((0, last))
    path = " ".join(f"{x + column * cell:.1f},{y + row * cell:.1f}" for column, row in points)
    fill = _COMPUTED if computed else "white"
    return f"<polygon points='{path}' fill='{fill}' stroke='{_GRAY}' stroke-width='0.8'/>"


def _grid(x, y, cell, n_seq) -> str:
    """Thin white lines between the cells."""
    lines = []
    for i in range(1, n_seq):
        top = y + i * cell
        lines.append(f"M{x:.1f} {top:.1f}h{(i + 1) * cell:.1f}M{x + i * cell:.1f} {top:.1f}v{(n_seq - i) * cell:.1f}")
    return f"<path d='{''.join(lines)}' stroke='white' stroke-width='0.8' fill='none'/>"


def _legend(x, y) -> list[str]:
    parts = []
    for offset, fill, text in ((0, _COMPUTED, "computed in this step"), (190, _CACHED, "read from the cache")):
        parts.append(f"<rect x='{x + offset}' y='{y - 10}' width='12' height='12' fill='{fill}' stroke='{_GRAY}'/>")
        parts.append(_text(x + offset + 18, y, text, size=11))
    return parts


def _bars(x, y, without: int, with_cache: int) -> list[str]:
    """The total costs so far, as two bars on one scale."""
    parts = [_text(x, y, "Paid so far, in attention units", size=12, weight="bold")]
    widest = max(without, with_cache, 1)
    for i, (label, units, fill) in enumerate(
        (("recomputing", without, "white"), ("with the cache", with_cache, _COMPUTED))
    ):
        top = y + 10 + 24 * i
        width = max(1.0, 330 * units / widest) if units else 0
        parts.append(_text(x + 100, top + 13, label, size=11, anchor="end"))
        bar = f"x='{x + 108}' y='{top}' width='{width:.1f}' height='17'"
        parts.append(f"<rect {bar} fill='{fill}' stroke='{_INK}' stroke-width='1'/>")
        parts.append(_text(x + 114 + width, top + 13, f"{units:,}", size=11))
    return parts


def _svg(width: int, height: int, parts: Sequence[str], label: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}' "
        f"role='img' aria-label='{escape(label, quote=True)}' style='max-width:100%;height:auto;background:white'>"
        f"<rect width='{width}' height='{height}' fill='white'/>{''.join(parts)}</svg>"
    )


def _text(x, y, text, size=11.0, color=_INK, weight="normal", anchor="start") -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {_FONT} font-size='{size}' fill='{color}' font-weight='{weight}' "
        f"text-anchor='{anchor}'>{escape(text)}</text>"
    )


# Tables and tokens

_STYLE = """<style>
.cache-lab { line-height: 1.4; }
.cache-lab p { margin: 4px 0; }
.cache-lab .text { white-space: pre-wrap; max-width: 600px; max-height: 9em; overflow: auto; margin: 6px 0; }
.cache-lab .scroll { overflow-x: auto; padding-bottom: 4px; }
.cache-lab table { border-collapse: collapse; margin: 6px 0; }
.cache-lab caption { text-align: left; font-weight: bold; padding-bottom: 3px; }
.cache-lab th { text-align: left; font-weight: normal; }
.cache-lab .numbers th, .cache-lab .numbers td { padding: 3px 16px 3px 0; }
.cache-lab .numbers td, .cache-lab .numbers thead th + th { text-align: right; font-variant-numeric: tabular-nums; }
.cache-lab .numbers thead th { border-bottom: 1px solid #595959; }
.cache-lab .tokens th { padding: 2px 8px 2px 0; white-space: nowrap; }
.cache-lab .tokens th.place, .cache-lab .tokens td.mark { text-align: center; font-size: 11px; padding: 1px 4px; }
.cache-lab .tokens td.token { padding: 2px 5px; border: 1px solid #8A8A8A; white-space: pre; text-align: center;
  font: 12px monospace; background: white; color: #111111; }
.cache-lab .tokens td.shared { background: CACHED; }
.cache-lab .tokens td.first { outline: 3px solid #111111; outline-offset: -2px; font-weight: bold; }
.cache-lab .tokens td.left-out { border-style: dashed; }
</style>""".replace("CACHED", KINDS["cached"][0])


def lab_html(*parts: str) -> str:
    """The parts of a lab's output, with their style."""
    return f"{_STYLE}<div class='cache-lab'>{''.join(parts)}</div>"


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table of numbers with a caption; the first column names the rows."""
    head = "".join(f"<th scope='col'>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr><th scope='row'>{escape(name)}</th>{''.join(f'<td>{escape(value)}</td>' for value in values)}</tr>"
        for name, *values in rows
    )
    return (
        f"<table class='numbers'><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def tokens_html(request: NextRequest, saved: Sequence[str], live: Sequence[str]) -> str:
    """Two rows of tokens by position, the shared prefix shaded and the first difference framed."""
    shared, longest = request.shared, max(len(saved), len(live))
    columns = _columns(shared, longest)

    def cell(tokens: Sequence[str], i: int | None) -> str:
        if i is None:
            return "<td class='token left-out'>…</td>"
        if i > len(tokens):
            return "<td></td>"
        kind = "token shared" if i < shared else "token first" if i == shared else "token"
        return f"<td class='{kind}'>{escape(visible(tokens[i])) if i < len(tokens) else 'end'}</td>"

    def mark(i: int | None) -> str:
        text = "" if i is None or i > shared else "same" if i < shared else "differs" if i < longest else ""
        return f"<td class='mark'>{text}</td>"

    places = "".join(f"<th scope='col' class='place'>{'' if i is None else i}</th>" for i in columns)
    rows = "".join(
        f"<tr><th scope='row'>{name}</th>{''.join(cell(tokens, i) for i in columns)}</tr>"
        for name, tokens in (("saved", saved), ("next", live))
    )
    return (
        "<div class='scroll' role='region' aria-label='The tokens of both prompts, side by side' tabindex='0'>"
        f"<table class='tokens'><thead><tr><th scope='row'>position</th>{places}</tr></thead>"
        f"<tbody>{rows}<tr><th scope='row'></th>{''.join(map(mark, columns))}</tr></tbody></table></div>"
    )


def difference_words(request: NextRequest, saved: Sequence[str], live: Sequence[str]) -> str:
    """A sentence about where the prompts first differ."""
    shared = request.shared
    prefix = f"The prompts share a prefix of {_count(shared, 'token')}." if shared else "The prompts share no prefix."
    if shared == len(saved) == len(live):
        return prefix + " They are the same; one token is computed again, for the logits after it."
    if shared == len(live):
        return prefix + " The next prompt ends there; its last token is computed again, for the logits after it."
    if shared == len(saved):
        return prefix + f" The saved prompt ends there; the next one goes on with {_quoted(live[shared])}."
    words = f"{_quoted(saved[shared])} in the saved prompt, {_quoted(live[shared])} in the next one"
    return f"{prefix} The first token that differs stands at position {shared}: {words}."


def _columns(shared: int, longest: int) -> list[int | None]:
    """The positions to show; None stands for positions left out in the middle of a long prefix or at the end."""
    if shared <= 16:
        columns: list[int | None] = list(range(shared))
    else:
        columns = [*range(6), None, *range(shared - 6, shared)]
    after = list(range(shared, longest))
    return columns + (after if len(after) <= 24 else [*after[:20], None])


def _quoted(token: str) -> str:
    return f"\u201c{visible(token)}\u201d"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _units(n: int) -> str:
    return f"{n:,} unit{'' if n == 1 else 's'}"
