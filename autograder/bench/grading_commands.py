"""Times the commands that grade a class: `autograder grade`, `nbgrader autograde`, and nbgrader without this package.

    python -m autograder.bench.grading_commands [--n 200] [--mode-n 40] [--stock-n 8] [--stage save-and-reuse]

The mixed class has right, wrong, looping and crashing submissions. A small class of right submissions is graded in each
sandbox mode that works here. Stock nbgrader grades only a few, because more would take too long; its time for a class
is computed from its start and its time per submission.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from autograder.bench.goals import Goal
from autograder.bench.memory import PeakMemory
from autograder.bench.report import goals_table
from autograder.bench.tables import Table
from autograder.cli.sample_class import UNSOLVED, make_course, write_submission
from autograder.cli.scores_table import gradebook_scores
from autograder.grading.environment import import_nbgrader
from autograder.sandbox.isolation import MODE_VARIABLE, MODES, try_mode
from autograder.stages import Stage, find_stage

import_nbgrader()

SPECIAL_EACH = 100  # one in this many submissions loops, and one ends its process

GOAL_RATIO = 25.0  # times stock's throughput on honest submissions
GOAL_SECONDS = 40.0  # for a class of GOAL_CLASS on two idle processors
GOAL_CLASS = 200


@dataclass(frozen=True)
class Run:
    """One command over one class."""

    what: str
    submissions: int
    seconds: float
    own_mb: float  # peak memory of the command's own process
    child_mb: float  # peak memory of the largest process that it started; 0 if none was seen

    @property
    def each(self) -> float:
        return self.seconds / self.submissions


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder.bench.grading_commands", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--n", type=int, default=GOAL_CLASS, help="submissions of the class (default 200)")
    parser.add_argument("--mode-n", type=int, default=40, help="honest submissions for each sandbox mode (default 40)")
    parser.add_argument("--stock-n", type=int, default=8, help="honest submissions for stock nbgrader (default 8)")
    parser.add_argument("--stage", default="save-and-reuse")
    options = parser.parse_args()
    if min(options.n, options.mode_n, options.stock_n) < 1:
        parser.error("a class has at least 1 submission")

    from rich.console import Console

    from autograder.toolkit.timing import machine

    console = Console()
    stage = find_stage(options.stage)
    load = f", load {os.getloadavg()[0]:.1f} before" if hasattr(os, "getloadavg") else ""
    console.print(f"{date.today().isoformat()}  {machine()}, {os.cpu_count()} processors{load}\n")
    with tempfile.TemporaryDirectory() as temporary:
        runs, stock = measure(stage, Path(temporary), options.n, options.mode_n, options.stock_n, console.print)
    console.print()
    console.print(table(runs, stock).shown(), "", goals_table(goals(runs, stock)).shown())


# The class


def mixed_class(stage: Stage, n: int) -> list[tuple[str, dict[str, str], str]]:
    """(kind, sources of the solution cells, an extra cell) of n submissions."""
    from autograder.stages.samples import solved_cells, submissions_of

    samples = submissions_of(stage.name)
    right = [("right", s.sources(stage), "") for s in samples if not hasattr(s, "loses")]
    wrong = [("wrong", s.sources(stage), "") for s in samples if hasattr(s, "loses")]
    solved = solved_cells(stage.name)
    looping = {mark: looping_source(source, stage.functions[-1]) for mark, source in solved.items()}
    chosen = []
    for number in range(n):
        place = number % SPECIAL_EACH
        if place == SPECIAL_EACH // 5:
            chosen.append(("looping", looping, ""))
        elif place == SPECIAL_EACH // 2:
            chosen.append(("crashing", solved, "import os\nos._exit(1)"))
        elif place == SPECIAL_EACH - 1:
            chosen.append((UNSOLVED, {}, ""))
        else:
            kind = wrong if number % 3 == 2 else right
            chosen.append(kind[number // 3 % len(kind)])
    return chosen


def looping_source(source: str, function: str) -> str:
    """The source with an endless loop as the function's first statement."""
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            first = node.body[0]
            lines.insert(first.lineno - 1, " " * first.col_offset + "while True: pass")
    return "\n".join(lines)


def hand_in(course: Path, stage: Stage, student: str, sources: dict[str, str], extra: str) -> None:
    released = course / "release" / stage.assignment
    path = write_submission(released, course / "submitted" / student / stage.assignment, stage, sources)
    if extra:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cell = {
            "cell_type": "code",
            "id": "extra",
            "metadata": {},
            "source": extra,
            "outputs": [],
            "execution_count": None,
        }
        notebook["cells"].insert(0, cell)
        path.write_text(json.dumps(notebook), encoding="utf-8")


# Measuring


def measure(
    stage: Stage, folder: Path, n: int, mode_n: int, stock_n: int, say: Callable[[str], None]
) -> tuple[list[Run], tuple[float, float]]:
    """The runs; and stock nbgrader's seconds to start and for each submission."""
    from autograder.stages.samples import submissions_of

    mixed, honest, stock = (folder / name for name in ("mixed", "honest", "stock"))
    make_course(mixed, (stage,))
    shutil.copytree(mixed, honest)
    shutil.copytree(mixed, stock)
    chosen = mixed_class(stage, n)
    kinds = {kind: sum(k == kind for k, _, _ in chosen) for kind in dict.fromkeys(k for k, _, _ in chosen)}
    say(f"mixed class of {stage.assignment}: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}")
    for number, (kind, sources, extra) in enumerate(chosen):
        hand_in(mixed, stage, f"s{number:04d}-{kind}", sources, extra)
    right = [s.sources(stage) for s in submissions_of(stage.name) if not hasattr(s, "loses")]
    small = Path(shutil.copytree(stock, folder / "small"))
    for course, count in ((honest, n), (small, mode_n), (stock, stock_n)):
        for number in range(count):
            hand_in(course, stage, f"s{number:04d}", right[number % len(right)], "")
    other = Path(shutil.copytree(mixed, folder / "other"))
    (stock / "nbgrader_config.py").write_text(_STOCK, encoding="utf-8")

    grade = [sys.executable, "-m", "autograder", "grade", stage.name]
    autograde = [sys.executable, "-m", "nbgrader", "autograde", stage.assignment]
    runs = [
        run("autograder grade, mixed", n, grade, mixed),
        run("nbgrader autograde, mixed", n, autograde, other),
        run("autograder grade, honest", n, grade, honest),
    ]
    if gradebook_scores(mixed, stage) != gradebook_scores(other, stage):
        raise RuntimeError("the two commands gave different scores")
    say("both commands gave the same scores")
    runs += measure_modes(stage, small, mode_n, grade, say)
    start = run("", 1, [*autograde, "--student=nobody"], stock, status=1)  # it finds no submission
    more = run(f"stock nbgrader, {stock_n} honest", stock_n, autograde, stock)
    return [*runs, more], (start.seconds, (more.seconds - start.seconds) / stock_n)


def measure_modes(stage: Stage, course: Path, n: int, command: list[str], say: Callable[[str], None]) -> list[Run]:
    """A run over a class in each mode that works here; RuntimeError when the scores differ."""
    runs, found = [], []
    for mode in MODES:
        if isinstance(why_not := try_mode(mode), str):
            say(f"the mode {mode} does not work here: {why_not}")
            continue
        copied = Path(shutil.copytree(course, course.with_name(mode)))
        runs.append(run(f"autograder grade, {mode}", n, command, copied, environment={MODE_VARIABLE: mode}))
        found.append(gradebook_scores(copied, stage))
    if any(each != found[0] for each in found):
        raise RuntimeError("two modes gave different scores")
    return runs


_STOCK = """
from pathlib import Path

from autograder.grading.environment import put_own_programs_on_path

course = Path(__file__).resolve().parent
put_own_programs_on_path()
c = get_config()
c.CourseDirectory.root = str(course)
"""


def run(
    what: str, n: int, command: list[str], course: Path, status: int = 0, environment: Mapping[str, str] | None = None
) -> Run:
    """Run a command in a course folder; RuntimeError when it ends with another status."""
    with (course / "output.log").open("w", encoding="utf-8") as log:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=course, env={**os.environ, **(environment or {})}, stdout=log, stderr=subprocess.STDOUT
        )
        memory = PeakMemory(process.pid)
        ended_with = process.wait()
        seconds = time.perf_counter() - start
        memory.close()
    if ended_with != status:
        raise RuntimeError(
            f"{' '.join(command)} failed:\n{(course / 'output.log').read_text(encoding='utf-8')[-3000:]}"
        )
    return Run(what, n, seconds, memory.own, memory.largest)


# What is printed


def table(runs: list[Run], stock: tuple[float, float]) -> Table:
    """A row per run; its ratio says how many times as fast it is as stock nbgrader on as many right submissions."""
    rows = [
        (
            *(each.what, str(each.submissions), f"{each.seconds:.1f}", f"{each.each:.2f}"),
            *(f"{each.own_mb:.0f}", f"{each.child_mb:.0f}"),
            "" if each is runs[-1] else f"{times_stock(each, stock):.1f}",
        )
        for each in runs
    ]
    note = (
        "MB: peak memory of the command; child MB: of the largest process it started. Ratio: throughput relative to "
        f"stock nbgrader on as many right submissions. Stock nbgrader takes {stock[0]:.1f} s to start and "
        f"{stock[1]:.2f} s for each submission ({stock_seconds(runs[0].submissions, stock):.0f} s for "
        f"{runs[0].submissions}): it runs every cell of each notebook, charts included, in a new kernel."
    )
    return Table("Commands that grade", ("command", "n", "seconds", "s each", "MB", "child MB", "ratio"), rows, note)


def stock_seconds(n: int, stock: tuple[float, float]) -> float:
    return stock[0] + n * stock[1]


def times_stock(run: Run, stock: tuple[float, float]) -> float:
    return stock_seconds(run.submissions, stock) / run.seconds


def goals(runs: list[Run], stock: tuple[float, float]) -> list[Goal]:
    grade_mixed, autograde, grade_honest, *_ = runs
    found = [Goal(f"{grade_honest.what}, to stock", 1 / GOAL_RATIO, 1 / times_stock(grade_honest, stock))]
    if grade_honest.submissions == GOAL_CLASS:
        found += [Goal(f"{run.what}: seconds", GOAL_SECONDS, run.seconds) for run in (grade_honest, grade_mixed)]
    return [*found, Goal(f"{autograde.what}, to stock", 1.0, 1 / times_stock(autograde, stock))]


if __name__ == "__main__":
    main()
