"""Measures the course's functions, part by part, and prints the ratios with the machine and the date."""

from __future__ import annotations

import argparse
from datetime import date

from autograder.toolkit.threads import use_one_thread


def main() -> None:
    """Run the benchmarks; with --write, put their tables into course/MEASURED.md and redraw README.md's pictures."""
    parser = argparse.ArgumentParser(prog="python -m autograder.bench", description=main.__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="reuse, speed, serving, chat (default: all)")
    parser.add_argument("--model", default="tiny", help="for the reuse: tiny (default), gpt2-shape, gpt2, a folder")
    parser.add_argument("--write", action="store_true", help="write course/MEASURED.md, and with reuse the pictures")
    options = parser.parse_args()
    if options.model == "tiny":
        use_one_thread()  # before NumPy is imported; all but the reuse is measured in processes of their own

    from rich.console import Console

    from autograder.bench import goals, pictures, report
    from autograder.bench.chat import measure_chat
    from autograder.bench.reuse import measure_reuse
    from autograder.bench.serving import measure_serving
    from autograder.bench.solved import solved
    from autograder.bench.speed import THREADS, measure_speed
    from autograder.toolkit.model import load_model
    from autograder.toolkit.timing import machine

    unknown = set(options.parts) - set(pictures.SECTIONS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(pictures.SECTIONS)}")
    console = Console()
    console.print(f"{date.today().isoformat()}  {machine()}")
    for part in options.parts or pictures.SECTIONS:
        where = machine(None if part == "reuse" else THREADS)
        if part == "reuse":
            weights = load_model(options.model)
            reuse = measure_reuse(solved(sharing=True), weights, repeats=9 if weights.config.n_embd < 512 else 3)
            tables = [report.reuse_table(reuse, options.model)]
            if options.write:
                pictures.write_pictures(reuse, weights)
        elif part == "speed":
            speed = measure_speed()
            tables = [report.speed_table(speed), report.goals_table(goals.speed_goals(speed), goals.SPEED_NOTE)]
        elif part == "serving":
            served = measure_serving()
            tables = [report.serving_table(served), report.goals_table(goals.serving_goals(served))]
        else:
            times = measure_chat()
            tables = [report.chat_table(times), report.goals_table(goals.chat_goals(times))]
        for table in tables:
            console.print("", table.shown())
        if options.write:
            page = pictures.MEASURED.read_text(encoding="utf-8") if pictures.MEASURED.is_file() else ""
            page = pictures.page_with(page, pictures.SECTIONS[part], where, tables)
            pictures.MEASURED.write_text(page, encoding="utf-8")
            console.print(f"Written: {pictures.MEASURED}", soft_wrap=True)


if __name__ == "__main__":
    main()
