"""The gradebook on a PostgreSQL server, started here for the occasion: the same scores as in SQLite."""

import pytest

from autograder.bench.local_postgresql import local_postgresql, why_none
from autograder.notebooks.build import build
from autograder.places import ROOT
from autograder.tests.course import ALL, STAGE, Course
from autograder.tests.grading_class import AUTOGRADE, GRADE, copy_of, run, scores, start

pytestmark = pytest.mark.skipif(why_none() != "", reason=why_none() or "PostgreSQL is there")


@pytest.fixture(scope="module")
def server():
    with local_postgresql() as url:
        yield url


@pytest.fixture(scope="module")
def courses(server, tmp_path_factory):
    """The same class twice: with its gradebook on the server, and in a file."""
    with_file = Course(tmp_path_factory.mktemp("courses") / "file")
    for name in ("anna", "Zoë Müller"):
        with_file.hand_in(name)
    with_file.hand_in("unsolved", {})
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
    stored = scores(on_server, server)
    assert stored == scores(with_file)
    assert len(stored) == 3 and stored["anna"]["score"] == ALL
    assert not (on_server.folder / "gradebook.db").exists()


def test_nbgrader_exports_from_the_server(courses):
    on_server, _ = courses
    done = on_server.run("export")
    assert done.returncode == 0, done.stderr
    assert "Zoë Müller" in (on_server.folder / "grades.csv").read_text(encoding="utf-8")
