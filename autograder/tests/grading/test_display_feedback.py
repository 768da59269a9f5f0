"""The display run: what it adds to the pages of feedback, and that no score depends on it."""

import json
import os
import re

import pytest

from autograder.grading.records import read_records
from autograder.places import CONFIG
from autograder.tests.command import autograder
from autograder.tests.course import CHECKS, STAGE, Course
from autograder.tests.grading_class import left_over, scores
from autograder.tests.modes import works

pytestmark = works("bubblewrap")

SECONDS = 12
ON = f"c.SubmissionExporter.display_run = True\nc.SubmissionExporter.display_seconds = {SECONDS}\n"
ENDED = "Charts could not be drawn: the process ended while running its cells (exit status 0)."
PAGE = "<script>alert(1)</script><a href='http://evil.example'>x</a>"


def chart(*sources):
    """Puts the sources into the first chart cells, and empties the others, which are slow."""

    def change(notebook):
        charts = [c for c in notebook["cells"] if "chart" in c["metadata"].get("tags", [])]
        for cell, text in zip(charts, [*sources, *["pass"] * len(charts)], strict=False):
            cell["source"] = text

    return change


FORGED = """
print("99.0")
from IPython.display import display
display({"text/plain": "2.0"}, raw=True)
autograder.check = lambda name: 99.0
99.0
"""
CHARTS = {
    "draws": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('drawn by me')",
    "writes-pages": "from IPython.display import HTML, SVG, Javascript, Markdown, display\n"
    f"bad = {PAGE!r}\nfor kind in (HTML, Javascript, Markdown): display(kind(bad))\n"
    'display({"image/svg+xml": "<svg onload=\'alert(1)\'/>", "image/png": bad, "text/plain": bad}, raw=True)\n'
    "print(bad)",
    "never-ends": ("print('before')", "import time\nwhile True: time.sleep(1)"),
    "exits": "import os; os._exit(0)",
    "forges": FORGED,
    "looks": "",  # filled in with the course's folder
}
LOOKS = """
import os, socket
found = [p for p in {paths!r} if os.path.exists(p)]
try: socket.create_connection(('127.0.0.1', 22), 1); found.append('network')
except OSError as error: found += [] if error.errno in (1, 95) else ['sockets']
print('FOUND', found or 'nothing')
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The class graded by nbgrader autograde without a display run, then by autograder grade with one.

    `without` and `with_it` are the scores.
    """
    course = Course(tmp_path_factory.mktemp("display"))
    paths = [str(course.folder / name) for name in ("", "gradebook.db", ".autograder-seed", "submitted")]
    paths += [os.path.expanduser("~/.bashrc"), os.path.expanduser("~/.ssh"), "/etc/passwd", "/home"]
    for student, source in (CHARTS | {"looks": LOOKS.format(paths=paths)}).items():
        course.hand_in(student, change=chart(*([source] if isinstance(source, str) else source)))
    course.hand_in("unsolved", {}, change=chart("save_prefix_cache([1], weights)"))
    course.temporary = tmp_path_factory.mktemp("temporary")
    course.first = course.run("autograde", STAGE.assignment, TMPDIR=str(course.temporary))
    assert course.first.returncode == 0, course.first.stderr
    course.without, course.plain = scores(course), {s: others(course, s) for s in [*CHARTS, "unsolved"]}
    with (course.folder / CONFIG).open("a", encoding="utf-8") as config:
        config.write(ON)
    again = ("grade", STAGE.name, "--force", "--course", course.folder)
    course.second = autograder(*again, TMPDIR=str(course.temporary))
    assert course.second.returncode == 0, course.second.stderr
    course.with_it = scores(course)
    return course


def others(course, student):
    """The outputs of all cells but the checks', as one list."""
    notebook = json.loads(course.path(student, "autograded").read_text(encoding="utf-8"))
    code = [c for c in notebook["cells"] if c["cell_type"] == "code" and c["id"] not in CHECKS]
    return [output for cell in code for output in cell["outputs"]]


def text(outputs):
    return "".join("".join(o.get("text") or o["data"].get("text/plain", "")) for o in outputs)


def notes(course):
    records = read_records(course.folder / "autograded", STAGE.assignment)
    return {r.student: [n.sentence for n in r.notes if n.kind == "display"] for r in records}


def test_it_is_off_unless_the_course_asks_for_it(course):
    assert set(map(str, course.plain.values())) == {"[]"}


def test_scores_are_the_same_with_it_and_without(course):
    assert course.with_it == course.without
    full = {i: float(c.points) for i, c in CHECKS.items()}
    assert {s: course.scores(s) for s in CHARTS} == dict.fromkeys(CHARTS, full)
    assert course.scores("unsolved") == dict.fromkeys(CHECKS, 0.0)


def test_a_check_shows_what_the_grader_found_and_nothing_of_the_run(course):
    for student in CHARTS:
        for check, outputs in course.outputs(student).items():
            assert [o["output_type"] for o in outputs] == ["stream", "execute_result"]
            assert "".join(outputs[0]["text"]).startswith("Passed: ")
            assert "".join(outputs[1]["data"]["text/plain"]) == repr(float(CHECKS[check].points))


def test_charts_and_printed_text_are_shown(course):
    assert "drawn by me\n" in text(others(course, "draws"))
    assert [o for o in others(course, "draws") if "image/png" in o.get("data", {})]
    assert "NameError: name 'save_prefix_cache' is not defined" in text(others(course, "unsolved"))


def test_each_failure_is_one_note_and_no_other_has_any(course):
    problems = {
        "never-ends": [f"Charts could not be drawn: the {SECONDS} s for them are used up."],
        "exits": [ENDED],
    }
    assert notes(course) == {student: [] for student in [*CHARTS, "unsolved"]} | problems
    assert re.search(rf"(?m)^ *exits +note +{re.escape(ENDED)}$", course.second.stdout)


def test_outputs_of_earlier_cells_stay(course):
    assert text(others(course, "never-ends")) == "before\n"


def test_the_run_sees_no_course_no_home_and_no_network(course):
    assert text(others(course, "looks")) == "FOUND nothing\n"


def test_no_file_and_no_process_is_left(course):
    assert list(course.temporary.iterdir()) == []
    assert not left_over(course.folder)


@pytest.fixture(scope="module")
def pages(course):
    run = course.run("generate_feedback", STAGE.assignment)
    assert run.returncode == 0, run.stderr
    return {student: course.feedback(student) for student in CHARTS}


def test_the_page_of_feedback_has_the_chart(pages):
    assert len(re.findall(r'<img [^>]*src="data:image/png;base64,iVBORw0KGgo', pages["draws"])) == 1
    assert "drawn by me" in pages["draws"]


def test_the_page_of_feedback_has_no_script_style_or_link_of_a_students(pages):
    page = pages["writes-pages"]
    assert page.count("&lt;script&gt;alert(1)") >= 2  # as text: the cell's source, and what it printed
    assert not re.search(r"<script[^<>]*>[^<]*alert", page)
    assert not re.search(r"<svg[^<>]*onload|<a [^<>]*evil|<img [^<>]*(evil|alert)", page)
