"""The length of an answer is limited by its request, and checked before it is read."""

import os

import numpy as np
import pytest

from autograder.judge.cases import Cases
from autograder.judge.student import Student, StudentError, local_student
from autograder.sandbox.client import Cell, WorkerGone
from autograder.stages.sample_tests import shared_worker
from autograder.tests.memory import peak_growth

MODEL = Cases(1).odd[0]
FUNCTIONS = """
import numpy as np
def text(n): return "x" * n
def texts(n): return ["x" * 10] * n
def ids(n): return list(range(n))
def array(n, *given): return np.zeros(n, np.float32)
class Rows:
    keys = property(lambda self: np.zeros((2, self.n, 3), np.float32))
    values = keys
class Cache:
    def __init__(self, n): self.layers = [Rows(), Rows()]; self.layers[0].n = self.layers[1].n = n
def cache(n, *given): return Cache(n)
def write(path, n): open(path, "wb").write(bytes(n))
"""


@pytest.fixture(scope="module", params=["worker", "notebook kernel"])
def make(request):
    """Makes a student that has received no request yet."""
    if request.param == "worker":
        with shared_worker() as worker:
            assert worker.run_cell(Cell("functions", FUNCTIONS)) is None
            yield lambda: Student(worker.request)
    else:
        namespace = {"__name__": "student"}
        exec(FUNCTIONS, namespace)
        yield lambda: local_student(namespace)


@pytest.mark.parametrize(
    ("name", "fits", "too_long"), [("text", 90_000, 110_000), ("texts", 8_000, 12_000), ("array", 20_000, 30_000)]
)
def test_an_answer_may_be_little_longer_than_its_question_implies(make, name, fits, too_long):
    form = "array" if name == "array" else "plain"
    assert len(getattr(make(), form)(name, fits)) == fits
    with pytest.raises(
        StudentError, match=r"the result takes [\d,]+ bytes, where at most 100,000 are expected"
    ) as said:
        getattr(make(), form)(name, too_long)
    assert said.value.kind == "bad-result" and not said.value.refusal


def test_ids_are_as_many_as_a_context_may_have(make):
    assert len(make().ids("ids", 10_000)) == 10_000
    with pytest.raises(StudentError, match="more than 10,000 ids"):
        make().ids("ids", 10_001)


def test_an_array_may_be_as_large_as_the_model_or_the_arrays_of_the_question_imply(make):
    with pytest.raises(StudentError, match="bytes"):
        make().array("array", 50_000)
    assert make().array("array", 50_000, np.zeros(25_000, np.float32)).size == 50_000
    assert make().array("array", 2 * MODEL.config.n_ctx * MODEL.config.n_vocab, MODEL).any() == np.False_


def test_a_config_alone_implies_no_array(make):
    assert make().array("array", 30_000, MODEL.part("blocks.0")).size == 30_000
    with pytest.raises(StudentError, match="bytes"):
        make().array("array", 30_000, MODEL.part("config"))


def test_a_cache_may_be_as_large_as_the_models(make):
    c = MODEL.config
    n_seq = 2 * c.n_ctx * c.n_embd // 6
    student = make()
    assert student.read_cache(student.handle("cache", n_seq, MODEL))[0][0].shape == (2, n_seq, 3)
    with pytest.raises(StudentError, match="bytes"):
        student.read_cache(student.handle("cache", 100 * n_seq, MODEL))


def test_a_file_may_be_as_long_as_a_cache_written_as_text(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    student = make()
    student.plain("write", "cache", 150_000)
    with pytest.raises(StudentError, match="bytes"):
        student.read_file("cache")
    student.handle("cache", 1, MODEL)
    assert len(student.read_file("cache")) == 150_000
    student.plain("write", "cache", 20_000_000)
    with pytest.raises(StudentError, match="bytes"):
        student.read_file("cache")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="finds its pipe through /proc")
def test_a_longer_reply_is_not_read_even_if_the_worker_ignores_limits():
    forge = (
        "import autograder.worker.protocol as p, struct\n"
        "p.encode = lambda reply: struct.pack('>I', 60_000_000) + bytes(60_000_000)\ndef f(): return 1"
    )
    with shared_worker() as worker:
        too_long = pytest.raises(WorkerGone, match="a frame of 60,000,000 bytes is over the limit of 100,000")
        with peak_growth() as growth, too_long:
            worker.run_cell(Cell("forge", forge))
            Student(worker.request).plain("f")
    assert growth.bytes < 10_000_000


@pytest.mark.parametrize("odd", ["\ud800", ["a\udfff"], {"\ud800": 1}])
def test_half_a_surrogate_pair_is_not_text(odd):
    student = local_student({"f": lambda: odd})
    with pytest.raises(StudentError, match="half of a surrogate pair"):
        student.plain("f")


def test_an_error_whose_message_cannot_be_encoded_is_still_reported():
    def f():
        raise ValueError("half \ud800 of it")

    with pytest.raises(StudentError, match=r"f raised ValueError: half \\ud800 of it") as said:
        local_student({"f": f}).plain("f")
    assert said.value.refusal
