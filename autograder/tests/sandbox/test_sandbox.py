"""What the student's code can see and do from its process, in bubblewrap and with the system call filter alone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.places import ROOT
from autograder.sandbox import isolation as module
from autograder.sandbox import shown
from autograder.sandbox.bubblewrap import FOLDER_BYTES
from autograder.sandbox.client import Cell, Worker, WorkerGone
from autograder.sandbox.isolation import SandboxMissing, isolation
from autograder.sandbox.shown import PACKAGE
from autograder.tests.memory import peak_growth
from autograder.tests.waiting import wait_until
from autograder.worker.limits import has_system_call_filter

in_bubblewrap = pytest.mark.skipif(not isolation().complete, reason="bubblewrap does not work here")
filtered = pytest.mark.skipif(not has_system_call_filter(), reason="no system call filter on this machine")


def ask(worker, expression, setup="import os, sys"):
    """The value of an expression in the worker, as a plain value."""
    assert worker.run_cell(Cell("ask", f"{setup}\ndef answer():\n    return {expression}\n")) is None
    reply = worker.request({"op": "call", "name": "answer", "returns": "plain", "args": []})
    return reply.get("value", reply.get("error"))


@pytest.fixture(scope="module")
def inside():
    with Worker() as worker:
        yield worker


@pytest.fixture
def without_bubblewrap(monkeypatch):
    monkeypatch.setenv("AUTOGRADER_NO_BWRAP", "1")
    isolation.cache_clear()
    yield
    isolation.cache_clear()


# What can be seen


@in_bubblewrap
def test_only_the_students_side_of_the_project_is_there(inside):
    seen = ask(inside, f"sorted(os.listdir({str(ROOT)!r}))")
    assert set(seen) <= {".venv", "autograder", "data"}
    assert set(ask(inside, f"os.listdir({str(PACKAGE)!r})")) == set(shown.SHOWN_PARTS)


@in_bubblewrap
def test_nothing_of_the_account_or_the_system_is_there_but_programs_and_libraries(inside):
    home = str(Path.home())
    assert ask(inside, f"[p for p in ({home!r} + '/.ssh', {home!r} + '/.bashrc', '/etc/passwd', '/etc/shadow', '/var', "
                       "'/srv', '/sys', '/mnt', '/media') if os.path.exists(p)]") == []  # fmt: skip
    assert ask(inside, "sorted(os.listdir('/etc'))") in ([], ["ld.so.cache"], ["ld.so.cache", "localtime"])


@in_bubblewrap
def test_its_uid_is_nobodys_and_it_has_no_capability(inside):
    assert ask(inside, "[os.getuid(), os.getgid(), os.getgroups()]") == [65534, 65534, []]
    status = ask(inside, "open('/proc/self/status').read()")
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert f"{kind}:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status


@in_bubblewrap
def test_it_sees_its_own_processes_and_no_host_name(inside):
    assert ask(inside, "len([p for p in os.listdir('/proc') if p.isdigit()])") <= 3
    assert ask(inside, "os.uname().nodename") == "worker"
    assert ask(inside, "sorted(l.split(':')[0].strip() for l in open('/proc/net/dev') if ':' in l)") in (["lo"], [])


def test_the_environment_tells_nothing_of_this_machine(inside, monkeypatch):
    monkeypatch.setenv("GRADER_TOKEN", "s3cret")
    with Worker() as worker:
        environment = ask(worker, "dict(os.environ)")
    assert environment["PATH"] == "/usr/bin:/bin"
    assert "s3cret" not in str(environment)
    assert str(Path.home()) not in str(environment)


def test_no_open_file_of_the_graders_is_passed_on(tmp_path):
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        with Worker() as worker:
            links = ask(worker, "[os.path.realpath(f'/dev/fd/{n}') for n in os.listdir('/dev/fd')]")
    assert not any("secret" in link for link in links)
    assert sum("pipe:" in link for link in links) == 2
    assert all(link.startswith(("/dev/null", "/dev/fd", "/proc")) for link in links)


@in_bubblewrap
def test_a_virtual_environment_in_a_course_or_at_home_shows_only_its_libraries(tmp_path, monkeypatch):
    for name in ("bin", "lib", "submitted", "gradebook.db"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    shown.python_folders.cache_clear()
    try:
        folders = [f for f in shown.python_folders() if f.startswith(str(tmp_path))]
    finally:
        shown.python_folders.cache_clear()
    assert folders == [str(tmp_path / "bin"), str(tmp_path / "lib")]


@in_bubblewrap
def test_of_usr_only_programs_and_libraries_are_there(inside):
    """A container has its project in /usr/src/app."""
    assert set(ask(inside, "os.listdir('/usr')")) <= {"bin", "lib", "lib32", "lib64", "libexec", "local", "share"}
    assert set(ask(inside, "os.listdir('/usr/local')")) <= {"bin", "lib", "lib32", "lib64", "libexec"}
    assert set(ask(inside, "os.listdir('/usr/share')")) <= {"fonts", "locale", "zoneinfo"}


@in_bubblewrap
def test_a_course_in_a_folder_of_the_system_is_hidden_and_an_environment_in_it_is_not(tmp_path, monkeypatch):
    course, libraries = tmp_path / "course", tmp_path / "course" / "venv" / "lib"
    libraries.mkdir(parents=True)
    for path in (tmp_path / "library.so", course / "gradebook.db", course / "venv" / "notes", libraries / "module.py"):
        path.write_text("x")
    monkeypatch.setattr(shown, "SYSTEM", (*shown.SYSTEM, str(tmp_path)))
    python = [*shown.python_folders(), str(libraries)]
    monkeypatch.setattr(shown, "python_folders", lambda: python)
    monkeypatch.setattr(shown, "_hidden", set())
    every = f"sorted(f for _, _, files in os.walk({str(tmp_path)!r}) for f in files)"
    with Worker() as worker:
        assert ask(worker, every) == ["gradebook.db", "library.so", "module.py", "notes"]
    shown.hide(course)
    with Worker() as worker:
        assert ask(worker, every) == ["library.so", "module.py"]
        assert "Errno" in str(ask(worker, f"os.mkdir({str(course / 'new')!r})"))


# What can be written


@in_bubblewrap
def test_only_its_own_folder_can_be_written_and_there_is_an_end_to_it(inside):
    tried = [
        "/",
        "/run",
        "/usr",
        "/dev",
        "/proc/sys/kernel",
        str(PACKAGE),
        sys.prefix,
        str(ROOT / "data" / "tiny-gpt2"),
    ]
    setup = """import os
def writes(folder):
    try:
        open(os.path.join(folder, 'x'), 'w').close()
        return True
    except OSError:
        return False
def fill(folder):
    total = 0
    try:
        for i in range(9):
            with open(f'{folder}/{i}', 'wb') as file:
                for _ in range(32): total += file.write(bytes(2**20))
    except OSError:
        pass
    for name in os.listdir(folder):
        if name.isdigit(): os.unlink(f'{folder}/{name}')
    return total
"""
    assert ask(inside, f"[f for f in {tried!r} if writes(f)]", setup) == []
    for folder in (".", "/tmp", "/dev/shm"):
        assert 2**24 < ask(inside, f"fill({folder!r})", setup) <= FOLDER_BYTES


@in_bubblewrap
def test_kernel_settings_are_read_only_also_for_root(inside):
    expression = "[p for p in ('/proc/sys/kernel/core_pattern', '/proc/sys/vm/drop_caches') if os.access(p, os.W_OK)]"
    assert ask(inside, expression) == []
    assert "Errno" in str(ask(inside, "open('/proc/sys/kernel/core_pattern', 'w')"))


@filtered
def test_modes_of_files_outside_do_not_change(inside):
    before = os.stat("/dev/null").st_mode
    assert ask(inside, "os.chmod('/dev/null', 0)") is None
    assert os.stat("/dev/null").st_mode == before


# What can be done, with bubblewrap and without


@filtered
@pytest.mark.parametrize("wrapped", [pytest.param(True, marks=in_bubblewrap), False])
@pytest.mark.parametrize(
    "call",
    [
        "os.fork()",
        "os.system('true') and 1 / 0",
        "subprocess.run(['true'])",
        "os.execv('/bin/true', ['true'])",
        "socket.socket()",
        "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', '/dev/log')",
        "os.kill(os.getppid(), 0)",
        "os.kill(-1, 0)",
        "signal.pidfd_send_signal(os.pidfd_open(1), 0)",
        "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))",
        "resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "os.memfd_create('x')",
        "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
        "fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), 1024, fcntl.F_WRLCK)",  # a lease
    ],
)
def test_no_process_program_socket_or_signal_gets_out(call, wrapped, request):
    if not wrapped:
        request.getfixturevalue("without_bubblewrap")
    with Worker() as worker:
        error = ask(worker, call, "import fcntl, os, resource, signal, socket, subprocess")
    assert error["type"] in ("PermissionError", "OSError", "ZeroDivisionError", "ValueError"), error


@filtered
def test_a_file_that_all_can_read_passes_nothing_from_one_to_another():
    """A lock on it is taken by everybody, so by nobody, and who opens it is not told."""
    lock = "[f(os.open(os.__file__, os.O_RDONLY), fcntl.{} | fcntl.LOCK_NB) for f in (fcntl.flock, fcntl.lockf)][0]"
    with Worker() as one, Worker() as other:
        assert ask(one, lock.format("LOCK_SH"), "import fcntl, os") is None
        assert ask(other, lock.format("LOCK_EX"), "import fcntl, os") is None
        assert ask(other, "ctypes.CDLL(None).inotify_init()", "import ctypes") == -1


@filtered
def test_what_honest_code_does_still_works(inside):
    setup = """import asyncio, os, shutil, signal, tempfile, threading
from concurrent.futures import ThreadPoolExecutor
async def nothing(): await asyncio.sleep(0); return 1
def copies():
    with tempfile.TemporaryDirectory() as folder:
        open(f'{folder}/a', 'w').write('x')
        shutil.copy2(f'{folder}/a', f'{folder}/b')
        return open(f'{folder}/b').read()
"""
    assert ask(inside, "asyncio.run(nothing())", setup) == 1
    assert ask(inside, "list(ThreadPoolExecutor(4).map(abs, [-1, 2]))", setup) == [1, 2]
    assert ask(inside, "copies()", setup) == "x"


def test_memory_has_a_limit():
    with Worker(memory_bytes=2**30) as worker:
        assert ask(worker, "len(bytearray(2**28))") == 2**28
        assert ask(worker, "bytearray(2**30)")["type"] == "MemoryError"


def test_a_file_has_a_limit(without_bubblewrap):
    with Worker() as worker:
        expression = "sum(open('big', 'ab').write(bytes(2**20)) for _ in range(80))"
        setup = "import os, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
        assert ask(worker, expression, setup)["type"] == "OSError"


# What is left


@filtered
@pytest.mark.parametrize("wrapped", [pytest.param(True, marks=in_bubblewrap), False])
def test_a_worker_ends_with_the_grader_even_when_that_is_killed(wrapped, tmp_path):
    marker = tmp_path / "given-of-this-test.py"
    marker.write_text("")
    grader = (
        "import sys\nfrom autograder.sandbox.client import Cell, Worker\n"
        f"worker = Worker({str(marker)!r}, call_seconds=300)\nprint('up', flush=True)\n"
        "worker.run_cell(Cell('loop', 'while True: pass'))\n"
    )
    environment = os.environ | ({} if wrapped else {"AUTOGRADER_NO_BWRAP": "1"})
    process = subprocess.Popen([sys.executable, "-c", grader], stdout=subprocess.PIPE, env=environment)
    assert process.stdout.readline() == b"up\n"
    assert _command_lines(marker)
    process.kill()
    process.communicate()
    wait_until(lambda: not _command_lines(marker))
    assert _command_lines(marker) == []


def _command_lines(marker):
    """The command lines of running processes that hold the path."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if os.fsencode(marker) in line and b"-c\0import" not in line:
            found.append(line)
    return found


def test_a_worker_that_writes_without_end_does_not_fill_the_graders_memory():
    flood = "import os, struct\nbody = struct.pack('>I', 2**24) + bytes(2**24)\nwhile True: os.write(4, body)"
    with peak_growth() as growth, Worker(call_seconds=3) as worker, pytest.raises(WorkerGone):
        worker.run_cell(Cell("flood", flood))
        worker.run_cell(Cell("next", "pass"))
    assert growth.bytes < 300 * 2**20


# When there is no bubblewrap


def test_a_sandbox_that_is_required_and_missing_is_refused(without_bubblewrap):
    with pytest.raises(SandboxMissing, match="bubblewrap is switched off"):
        Worker(require_sandbox=True)


@in_bubblewrap
def test_a_machine_that_is_too_slow_to_try_it_is_told_of_as_one_without(monkeypatch):
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.0001)
    isolation.cache_clear()
    try:
        assert "bubblewrap is installed but did not start within 0.0001 s" in isolation().missing
    finally:
        isolation.cache_clear()


@in_bubblewrap
def test_what_ends_the_grader_while_it_tries_bubblewrap_leaves_no_process(monkeypatch, tmp_path):
    """bubblewrap's own child would wait for it for ever."""
    slow = tmp_path / "bwrap"
    slow.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    isolation.cache_clear()
    before = signal.signal(signal.SIGALRM, lambda number, frame: sys.exit(1))  # as a marker takes SIGTERM
    signal.alarm(1)
    try:
        with pytest.raises(SystemExit):
            isolation()
    finally:
        signal.signal(signal.SIGALRM, before)
        isolation.cache_clear()
    child = int((tmp_path / "child").read_text())
    assert wait_until(lambda: not _runs(child))


def _runs(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_what_is_not_isolated_is_said_in_one_sentence(without_bubblewrap):
    found = isolation()
    assert not found.complete
    assert found.missing.startswith("Not sandboxed: ") and "files of this account" in found.missing


def test_a_model_of_random_weights_needs_no_folder(monkeypatch):
    monkeypatch.setenv("AUTOGRADER_MODEL", "gpt2-shape")
    assert [Path(folder).name for folder in shown.model_folders()] == ["tiny-gpt2"]
