"""A display run by itself: what a kernel may show, what a hostile one comes to, and that nothing of it stays."""

import base64
import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.display import run as module
from autograder.display.__main__ import MEMORY_BYTES
from autograder.display.outputs import CUT, MAX_CELL
from autograder.display.run import DisplayRun
from autograder.sandbox.bubblewrap import FOLDER_BYTES
from autograder.sandbox.client import Cell
from autograder.sandbox.isolation import Isolation, isolation
from autograder.tests.memory import peak_growth
from autograder.tests.waiting import wait_until
from autograder.worker import protocol
from autograder.worker.limits import has_system_call_filter

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a display run needs Unix sockets")
in_bubblewrap = pytest.mark.skipif(not isolation().complete, reason="bubblewrap does not work here")
filtered = pytest.mark.skipif(not has_system_call_filter(), reason="no system call filter on this machine")
SECONDS = 40


def show(*sources, given=None, seconds=SECONDS):
    """The outputs of each cell, and the problem."""
    cells = [Cell(f"cell-{n}", source) for n, source in enumerate(sources)]
    shown = DisplayRun(cells, given, seconds).shown()
    return [shown.outputs.get(cell.label, []) for cell in cells], shown.problem


def text(outputs):
    return "".join(o.get("text") or o["data"].get("text/plain", "") for o in outputs)


@pytest.fixture(params=["bubblewrap", "limits"])
def either(request, monkeypatch):
    """In bubblewrap, and without it."""
    if request.param == "bubblewrap" and not isolation().complete:
        pytest.skip("bubblewrap does not work here")
    monkeypatch.setattr(module, "isolation", lambda: Isolation(request.param, request.param == "bubblewrap"))
    return request.param


# What an honest notebook shows


def test_text_results_charts_and_errors_are_shown(either, tmp_path):
    given = tmp_path / "given.py"
    given.write_text("number = 41\n")
    outputs, problem = show(
        "from given import number\nimport numpy as np\nprint('hello', number + 1)",
        "np.arange(3)",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()",
        "import autograder\nautograder.charts.bar_chart({'a': 1, 'b': 2}, label='x')",
        "1 / 0",
        "autograder.check('any'); input('?')",
        "print('after')",
        given=given,
    )
    assert problem == ""
    assert text(outputs[0]) == "hello 42\n"
    assert text(outputs[1]) == "array([0, 1, 2])"
    for chart in outputs[2:4]:
        (output,) = chart
        assert output["data"]["image/png"].startswith("iVBORw0KGgo")
    shown = outputs[3][0]["metadata"]["image/png"]
    width = int.from_bytes(base64.b64decode(outputs[3][0]["data"]["image/png"])[16:20], "big")
    assert set(shown) == {"width", "height"} and shown["width"] <= width < 1.1 * shown["width"]
    assert text(outputs[4]).endswith("ZeroDivisionError: division by zero\n") and "\x1b" not in text(outputs[4])
    assert "StdinNotImplementedError" in text(outputs[5])
    assert text(outputs[6]) == "after\n"


# What a hostile one shows

PAGES = """
from IPython.display import HTML, SVG, Image, Javascript, Markdown, Latex, IFrame, display
bad = "<script>alert(1)</script><a href='http://evil.example'>x</a>"
for kind in (HTML, Javascript, Markdown, Latex): display(kind(bad))
display({"text/html": bad, "image/svg+xml": "<svg onload='alert(1)'/>", "image/png": bad,
         "application/javascript": bad, "text/markdown": bad}, raw=True)
display(IFrame("http://evil.example", 10, 10))
print(chr(27) + "]8;;http://evil.example" + chr(7) + "link")
"""


def test_no_page_is_made_of_anything_but_text():
    (outputs,), problem = show(PAGES)
    assert problem == ""
    assert {key for o in outputs for key in o.get("data", {})} == {"text/plain"}
    assert "evil" not in text(outputs) and "<script" not in text(outputs)
    assert "<IPython.core.display.HTML object>" in text(outputs)


def test_a_flood_is_cut_while_it_comes():
    with peak_growth() as growth:
        outputs, problem = show("print('x' * 20_000_000)", "while True: print('y' * 1000)", seconds=15)
    assert problem == "the 15 s for them are used up"
    for cell in outputs:
        assert text(cell).endswith(CUT) and len(text(cell)) <= MAX_CELL + len(CUT)
    assert growth.bytes < 100 * 2**20


# Messages that no kernel sends, on the sockets that the others come on
SEND = """
from IPython import get_ipython
kernel = get_ipython().kernel
def send(kind, content, socket=kernel.iopub_socket, **more):
    kernel.session.send(socket, kind, content=content, parent=kernel.get_parent(), **more)
print('begin')
"""
HARMLESS = {
    "odd outputs": "for c in (None, 3, [], {'data': 5}, {'text': {}}):\n"
    "    for k in ('stream', 'display_data', 'error', 'execute_result'): send(k, c)",
    "updates": "send('display_data', {'data': {'text/plain': 'x'}, 'transient': {'display_id': 'a'}})\n"
    "send('update_display_data', {'data': {'text/html': '<script>'}, 'transient': {'display_id': 'a'}})\n"
    "send('update_display_data', {'transient': None})",
    "widgets": "send('comm_open', {'comm_id': 'c', 'target_name': 'jupyter.widget', 'data': {'state': "
    "{'_model_module': '@jupyter-widgets/output', '_model_name': 'OutputModel'}}})\n"
    "send('comm_msg', {'comm_id': 'c', 'data': {'method': 'update', 'state': {'msg_id': 1}}})\nsend('comm_open', 7)",
    "inputs": "send('execute_input', {'code': 'evil', 'execution_count': {'a': 1}})",
    "questions": "send('input_request', {'prompt': '?', 'password': False}, kernel.stdin_socket)",
    "clearing": "send('clear_output', None); send('clear_output', {'wait': 'x'})",
    "unknown kinds": "send('no_such_message', {'a': 1}); send('', {})",
}
ENDS = {
    "status without a state": "send('status', {})",
    "a text for a content": "send('status', 'idle')",
    "no signature": "kernel.iopub_thread.send_multipart([b'x', b'<IDS|MSG>', b'', b'{}', b'{}', b'{}', b'{}'])",
    "not JSON": "kernel.session.send_raw(kernel.iopub_socket, [b'{', b'{', b'{', b'{'])",
    "a number for a kind": "h = kernel.session.msg_header('x'); h['msg_type'] = 5; p = kernel.session.pack\n"
    "kernel.session.send_raw(kernel.iopub_socket, [p(h), p(kernel.get_parent()['header']), b'{}', b'7'])",
    "a list for a parent": "h = kernel.session.msg_header('x'); p = kernel.session.pack\n"
    "kernel.session.send_raw(kernel.iopub_socket, [p(h), b'[]', b'{}', b'{}'])",
    "deep JSON": "h = kernel.session.pack(kernel.session.msg_header('x'))\n"
    "kernel.session.send_raw(kernel.iopub_socket, [h, h, b'{}', b'[' * 200_000])",
}


def test_odd_messages_are_passed_over():
    outputs, problem = show(SEND, *HARMLESS.values(), "print('end')")
    assert problem == ""
    assert text(outputs[-1]) == "end\n"
    assert not any("evil" in text(o) or "<script" in text(o) for o in outputs)


@pytest.mark.parametrize("name", ENDS)
def test_a_message_that_is_none_ends_the_run_or_is_passed_over(name):
    outputs, problem = show(SEND, ENDS[name], "print('end')")
    assert text(outputs[0]) == "begin\n"  # what was shown before stays
    assert problem.startswith("the kernel sent what is no message (") or text(outputs[2]) == "end\n"


WITHOUT_END = """
import os, socket, stat, struct
sockets = []
for name in os.listdir('/proc/self/fd'):
    try:
        if not stat.S_ISSOCK(os.fstat(int(name)).st_mode): continue
        s = socket.socket(fileno=os.dup(int(name)))
        if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) or 'kernel-' not in str(s.getsockname()): continue
        s.setblocking(True)
        sockets.append(s)
    except OSError: pass
assert sockets
while True:
    for s in sockets:  # a frame of ZeroMQ's, of which more parts are to come, on and on
        s.sendall(bytes([3]) + struct.pack('>Q', 2**22) + bytes(2**22))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_a_message_without_an_end_does_not_fill_the_memory():
    run = DisplayRun([Cell("a", "print('begin')"), Cell("b", WITHOUT_END)], None, 25)
    status, peaks = Path(f"/proc/{run._process.pid}/status"), []

    def watch():
        while not run.closed:
            with contextlib.suppress(OSError, IndexError):
                peaks.append(int(status.read_text().split("VmPeak:")[1].split()[0]) * 1024)
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with peak_growth() as growth:
        shown = run.shown()
    watcher.join()
    assert text(shown.outputs["a"]) == "begin\n"
    assert MEMORY_BYTES / 2 < max(peaks) <= MEMORY_BYTES  # of the process that reads it
    assert growth.bytes < 100 * 2**20  # of this one


def collected(*messages):
    """What the grader makes of messages from the process that reads a kernel's."""
    run = object.__new__(DisplayRun)
    run._cells = [Cell("a", ""), Cell("b", "")]
    frames = io.BytesIO(b"".join(map(protocol.encode, messages)))
    run._pipes, run._until = SimpleNamespace(receive=lambda deadline: protocol.read_frame(frames)), 0.0
    outputs = {}
    return run._collect(outputs), outputs


def test_the_grader_looks_through_the_outputs_once_more():
    data = {"text/html": "<script>", "text/plain": "\x1b[1mtext", "image/png": "<script>"}
    bad = [{"output_type": "display_data", "data": data}, {"output_type": "stream", "name": "<a>", "text": "x" * 10**7}]
    problem, outputs = collected({"outputs": bad, "cut": 1}, {"outputs": [], "cut": True}, {"problem": ""})
    assert problem == ""
    assert outputs["a"][0] == {"output_type": "display_data", "data": {"text/plain": "text"}, "metadata": {}}
    assert [o["output_type"] for o in outputs["a"][1:]] == ["stream", "stream"] and text(outputs["a"]).endswith(CUT)
    assert len(text(outputs["a"])) <= MAX_CELL + len(CUT)
    assert text(outputs["b"]) == CUT
    assert collected({"outputs": [], "cut": False}, {"problem": "why"}) == ("why", {})
    assert collected({"outputs": [], "cut": False})[0] == "the process that reads them ended"


# How it ends


def test_an_endless_loop_ends_with_the_time_for_all_and_keeps_what_it_had_shown(either):
    started = time.monotonic()
    outputs, problem = show("print('before', flush=True)\nwhile True: pass", "print('never')", seconds=15)
    assert problem == "the 15 s for them are used up"
    assert text(outputs[0]) == "before\n" and outputs[1] == []
    assert time.monotonic() - started < 15 + 6


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "import ctypes; ctypes.string_at(0)"])
def test_a_kernel_that_ends_is_told_of(end):
    outputs, problem = show("import os\nprint('before')", end, "print('never')")
    assert problem == "the kernel ended"
    assert text(outputs[0]) == "before\n" and outputs[2] == []


STAYS = """
import ctypes, os, signal, subprocess, sys, threading, time, warnings
warnings.simplefilter('ignore')  # of Python 3.12 and newer, about os.fork
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
try: os.setsid()
except OSError: pass
refused = []
for start in (lambda: os.fork() or os._exit(0), lambda: subprocess.Popen(['/bin/sleep', '9']),
              lambda: os.posix_spawn('/bin/sleep', ['sleep', '9'], {})):
    try: start()
    except OSError as error: refused.append(type(error).__name__)
print(refused, flush=True)
"""
NAMED = "import ctypes\nctypes.CDLL(None).prctl(15, {!r})\nwhile True: pass"


def named(name):
    """The running processes with this name of a thread."""
    found = []
    for path in Path("/proc").glob("[0-9]*/task/*/comm"):
        try:
            found += [path] * (path.read_text().strip() == name)
        except OSError:
            continue
    return found


@filtered
def test_no_process_is_started_and_the_kernel_is_gone_when_the_run_is_over(either):
    results = []
    run = threading.Thread(target=lambda: results.append(show(STAYS, NAMED.format(b"stays-here"), seconds=20)))
    run.start()
    assert wait_until(lambda: named("stays-here"), 30)
    run.join()
    (outputs, problem) = results[0]
    assert text(outputs[0]) == "['PermissionError', 'PermissionError', 'PermissionError']\n"
    assert problem == "the 20 s for them are used up"
    assert wait_until(lambda: not named("stays-here"))


@filtered
def test_a_kernel_ends_with_the_grader_even_when_that_is_killed(either, tmp_path):
    grader = (
        "from autograder.display.run import DisplayRun\nfrom autograder.sandbox.client import Cell\n"
        f"DisplayRun([Cell('a', {NAMED.format(b'left-over')!r})], None, 300).shown()\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}  # its folder stays behind
    environment |= {} if either == "bubblewrap" else {"AUTOGRADER_NO_BWRAP": "1"}
    process = subprocess.Popen([sys.executable, "-c", grader], env=environment)
    assert wait_until(lambda: named("left-over"), 30)
    process.kill()
    process.communicate()
    assert wait_until(lambda: not named("left-over"))


def test_a_run_can_be_ended_from_outside_and_leaves_no_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    run = DisplayRun([Cell("loop", "while True: pass")], None, 300)
    assert list(tmp_path.iterdir())
    before = signal.signal(signal.SIGALRM, lambda number, frame: sys.exit(1))  # as SIGTERM ends a marker
    signal.alarm(3)
    with pytest.raises(SystemExit):
        run.shown()
    signal.signal(signal.SIGALRM, before)
    assert list(tmp_path.iterdir()) == []


# What the kernel can see and do

LOOKS = """
import autograder, os, socket
found = []
package = os.path.dirname(autograder.__file__)
for path in {paths!r}:
    if os.path.exists(path): found.append(path)
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    try: socket.socket(family); found.append(family.name)
    except OSError: pass
found += [name for name in os.environ if 'SECRET' in name]
found += [p for p in ('/', '/run', '/usr', '/proc/sys/kernel/core_pattern') if os.access(p, os.W_OK)]
found += [part for part in ('judge', 'grading', 'tests') if os.listdir(f'{{package}}/{{part}}')]
print('FOUND', found or 'nothing')
"""


@in_bubblewrap
def test_a_kernel_sees_what_a_worker_sees_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "x")
    (tmp_path / "gradebook.db").write_text("x")
    (tmp_path / "given.py").write_text("")
    paths = [str(tmp_path), str(tmp_path / "gradebook.db"), str(Path.home() / ".bashrc"), "/etc/passwd", "/var", "/mnt"]
    outputs, problem = show(LOOKS.format(paths=paths), given=tmp_path / "given.py")
    assert problem == ""
    assert text(outputs[0]) == "FOUND nothing\n"


@in_bubblewrap
def test_a_kernel_writes_into_its_own_memory_only_and_there_is_an_end_to_it():
    outputs, problem = show(
        "import os\nhere = os.getcwd()\ntotal = 0\ntry:\n  for n in range(80):\n"
        "    total += os.write(os.open(f'{here}/{n}', os.O_CREAT | os.O_WRONLY), bytes(2**20))\n"
        "except OSError as error: print(type(error).__name__, total // 2**20)"
    )
    assert problem == ""
    kind, megabytes = text(outputs[0]).split()
    assert kind == "OSError" and int(megabytes) <= FOLDER_BYTES // 2**20


@filtered
def test_a_kernel_may_accept_and_do_nothing_else_with_sockets(either):
    code = (
        "import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "numbers = {'socket': 41, 'connect': 42, 'accept': 43, 'sendmsg': 46, 'bind': 49, 'listen': 50}\n"
        "for name, number in numbers.items():\n"
        "    libc.syscall(number, -1, 0, 0)\n    print(name, errno.errorcode[ctypes.get_errno()])"
    )
    if os.uname().machine != "x86_64":
        pytest.skip("these are the numbers of x86-64")
    outputs, problem = show(code)
    assert problem == ""
    answers = dict(line.split() for line in text(outputs[0]).splitlines())
    assert (answers.pop("accept"), answers.pop("socket")) == ("EBADF", "ENOTSUP")
    assert set(answers.values()) == {"EPERM"}


@filtered
def test_memory_has_its_limit_in_the_kernel_too(either):
    outputs, problem = show("try: bytes(3 * 2**30)\nexcept MemoryError: print('refused')")
    assert (text(outputs[0]), problem) == ("refused\n", "")
