"""Attacks on the score: patches of what compares and counts, and results that are none."""

# ruff: noqa: E501 - the attacks are short programs in strings

from autograder.tests.hostile.attacks.attack import EVERYTHING, SOLVED, ZEROS, Attack, every

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
BESIDE = "numpy autograder given msgpack sitecustomize usercustomize ipykernel_launcher safetensors nbgrader_config conftest struct"


def _forge_outputs(notebook):
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            data = {"text/plain": "99", "text/html": "<script>alert('output')</script>"}
            cell["metadata"] |= {"tags": ["skip-execution"], "deletable": False}
            cell["metadata"]["nbgrader"] |= {"points": 99, "grade": True, "solution": True}
            if cell["cell_type"] == "code":
                out = {"output_type": "execute_result", "execution_count": 1, "data": data, "metadata": {}}
                cell["outputs"] = [{"output_type": "clear_output"}, out]


POINTS = [
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
            try: getattr(module, name).__code__ = yes.__code__
            except Exception: pass
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
        "numpy.py and other modules beside the notebook, which give full points when they are imported.",
        ZEROS,
        files=dict.fromkeys((f"{name}.py" for name in BESIDE.split()), "print(14.0)\nraise SystemExit(0)\n"),
    ),
    Attack(
        "files-beside-right",
        "Such files, beside work that is right.",
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
        change=_forge_outputs,
    ),
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
    'error': {'kind': 'raised', 'type': 'ValueError', 'message': 'no', 'refusal': True, 'stub': False, 'where': None}}
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
        "another-library",
        "torch or transformers as the answer: what is not NumPy is not there, or no better.",
        every("import torch, transformers; return torch.zeros(61)"),
    ),
]
