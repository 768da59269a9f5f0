"""A worker's processes: nothing of one reaches the next, whatever it did."""

import os
import signal

import pytest

from autograder.sandbox.client import Cell, Worker, WorkerGone
from autograder.sandbox.processes import new_processes
from autograder.tests.modes import ISOLATIONS, ask, filtered, in_bubblewrap, in_each


def started(request):
    processes = new_processes(isolation=request.param)
    yield processes
    processes.close()


# Used by all tests, one after another, as by the submissions of a class
processes = pytest.fixture(scope="module", params=in_each())(started)
sandbox = pytest.fixture(scope="module", params=in_each("bubblewrap", "landlock"))(started)


def begin(processes, code="pass"):
    worker = Worker(processes=processes, call_seconds=10)
    assert worker.run_cell(Cell("cell", code)) is None
    return worker


LITTER = """
import builtins, math, os, sys, numpy
def litter(folder):
    os.makedirs(f"{folder}/litter/of/this")
    open(f"{folder}/litter/of/this/one", "w").write("x")
    os.symlink(os.getcwd(), f"{folder}/litter/link")
    open(f"{folder}/numpy.py", "w").write("raise SystemExit")
    os.mkfifo(f"{folder}/fifo")
litter(os.getcwd())
builtins.left = math.left = numpy.left = sys.left = os.environ["left"] = "x"
"""
FOUND = """[
    *(hasattr(module, "left") for module in (builtins, math, numpy, sys)), "left" in os.environ, os.listdir()
]"""
BEFORE = "import builtins, math, os, sys, numpy"


def test_the_next_process_inherits_nothing(processes):
    begin(processes, LITTER).close()
    with begin(processes) as worker:
        assert ask(worker, FOUND, BEFORE) == [False] * 5 + [[]]


READ_ONLY = "struct.pack('<I' + 'HHI' * 3, 2, 1, 5, 2**32 - 1, 4, 5, 2**32 - 1, 32, 0, 2**32 - 1)"  # an access list


@filtered
@pytest.mark.parametrize(
    "change",
    [
        "os.chmod('.', 0o500)",
        f"os.setxattr('.', 'system.posix_acl_access', {READ_ONLY})",
        f"os.setxattr('.', 'system.posix_acl_default', {READ_ONLY})",
        "os.setxattr('.', 'user.told', b'something')",
        "os.utime('.', (12345, 12345))",
        "for n in range(2000): open(f'{n:0100}', 'w').close()",
    ],
)
def test_the_folder_itself_is_unchanged_for_the_next_process(sandbox, change):
    state = "[os.listdir(), os.stat('.').st_mode, os.stat('.').st_size, os.stat('.').st_nlink, os.listxattr('.')]"
    with begin(sandbox) as worker:
        first = ask(worker, state)
        began = ask(worker, "os.stat('.').st_mtime")
        assert worker.run_cell(Cell("change", f"import os, struct\n{change}")) is None
    with begin(sandbox) as worker:
        assert ask(worker, state) == first
        assert ask(worker, "os.stat('.').st_mtime") > began
        assert worker.run_cell(Cell("write", "open('mine', 'w').write('x')")) is None


@in_bubblewrap
def test_without_the_system_call_filter_each_process_has_a_sandbox_of_its_own():
    sandbox = new_processes(isolation=ISOLATIONS["bubblewrap"])
    with begin(sandbox) as worker:
        server = sandbox._process.pid
        sandbox.filtered = False
        worker.begin_anew()
        assert sandbox._process.pid != server
    sandbox.close()


def test_a_worker_continues_in_a_process_in_which_no_cell_has_run(processes):
    with begin(processes, LITTER + "\nthere = 1") as worker:
        first = ask(worker, "os.getpid()")
        worker.begin_anew()
        assert worker.run_cell(Cell("look", "assert not {'there', 'answer'} & set(globals())")) is None
        assert ask(worker, FOUND, BEFORE) == [False] * 5 + [[]]
        assert ask(worker, "os.getpid()") != first


def test_the_sandbox_is_started_once(sandbox):
    begin(sandbox).close()
    server = sandbox._process.pid
    for _ in range(3):
        with begin(sandbox) as worker:
            worker.begin_anew()
    assert sandbox._process.pid == server


def test_a_sandbox_is_empty_and_used_again_after_a_process_that_ended_badly(sandbox):
    begin(sandbox).close()
    server = sandbox._process.pid
    for end in ("while True: pass", LITTER + "\nimport os; os._exit(3)"):
        with pytest.raises(WorkerGone):
            Worker(processes=sandbox, call_seconds=0.5).run_cell(Cell("end", end))
    with begin(sandbox) as worker:
        assert ask(worker, FOUND, BEFORE) == [False] * 5 + [[]]
    assert sandbox._process.pid == server


def test_a_sandbox_that_the_system_ended_is_restarted(sandbox):
    begin(sandbox).close()
    os.kill(sandbox._process.pid, signal.SIGKILL)
    sandbox._process.wait()
    with begin(sandbox) as worker:
        assert ask(worker, "1 + 1") == 2


@pytest.mark.parametrize(
    "end",
    [
        "while True: pass",
        "import os; os._exit(3)",
        "import ctypes; ctypes.string_at(0)",
        "import os; os.closerange(3, 100)\nwhile True: pass",
    ],
)
def test_a_sandbox_that_ended_badly_is_replaced(processes, end):
    worker = Worker(processes=processes, call_seconds=0.5)
    with pytest.raises(WorkerGone):
        worker.run_cell(Cell("end", end))
    assert worker.closed
    with begin(processes) as worker:
        assert ask(worker, "1 + 1") == 2


@pytest.mark.parametrize(
    "litter",
    [
        "os.makedirs('shut/inside'); os.mkdir('none', 0)",
        "for _ in range(2100): os.mkdir('d'); os.chdir('d')",
    ],
    ids=["a folder that cannot be looked into", "folders in folders"],
)
def test_files_that_are_hard_to_remove_are_removed(sandbox, litter):
    begin(sandbox, f"import os\n{litter}").close()
    with begin(sandbox) as worker:
        assert ask(worker, "os.listdir()") == []


@filtered
@pytest.mark.parametrize(
    "reach",
    [
        "os.open(f'/proc/{os.getppid()}/mem', os.O_RDONLY)",
        "os.close(os.open(f'/proc/{os.getppid()}/mem', os.O_RDWR))",
        "open(f'/proc/{os.getppid()}/environ', 'rb').read()",
        "os.open(f'/proc/{os.getppid()}/fd/4', os.O_RDONLY)",
        "open(f'/proc/{os.getppid()}/maps').read()",
        "os.readlink(f'/proc/{os.getppid()}/cwd')",
        "os.close(os.open(f'/proc/{os.getppid()}/oom_score_adj', os.O_WRONLY))",
        "os.kill(os.getppid(), 0)",
        "os.pidfd_open(os.getppid())",
        "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
        "fcntl.fcntl(0, 10, signal.SIGKILL)",
        "fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), 1024, fcntl.F_WRLCK)",
        "fcntl.ioctl(os.open('.', os.O_RDONLY), 0x40086602, struct.pack('i', 0xC0))",
        "fcntl.ioctl(socket.socketpair()[0], 0x8901, struct.pack('i', os.getppid()))",
    ],
)
def test_a_process_cannot_reach_its_server(sandbox, reach):
    with begin(sandbox) as worker:
        error = ask(worker, reach, "import fcntl, os, signal, socket, struct")
    assert error["type"] == "PermissionError" or "Read-only file system" in error["message"], error


def test_a_process_has_no_open_file_of_the_one_before_or_of_the_server(sandbox):
    setup = """import fcntl, os
def opened():
    found = []
    for n in range(200):
        try: found.append(fcntl.fcntl(n, fcntl.F_GETFL))
        except OSError: pass
    return found
"""
    with begin(sandbox) as worker:
        first = ask(worker, "opened()", setup)
        assert len(first) == 5
        append = "for n in range(3): fcntl.fcntl(n, fcntl.F_SETFL, os.O_APPEND | os.O_NONBLOCK)"
        assert worker.run_cell(Cell("flags", f"{append}\nfcntl.flock(0, fcntl.LOCK_EX)")) is None
        assert ask(worker, "opened()", setup) != first
    with begin(sandbox) as worker:
        assert ask(worker, "opened()", setup) == first
        assert ask(worker, "fcntl.flock(os.open('/dev/null', os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)", setup) is None


@filtered
def test_the_next_process_has_all_processors(sandbox):
    mine = "sorted(os.sched_getaffinity(0))"
    with begin(sandbox) as worker:
        first = ask(worker, mine)
        pinned = "for pid in (0, os.getppid()): os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})"
        assert worker.run_cell(Cell("pin", f"import os\n{pinned}")) is None
    with begin(sandbox) as worker:
        assert ask(worker, mine) == first


@pytest.mark.parametrize(
    ("code", "hashes"),
    [
        ("def key(ids): return ids[0]", False),
        ("own = hash\ndef key(ids): return own(str(ids))", True),
        ("def twice(f): return lambda ids: f(ids)\n@twice\ndef key(ids): return hash(str(ids))", True),
        ("SALT = hash('salt')\ndef key(ids): return SALT", True),
    ],
)
def test_code_that_hashes_is_noticed_anywhere(code, hashes):
    """Such code continues in a process with another secret for hashes."""
    with Worker() as worker:
        assert worker.run_cell(Cell("key", code)) is None
        assert worker.request({"op": "hashes"})["value"] is hashes


@in_bubblewrap
def test_a_process_can_reach_itself():
    with Worker(isolation=ISOLATIONS["bubblewrap"]) as worker:
        assert ask(worker, "len(os.listdir('/proc/self/fd')) > 2")


def test_what_differs_by_chance_differs(processes):
    objects = "str([id(value) for value in (object(), [], {}, bytes(100), 'x' * 200, np.zeros(9))])"
    arrays = "str([np.zeros(n).ctypes.data for n in (100, 10**3, 10**4, 10**5)])"
    what = f"[random.random(), float(np.random.rand()), {objects}, {arrays}]"
    drawn = []
    for _ in range(2):
        with begin(processes) as worker:
            drawn.append(ask(worker, what, "import random\nimport numpy as np"))
    assert all(a != b for a, b in zip(*drawn, strict=True))


def test_strings_have_other_hashes_on_request(processes):
    with begin(processes) as worker:
        first = ask(worker, "hash('text')")
        worker.begin_anew(other_hashes=True)
        assert ask(worker, "hash('text')") != first


@pytest.mark.skipif(os.name != "posix", reason="looks for a process by its number")
def test_no_process_is_left(processes):
    with begin(processes):
        pid = processes._process.pid
    processes.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
