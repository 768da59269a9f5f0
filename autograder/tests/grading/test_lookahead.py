"""Submissions are marked ahead of the loop that stores them, in order of asking, within a window."""

import threading
import time

import pytest

from autograder.grading.lookahead import LookAhead
from autograder.tests.waiting import wait_until

STUDENTS = [f"s{n}" for n in range(12)]


@pytest.fixture
def ahead():
    made = []

    def make(compute, students=STUDENTS, jobs=2, **options):
        made.append(LookAhead(compute, students, jobs, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_every_result_comes_to_the_one_who_asks_and_is_computed_once(ahead, jobs):
    begun = []

    def compute(student):
        begun.append(student)
        return student.upper()

    look = ahead(compute, jobs=jobs)
    assert [look.take(student) for student in STUDENTS] == [student.upper() for student in STUDENTS]
    assert sorted(begun) == sorted(STUDENTS)


def test_as_many_run_at_a_time_as_there_are_jobs(ahead):
    running, most, guard = [], [], threading.Lock()
    together = threading.Barrier(3)  # each waits for two others, however busy the machine is

    def compute(student):
        with guard:
            running.append(student)
            most.append(len(running))
        together.wait(timeout=60)
        with guard:
            running.remove(student)

    look = ahead(compute, jobs=3)
    assert len(STUDENTS) % 3 == 0
    for student in STUDENTS:
        look.take(student)
    assert max(most) == 3


def test_what_is_done_ahead_stays_within_the_window(ahead):
    begun = []
    look = ahead(begun.append, jobs=2, window=4)
    assert wait_until(lambda: len(begun) == 4)
    time.sleep(0.1)
    assert begun == STUDENTS[:4]
    look.take("s0")
    assert wait_until(lambda: len(begun) == 5)


def test_a_submission_that_takes_long_holds_up_nobody_else(ahead):
    free, begun = threading.Event(), []

    def compute(student):
        begun.append(student)
        if student == "s0":
            free.wait(30)

    look = ahead(compute, jobs=2)
    assert wait_until(lambda: len(begun) == len(STUDENTS))  # though s0, the first to be taken, is not done
    free.set()
    look.take("s0")


def test_an_error_belongs_to_its_submission(ahead):
    def compute(student):
        if student == "s1":
            raise ValueError("cannot be read")
        return student

    look = ahead(compute)
    assert look.take("s0") == "s0"
    with pytest.raises(ValueError, match="cannot be read"):
        look.take("s1")
    assert look.take("s2") == "s2"


def test_one_who_is_not_wanted_is_computed_when_asked_for_and_only_then(ahead):
    begun = []
    look = ahead(begun.append, wanted=lambda student: student != "s1")
    assert wait_until(lambda: len(begun) == len(STUDENTS) - 1)
    look.take("s1")
    assert begun[-1] == "s1"


def test_the_one_asked_for_goes_before_those_ahead(ahead):
    begun = []
    look = ahead(begun.append, jobs=1, window=1)
    assert wait_until(lambda: begun == ["s0"])
    look.take("s7")
    assert begun[:2] == ["s0", "s7"]


def test_the_loop_overtakes_nobody(ahead):
    """Whom the loop has reached is not begun any more behind its back."""
    begun = []
    look = ahead(begun.append, jobs=1, window=1)
    look.reach("s1")
    look.take("s0")
    assert wait_until(lambda: len(begun) == 2)
    assert begun == ["s0", "s2"]


def test_a_result_that_is_dropped_makes_room(ahead):
    begun = []
    look = ahead(begun.append, jobs=1, window=1)
    assert wait_until(lambda: begun == ["s0"])
    look.drop("s0")
    assert wait_until(lambda: begun == ["s0", "s1"])


def test_closing_begins_nothing_more():
    begun = []
    look = LookAhead(begun.append, STUDENTS, 2, window=2)
    assert wait_until(lambda: len(begun) == 2)
    look.close()
    assert begun == ["s0", "s1"]
