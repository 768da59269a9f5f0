"""`autograder build`: solutions/ to course/source and course/release."""

from __future__ import annotations

from autograder.cli.errors import EXIT_FAILED, UserError
from autograder.places import ROOT, SOLUTIONS


def require_checkout(what: str) -> None:
    """Refuse what an installed package cannot do, because solutions/ and the sample class are not part of it."""
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
        print("course/release is what solutions/ builds.")
        return 0
    for folder in build(ROOT):
        print(folder.relative_to(ROOT))
    return 0
