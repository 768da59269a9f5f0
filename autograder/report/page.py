"""The page about a class, as one self-contained HTML file.

Names and messages come from students, so the template escapes every string, and the page's policy allows only the
scripts and styles whose hashes it lists.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from autograder.grading.outcome import NOT_GRADED_LINE, NOTE, STALE
from autograder.plain_text import JOINERS, visible
from autograder.report import drawing
from autograder.report.collect import NOT_YET_GRADED, ClassReport

_HERE = Path(__file__).resolve().parent
_SAID = {NOT_GRADED_LINE: "not graded", NOT_YET_GRADED: "not yet graded", STALE: "out of date", NOTE: "repaired or odd"}


def shown(value: Any) -> Any:
    """A text for the page, which the template escapes: what is invisible or would turn the writing direction is
    replaced."""
    if hasattr(value, "__html__") or not isinstance(value, str):
        return value
    return visible(value, keep="\n" + JOINERS)


def short(value: str, limit: int) -> str:
    return value if len(value) <= limit else f"{value[:limit]} ..."


def page(report: ClassReport, now: datetime | None = None) -> str:
    style, script = (_HERE.joinpath(file).read_text(encoding="utf-8") for file in ("page.css", "page.js"))
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = short
    return environment.get_template("page.html").render(
        report=report,
        stage=report.stage,
        rows=report.rows,
        graded=report.graded,
        now=f"{now or datetime.now(timezone.utc):%Y-%m-%d %H:%M}",
        said=_SAID,
        number="{:g}".format,
        drawing=drawing,
        style=style,
        script=script,
        policy=(
            f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "base-uri 'none'; form-action 'none'"
        ),
    )


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
