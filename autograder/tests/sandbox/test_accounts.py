"""The account of a student's process: the grader's own or, if root grades, nobody's if possible."""

import json
import os
import subprocess
import sys

import pytest

from autograder.sandbox.account import account_for
from autograder.tests.accounts import UID, account
from autograder.tests.modes import ISOLATIONS

NOBODY = 65534
as_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="root can be any account")

LOOKS = """
import json
from autograder.sandbox.client import Cell, Worker
with Worker() as worker:
    cell = '''
import os
def tries(action):
    try: return action()
    except OSError: return None
def answer():
    import unittest  # not yet imported: it must be reached
    open('own', 'w').write('x')
    passwd = tries(lambda: open('/etc/passwd').read())
    return [os.getuid(), os.getgid(), os.getgroups(), passwd is not None, os.stat('.').st_uid, open('own').read()]
'''
    assert worker.run_cell(Cell("looks", cell)) is None
    reply = worker.request({"op": "call", "name": "answer", "returns": "plain", "args": []})
print(json.dumps(reply.get("value", reply)))
"""


def look(python, mode, temporary, **options):
    """What a student's process sees with a grader run by this Python; nothing of it may stay."""
    environment = {"AUTOGRADER_SANDBOX": mode, "TMPDIR": str(temporary), "HOME": "/", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [python, "-c", LOOKS], cwd="/", env=environment, capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(temporary) == []
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def ordinary():
    with account("ordinary") as made:
        yield made


@pytest.fixture
def temporary(ordinary):
    folder = ordinary.home / "temporary"
    folder.mkdir(exist_ok=True)
    ordinary.owns(folder)
    return folder


@as_root
@pytest.mark.parametrize("mode", ISOLATIONS)
def test_an_ordinary_account_grades_in_each_mode(ordinary, temporary, mode):
    uid = NOBODY if mode == "bubblewrap" else UID
    assert look(ordinary.python, mode, temporary, **ordinary.options) == [uid, uid, [], mode == "limits", uid, "x"]


@as_root
@pytest.mark.parametrize("mode", ISOLATIONS)
def test_where_root_grades_with_a_python_that_all_can_reach_it_is_nobodys(ordinary, temporary, mode):
    assert look(ordinary.python, mode, temporary) == [NOBODY, NOBODY, [], mode == "limits", NOBODY, "x"]


@as_root
@pytest.mark.parametrize("mode", ISOLATIONS)
def test_where_nobody_cannot_reach_what_is_needed_the_account_stays(tmp_path, ordinary, mode):
    """For example, if only root can reach Python or the folder for temporary files."""
    tmp_path.chmod(0o700)
    uid = NOBODY if mode == "bubblewrap" else 0
    assert look(ordinary.python, mode, tmp_path)[:2] == [uid, uid]
    assert look(sys.executable, mode, tmp_path)[:2] == [uid, uid]


def test_an_ordinary_account_becomes_no_other(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    assert account_for([]) is None


WHERE_GROUPS_STAY = """
import os
from autograder.worker import privileges
def refused(groups):
    raise PermissionError(1, "not in this container")
os.setgroups = refused
privileges.give_up(65534)
print(os.getresuid(), os.getresgid())
"""


@as_root
def test_groups_that_a_container_does_not_let_go_keep_root_from_nothing_else():
    done = subprocess.run([sys.executable, "-c", WHERE_GROUPS_STAY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{(NOBODY,) * 3} {(NOBODY,) * 3}"
