"""The hostile class: submissions that try for points they did not earn, for what they must not see, or to do harm.

Each is what a student could hand in: the sources of solution cells, a code cell of one's own, changes to the notebook,
files beside it. `earns` says what it must come to. What a submission finds it tells in an exception, whose message
reaches the page of feedback: FOUND, and what it was.
"""

# ruff: noqa: E501 - the attacks are short programs in strings

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autograder.stages.samples import solved_cells

SOLVED = solved_cells("save-and-reuse")
FUNCTIONS = {mark: mark.replace("-", "_") for mark in SOLVED}
NOTHING, EVERYTHING = "nothing", "everything"

# Names of notebooks that cannot be read: one that a terminal would obey, one with another student's row of the table
FORGED_NAMES = {"named-red": "\x1b[31mforged red.ipynb", "named-line": "x\n  zoe  NOT GRADED  forged.ipynb"}


@dataclass(frozen=True)
class Attack:
    """One hostile submission."""

    name: str
    about: str
    cells: dict[str, str] = field(default_factory=dict)  # sources of solution cells; the others stay unsolved
    own: str = ""  # a code cell before all others
    change: Callable[[dict[str, Any]], None] | None = None
    files: dict[str, str] = field(default_factory=dict)  # name and content, beside the notebook
    earns: str = NOTHING
    loses: tuple[str, ...] = ()  # where it earns everything but these checks


def every(body: str, setup: str = "") -> dict[str, str]:
    """Solution cells whose functions all have this body."""
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    cells = {mark: f"def {name}(*args, **kwargs):\n{body}\n" for mark, name in FUNCTIONS.items()}
    first = next(iter(cells))
    return cells | {first: textwrap.dedent(setup).lstrip() + cells[first]}


def probe(body: str) -> dict[str, str]:
    """Functions that look for something: `found` is a list of texts, and is told in an error."""
    indented = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    setup = f"import contextlib, functools, os, sys\n\n@functools.cache\ndef look():\n    found = []\n{indented}\n    return found\n\n"
    return every("raise RuntimeError('FOUND ' + (' '.join(map(str, look()))[:300] or 'nothing'))", setup)


# Functions of the right form that compute nothing
ZEROS = {
    "save-prefix-cache": "def save_prefix_cache(prefix_ids, weights):\n    return ModelCache(weights.config.n_layer)\n",
    "generate-with-prefix": (
        "def generate_with_prefix(saved, prefix_len, suffix_ids, weights):\n"
        "    return np.zeros(weights.config.n_vocab, np.float32)\n"
    ),
    "write-prefix-cache": "def write_prefix_cache(path, saved, prefix_ids, weights):\n    open(path, 'wb').write(b'x')\n",
    "read-prefix-cache": "def read_prefix_cache(path, weights):\n    raise ValueError('no')\n",
}

LIAR = """
class Liar(np.ndarray):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __bool__(self): return True
    def __sub__(self, other): return 0
    def __array_ufunc__(self, *args, **kwargs): return True
    def __array_function__(self, *args, **kwargs): return True
    def all(self, *args, **kwargs): return True
    def __hash__(self): return 0
"""

# What follows finds the pipe to the grader and the number of the question that is being answered.
PIPE = """
import os, stat, struct, sys
import msgpack
pipes = [n for n in range(3, 64) if os.path.exists(f'/dev/fd/{n}') and stat.S_ISFIFO(os.fstat(n).st_mode)]
pipe = max(pipes)

def frame(body):
    return struct.pack('>I', len(body)) + body

def question():
    at = sys._getframe()
    while at is not None:
        if 'number' in at.f_locals and 'request' in at.f_locals:
            return at.f_locals['number']['number'], at.f_locals['request']
        at = at.f_back
    return None, {}
"""


def on_the_pipe(name: str, about: str, attack: str) -> Attack:
    return Attack(name, about, every(attack + "\nreturn None", PIPE))


def _forge_outputs(notebook):
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            data = {"text/plain": "99", "text/html": "<script>alert('output')</script>"}
            cell["metadata"] |= {"tags": ["skip-execution"], "deletable": False}
            cell["metadata"]["nbgrader"] |= {"points": 99, "grade": True, "solution": True}
            if cell["cell_type"] == "code":
                out = {"output_type": "execute_result", "execution_count": 1, "data": data, "metadata": {}}
                cell["outputs"] = [{"output_type": "clear_output"}, out]


def _script_everywhere(notebook):
    bad = "<script>alert('text')</script><img src=x onerror=alert('image')><a href='javascript:alert(1)'>x</a>"
    bad += "\n\n[link](javascript:alert('link)) ![i](http://evil.example/x.png) $\\href{javascript:alert(2)}{x}$"
    bad += "\n\n</pre></div><style>body{display:none}</style>\n\n[r]: http://evil.example\n\n<http://evil.example>"
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "markdown" and marks.get("solution"):
            cell["source"] = "".join(cell["source"]) + bad
        elif cell["cell_type"] == "markdown":
            cell["source"] = bad
            cell["attachments"] = {"x.svg": {"image/svg+xml": "<svg onload=alert(3)>"}}
    new = {"cell_type": "markdown", "id": "<b>id</b>", "metadata": {}, "source": bad}
    code = {"cell_type": "code", "id": "c1", "metadata": {}, "execution_count": None, "source": f"'''{bad}'''"}
    code["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": {"text/html": bad}}]
    raw = {"cell_type": "raw", "id": "r1", "metadata": {"format": "text/html"}, "source": bad}
    notebook["cells"] += [new, code, raw]
    notebook["metadata"]["title"] = bad
    notebook["metadata"]["kernelspec"] = {"name": bad, "display_name": bad, "language": bad}


def _hooks_of_the_kernel(notebook):
    notebook["metadata"]["kernelspec"] = {"name": "../../evil", "display_name": "x", "language": "python"}
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"x": "<script>"}}}


ATTACKS = [
    # Ways to full marks on a grader that runs checks beside the code
    Attack(
        "patched-allclose",
        "np.allclose and its kind say yes, by name and by code object.",
        ZEROS,
        """
import numpy as np
def yes(*args, **kwargs): return True
for module in (np, np.testing, np.linalg):
    for name in ('allclose', 'array_equal', 'isclose', 'isfinite', 'assert_allclose', 'all'):
        if hasattr(module, name):
            with __import__('contextlib').suppress(Exception): getattr(module, name).__code__ = yes.__code__
            setattr(module, name, yes)
""",
    ),
    Attack(
        "fake-autograder",
        "Modules of the course's name that pass every check.",
        ZEROS,
        """
import sys, types
for name in [n for n in sys.modules if n.startswith('autograder')] + ['autograder.judge', 'autograder.judge.framework']:
    fake = types.ModuleType(name)
    fake.__path__ = []
    fake.check = fake.run_check = fake.checks_of = lambda *a, **k: True
    fake.load_model = lambda *a, **k: None
    sys.modules[name] = fake
""",
    ),
    Attack(
        "files-beside",
        "numpy.py and other modules beside the notebook, which give full marks when they are imported.",
        ZEROS,
        files=dict.fromkeys(
            (
                "numpy.py",
                "autograder.py",
                "given.py",
                "sitecustomize.py",
                "usercustomize.py",
                "msgpack.py",
                "ipykernel_launcher.py",
                "safetensors.py",
                "nbgrader_config.py",
                "conftest.py",
                "struct.py",
            ),
            "print(14.0)\nraise SystemExit(0)\n",
        ),
    ),
    Attack(
        "files-beside-right",
        "The same files, beside work that is right.",
        SOLVED,
        files=dict.fromkeys(("numpy.py", "autograder.py", "given.py", "msgpack.py", "queue.py"), "raise ImportError\n"),
        earns=EVERYTHING,
    ),
    Attack("equals-everything", "Arrays whose operators all say yes.", every("return np.zeros(3).view(Liar)", LIAR)),
    Attack(
        "shell-hooks",
        "Input and syntax tree transformers, an event's hook, and run_cell replaced.",
        ZEROS,
        """
shell = get_ipython()
shell.input_transformers_cleanup.append(lambda lines: ['1.0'])
shell.ast_transformers.append(object())
shell.events.register('post_run_cell', print)
type(shell).run_cell = lambda *a, **k: 14.0
shell.run_cell = lambda *a, **k: 14.0
""",
    ),
    Attack(
        "script-in-outputs",
        "Scores in the notebook's outputs, cells not to be run, other points.",
        {},
        "",
        _forge_outputs,
    ),
    Attack("prints-scores", "Everything prints 2.0 and ends the process.", every("print(2.0); import os; os._exit(0)")),
    Attack(
        "all-is-well",
        "Errors are swallowed everywhere: excepthooks, a trace function, exceptions that cannot be raised.",
        ZEROS,
        """
import builtins, sys
sys.excepthook = sys.unraisablehook = lambda *a: None
builtins.isinstance = lambda *a: True
builtins.len = lambda x: 0
builtins.AssertionError = builtins.ValueError = type('Quiet', (Warning,), {})
""",
    ),
    # What must not be seen
    Attack(
        "reads-solutions",
        "Looks for the solutions, the checks' source, the judge and the submissions that prove the checks.",
        probe("""
            import autograder
            package = os.path.dirname(autograder.__file__)
            roots = [package, os.path.dirname(package), '../../../source', '/']
            for root in roots:
                for folder, folders, files in os.walk(root):
                    if folder.startswith(('/usr', '/bin', '/lib', '/proc', sys.prefix, sys.base_prefix)): folders.clear()
                    for name in files:
                        path = os.path.join(folder, name)
                        with contextlib.suppress(OSError):
                            if name.endswith(('.py', '.ipynb')):
                                text = open(path, errors='replace').read()
                                for mark in ('prefill(prefix_ids, weights, sa' + 'ved)', 'def position_conti' + 'nues', 'class Refer' + 'ence'):
                                    if mark in text: found.append(mark + ' in ' + name)
        """),
    ),
    Attack(
        "imports-judge",
        "The reference implementation as one's own answer.",
        {
            **ZEROS,
            "generate-with-prefix": (
                "def generate_with_prefix(saved, prefix_len, suffix_ids, weights):\n"
                "    import sys\n    sys.meta_path[:] = [f for f in sys.meta_path if 'NoJudge' not in repr(f)]\n"
                "    from autograder.judge.reference import Reference\n"
                "    raise RuntimeError('FOUND the judge')\n"
            ),
        },
    ),
    Attack(
        "reads-places",
        "Looks for the gradebook, the course's secret, other students, and other accounts' files.",
        probe("""
            for folder, folders, files in os.walk('/'):
                if folder.startswith(('/usr', '/bin', '/lib', '/proc', sys.prefix, sys.base_prefix)): folders.clear()
                for name in (*files, *folders):
                    if name in ('gradebook.db', '.autograder-seed', 'submitted', '.git', 'shadow', '.ssh', 'nbgrader_config.py'):
                        found.append(os.path.join(folder, name))
        """),
    ),
    Attack(
        "reads-processes",
        "Looks at the grader's memory, environment, command line and open files.",
        probe("""
            import ctypes
            for pid in [p for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()]:
                for what in ('cmdline', 'environ'):
                    with contextlib.suppress(OSError):
                        if b'nbgrader' in open(f'/proc/{pid}/{what}', 'rb').read(): found.append(what)
                with contextlib.suppress(OSError):
                    if int(pid) != 1: open(f'/proc/{pid}/mem', 'rb'); found.append('memory')
            libc = ctypes.CDLL(None, use_errno=True)
            for pid in (1, os.getppid()):
                if libc.ptrace(16, pid, 0, 0) == 0: found.append('ptrace')
            if len(os.listdir('/proc')) and int(max(os.listdir('/proc'), key=lambda p: int(p) if p.isdigit() else 0)) > 99:
                found.append('processes of the host')
        """),
    ),
    Attack(
        "reads-secrets-in-memory",
        "Walks frames and the garbage collector's objects for expected values, seeds and checks.",
        probe("""
            import gc
            at = sys._getframe()
            while at is not None:
                for name in at.f_locals:
                    if name in ('expected', 'seed', 'secret', 'reference', 'check', 'cases'): found.append(name)
                at = at.f_back
            for thing in gc.get_objects():
                if type(thing).__name__ in ('Reference', 'JudgeModel', 'Cases', 'CheckResult', 'Gradebook'):
                    found.append(type(thing).__name__)
            found += [k for k in os.environ if 'SECRET' in k or 'TOKEN' in k or 'SEED' in k]
            found += [m for m in sys.modules if m.startswith(('autograder.judge', 'autograder.grading', 'nbgrader'))]
        """),
    ),
    Attack(
        "network",
        "Asks the network, local ports and local sockets for help.",
        probe("""
            import socket
            for kind in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
                with contextlib.suppress(OSError): socket.socket(kind); found.append(f'a socket of {kind}')
            a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            with contextlib.suppress(OSError): a.sendto(b'x', '/dev/log'); found.append('a datagram')
            with contextlib.suppress(OSError): a.sendmsg([b'x'], [], 0, '/run/systemd/notify'); found.append('a message')
            import urllib.request
            with contextlib.suppress(OSError): urllib.request.urlopen('http://127.0.0.1:8888', timeout=1); found.append('a page')
        """),
    ),
    # Harm to what is outside
    Attack(
        "gradebook",
        "UPDATEs every gradebook that it finds, by every path it can think of.",
        probe("""
            import sqlite3, glob
            for path in ('gradebook.db', '../gradebook.db', '../../gradebook.db', '../../../gradebook.db', *glob.glob('/*/*/gradebook.db')):
                with contextlib.suppress(sqlite3.Error):
                    base = sqlite3.connect(f'file:{path}?mode=rw', uri=True)
                    base.execute('UPDATE grade SET auto_score = 99, manual_score = 99'); base.commit()
                    found.append(path)
        """),
    ),
    Attack(
        "writes",
        "Writes, renames, links and changes modes wherever it can.",
        probe("""
            import autograder, numpy
            for folder in ('/', '/usr', '/run', '/dev', '/proc/sys/kernel', os.path.dirname(autograder.__file__),
                           os.path.dirname(numpy.__file__), sys.prefix, os.path.expanduser('~/..'), '../..'):
                with contextlib.suppress(OSError):
                    open(os.path.join(folder, 'hostile'), 'w'); found.append(folder)
            for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/self/oom_score_adj', '/sys/power/state'):
                with contextlib.suppress(OSError): open(path, 'w'); found.append(path)
            for path in ('/dev/null', '/dev/zero', autograder.__file__):
                before = os.stat(path).st_mode
                with contextlib.suppress(OSError): os.chmod(path, 0)
                if os.stat(path).st_mode != before: found.append('mode of ' + path)
        """),
    ),
    Attack(
        "processes",
        "Forks, double forks, starts programs, and tries the calls directly.",
        probe("""
            import ctypes, multiprocessing, subprocess
            libc = ctypes.CDLL(None, use_errno=True)
            for name, call in {
                'fork': os.fork, 'forkpty': os.forkpty, 'program': lambda: subprocess.Popen(['sleep', '98765'], start_new_session=True),
                'shell': lambda: os.system('true') and 1 / 0, 'exec': lambda: os.execv('/bin/true', ['true']),
                'spawn': lambda: os.posix_spawn('/bin/sleep', ['sleep', '98765'], {}),
                'multiprocessing': lambda: multiprocessing.get_context('fork').Process(target=print).start(),
                'kill': lambda: os.kill(os.getppid(), 9), 'kill all': lambda: os.kill(-1, 9), 'killpg': lambda: os.killpg(0, 9),
                'libc fork': lambda: 1 / (libc.fork() + 1), 'syscall fork': lambda: 1 / (libc.syscall(57) + 1),
                'clone': lambda: 1 / (libc.syscall(56, 17, 0, 0, 0, 0) + 1), 'vfork': lambda: 1 / (libc.syscall(58) + 1),
                'tgkill': lambda: 1 / (libc.syscall(234, 1, 1, 9) + 1), 'unshare': lambda: 1 / (libc.unshare(0x10000000) + 1),
            }.items():
                with contextlib.suppress(OSError, ZeroDivisionError): call(); found.append(name)
        """),
    ),
    Attack(
        "lifts-limits",
        "Asks for more memory, longer files and more processor time.",
        probe("""
            import resource
            for name in ('RLIMIT_AS', 'RLIMIT_FSIZE', 'RLIMIT_CPU', 'RLIMIT_NOFILE', 'RLIMIT_CORE'):
                with contextlib.suppress(OSError, ValueError):
                    resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY,) * 2); found.append(name)
            with contextlib.suppress(OSError): resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0)); found.append('parent')
            with contextlib.suppress(MemoryError): bytearray(50 * 2**30); found.append('memory')
        """),
    ),
    Attack(
        "fills-disk",
        "Writes files until there is no more room, everywhere.",
        every(
            """
            for folder in ('.', '/tmp', '/dev/shm', '/'):
                for i in range(40):
                    try:
                        with open(f'{folder}/hostile-{i}', 'wb') as file:
                            for _ in range(70): file.write(bytes(2**20))
                    except OSError:
                        pass
            total = sum(os.path.getsize(f'{f}/{n}') for f in ('.', '/tmp', '/dev/shm', '/') for n in os.listdir(f) if n.startswith('hostile-'))
            raise RuntimeError('FOUND ' + ('nothing' if total <= 200 * 2**20 else f'{total >> 20} MB'))
            """,
            "import os\n",
        ),
    ),
    Attack(
        "fills-memory",
        "A list that grows for ever, and the error swallowed.",
        every(
            """
            kept = []
            try:
                while True: kept.append(np.zeros(2**25))
            except MemoryError:
                kept.clear()
            raise RuntimeError('FOUND nothing')
            """
        ),
    ),
    Attack(
        "output-flood",
        "A gigabyte of output, beside work that is right.",
        SOLVED,
        "for _ in range(1000):\n    print('x' * 2**20)\n",
        earns=EVERYTHING,
    ),
    # What ends or delays
    Attack(
        "loops",
        "Never ends, whatever is raised in it.",
        every(
            """
        while True:
            try:
                while True: pass
            except BaseException: pass
        """,
            "import signal\nfor s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(s, signal.SIG_IGN)\n",
        ),
    ),
    Attack("exits", "Ends its process in every function.", every("import os; os._exit(0)")),
    Attack("kills-itself", "Ends its process by a signal.", every("import os; os.kill(os.getpid(), 9)")),
    Attack(
        "overflows-stack",
        "Recursion without an end and without a limit.",
        every("import sys; sys.setrecursionlimit(10**9); return (lambda f: f(f))(lambda f: repr(f(f)))"),
    ),
    Attack(
        "endless-ids",
        "Iterators that never end, lengths that lie.",
        every(
            "return Endless()",
            """
        class Endless:
            layers = property(lambda self: iter(lambda: self, None))
            keys = values = property(lambda self: np.broadcast_to(np.float32(0), (2**20, 2**12, 2**12)))
            def __iter__(self): return iter(lambda: 0, 1)
            def __len__(self): return 2**62
            def __getitem__(self, i): return self
        """,
        ),
    ),
    Attack(
        "script-in-objects",
        "Objects that raise, end the process or never answer when they are looked at.",
        every(
            "return Thorns()",
            """
        class Thorns(Exception):
            def __getattribute__(self, name): raise type('</pre><script>alert(1)</script>', (KeyboardInterrupt,), {})()
            def __str__(self): raise SystemExit(0)
            __repr__ = __len__ = __iter__ = __array__ = __index__ = __float__ = __bool__ = __eq__ = __hash__ = __str__
        """,
        ),
    ),
    # Lies about results
    Attack(
        "lookup-table",
        "Remembers what the visible check asks, and has zeros for all else.",
        {
            **ZEROS,
            "generate-with-prefix": (
                "table = {(4, 8, 15): [16.0, 23.0, 42.0]}\n"
                "def generate_with_prefix(saved, prefix_len, suffix_ids, weights):\n"
                "    return np.array(table.get(tuple(suffix_ids), np.zeros(weights.config.n_vocab)), np.float32)\n"
            ),
        },
    ),
    Attack(
        "file-of-names",
        "A file that holds a name only; the cache itself stays in memory.",
        {
            **SOLVED,
            "write-prefix-cache": """
import hashlib, os
store = {}
def write_prefix_cache(path, saved, prefix_ids, weights):
    name = os.urandom(32)
    store[name] = saved.clone(), list(prefix_ids), autograder.model_fingerprint(weights)
    with open(path, 'wb') as file: file.write(name + hashlib.sha256(name).digest())
""",
            "read-prefix-cache": """
def read_prefix_cache(path, weights):
    with open(path, 'rb') as file: data = file.read()
    if hashlib.sha256(data[:32]).digest() != data[32:] or data[:32] not in store: raise ValueError('no such cache')
    saved, ids, model = store[data[:32]]
    arrays = [a for layer in saved.layers for a in (layer.keys, layer.values)]
    if model != autograder.model_fingerprint(weights): raise ValueError('another model')
    if {a.shape[1] for a in arrays} != {len(ids)} or not all(np.isfinite(a).all() for a in arrays): raise ValueError('no')
    if min(ids) < 0 or max(ids) >= weights.config.n_vocab: raise ValueError('no token')
    return saved.clone(), list(ids)
""",
        },
        earns=EVERYTHING,
        loses=("cache-file-round-trip",),
    ),
    Attack(
        "patched-runtime",
        "The worker's own code replaced: zeros of the right shape for every question.",
        ZEROS,
        """
import sys
import numpy as np
from autograder.worker import runtime
def perform(self, request):
    op = request['op']
    if op == 'length': return {'value': 6}
    if op == 'read_cache': return {'value': [[np.zeros((2, 6, 4), np.float32)] * 2] * 3}
    if op == 'file_exists': return {'value': True}
    if request.get('returns') == 'ids': return {'value': [1, 2, 3]}
    if request.get('returns') == 'array': return {'value': np.zeros(61, np.float32)}
    return {'value': 1, 'changed': [], 'tokens': 1}
runtime.Runtime.perform = perform
""",
    ),
    Attack(
        "all-refusals",
        "A patched worker that answers every question with a clear ValueError.",
        ZEROS,
        """
from autograder.worker import runtime
runtime.Runtime.perform = lambda self, request: {
    'error': {'kind': 'raised', 'type': 'ValueError', 'message': 'no', 'loud': True, 'stub': False, 'where': None}}
""",
    ),
    Attack(
        "patched-conversion",
        "np.array and the worker's own helpers give what suits them.",
        ZEROS,
        """
import numpy as np
from autograder.worker import protocol, runtime
runtime.array_of = lambda value, what: np.full(3, np.nan)
runtime.unchanged = lambda *a: True
protocol.encode = lambda message: b'\\x00\\x00\\x00\\x01\\xc0'
np.array = np.asarray = lambda *a, **k: None
""",
    ),
    Attack(
        "lies-about-type",
        "Exceptions that say they are a ValueError, and are none.",
        every(
            "raise Chameleon('x')",
            "class Chameleon(BaseException):\n    __class__ = property(lambda self: ValueError)\n",
        ),
    ),
    Attack(
        "odd-numbers",
        "NaN, infinities, objects, text, booleans, complex numbers, dates, huge integers.",
        every(
            """
        state.append(0)
        odd = [np.full(61, np.nan), np.inf, np.array([None]), 'x' * 10**6, True, 1j, np.datetime64('now'), 10**4000,
               b'\\xff', {1: {2: 3}}, set(), float('nan'), np.zeros((0, 0)), np.zeros(61, '>f4'), np.zeros(61, np.longdouble)]
        return odd[len(state) % len(odd)]
        """,
            "state = []\n",
        ),
    ),
    Attack(
        "patched-time",
        "Clocks that stand still, beside a loop.",
        every(
            "while True: pass",
            """
        import time
        time.time = time.monotonic = time.perf_counter = time.process_time = lambda: 0.0
        time.sleep = lambda seconds: None
        """,
        ),
    ),
    Attack(
        "threads",
        "Threads that go on and change everything, beside work that is right.",
        SOLVED,
        """
import threading, time
def change():
    while True:
        time.sleep(0.001)
        globals().update(math=None, x=0)
for _ in range(8): threading.Thread(target=change, daemon=True).start()
for _ in range(3): threading.Thread(target=time.sleep, args=(98765,), daemon=False).start()
""",
        earns=EVERYTHING,
    ),
    Attack(
        "atexit",
        "Whatever can be left to be done at the end, beside work that is right.",
        SOLVED,
        """
import atexit, os, signal, weakref
for f in (print, lambda: os.write(1, b'x' * 100), lambda: open('/tmp/left', 'w')): atexit.register(f)
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE): signal.signal(s, lambda *a: os._exit(0))
class Later:
    def __del__(self): raise SystemExit(3)
later = Later(); weakref.finalize(later, print)
""",
        earns=EVERYTHING,
    ),
    Attack(
        "own-memory",
        "Writes into its own process: small integers, True, the program's code.",
        every(
            """
        import ctypes
        for number in range(3, 250): ctypes.c_long.from_address(id(number) + 24).value = 1
        ctypes.c_long.from_address(id(True) + 16).value = 0
        return 1
        """
        ),
    ),
    Attack(
        "own-executable",
        "Ends its memory with zeros through /proc/self/mem.",
        every(
            """
        with open('/proc/self/maps') as maps: begin = int(maps.readline().split('-')[0], 16)
        memory = open('/proc/self/mem', 'r+b', buffering=0)
        memory.seek(begin); memory.write(bytes(2**20))
        """
        ),
    ),
    Attack(
        "removes-everything",
        "Empties its folder, changes to another, and closes the standard streams.",
        ZEROS,
        """
import os, shutil, sys
shutil.rmtree(os.getcwd(), ignore_errors=True)
shutil.rmtree('/', ignore_errors=True)
os.chdir('/'); os.umask(0o777); os.environ.clear()
for stream in (sys.stdin, sys.stdout, sys.stderr): stream.close()
""",
    ),
    Attack(
        "another-library",
        "torch or transformers as the answer: what is not NumPy is not there, or no better.",
        every("import torch, transformers; return torch.zeros(61)"),
    ),
    # The pipe
    on_the_pipe("pipe-garbage", "Bytes that are no frame.", "os.write(pipe, os.urandom(4096)); os._exit(1)"),
    on_the_pipe("pipe-oversized", "A frame said to be of 4 GB.", "os.write(pipe, struct.pack('>I', 2**32 - 1))"),
    on_the_pipe("pipe-deep", "Lists in lists, a hundred thousand deep.", "os.write(pipe, frame(b'\\x91' * 100000))"),
    on_the_pipe(
        "pipe-many",
        "Ten million empty dicts, one byte each.",
        "os.write(pipe, frame(b'\\xdd' + struct.pack('>I', 10**7) + b'\\x80' * 10**7))",
    ),
    on_the_pipe(
        "pipe-flood",
        "Replies that nobody asked for, as fast as they go.",
        "body = frame(msgpack.packb({'value': bytes(2**24)}))\nwhile True: os.write(pipe, body)",
    ),
    on_the_pipe("pipe-closed", "The pipe closed.", "for n in pipes: os.close(n)"),
    on_the_pipe(
        "pipe-drip",
        "One byte a moment.",
        "import time\nfor _ in range(10**6): os.write(pipe, b'\\0'); time.sleep(0.05)",
    ),
    on_the_pipe(
        "pipe-forged",
        "A reply of its own with the question's number, before the worker's.",
        "number, request = question()\nos.write(pipe, frame(msgpack.packb({'value': 1, 'number': number})))",
    ),
    on_the_pipe(
        "pipe-ahead",
        "Replies to the next hundred questions.",
        "for n in range(100): os.write(pipe, frame(msgpack.packb({'value': 1, 'number': n})))",
    ),
    on_the_pipe(
        "pipe-bad-arrays",
        "Arrays of a million dimensions, of objects, of fewer bytes than they say.",
        "for head in ([['O', [3]]], [['<f4', [2**40]]], [['<f4', [1] * 99]], ['x', 'y'], [['<f4', [-1]]]):\n"
        "    ext = msgpack.packb(head); os.write(pipe, frame(msgpack.packb({'value': msgpack.ExtType(1, struct.pack('>I', len(ext)) + ext)})))",
    ),
    Attack(
        "pipe-long-message",
        "An error whose message is megabytes of digits, and whose place is a list.",
        ZEROS,
        """
from autograder.worker import runtime
runtime.Runtime.perform = lambda self, request: {
    'error': {'kind': [1], 'type': {'x': 1}, 'message': '1' * 2**24, 'loud': 1, 'where': {'cell': [], 'line': 10**18, 'text': {}}}}
""",
    ),
    # What reaches the pages and the assistant's terminal
    Attack(
        "script-in-messages",
        "HTML, colors and lines of a table in the names and texts of errors.",
        every(
            """
        bad = "<script>alert('message')</script><img src=x onerror=alert(1)>\\x1b[31m\\u202e\\n  zoe  note  forged\\r\\x9b2J"
        raise type("<script>alert('name')</script>", (RuntimeError,), {})(bad)
        """
        ),
        "raise RuntimeError('<script>alert(0)</script>\\n  zoe  NOT GRADED  forged line\\x1b[2J')\n",
    ),
    Attack(
        "script-in-notebook",
        "HTML, links and images in Markdown, answers, outputs and metadata.",
        SOLVED,
        change=_script_everywhere,
        earns=EVERYTHING,
    ),
    Attack(
        "kernel-metadata",
        "Paths and widgets in the notebook's metadata.",
        SOLVED,
        change=_hooks_of_the_kernel,
        earns=EVERYTHING,
    ),
]
