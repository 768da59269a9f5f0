"""`python -m autograder.mutants [STAGE ...]`."""

from __future__ import annotations

import argparse
import sys
import time

from autograder.toolkit.threads import use_one_thread


def main() -> int:
    """Grade every one-step change of the solutions.

    The exit status is 1 if a change keeps all points and is not listed in its stage's equivalent.txt, or if a message
    about it names a wrong bug or a wrong place.
    """
    parser = argparse.ArgumentParser(prog="python -m autograder.mutants", description=main.__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these (default: all)")
    parser.add_argument("--names", action="store_true", help="run all checks on each, for all names they give")
    options = parser.parse_args()
    use_one_thread()  # before NumPy is imported

    from rich.progress import Progress

    from autograder.mutants import report
    from autograder.mutants.run import SolutionFails, grade_all, mutants_of
    from autograder.sandbox.isolation import SandboxMissing
    from autograder.stages import GRADED_STAGES, UnknownStage, find_stage

    try:
        stages = [find_stage(name) for name in options.stages] or GRADED_STAGES
    except UnknownStage as error:
        parser.error(str(error))
    started = time.monotonic()
    mutants = [mutant for stage in stages if stage.graded for mutant in mutants_of(stage)]
    try:
        with Progress(transient=True) as progress:
            task = progress.add_task("Grading", total=len(mutants))
            verdicts = grade_all(mutants, options.names, lambda part: progress.advance(task, len(part)))
    except (SandboxMissing, SolutionFails) as error:
        print(error, file=sys.stderr)
        return 2
    print(report.text(verdicts))
    print(f"\n{len(verdicts)} mutants in {time.monotonic() - started:.0f} s")
    doubts = (*report.doubtful_names(verdicts), *report.astray(verdicts))
    return 1 if report.survivors(verdicts) or any(doubts) else 0


if __name__ == "__main__":
    sys.exit(main())
