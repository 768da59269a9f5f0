"""The gradebook on a PostgreSQL server, started here for the occasion: the same marks as in SQLite."""

import glob
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from autograder.notebooks.build import build
from autograder.places import ROOT
from autograder.stages.samples import Wrong, submissions_of
from autograder.tests.course import CHECKS, STAGE, Course, own_cell
from autograder.tests.marking import AUTOGRADE, GRADE, copy_of, marks, run, start


def programs():
    """The folder of PostgreSQL's programs, which Debian keeps out of PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += map(Path, sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))
    return next((folder for folder in folders if (folder / "initdb").is_file()), None)


pytestmark = [
    pytest.mark.skipif(programs() is None, reason="PostgreSQL's server is not installed (apt install postgresql)"),
    pytest.mark.skipif(
        importlib.util.find_spec("psycopg") is None, reason="psycopg is not installed (pip install 'psycopg[binary]')"
    ),
]


@pytest.fixture(scope="module")
def server():
    """The URL of a database on a server that listens in a folder, and to nobody else."""
    folder = Path(tempfile.mkdtemp(prefix="postgresql-", dir="/tmp"))  # short: a socket's path has a hundred characters
    as_user = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        user = next((u for u in ("postgres", "nobody") if u in {p.pw_name for p in pwd.getpwall()}), None)
        if user is None:
            pytest.skip("there is no unprivileged user for the server")
        as_user = {"user": user}
        shutil.chown(folder, user)
    command = {"check": True, "capture_output": True, "cwd": folder, "timeout": 120, **as_user}
    data = str(folder / "data")
    control = [str(programs() / "pg_ctl"), "-D", data, "-w"]
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -F"
    subprocess.run([str(programs() / "initdb"), "-D", data, "-U", "course", "-A", "trust", "--no-sync"], **command)
    subprocess.run(
        [*control, "-l", str(folder / "log"), "-o", options, "start"], **{**command, "capture_output": False}
    )
    yield f"postgresql+psycopg://course@/postgres?host={folder}"
    subprocess.run([*control, "-m", "immediate", "stop"], **command)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def courses(server, tmp_path_factory):
    """The same class twice: with its gradebook on the server, and in a file."""
    with_file = Course(tmp_path_factory.mktemp("courses") / "file")
    wrong = next(s for s in submissions_of(STAGE.name) if isinstance(s, Wrong) and 0 < len(s.loses) < len(CHECKS))
    with_file.hand_in("anna")
    with_file.hand_in("Zoë")
    with_file.hand_in("wrong", wrong.sources(STAGE))
    with_file.hand_in("crasher", change=own_cell("import os\nos._exit(1)"))
    (with_file.path("anna").parent / "timestamp.txt").write_text("2026-01-31 12:00:00 UTC")
    on_server = copy_of(with_file, with_file.folder.parent / "server")
    (on_server.folder / "gradebook.db").unlink()
    with open(on_server.folder / "nbgrader_config.py", "a", encoding="utf-8") as config:
        config.write(f'\nc.CourseDirectory.db_url = "{server}"\nc.CourseDirectory.course_id = "prefix-cache"\n')
    build(ROOT, on_server.folder, (STAGE,))
    return on_server, with_file


def test_both_commands_at_a_time_store_on_the_server_what_one_stores_in_a_file(courses, server):
    on_server, with_file = courses
    processes = [start(on_server, command) for command in (GRADE, AUTOGRADE)]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert run(with_file, GRADE).returncode == 0
    stored = marks(on_server, server)
    assert stored == marks(with_file)
    assert len(stored) == 4 and stored["anna"]["score"] == sum(c.points for c in CHECKS.values())
    assert not (on_server.folder / "gradebook.db").exists()


def test_nbgrader_exports_from_the_server(courses):
    on_server, _ = courses
    done = on_server.run("export")
    assert done.returncode == 0, done.stderr
    assert "Zoë" in (on_server.folder / "grades.csv").read_text(encoding="utf-8")
