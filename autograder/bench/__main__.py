"""Measures the course's functions and the grader in one run, and prints the ratios with the machine and the date."""

from __future__ import annotations

import argparse
from datetime import date

from autograder.toolkit.threads import use_one_thread

PARTS = ("reuse", "grading", "startup", "speed")


def main() -> None:
    """Run the benchmarks; with --write, redraw the pictures and the tables of README.md."""
    parser = argparse.ArgumentParser(prog="python -m autograder.bench", description=main.__doc__)
    parser.add_argument("--model", default="tiny", help="of the part reuse: tiny (default), gpt2-shape, gpt2, a folder")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="only these (default: all)")
    parser.add_argument("--write", action="store_true", help="redraw the pictures and the tables of README.md")
    options = parser.parse_args()
    if options.write and tuple(options.parts) != PARTS:
        parser.error("--write needs all parts")
    if options.model == "tiny":
        use_one_thread()  # before NumPy is imported; the part speed sets the threads of its own processes

    from rich.console import Console

    from autograder.bench import goals, report
    from autograder.bench.solved import solved
    from autograder.toolkit.model import load_model
    from autograder.toolkit.timing import machine

    console = Console()
    console.print(f"{date.today().isoformat()}  {machine()}\n")
    met: list[goals.Goal] = []
    reuse = grading = speed = None
    if "reuse" in options.parts:
        from autograder.bench.memory import measure_held
        from autograder.bench.reuse import SUFFIX, measure_reuse

        weights, functions = load_model(options.model), solved(sharing=True)
        reuse = measure_reuse(functions, weights, repeats=9 if weights.config.n_embd < 512 else 3)
        held = measure_held(functions, weights, reuse[-1].prefix, SUFFIX)
        console.print(report.reuse_table(reuse, options.model))
        console.print(report.held_note(held) + "\n")
        met += [*goals.reuse_goals(reuse), *goals.memory_goals(held)]
    if "grading" in options.parts:
        from autograder.bench.grading import measure_grading
        from autograder.stages import find_stage

        grading = measure_grading(find_stage("save-and-reuse"))
        console.print(report.grading_table(grading))
        met += goals.grading_goals(grading)
    if "startup" in options.parts:
        from autograder.bench.startup import measure_startup

        met += goals.startup_goals(measure_startup())
    if "speed" in options.parts:
        from autograder.bench.speed import measure_speed

        speed = measure_speed()
        console.print(report.speed_table(speed))
        console.print(report.parts_table(speed))
        met += goals.speed_goals(speed)
    console.print(report.goals_table(met))
    if options.write:
        from autograder.bench.pictures import write_all

        write_all(console, reuse, grading, speed, met, weights)


if __name__ == "__main__":
    main()
