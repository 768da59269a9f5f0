"""What student code can see and do from its process, in each mode."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.places import ROOT
from autograder.sandbox import shown
from autograder.sandbox.bubblewrap import FOLDER_BYTES
from autograder.sandbox.client import Cell, Worker, WorkerGone
from autograder.sandbox.processes import new_processes
from autograder.sandbox.shown import PACKAGE
from autograder.tests.memory import peak_growth
from autograder.tests.modes import ISOLATIONS, ask, filtered, in_bubblewrap, in_each
from autograder.tests.waiting import wait_until


@pytest.fixture(scope="module", params=in_each())
def anywhere(request):
    """A worker in each mode."""
    with Worker(isolation=request.param) as worker:
        yield worker


@pytest.fixture(scope="module", params=in_each("bubblewrap", "landlock"))
def inside(request):
    """A worker in each sandbox."""
    with Worker(isolation=request.param) as worker:
        yield worker


@pytest.fixture(scope="module")
def in_bwrap():
    with Worker(isolation=ISOLATIONS["bubblewrap"]) as worker:
        yield worker


# What can be seen

OPENED = """
import os
def opened(paths):
    found = []
    for path in paths:
        try:
            os.close(os.open(path, os.O_RDONLY))
            found.append(path)
        except OSError:
            pass
    return found
"""


def test_only_the_students_side_of_the_project_can_be_read(inside):
    files = [str(path) for part in ("autograder", "solutions", "course", "data") for path in (ROOT / part).rglob("*.*")]
    shown_parts = (*(str(PACKAGE / part) for part in shown.SHOWN_PARTS), str(ROOT / "data" / "tiny-gpt2"))
    assert ask(inside, f"opened({files!r})", OPENED) == [path for path in files if path.startswith(shown_parts)]


def test_nothing_of_the_account_or_the_system_can_be_read_but_programs_and_libraries(inside, tmp_path):
    (tmp_path / "gradebook.db").touch()
    system = ["/etc/passwd", "/etc/shadow", "/etc/hosts", "/var/log", "/var/lib", "/srv", "/sys", "/mnt", "/usr/src"]
    processes = [f"/proc/{pid}/{name}" for pid in (os.getpid(), os.getppid()) for name in ("environ", "maps", "mem")]
    home = [str(path) for path in Path.home().iterdir() if not sys.base_prefix.startswith(str(path))]
    course = [str(tmp_path), str(tmp_path / "gradebook.db")]
    assert ask(inside, f"opened({[*system, *processes, *home, *course]!r})", OPENED) == []


def test_no_name_of_a_file_elsewhere_can_be_listed(inside, tmp_path):
    (tmp_path / "a-student").touch()
    folders = [str(folder) for folder in (tmp_path, tmp_path.parent, Path.home(), "/var", "/srv")]
    setup = """import os
def names(folders):
    found = []
    for folder in folders:
        try: found += os.listdir(folder)
        except OSError: pass
    return found
"""
    way_to_python = {part for path in (sys.prefix, sys.base_prefix) for part in Path(path).parts}
    assert set(ask(inside, f"names({folders!r})", setup)) <= way_to_python


@in_bubblewrap
def test_in_bubblewrap_other_files_do_not_exist(in_bwrap):
    home = str(Path.home())
    assert set(ask(in_bwrap, f"os.listdir({str(ROOT)!r})")) <= {".venv", "autograder", "data"}
    assert set(ask(in_bwrap, f"os.listdir({str(PACKAGE)!r})")) == set(shown.SHOWN_PARTS)
    absent = [f"{home}/.ssh", f"{home}/.bashrc", "/etc/passwd", "/etc/shadow", "/var", "/srv", "/sys", "/mnt"]
    assert ask(in_bwrap, f"[p for p in {absent!r} if os.path.exists(p)]") == []
    assert ask(in_bwrap, "sorted(os.listdir('/etc'))") in ([], ["ld.so.cache"], ["ld.so.cache", "localtime"])


@in_bubblewrap
def test_in_bubblewrap_it_sees_its_own_processes_and_no_host_name(in_bwrap):
    assert ask(in_bwrap, "len([p for p in os.listdir('/proc') if p.isdigit()])") <= 3
    assert ask(in_bwrap, "os.uname().nodename") == "worker"
    assert ask(in_bwrap, "sorted(l.split(':')[0].strip() for l in open('/proc/net/dev') if ':' in l)") in (["lo"], [])


@in_bubblewrap
def test_in_bubblewrap_of_usr_only_programs_and_libraries_are_there(in_bwrap):
    """A container has its project in /usr/src/app."""
    assert set(ask(in_bwrap, "os.listdir('/usr')")) <= {"bin", "lib", "lib32", "lib64", "libexec", "local", "share"}
    assert set(ask(in_bwrap, "os.listdir('/usr/local')")) <= {"bin", "lib", "lib32", "lib64", "libexec"}
    assert set(ask(in_bwrap, "os.listdir('/usr/share')")) <= {"fonts", "locale", "zoneinfo"}


def test_the_environment_tells_nothing_of_this_machine(monkeypatch):
    monkeypatch.setenv("GRADER_TOKEN", "s3cret")
    for isolation in ISOLATIONS.values():
        with Worker(isolation=isolation) as worker:
            environment = ask(worker, "dict(os.environ)")
        assert environment["PATH"] == "/usr/bin:/bin"
        assert "s3cret" not in str(environment)
        assert str(Path.home()) not in str(environment)


def test_no_open_file_of_the_graders_is_passed_on(tmp_path):
    setup = """import os, stat
def inodes():
    found = []
    for number in range(300):
        try: found.append(os.fstat(number).st_ino)
        except OSError: pass
    return found
"""
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        for isolation in ISOLATIONS.values():
            with Worker(isolation=isolation) as worker:
                inodes = ask(worker, "inodes()", setup)
            assert os.fstat(file.fileno()).st_ino not in inodes
            assert len(inodes) == 5  # the standard streams, which are nothing, and two pipes


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


@pytest.mark.parametrize("isolation", in_each("bubblewrap", "landlock"))
def test_a_course_in_a_folder_of_the_system_is_hidden_and_an_environment_in_it_is_not(isolation, tmp_path, monkeypatch):
    course, libraries = tmp_path / "course", tmp_path / "course" / "venv" / "lib"
    libraries.mkdir(parents=True)
    names = ["library.so", "course/gradebook.db", "course/venv/notes", "course/venv/lib/module.py"]
    files = [str(tmp_path / name) for name in names]
    for path in files:
        Path(path).write_text("x")
    (tmp_path / "link").symlink_to(course)
    monkeypatch.setattr(shown, "SYSTEM", (*shown.SYSTEM, str(tmp_path)))
    python = [*shown.python_folders(), str(libraries)]
    monkeypatch.setattr(shown, "python_folders", lambda: python)
    for hidden, seen in ((), files), ([course], [files[0], files[3]]):
        processes = new_processes(isolation=isolation, hidden=hidden)
        with Worker(processes=processes) as worker:
            assert ask(worker, f"opened({files!r})", OPENED) == seen
        processes.close()


# What can be written


def test_only_its_own_folder_can_be_written(inside):
    tried = ["/", "/run", "/usr", "/dev", "/dev/shm", "/tmp", "/var/tmp", "/proc/sys/kernel", "..", str(Path.home())]
    tried += [str(PACKAGE), str(ROOT / "data" / "tiny-gpt2"), sys.prefix]
    setup = """import os
def writable(folder):
    for flags in (os.O_TMPFILE | os.O_WRONLY, os.O_TMPFILE | os.O_RDWR):
        try: os.close(os.open(folder, flags, 0o600))
        except OSError: continue
        return True
    return False
"""
    own = ask(inside, "os.getcwd()")
    assert ask(inside, f"[folder for folder in {[own, *tried]!r} if writable(folder)]", setup) in (
        [own],
        [own, ".."],  # in bubblewrap the folder around it is in its private memory too
    )


@in_bubblewrap
def test_in_bubblewrap_the_folders_size_is_limited(in_bwrap):
    setup = """import tempfile
def fill():
    total = 0
    try:
        with tempfile.TemporaryDirectory(dir=".") as own:
            for i in range(3):
                with open(f'{own}/{i}', 'wb') as file:
                    for _ in range(32): total += file.write(bytes(2**20))
    except OSError:
        pass
    return total
"""
    assert 2**24 < ask(in_bwrap, "fill()", setup) <= FOLDER_BYTES


def test_kernel_settings_cannot_be_written_even_by_root(inside):
    settings = "'/proc/sys/kernel/core_pattern', '/proc/sys/vm/drop_caches', f'/proc/{os.getppid()}/oom_score_adj'"
    setup = """import os
def writable(path):
    try: os.close(os.open(path, os.O_WRONLY))
    except OSError: return False
    return True
"""
    assert ask(inside, f"[path for path in ({settings}) if writable(path)]", setup) == []


@filtered
def test_modes_of_files_outside_do_not_change(anywhere):
    before = os.stat("/dev/null").st_ctime_ns
    assert ask(anywhere, "os.chmod('/dev/null', os.stat('/dev/null').st_mode)") is None
    assert os.stat("/dev/null").st_ctime_ns == before


# What can be done


def test_it_has_no_capability_and_can_get_none(anywhere):
    if not sys.platform.startswith("linux"):
        pytest.skip("capabilities are of Linux")
    setup = """import ctypes, struct
def capabilities():
    libc, data = ctypes.CDLL(None), ctypes.create_string_buffer(24)
    libc.capget(struct.pack("Ii", 0x20080522, 0), data)
    bounding = [number for number in range(41) if libc.prctl(23, number, 0, 0, 0) == 1]
    ambient = [number for number in range(41) if libc.prctl(47, 1, number, 0, 0) == 1]
    return [*struct.unpack("6I", data), len(bounding), len(ambient), libc.prctl(39, 0, 0, 0, 0)]
"""
    *sets, bounding, ambient, no_new_privileges = ask(anywhere, "capabilities()", setup)
    assert [*sets, ambient] == [0] * 7
    assert no_new_privileges == 1
    assert bounding == 0 or os.geteuid() != 0  # of an ordinary account's it is a limit to nothing


@filtered
@pytest.mark.parametrize(
    "call",
    [
        "os.fork() or os._exit(0)",
        "os.system('true') and 1 / 0",
        "subprocess.run(['true'])",
        "os.execv('/bin/true', ['true'])",
        "socket.socket()",
        "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', '/dev/log')",
        "os.kill(os.getppid(), 0)",
        "os.kill(-1, 0)",
        "signal.pidfd_send_signal(os.pidfd_open(1), 0)",
        "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, resource.prlimit(os.getppid(), resource.RLIMIT_CPU))",
        "resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid()))",
        "os.memfd_create('x')",
        "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
        "fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), 1024, fcntl.F_WRLCK)",  # a lease
    ],
)
def test_no_process_program_socket_or_signal_escapes(call, anywhere):
    error = ask(anywhere, call, "import fcntl, os, resource, signal, socket, subprocess")
    assert error["type"] in ("PermissionError", "OSError", "ZeroDivisionError", "ValueError"), error


@filtered
def test_a_file_that_all_can_read_passes_no_information():
    """Locks on it always seem to succeed, and no process learns who opens it."""
    lock = "[f(os.open(os.__file__, os.O_RDONLY), fcntl.{} | fcntl.LOCK_NB) for f in (fcntl.flock, fcntl.lockf)][0]"
    for isolation in ISOLATIONS.values():
        with Worker(isolation=isolation) as one, Worker(isolation=isolation) as other:
            assert ask(one, lock.format("LOCK_SH"), "import fcntl, os") is None
            assert ask(other, lock.format("LOCK_EX"), "import fcntl, os") is None
            assert ask(other, "ctypes.CDLL(None).inotify_init()", "import ctypes") == -1


@filtered
def test_a_readable_file_cannot_be_truncated(anywhere, tmp_path):
    """Landlock covers that only from ABI 3 on, so the filter refuses it."""
    setup = "import os\nopen('own', 'w').write('content')"
    refused = ("os.truncate('own', 0)", "os.open('own', os.O_RDONLY | os.O_TRUNC)", "os.open('own', 3)")
    for call in refused:
        assert ask(anywhere, call, setup)["type"] == "PermissionError"
    assert ask(anywhere, "open('own').read()") == "content"
    assert ask(anywhere, "open('own', 'w').close()") is None


@filtered
def test_honest_code_still_works(anywhere):
    setup = """import asyncio, os, shutil, signal, tempfile, threading
from concurrent.futures import ThreadPoolExecutor
async def nothing(): await asyncio.sleep(0); return 1
def copies():
    with tempfile.TemporaryDirectory() as folder:
        open(f'{folder}/a', 'w').write('x')
        shutil.copy2(f'{folder}/a', f'{folder}/b')
        os.mkdir(f'{folder}/c')
        os.rename(f'{folder}/b', f'{folder}/c/d')
        return open(f'{folder}/c/d').read()
def silently():
    with open(os.devnull, "w") as nothing: return print("x", file=nothing)
"""
    assert ask(anywhere, "asyncio.run(nothing())", setup) == 1
    assert ask(anywhere, "list(ThreadPoolExecutor(4).map(abs, [-1, 2]))", setup) == [1, 2]
    assert ask(anywhere, "copies()", setup) == "x"
    assert ask(anywhere, "silently()", setup) is None


@pytest.mark.parametrize(
    "module", ["sqlite3", "decimal", "email", "unittest", "numpy.polynomial", "autograder.toolkit.timing"]
)
def test_libraries_can_still_be_imported(anywhere, module):
    assert ask(anywhere, f"importlib.import_module({module!r}).__name__", "import importlib") == module


@pytest.mark.parametrize("isolation", in_each())
def test_memory_has_a_limit(isolation):
    with Worker(isolation=isolation, memory_bytes=2**30) as worker:
        assert ask(worker, "len(bytearray(2**28))") == 2**28
        assert ask(worker, "bytearray(2**30)")["type"] == "MemoryError"


def test_a_file_has_a_limit(anywhere):
    expression = "sum(open('big', 'ab').write(bytes(2**20)) for _ in range(80))"
    setup = "import os, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    assert ask(anywhere, expression, setup)["type"] == "OSError"


# What is left


@filtered
@pytest.mark.parametrize("mode", ISOLATIONS)
def test_a_worker_ends_with_its_grader_even_if_that_is_killed(mode):
    grader = (
        "import sys\nfrom autograder.sandbox.client import Cell, Worker\n"
        "worker = Worker(call_seconds=300)\nprint('up', flush=True)\n"
        "worker.run_cell(Cell('loop', 'while True: pass'))\n"
    )
    environment = os.environ | {"AUTOGRADER_SANDBOX": mode}
    process = subprocess.Popen([sys.executable, "-c", grader], stdout=subprocess.PIPE, env=environment)
    assert process.stdout.readline() == b"up\n"
    started = descendants(process.pid)
    assert started
    process.kill()
    process.communicate()
    assert wait_until(lambda: not any(map(runs, started)))


def descendants(pid):
    """The children of a process, and their children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for child in children for found in (child, *descendants(child))]


def runs(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_worker_that_writes_without_end_does_not_fill_the_graders_memory():
    flood = "import os, struct\nbody = struct.pack('>I', 2**24) + bytes(2**24)\nwhile True: os.write(4, body)"
    with peak_growth() as growth, Worker(call_seconds=3) as worker, pytest.raises(WorkerGone):
        worker.run_cell(Cell("flood", flood))
        worker.run_cell(Cell("next", "pass"))
    assert growth.bytes < 300 * 2**20


def test_a_model_of_random_weights_needs_no_folder(monkeypatch):
    monkeypatch.setenv("AUTOGRADER_MODEL", "gpt2-shape")
    assert [Path(folder).name for folder in shown.model_folders()] == ["tiny-gpt2"]
