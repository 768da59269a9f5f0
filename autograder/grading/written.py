"""Makes a student's prose safe for the course's pages: rendered where that is safe, otherwise shown as typed."""

from __future__ import annotations

import html
import re

LONGEST_RENDERED = 20_000  # characters; the parser's time grows faster than the length

_TAGS = {"p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "del", "code", "pre", "blockquote",
         "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"}  # fmt: skip
# Commands in a formula that make links, styles or ids of elements, or define new commands
_ACTIVE = re.compile(
    r"\\(?:href|url|style|class|cssId|unicode|bbox|mmlToken|require|[gex]?def|let|(?:re)?new\w+|Declare\w+)(?![A-Za-z])"
)


def plain_markdown(text: str) -> str:
    """Markdown that shows the text literally: none of its HTML, links, images or formulas is rendered."""
    escaped = html.escape(text.strip("\n"), quote=True)
    for character in "$\\`":
        escaped = escaped.replace(character, f"&#{ord(character)};")
    return f'<pre style="white-space: pre-wrap">\n{escaped}\n</pre>'


def rendered_markdown(text: str) -> str:
    """The text's Markdown and formulas as one line of HTML, which Markdown leaves unchanged.

    HTML in the text is shown as text; links and images are dropped. Text that cannot be rendered safely is shown
    literally.
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
