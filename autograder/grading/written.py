"""A student's prose as it may stand in the course's own pages: rendered where that is safe, else as it was typed."""

from __future__ import annotations

import html
import re

LONGEST_RENDERED = 20_000  # characters; the parser's time grows faster than the text does

_TAGS = {"p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "del", "code", "pre", "blockquote",
         "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"}  # fmt: skip
# What in a formula makes links, styles and ids of elements, or new names for what does
_ACTIVE = re.compile(
    r"\\(?:href|url|style|class|cssId|unicode|bbox|mmlToken|require|[gex]?def|let|(?:re)?new\w+|Declare\w+)(?![A-Za-z])"
)


def plain_markdown(text: str) -> str:
    """Markdown that shows the text literally: no HTML, link, image or formula of it is ever rendered."""
    escaped = html.escape(text.strip("\n"), quote=True)
    for character in "$\\`":
        escaped = escaped.replace(character, f"&#{ord(character)};")
    return f'<pre style="white-space: pre-wrap">\n{escaped}\n</pre>'


def rendered_markdown(text: str) -> str:
    """The text's Markdown and formulas as one line of HTML, which Markdown leaves as it is.

    HTML of its own is shown as text; links and images are left out. What cannot be rendered safely is shown literally.
    """
    import bleach
    import mistune

    if len(text) > LONGEST_RENDERED:
        return plain_markdown(text)
    try:
        rendered = mistune.create_markdown(escape=True, plugins=["table", "math", "strikethrough"])(text)
        clean = bleach.clean(rendered, tags=_TAGS, attributes={}, strip=True)
    except RecursionError:
        return plain_markdown(text)
    if _ACTIVE.search(html.unescape(re.sub(r"<[^>]*>", "", clean))):
        return plain_markdown(text)
    return f"<div>{clean.strip()}</div>".replace("\n", "&#10;")
