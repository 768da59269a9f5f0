"""A class of sixteen for tests of what is shown about a class: handed in, and graded by `autograder grade`."""

from autograder.stages.samples import solved_cells, submissions_of
from autograder.tests.command import autograder
from autograder.tests.course import STAGE, Course

HOSTILE = "<img src=x onerror=alert(1)>\"'&amp;"  # a student's name, as a folder may be called
TURNED, AS_RECORDED = "turned\u202e", "turned?"  # one that cannot be shown, and is not graded
SCRIPT = "</script><script>document.title = 'taken'</script>\x1b[31m"  # what a student's code says in an error
BUGS = {"positions-reset": 4, "empty-suffix": 3, "saved-cache-mutated": 2, "no-fingerprint": 1}
N_GRADED, N_NOT_GRADED = 14, 2


def small_class(folder):
    """The course folder with the class in it."""
    course = Course(folder)
    wrong = {s.name: s.sources(STAGE) for s in submissions_of(STAGE.name)}
    number = 0
    for bug, students in BUGS.items():
        for _ in range(students):
            number += 1
            course.hand_in(f"student-{number}", wrong[bug])
    course.hand_in("right")
    course.hand_in("renamed", name=f"{STAGE.module} (1).ipynb")
    course.hand_in("unsolved", {})
    course.hand_in(HOSTILE, {cell: raising(source) for cell, source in solved_cells(STAGE.name).items()})
    course.hand_in(TURNED)
    course.hand_in("broken")
    course.path("broken").write_text('{"cells": [', encoding="utf-8")
    graded = autograder("grade", STAGE.name, cwd=folder)
    assert graded.returncode == 1, graded.stdout + graded.stderr  # two could not be graded
    return course


def raising(source):
    """The same functions, each of which raises an error with the student's message."""
    defined = [line for line in source.splitlines() if line.startswith("def ")]
    return "\n".join(f"{line.partition('(')[0]}(*args):\n    raise ValueError({SCRIPT!r})" for line in defined)
