"""`autograder grade --dask`, with a real scheduler and several workers: the same scores as on one machine."""

import contextlib
import importlib.util
import os
import pickle
import re
import signal
import socket

import pytest

from autograder.cli.errors import UserError
from autograder.tests.cli.test_grade import grade
from autograder.tests.course import STAGE, Course, hand_in_a_class
from autograder.tests.grading_class import GRADE, copy_of, files, left_over, records, run, scores, start
from autograder.tests.waiting import wait_until

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="distributed is not installed"),
    pytest.mark.skipif(os.name != "posix", reason="kills workers"),
]


@pytest.fixture(scope="module")
def class_(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("class") / "course")
    hand_in_a_class(course, n_wrong=3)
    course.hand_in("broken")
    course.path("broken").write_text("{", encoding="utf-8")
    return course


@pytest.fixture(scope="module")
def expected(class_, tmp_path_factory):
    """The class graded on this machine alone: its scores, the reason why one is not graded, and the files."""
    course = copy_of(class_, tmp_path_factory.mktemp("here") / "course")
    done = run(course, GRADE)
    assert done.returncode == 1, done.stderr
    return scores(course), reasons(course), files(course).keys()


def reasons(course):
    return {r.student: (r.reason, [n.sentence for n in r.notes]) for r in records(course)}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    from autograder.bench.local_cluster import local_cluster

    with local_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


def graders_in(folder):
    return [command for command in left_over(folder) if "autograder.grading.graders" in command]


def test_a_simulated_class_that_is_killed_and_run_again_loses_nothing(cluster, tmp_path):
    from autograder.bench.large_class import simulate

    found = simulate(tmp_path, STAGE, 40, cluster.address, threads=2, seconds=0.01)
    assert 0 < found.before < 40 and found.wrong == 0 and found.stored == 40
    assert found.run.workers == 2 and found.run.submissions > 0


def test_an_interrupted_run_resumes_and_scores_are_those_of_one_machine_even_if_a_worker_is_killed(
    class_, expected, cluster, tmp_path
):
    course = copy_of(class_, tmp_path / "course")
    first = start(course, [*GRADE, "--dask", cluster.address])
    assert wait_until(lambda: records(course), 120)
    os.kill(first.pid, signal.SIGINT)
    first.communicate(timeout=120)
    assert wait_until(lambda: not graders_in(cluster.folder), 20)
    before = {r.student: r.graded_at for r in records(course) if r.status == "graded"}
    left = set(cluster.folder.glob("autograder-job-*"))
    second = start(course, [*GRADE, "--dask", cluster.address])
    assert wait_until(lambda: set(cluster.folder.glob("autograder-job-*")) - left, 120)
    cluster.workers[0].kill()
    output, _ = second.communicate(timeout=600)
    assert second.returncode == 1, output
    assert "dashboard: http://127.0.0.1:" in output
    assert (scores(course), reasons(course), files(course).keys()) == expected
    assert {r.student: r.graded_at for r in records(course)}.items() >= before.items()
    assert wait_until(lambda: not graders_in(cluster.folder), 60)


def test_a_job_holds_one_students_notebooks_and_no_secret(class_, monkeypatch):
    from autograder.course_secret import course_secret
    from autograder.grading import cluster as module
    from autograder.grading.seed import student_key
    from autograder.grading.submission import HandedIn
    from autograder.tests.grading.test_graders import grading

    sent = []

    class Client:
        dashboard_link = ""

        def __init__(self, *args, **options):
            pass

        def nthreads(self):
            return {"worker": 1}

        def submit(self, function, *values, **options):
            sent.append(pickle.dumps(values))
            raise InterruptedError

        map = submit

    with_first = class_.path("anna").parent
    monkeypatch.setattr(module, "Client", Client)
    with contextlib.suppress(InterruptedError), socket.create_server(("127.0.0.1", 0)) as somebody:
        module.Cluster(grading(class_), f"tcp://127.0.0.1:{somebody.getsockname()[1]}")
    cluster = object.__new__(module.Cluster)
    cluster.__dict__.update(_client=Client(), _stage=STAGE, _shared=None, _begun=[], _results=[])
    secret = course_secret(class_.folder)
    with contextlib.suppress(InterruptedError):
        cluster.begin("anna", HandedIn(with_first, student_key(secret, "anna")))
        cluster.next()
    assert len(sent) == 2
    for data in sent:
        assert secret not in data and secret.hex().encode() not in data and student_key(secret, "wrong-0") not in data
    assert class_.path("anna").read_bytes() in sent[1] and b"anna" not in sent[1].replace(
        class_.path("anna").read_bytes(), b""
    )


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:9", "No Dask scheduler answers at tcp://127.0.0.1:9 ("),
        ("127.0.0.1:8786", "127.0.0.1:8786 is not the address of a Dask scheduler; one looks like tcp://HOST:8786."),
    ],
)
def test_a_scheduler_that_does_not_answer(class_, monkeypatch, address, said):
    monkeypatch.chdir(class_.folder)
    with pytest.raises(UserError, match=re.escape(said)):
        grade(STAGE.name, dask=address)
    assert not records(class_)


# The benchmark of a cluster


def test_a_measured_run_excludes_its_first_tenth_and_earlier_grading():
    from autograder.bench.cluster import Meter, Sample

    meter = Meter()
    meter.samples = [Sample(n + 1, 0.0, 0.0, 1.0) for n in range(5)]
    meter.samples += [Sample(6 + n, 10.0 + n, 0.1 * n, 100.0) for n in range(20)]
    run = meter.run(4, before=5)
    assert (run.submissions, run.seconds) == (17, 17.0)
    assert run.throughput == 1.0 and run.parent == pytest.approx(0.1)
