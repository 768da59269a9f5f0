"""Grader processes: the same scores, an end in time, and nothing left behind."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

from autograder.grading import graders as module
from autograder.grading.grade import GradingError, Limits
from autograder.grading.graders import Graders
from autograder.grading.seed import student_key
from autograder.grading.submission import Grading, HandedIn
from autograder.notebooks.errors import NotebookError
from autograder.sandbox.isolation import LIMITS, Isolation, find_isolation
from autograder.stages.samples import submissions_of
from autograder.tests.course import ALL, CHECKS, NAME, STAGE, Course, own_cell
from autograder.tests.modes import in_each
from autograder.tests.waiting import wait_until

LOOP = own_cell("while True: __import__('time').sleep(9)")
posix = pytest.mark.skipif(os.name != "posix", reason="Windows ends a process in one way only")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"))
    wrong = next(s for s in submissions_of(STAGE.name) if s.name == "positions-reset")
    course.hand_in("right")
    course.hand_in("wrong", wrong.sources(STAGE))
    course.hand_in("looping", change=LOOP)
    course.hand_in("looking", change=own_cell("open('/etc/passwd').close()"))
    course.hand_in("broken")
    course.path("broken").write_text("{", encoding="utf-8")
    return course


def grading(course, **changes):
    source = course.folder / "source" / STAGE.assignment
    values = {
        "course": course.folder,
        "stage": STAGE,
        "source_notebook": json.loads((source / NAME).read_text(encoding="utf-8")),
        "points": {check.id: check.points for check in CHECKS.values()},
        "given": source / "given.py",
        "limits": Limits(),
        "isolation": find_isolation(),
        "display_seconds": None,
    }
    return Grading(**values | changes)


def handed_in(course, student):
    return HandedIn(course / "submitted" / student / STAGE.assignment, student_key(b"secret", student))


def grade(graders, student):
    return graders.grade(handed_in(graders._grading.course, student))


@pytest.fixture
def graders(course, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    graders = Graders(grading(course))
    yield graders
    graders.close()
    assert list(tmp_path.iterdir()) == []


def test_scores_are_the_same_one_at_a_time_and_in_parallel(graders):
    def points(student):
        found[student].append(grade(graders, student).record.score)

    found = {"right": [], "wrong": []}
    threads = [threading.Thread(target=points, args=(student,)) for student in ("right", "wrong")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    points("right")
    points("wrong")
    assert found["right"] == [ALL] * 2
    assert len(set(found["wrong"])) == 1 and found["wrong"][0] < ALL


def test_an_unreadable_submission_is_reported_and_ends_no_grader(graders):
    with pytest.raises(NotebookError, match="not valid JSON"):
        grade(graders, "broken")
    assert grade(graders, "right").record.score == ALL
    assert len(graders._all) == 1


@contextlib.contextmanager
def grading_what_loops(graders, folder):
    """Within it, a submission that loops is being graded; then it has ended, and what it raised is in the list."""

    def grade_it():
        with pytest.raises(GradingError) as caught:
            grade(graders, "looping")
        raised.append(str(caught.value))

    raised = []
    waiting = threading.Thread(target=grade_it)
    waiting.start()
    wait_for_sandbox(folder)
    yield raised
    waiting.join(30)


def wait_for_sandbox(folder):
    assert wait_until(lambda: list(folder.glob("autograder-*")), 30)
    time.sleep(0.5)  # in the loop, or on the way


@posix
def test_a_stopped_run_ends_at_once(graders, tmp_path):
    with grading_what_loops(graders, tmp_path) as raised:
        begin = time.monotonic()
        graders.stop()
    assert raised == ["the run was stopped"]
    assert time.monotonic() - begin < 8
    with pytest.raises(GradingError, match="stopped"):
        grade(graders, "right")


@posix
def test_a_grader_that_ends_costs_one_submission_its_scores_and_another_takes_over(graders, tmp_path):
    with grading_what_loops(graders, tmp_path) as raised:
        os.kill(graders._all[0]._process.pid, signal.SIGTERM)
    assert raised == ["the process that graded it ended with status 1; run it again."]
    assert grade(graders, "right").record.score == ALL


@pytest.mark.parametrize("isolation", in_each())
def test_a_grader_uses_the_sandbox_that_the_command_found_whatever_its_own_environment_says(
    course, monkeypatch, isolation
):
    other = "limits" if isolation.sandboxed else "bubblewrap"
    monkeypatch.setenv("AUTOGRADER_SANDBOX", other)
    monkeypatch.setenv("PATH", "/nowhere")
    graders = Graders(grading(course, isolation=isolation))
    graded = grade(graders, "looking")
    graders.close()
    assert bool([note for note in graded.record.notes if note.kind == "cell-failed"]) == isolation.sandboxed
    assert graded.record.isolation == (isolation.missing or isolation.mode)  # which the record tells


@posix
def test_a_grader_that_was_ended_while_it_waited_costs_nothing(graders):
    assert grade(graders, "right").record.score == ALL
    graders._all[0].stop()
    graders._all[0]._process.wait()
    assert grade(graders, "right").record.score == ALL


GRADER = """
import pickle, sys, threading
from autograder.grading.graders import Graders
grading, handed_in = pickle.load(sys.stdin.buffer)
threading.Thread(target=Graders(grading).grade, args=(handed_in,)).start()
"""


@posix
def test_graders_end_with_the_command_even_when_that_is_killed(course, tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", GRADER], stdin=subprocess.PIPE, env=environment)
    pickle.dump((grading(course), handed_in(course.folder, "looping")), process.stdin)
    process.stdin.close()
    wait_for_sandbox(tmp_path)
    process.kill()
    process.wait()
    wait_until(lambda: not list(tmp_path.iterdir()), 15)
    assert list(tmp_path.iterdir()) == []  # a grader removes its sandbox's folder, when that has ended


@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="the limit is set where the kernel says what is used"
)
def test_the_memory_of_a_grader_is_limited():
    code = (
        "import resource\nfrom autograder.grading.graders import limit_memory\nlimit_memory()\n"
        "assert resource.getrlimit(resource.RLIMIT_AS)[1] == resource.RLIM_INFINITY\n"  # its children set their own
        "try: bytearray(64 * 2**30)\nexcept MemoryError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "refused\n"


def test_a_submission_that_takes_too_much_memory_is_not_graded_and_ends_no_grader(monkeypatch):
    def too_large(*_):
        raise MemoryError

    monkeypatch.setattr(module, "grade", too_large)
    ok, error = pickle.loads(module._answer(None, None, None))
    assert not ok and isinstance(error, GradingError) and "more memory than is allowed" in str(error)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="root alone needs permission to do without")
@pytest.mark.parametrize("allowed", [False, True])
def test_a_cluster_machine_where_root_has_no_sandbox_grades_only_if_the_course_allows_it(course, monkeypatch, allowed):
    """An ordinary account that grades without one has no leave to give."""
    pytest.importorskip("distributed")
    from autograder.grading import cluster

    without = Isolation(LIMITS, why="no sandbox works here")
    monkeypatch.setattr(cluster, "find_isolation", lambda: without)
    shared = pickle.loads(cluster._pack(grading(course, isolation=without, allow_unsandboxed=allowed)))
    if not allowed:
        with pytest.raises(GradingError, match="a worker's machine cannot grade: Root grades only in a sandbox"):
            cluster._begin(shared)
        return
    graders, folder = cluster._begin(shared)
    graders.close()
    folder.cleanup()
