"""Measures the course's functions and the grader in one run, and prints the ratios with the machine and the date."""

from __future__ import annotations

import argparse
from datetime import date

from autograder.cli.test import use_one_thread

GOAL_IDEAL = 1.3  # reuse of 400 tokens for a suffix of 8, against the ideal
GOAL_COMMAND = 2.0  # seconds of `autograder test`


def main() -> None:
    """Run the benchmarks; with --write, redraw the pictures and the table of README.md."""
    parser = argparse.ArgumentParser(prog="python -m autograder.bench", description=main.__doc__)
    parser.add_argument("--model", default="tiny", help="tiny (default), gpt2-shape, gpt2 or a folder")
    parser.add_argument("--reuse-only", action="store_true", help="leave the grader out")
    parser.add_argument("--write", action="store_true", help="redraw the pictures and the table of README.md")
    options = parser.parse_args()
    if options.model == "tiny":
        use_one_thread()  # before NumPy is imported

    from rich.console import Console

    from autograder.bench import report
    from autograder.bench.reuse import measure_reuse
    from autograder.bench.solved import solved
    from autograder.model import load_model
    from autograder.stages import find_stage
    from autograder.timing import machine

    console = Console()
    weights = load_model(options.model)
    console.print(f"{date.today().isoformat()}  {machine()}\n")
    small = weights.config.n_embd < 512
    reuse = measure_reuse(solved(), weights, repeats=9 if small else 3)
    console.print(report.reuse_table(reuse, options.model))
    at_goal = next((r for r in reuse if (r.prefix, r.suffix) == (400, 8)), None)
    if at_goal:
        console.print(report.goal("at 400 and 8 tokens, times the ideal", at_goal.short_of_ideal, GOAL_IDEAL))
    grading = None
    if not options.reuse_only:
        from autograder.bench.grading import measure_grading

        grading = measure_grading(find_stage("save-and-reuse"))
        console.print()
        console.print(report.grading_table(grading))
        console.print(report.goal("autograder test, seconds", grading.command.median, GOAL_COMMAND))
    if options.write:
        from autograder.bench.pictures import write_all

        write_all(console, reuse, grading, weights)


if __name__ == "__main__":
    main()
