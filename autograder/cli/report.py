"""`autograder report`: a page about how a class did at a stage, to open before a lecture."""

from __future__ import annotations

from pathlib import Path

from autograder.cli.errors import UserError
from autograder.cli.find import with_checks
from autograder.cli.grade import find_course
from autograder.stages import find_stage
from autograder.whole_file import whole_file


def run(stage_name: str, *, course: Path | None, output: Path | None) -> int:
    """Write the page, and print the things to talk about and where the page is."""
    stage = with_checks(find_stage(stage_name))
    folder = find_course(course)
    path = output or folder / "autograded" / f"report-{stage.assignment}.html"

    from autograder.grading.submission import printable
    from autograder.report.collect import collect
    from autograder.report.page import page

    report = collect(folder, stage)
    if report is None:
        raise UserError(f"Nothing of {stage.assignment} is marked in {folder}; run: autograder grade {stage.name}")
    _write(path, page(report))
    graded = len(report.graded)
    print(f"{stage.assignment}: {graded} of {len(report.rows)} submissions graded", end="")
    print(f", median {report.median:g} of {report.most:g} points" if graded else "")
    for topic in report.topics:
        print(f"  {len(topic.students)} of {graded}: {printable(topic.label)}")
    print(f"Written: {path}")
    return 0


def _write(path: Path, content: str) -> None:
    """The whole file or, with one sentence, none."""
    try:
        with whole_file(path) as file:
            file.write(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path} cannot be written ({reason}); name a file with --output PATH.") from None
