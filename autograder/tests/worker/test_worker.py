"""The worker: runs cells, answers requests, and never brings the grader down."""

import os

import numpy as np
import pytest

from autograder.judge.framework import Failure, find_check, run_check
from autograder.judge.student import NotWritten, Student, StudentError, local_student
from autograder.sandbox.client import Cell, Worker, WorkerGone
from autograder.stages.sample_tests import shared_worker

FUNCTIONS = """
import numpy as np
def double(x): return np.asarray(x) * 2.0
def first_ids(ids): return np.asarray(ids)[:2]
def refuse(ids): raise ValueError("an empty prompt")
def crash(ids): return undefined_name
def silent(ids): return None
def spoil(ids):
    ids.append(0)
    return ids
def stub(): raise NotImplementedError()
def words(): return "two words"
def a_row_of_ids(): return np.array([[1, 2, 3]])
def float_ids(): return [1, 2.0]
def one_id_each(): return np.array([[1], [2]])
def no_list(): return 5
def liar():
    class Liar:
        def __eq__(self, other): return True
        def __array__(self, dtype=None, copy=None): return np.array([None], dtype=object)
    return Liar()
def of_kind(kind):
    class Cache({"list": list, "tuple": tuple, "dict": dict, "array": np.ndarray}[kind]):
        def __new__(cls, n_layer): return super().__new__(cls, (n_layer,) if kind in ("tuple", "array") else ())
        def __init__(self, n_layer): self.rows = []
        def __eq__(self, other): raise ValueError("a cache is not compared")
        def copy(self): raise ValueError("a cache is not copied")
        def clone(self): return self
        def grow(self, ids): self.rows.extend(ids)
        __iter__ = __getitem__ = __contains__ = copy
    return Cache(3)
def grow(cache, ids):
    cache.grow(ids)
    return list(cache.rows)
"""


@pytest.fixture(scope="module", params=["worker", "notebook kernel"])
def student(request):
    if request.param == "worker":
        with shared_worker() as worker:
            assert worker.run_cell(Cell("functions", FUNCTIONS)) is None
            yield Student(worker.request)
    else:
        namespace = {"__name__": "student"}
        exec(compile(FUNCTIONS, "<functions>", "exec"), namespace)
        yield local_student(namespace)


def test_results_come_back_as_plain_arrays_and_ids(student):
    assert student.array("double", [1, 2]).tolist() == [2.0, 4.0]
    assert student.array("double", np.float32([[1.5]])).tolist() == [[3.0]]
    assert student.ids("first_ids", [5, 6, 7]) == [5, 6]
    assert student.plain("words") == "two words"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a_row_of_ids", r"is not a list of token ids: its element 0 is of type ndarray and shape \[3\]\.$"),
        ("float_ids", r"is not a list of token ids: its element 1 is of type float\.$"),
        ("no_list", r"is not a list of token ids but int\.$"),
    ],
)
def test_a_result_that_is_not_a_list_of_ids_is_described_and_is_not_a_refusal(student, name, what):
    with pytest.raises(StudentError, match=what) as caught:
        student.ids(name)
    assert not caught.value.refusal
    assert student.ids("one_id_each") == [1, 2]


def test_an_expected_error_must_be_a_value_or_index_error(student):
    assert student.expect_error("refuse", [], what="an empty prompt") == "an empty prompt"
    with pytest.raises(Failure, match="returned as if nothing were wrong"):
        student.expect_error("silent", [], what="an empty prompt")
    with pytest.raises(Failure, match="crash raised NameError") as caught:
        student.expect_error("crash", [], what="an empty prompt")
    assert "line 6 of functions" in student.error_in(caught.value.detail).look


def test_an_unwritten_function_does_not_count_as_a_refusal(student):
    with pytest.raises(NotWritten) as caught:
        student.expect_error("stub", what="anything")
    assert caught.value.stub


def test_a_changed_argument_fails_the_check_that_watches_the_function(student):
    student.watched = frozenset({"spoil"})
    with pytest.raises(Failure, match="changed one of its arguments"):
        student.ids("spoil", [1, 2])


def test_a_changed_argument_fails_no_other_check(student):
    student.watched = frozenset({"double"})
    ids = [1, 2]
    assert student.ids("spoil", ids) == [1, 2, 0]
    assert ids == [1, 2]


@pytest.mark.parametrize("kind", ["list", "tuple", "dict", "array"])
def test_an_object_that_inherits_from_a_plain_type_is_passed_as_it_is_and_is_never_copied(student, kind):
    student.watched = frozenset({"grow"})
    cache = student.handle("of_kind", kind)
    assert student.ids("grow", cache, [1, 2]) == [1, 2]
    assert student.counted_ids("grow", cache, [3])[0] == [1, 2, 3]
    student.method(student.method(cache, "clone", returns="handle"), "grow", [4], returns="none")
    assert student.ids("grow", cache, []) == [1, 2, 3, 4]


def test_an_object_that_equals_everything_is_not_a_result(student):
    with pytest.raises(StudentError, match="not an array of numbers"):
        student.array("liar")


def test_a_missing_function_is_named(student):
    with pytest.raises(NotWritten, match="prefill is not defined"):
        student.array("prefill", [1])
    with pytest.raises(NotWritten, match="ModelCache is not defined"):
        student.cache_with([])


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("x = 1 +", "SyntaxError"),
        ("input()", "EOFError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("from autograder.judge.reference import Reference", "ImportError"),
        ("x = bytearray(64 * 2**30)", "MemoryError"),
    ],
)
def test_a_cell_that_fails_is_reported_and_the_worker_goes_on(source, kind):
    with shared_worker() as worker:
        assert worker.run_cell(Cell("scratch", source))["type"] == kind
        assert worker.run_cell(Cell("next", "y = 2")) is None


def test_magics_and_shell_commands_do_nothing_but_the_rest_of_the_cell_runs():
    with shared_worker() as worker:
        source = "%matplotlib inline\n!touch made-by-the-shell\ndef f(): return [1.0]\nbreakpoint()"
        assert worker.run_cell(Cell("magic", source)) is None
        assert Student(worker.request).array("f").tolist() == [1.0]
        assert not Student(worker.request).file_exists("made-by-the-shell")


@pytest.mark.parametrize(
    "magic",
    [
        "%timeit -n 10 f()",
        "%timeit -n10 -r 2 -qo f()",
        "%timeit -p 2 f()",
        "%prun -l 5 -s cumulative f()",
        "%time made = f()",
        "made = %time f()",
        "took = %timeit -o f()\nassert took.best >= 0",
        "%timeit undefined_when_grading()",
        "%%timeit -n 5 made = f()\nmade[0]",
        "%%time\nmade = f()",
        "%%prun -l 5\nmade = f()",
        "%%capture out\nmade = f()",
        "%%capture --no-stderr out\nmade = f()",
    ],
)
def test_a_magic_with_options_runs_its_code(magic):
    with shared_worker() as worker:
        assert (
            worker.run_cell(Cell("f", "made = None\ncalls = []\ndef f():\n    calls.append(1)\n    return [7]")) is None
        )
        assert worker.run_cell(Cell("magic", magic)) is None
        after = "assert made in (None, [7])\ndef called(): return [len(calls)]"
        if "out" in magic.split():
            after += "\nout.show()\nassert out.stdout == str(out) == ''"
        assert worker.run_cell(Cell("after", after)) is None
        assert Student(worker.request).ids("called") == [0 if "undefined" in magic else 1]


def test_a_negative_number_is_not_an_option():
    with shared_worker() as worker:
        assert (
            worker.run_cell(Cell("magic", "import builtins\n%time builtins.kept = -1\n%timeit -1 * builtins.kept"))
            is None
        )


def test_a_cell_that_fails_under_a_magic_is_reported():
    with shared_worker() as worker:
        assert worker.run_cell(Cell("magic", "%%time\nundefined"))["type"] == "NameError"


def test_annotations_are_evaluated_as_in_a_notebook_until_a_cell_imports_them_from_future():
    annotated = "def f(x: Undefined): return x"
    with shared_worker() as worker:
        assert worker.run_cell(Cell("cell 1", annotated))["type"] == "NameError"
        assert worker.run_cell(Cell("cell 2", f"%time 1 + 1\n{annotated}"))["type"] == "NameError"
        assert worker.run_cell(Cell("cell 3", "from __future__ import annotations")) is None
        assert worker.run_cell(Cell("cell 4", annotated)) is None


def test_an_interrupt_reaches_the_user_who_runs_a_check_in_the_notebook():
    namespace = {}
    exec("def forward(ids, weights): raise KeyboardInterrupt", namespace)
    with pytest.raises(KeyboardInterrupt):
        run_check(find_check("forward-recompute"), local_student(namespace), 0)


def test_a_kernel_that_ends_is_reported_with_the_cell():
    with shared_worker() as worker, pytest.raises(WorkerGone, match=r"ended while running scratch \(exit status 0\)"):
        worker.run_cell(Cell("scratch", "import os; os._exit(0)"))


@pytest.mark.parametrize(
    "loop", ["while True: pass", "while True:\n    try:\n        while True: pass\n    except BaseException: pass"]
)
def test_an_endless_loop_is_stopped_at_its_deadline(loop):
    with shared_worker(call_seconds=0.5) as worker, pytest.raises(WorkerGone) as caught:
        worker.run_cell(Cell("loop", loop))
    assert caught.value.timed_out


# The pipe: whatever a hostile worker writes, the grader gets WorkerGone or a StudentError, never anything else.
FIND_PIPE = """
import os, stat, struct

def is_pipe(n):
    try:
        return stat.S_ISFIFO(os.fstat(n).st_mode)
    except OSError:
        return False

pipe = max(filter(is_pipe, range(256)))
"""


@pytest.mark.parametrize(
    "attack",
    [
        "os.write(pipe, b'garbage garbage garbage'); os._exit(1)",
        "os.write(pipe, struct.pack('>I', 2**32 - 1))",
        "os.write(pipe, struct.pack('>I', 3) + b'\\xc1\\xc1\\xc1')",
        "body = b'\\x91' * 100000; os.write(pipe, struct.pack('>I', len(body)) + body)",
        "body = b'\\xdf\\xff\\xff\\xff\\xff'; os.write(pipe, struct.pack('>I', len(body)) + body)",
        "body = b'\\x01'; os.write(pipe, struct.pack('>I', len(body)) + body)",
        "os.write(pipe, struct.pack('>I', 100) + b'\\x80'); os.close(pipe); os._exit(0)",
        "os.close(pipe)",
        "import time\nfor _ in range(200): os.write(pipe, b'\\x00'); time.sleep(0.1)",
    ],
)
def test_a_forged_reply_ends_the_worker_and_nothing_else(attack):
    with shared_worker(call_seconds=2) as worker, pytest.raises(WorkerGone):
        worker.run_cell(Cell("attack", FIND_PIPE + attack))
        worker.run_cell(Cell("next", "pass"))
        worker.run_cell(Cell("next", "pass"))


def test_an_unrequested_reply_does_not_count_as_an_answer():
    """A student who writes replies before the requests gets no reply accepted."""
    forged = "import msgpack\nbody = msgpack.packb({'value': [1, 2, 3]})\n"
    with shared_worker(call_seconds=2) as worker, pytest.raises(WorkerGone):
        worker.run_cell(Cell("attack", FIND_PIPE + forged + "os.write(pipe, struct.pack('>I', len(body)) + body)"))
        Student(worker.request).ids("generate", [1])


@pytest.mark.parametrize(
    "wrong",
    [
        "'number': np.array([r['number']])",
        "'number': np.array([], dtype=int)",
        "'number': float(r['number'])",
        "'error': 'a text'",
        "'error': np.zeros(2)",
        "'changed': np.zeros(2)",
    ],
)
def test_a_malformed_reply_ends_the_worker_but_not_the_grader(wrong):
    forge = (
        "import numpy as np, autograder.worker.protocol as p\nreal = p.encode\ndef f(ids): return [1]\n"
        f"p.encode = lambda r: real({{**r, {wrong}}})"
    )
    with shared_worker(call_seconds=2) as worker, pytest.raises(WorkerGone, match=r"answers no question|malformed"):
        worker.run_cell(Cell("attack", forge))
        Student(worker.request).ids("f", [1])


def test_a_killed_process_is_reported():
    with shared_worker() as worker, pytest.raises(WorkerGone, match="signal SIGSEGV"):
        worker.run_cell(Cell("crash", "import ctypes\nctypes.string_at(0)"))


def test_nothing_is_left_behind_when_a_worker_is_closed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Worker() as worker:
        worker.run_cell(Cell("files", "open('litter', 'w').write('x')"))
        pid = worker.processes._process.pid
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
