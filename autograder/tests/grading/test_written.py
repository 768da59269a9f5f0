"""Prose of a student's on the course's pages: rendered, with nothing in it that runs, loads or links anything."""

import re
from html import unescape

import pytest
from nbconvert.filters import markdown2html

from autograder.grading.written import LONGEST_RENDERED, plain_markdown, rendered_markdown

ACTIVE = [
    "<script>alert(1)</script>",
    "</pre><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![](https://example.org/pixel.png)",
    "<https://example.org> and https://example.org",
    "$\\href{javascript:alert(1)}{x}$ and $$y$$ and \\\\[z\\\\]",
    "```mermaid\ngraph TD; A-->B\n```",
    "a\n\n</pre>\n\n<b>b</b>",
    "a\n\n</div>\n\n<style>body { display: none }</style>",
]
FORMULAS = ["\\href{https://example.org}{x}", "\\let\\x\\hre f", "\\style{color: red}{x}", "\\cssId{a}{x}",
            "\\newcommand{\\x}{y}", "\\DeclareMathOperator{\\x}{y}", "\\mmlToken{mi}[href='x']{y}"]  # fmt: skip


def shown(markdown):
    """As nbgrader shows a cell to students and assistants."""
    return markdown2html(markdown).strip()


@pytest.mark.parametrize("text", ACTIVE)
def test_plain_markdown_shows_the_text_literally(text):
    html = shown(plain_markdown(text))
    inside = html.removeprefix('<pre style="white-space: pre-wrap">').removesuffix("</pre>")
    assert html.startswith("<pre") and "<" not in inside and "$" not in inside


@pytest.mark.parametrize("text", ACTIVE)
def test_rendered_markdown_has_no_attribute_and_no_tag_that_does_anything(text):
    html = shown(rendered_markdown(text))
    for tag in re.findall(r"<[^>]*>", html.removeprefix('<pre style="white-space: pre-wrap">')):
        assert re.fullmatch(r"</?(?:div|p|pre|code|br)>|<br />", tag), tag


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_that_makes_links_or_styles_is_shown_as_typed(formula):
    for text in (f"Because ${formula}$.", f"$$\n{formula}\n$$", f"\\\\({formula}\\\\)"):
        assert rendered_markdown(text) == plain_markdown(text)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Because *positions* continue.", "<p>Because <em>positions</em> continue.</p>"),
        ("- a\n- b", "<ul>&#10;<li>a</li>&#10;<li>b</li>&#10;</ul>"),
        ("$P + n_a - n_b$ tokens", r"<p>\(P + n_a - n_b\) tokens</p>"),
        ("for $5 and $6", "<p>for $5 and $6</p>"),
        ("```\na\n\nb < c\n```", "<pre><code>a&#10;&#10;b &lt; c&#10;</code></pre>"),
        ("\\letter $\\leq 2$", r"<p>\letter \(\leq 2\)</p>"),
    ],
)
def test_an_honest_answer_is_rendered(text, html):
    assert rendered_markdown(text) == f"<div>{html}</div>" == shown(rendered_markdown(text))


def test_a_command_that_is_spelled_with_entities_does_not_come_together():
    for text in (
        "$\\hr&#101;f{y}{x}$",
        "\\hr&#101;f $x$",
        "$$\n\\hr&#101;f{y}{x}\n$$",
        "\\\\(\\hr<b></b>ef{y}{x}\\\\)",
    ):
        html = rendered_markdown(text)
        assert html == plain_markdown(text) or r"\href" not in unescape(html)


def test_text_that_takes_too_long_to_render_is_shown_as_typed():
    text = "x" * (LONGEST_RENDERED + 1)
    assert rendered_markdown(text) == plain_markdown(text)


def test_endless_nesting_is_handled():
    assert "innermost" in rendered_markdown("> " * (LONGEST_RENDERED // 2 - 10) + "innermost")
