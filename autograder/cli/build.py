"""`autograder build`: makes course/source and course/release from solutions/."""

from __future__ import annotations

from autograder.cli.errors import EXIT_FAILED, UserError
from autograder.course_secret import FILE_NAME
from autograder.places import ROOT, SOLUTIONS

KEPT = {"gradebook.db": "the gradebook", FILE_NAME: "the secret that hidden inputs are drawn from"}


def require_checkout(what: str) -> None:
    """Raise UserError without a clone: solutions/ and the samples are not part of the installed package."""
    if not SOLUTIONS.is_dir():
        raise UserError(f"{what} needs a clone of the course's repository; it is not part of the installed package.")


def run(check: bool) -> int:
    """Build, or with `check` only compare what is committed with what would be built."""
    require_checkout("autograder build")
    from autograder.notebooks.build import build, check_release_is_current
    from autograder.notebooks.errors import BuildError

    if check:
        try:
            check_release_is_current(ROOT)
        except BuildError as error:
            print(error)
            return EXIT_FAILED
        print("course/release is up to date.")
        return 0
    kept = {ROOT / "course" / name: what for name, what in KEPT.items()}
    there = {path for path in kept if path.exists()}
    for folder in build(ROOT):
        print(folder.relative_to(ROOT))
    if made := [f"{p.relative_to(ROOT)} ({what})" for p, what in kept.items() if p not in there and p.exists()]:
        print(f"Made {' and '.join(made)}. Back up both together; share neither.")
    return 0
