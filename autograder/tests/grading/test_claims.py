"""A student is graded by one process at a time, and can be claimed again when that process ends, however it ends."""

import subprocess
import sys

import pytest

from autograder.grading.claims import Claims

HOLD = """
import sys
from pathlib import Path
from autograder.grading.claims import Claims
claims = Claims(Path(sys.argv[1]))
print([claims.take(student) for student in sys.argv[2:]], flush=True)
for line in sys.stdin:
    claims.release(line.strip())
    print("released", flush=True)
"""


@pytest.fixture
def other(tmp_path):
    """Starts another process that claims students; returns it and the students that it got."""
    started = []

    def start(*students):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path), *students],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def claims(tmp_path):
    made = Claims(tmp_path)
    yield made
    made.close()


def test_a_student_claimed_by_one_process_is_refused_to_others(claims, other):
    assert claims.take("anna") and claims.take("anna")
    _, got = other("anna", "ben")
    assert got == "[False, True]"
    assert not claims.take("ben")
    assert claims.take("carla")


def test_a_released_claim_is_free(claims, other):
    process, _ = other("anna", "ben")
    process.stdin.write("anna\n")
    process.stdin.flush()
    assert process.stdout.readline().strip() == "released"
    assert claims.take("anna") and not claims.take("ben")


def test_a_process_that_is_killed_leaves_no_claim(claims, other):
    process, _ = other("anna")
    assert not claims.take("anna")
    process.kill()
    process.wait()
    assert claims.take("anna")


def test_any_name_can_be_claimed(claims, other):
    names = ["Zoë Müller", "學生", "a" * 255, "../x", "\udcff"]
    assert all(claims.take(name) for name in names)
    assert other(*names)[1] == str([False] * len(names))
