"""`autograder report`: writes a page about how a class did at a stage, to read before a lecture."""

from __future__ import annotations

from pathlib import Path

from autograder.cli.errors import UserError
from autograder.cli.find import find_course, with_checks
from autograder.stages import find_stage
from autograder.whole_file import whole_file


def run(stage_name: str, *, course: Path | None, output: Path | None) -> int:
    """Write the page, and print the topics to talk about and the page's path."""
    stage = with_checks(find_stage(stage_name))
    folder = find_course(course)
    here = Path.cwd()  # Course changes it

    from autograder.grading.class_run import Course, CourseProblem
    from autograder.plain_text import one_line
    from autograder.report.collect import collect
    from autograder.report.page import page

    try:
        class_run = Course(folder)
    except CourseProblem as problem:
        raise UserError(str(problem)) from None
    path = output or class_run.autograded / f"report-{stage.assignment}.html"
    report = collect(class_run.submitted, class_run.autograded, stage, class_run.excluded)
    if report is None:
        raise UserError(f"Nothing of {stage.assignment} is graded in {folder}; run: autograder grade {stage.name}")
    _write(path, here, page(report))
    graded = len(report.graded)
    print(f"{stage.assignment}: {graded} of {len(report.rows)} submissions graded", end="")
    print(f", median {report.median:g} of {report.most:g} points" if graded else "")
    for topic in report.topics:
        print(f"  {len(topic.students)} of {graded}: {one_line(topic.label, 120)}")
    print(f"Written: {path}")
    return 0


def _write(path: Path, here: Path, content: str) -> None:
    """Write the whole file, or raise UserError and write nothing. A relative path starts at `here`."""
    try:
        with whole_file(here / path) as file:
            file.write(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path} cannot be written ({reason}); name a file with --output PATH.") from None
