"""No student program in the repository could harm the machine that tests it, even without a sandbox."""

import ast
import re
import textwrap

import pytest

from autograder.places import ROOT
from autograder.stages import GRADED_STAGES
from autograder.stages.samples import submissions_of
from autograder.tests.hostile.attacks import ATTACKS
from autograder.tests.hostile.attacks.changing import TRIES_THE_SANDBOX
from autograder.tests.payloads import CANARY, changes_outside

WITH_PROGRAMS = re.compile(r"/tests/.*\.py$|/stages/.*test_\w+\.py$|/stages/sample_tests\.py$")
FILES = [p for p in sorted((ROOT / "autograder").rglob("*.py")) if WITH_PROGRAMS.search(p.as_posix())]
OUR_FOLDERS = re.compile(r"(str\()?(tmp_path|canary|course)\b")  # values that a test puts into a program
ACTS = re.compile(
    r"\b(open|unlink|remove|rmtree|rmdir|rename|chmod|chown|utime|truncate|mkdir|makedirs|symlink|kill|system|Popen|fork"
    r"|write_text|write_bytes)\("
)


def programs(path):
    """The strings of a file that may be programs, with the values that tests put into them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known, skipped = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            known[ast.unparse(node.targets[0])] = node.value.value
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node) if part is not node}
        elif isinstance(node, ast.Expr):
            skipped.add(id(node.value))  # a docstring
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            yield textwrap.dedent("".join(_piece(part, known) for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield textwrap.dedent(node.value).replace("{}", "unknown")  # a place for a test's text


def _piece(part, known):
    if isinstance(part, ast.Constant):
        return part.value
    name = ast.unparse(part.value)
    if name in known:
        return repr(known[name]) if part.conversion == ord("r") else known[name]
    return CANARY if OUR_FOLDERS.match(name) else "unknown"


def harm_in(text):
    try:
        return changes_outside(text)
    except (SyntaxError, ValueError):
        return [text] if ACTS.search(text) else []  # what cannot be read may not name such a function


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT / "autograder").as_posix())
def test_no_program_in_a_string_of_a_test_could_change_what_is_outside(path):
    assert path.name == "test_payloads.py" or [harm for text in programs(path) for harm in harm_in(text)] == []


@pytest.mark.parametrize("attack", [*ATTACKS, TRIES_THE_SANDBOX], ids=lambda attack: attack.name)
def test_no_attack_could(attack):
    assert [harm for program in attack.programs for harm in changes_outside(program)] == []


@pytest.mark.parametrize("stage", GRADED_STAGES, ids=lambda stage: stage.name)
def test_no_sample_submission_could(stage):
    sources = {source for submission in submissions_of(stage.name) for source in submission.sources(stage).values()}
    assert sources and [harm for source in sources for harm in changes_outside(source)] == []


REMOVED_EVERYTHING = """
import os, shutil, sys
shutil.rmtree(os.getcwd(), ignore_errors=True)
shutil.rmtree('/', ignore_errors=True)
os.chdir('/')
"""
WROTE_EVERYWHERE = """
import autograder, contextlib, numpy, os, sys
for folder in ('/', '/usr', '/run', '/dev', '/proc/sys/kernel', os.path.dirname(autograder.__file__),
               os.path.dirname(numpy.__file__), sys.prefix, os.path.expanduser('~/..'), '../..'):
    with contextlib.suppress(OSError): open(os.path.join(folder, 'hostile'), 'w')
for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/sys/power/state'):
    with contextlib.suppress(OSError): open(path, 'w')
for path in ('/dev/null', '/dev/zero', autograder.__file__):
    with contextlib.suppress(OSError): os.chmod(path, 0)
"""


def test_the_two_programs_that_once_emptied_a_machine_are_detected():
    assert changes_outside(REMOVED_EVERYTHING) == [
        "shutil.rmtree(os.getcwd(), ignore_errors=True)",
        "shutil.rmtree('/', ignore_errors=True)",
        "os.chdir('/')",
    ]
    assert changes_outside(WROTE_EVERYWHERE) == [
        "open(os.path.join(folder, 'hostile'), 'w')",
        "open(path, 'w')",
        "os.chmod(path, 0)",
    ]


@pytest.mark.parametrize(
    "program",
    [
        "open('/etc/passwd', 'r+')",
        "open('../x', mode='a')",
        "open(name, 'x')",
        "open('/x', how)",
        "import io\nio.open('/x', 'w')",
        "import os\nos.open('/x', os.O_WRONLY | os.O_CREAT)",
        "import os\nos.open('/x', flags)",
        "from os import unlink as u\nu('/x')",
        "import os as o\no.remove(o.path.expanduser('~/x'))",
        "import os\nos.remove(os.environ['HOME'] + '/x')",
        "import os\nos.rename('x', os.sep + 'x')",
        "import os\nos.symlink('/etc', 'x')",
        "import os\nos.chdir('..')",
        "import os\nfor name in os.listdir('.'): os.unlink(name)",
        "import os\nfor folder, _, names in os.walk('/'): os.rmdir(folder)",
        "import os\nmap(os.unlink, ['/x'])",
        "import os\ngetattr(os, 'unlink')('/x')",
        "import os\nos.chmod(CANARY + '/../../x', 0)",
        "import os\nCANARY = '/'\nos.unlink(CANARY + 'x')",
        "import os\nos.utime(f'{CANARY}/../x')",
        "import shutil\nshutil.rmtree('.')",
        "import shutil\nshutil.copytree('x', '/x')",
        "from shutil import *",
        "from pathlib import Path\nPath('/x').write_text('x')",
        "from pathlib import Path\n(Path.home() / 'x').unlink()",
        "from pathlib import Path\nPath('x').rename('/x')",
        "from pathlib import Path\n(Path(CANARY) / '/x').touch()",
        "from pathlib import Path\nPath(CANARY).parent.rmdir()",
        "from pathlib import Path\nPath('/x').open('w')",
        "def f(path): open(path, 'w')\nf('/x')",
        "def f(path): open(path, 'w')",
        "def f(path='/x'): open(path, 'w')\nf('x')",
        "import numpy as np\nnp.save('/x', [])",
        "import numpy as np\nnp.memmap('/x', shape=8)",
        "import numpy\nnumpy.memmap('../x', 'u1', 'w+')",
        "import numpy as np\nnp.lib.format.open_memmap('/x', 'w+')",
        "import zipfile\nzipfile.ZipFile('/x.zip', 'w')",
        "import tarfile\ntarfile.open('/x.tar', 'w')",
        "from zipfile import ZipFile\nZipFile('x.zip').extractall('/')",
        "import zipfile\nwith zipfile.ZipFile('x.zip') as x: x.extract('y', path='/y')",
        "import gzip\ngzip.GzipFile('/x', 'wb')",
        "import shutil\nshutil.unpack_archive('x.zip', '/')",
        "import logging\nlogging.FileHandler('/x.log')",
        "from logging.handlers import RotatingFileHandler\nRotatingFileHandler('/x.log')",
        "import logging\nlogging.basicConfig(filename='/x.log')",
        "import dbm\ndbm.open('/x', 'c')",
        "import dbm\ndbm.open('/x', flag='n')",
        "import shelve\nshelve.open('/x')",
        "import sqlite3\nsqlite3.connect('/x/gradebook.db')",
        "import os\nos.system('rm -rf x')",
        "import os\nos.popen('true; rm x')",
        "import subprocess\nsubprocess.run(['rm', '-rf', '/'])",
        "import subprocess\nsubprocess.run('true', shell=True, env={}) if x else subprocess.run(command)",
        "import os\nos.execv('/bin/rm', ['rm', '/x'])",
        "!rm -rf /",
        "files = !rm x",
        "%pip install numpy",
        "%%bash\nrm x",
        "import os\nos.fork()",
        "import os\nwhile True: os.fork() or print()",
        "import os\nos.kill(-1, 9)",
        "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)",
        "import os\nos.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))",
        "import ctypes\nctypes.CDLL(None).unlink(b'/x')",
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.syscall(87, b'/x')",
        "import fcntl, os\nfcntl.ioctl(os.open('/tmp', os.O_RDONLY), 0x40086602, b'x')",
        "exec(text)",
        "exec(\"import os; os.unlink('/x')\")",
        "__import__('os').unlink('/x')",
        "import os\nos.chmod('/tmp', 0)",
        "import os\nos.close(os.open('/x', os.O_WRONLY | os.O_CREAT))",
        "import os\nfile = os.open('/x', os.O_RDWR)\nos.write(file, b'x')",
    ],
)
def test_a_change_outside_is_detected_in_any_form(program):
    assert changes_outside(program)


@pytest.mark.parametrize(
    "program",
    [
        "open('/etc/passwd')\nopen('/etc/passwd', 'rb')",
        "import os\nos.open('/x', os.O_RDONLY | os.O_CLOEXEC)",
        "import os\nfor name in ('a', 'b'): os.unlink(f'{CANARY}/{name}')",
        "open('x', 'w')",
        "import tempfile\nwith tempfile.TemporaryDirectory() as folder: open(f'{folder}/x', 'w')",
        "def write_prefix_cache(path, saved, prefix_ids, weights): open(path, 'wb')",
        "import os\nos.kill(os.getpid(), 9)\nos.kill(1, 0)",
        "import os\nos.fork() or os._exit(0)",
        "import os\nos.chmod('/dev/null', os.stat('/dev/null').st_mode)",
        "import os\nos.close(os.open('/x', os.O_WRONLY))",
        "import os\nos.close(os.open('/', os.O_TMPFILE | os.O_RDWR, 0o600))",
        "'a b'.replace(' ', '')",
        "!ls",
    ],
)
def test_reading_and_staying_in_our_folders_passes(program):
    assert changes_outside(program) == []
