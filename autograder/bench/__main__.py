"""Measures the course's functions in one run, and prints the ratios with the machine and the date."""

from __future__ import annotations

import argparse
from datetime import date

from autograder.toolkit.threads import use_one_thread


def main() -> None:
    """Run the benchmarks; with --write, redraw the pictures of README.md and course/MEASURED.md."""
    parser = argparse.ArgumentParser(prog="python -m autograder.bench", description=main.__doc__)
    parser.add_argument("--model", default="tiny", help="for the reuse: tiny (default), gpt2-shape, gpt2, a folder")
    parser.add_argument("--write", action="store_true", help="redraw the pictures and course/MEASURED.md")
    options = parser.parse_args()
    if options.model == "tiny":
        use_one_thread()  # before NumPy is imported; measure_speed sets the threads of its own processes

    from rich.console import Console

    from autograder.bench import report
    from autograder.bench.goals import serving_goals, speed_goals
    from autograder.bench.reuse import measure_reuse
    from autograder.bench.serving import measure_serving
    from autograder.bench.solved import solved
    from autograder.bench.speed import measure_speed
    from autograder.toolkit.model import load_model
    from autograder.toolkit.timing import machine

    console = Console()
    console.print(f"{date.today().isoformat()}  {machine()}\n")
    weights = load_model(options.model)
    reuse = measure_reuse(solved(sharing=True), weights, repeats=9 if weights.config.n_embd < 512 else 3)
    console.print(report.reuse_table(reuse, options.model))
    speed = measure_speed()
    serving = measure_serving()
    goals = [*speed_goals(speed), *serving_goals(serving)]
    console.print(report.speed_table(speed))
    console.print(report.serving_table(serving))
    console.print(report.goals_table(goals))
    if options.write:
        from autograder.bench.pictures import write_all

        write_all(console, reuse, speed, serving, goals, weights)


if __name__ == "__main__":
    main()
