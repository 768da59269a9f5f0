"""`autograder report`: the page about a class, after real grading."""

import base64
import hashlib
import json
import os
import re
import shutil
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from markupsafe import escape

from autograder.grading.records import record_path
from autograder.grading.submission import recorded_name
from autograder.judge.bugs import POSITIONS_RESET
from autograder.judge.framework import checks_of
from autograder.places import CONFIG
from autograder.report.collect import collect
from autograder.report.drawing import score_histogram, seconds_histogram
from autograder.report.page import page, short, shown
from autograder.stages import find_stage
from autograder.tests.command import autograder
from autograder.tests.course import NAME, STAGE
from autograder.tests.small_class import AS_RECORDED, HOSTILE, N_GRADED, N_NOT_GRADED, small_class

CHECKS = checks_of(STAGE.name)
NAMES_BEGIN = "<h2>What to know"


class Reader(HTMLParser):
    """The page's tags, the text of its table cells by table and row, and its whole text."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.tables, self.said = [], {}, ""
        self._silent = self._in_cell = False
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "table":
            self._rows = self.tables.setdefault(dict(attributes)["id"], [])
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
            self._in_cell = True
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._silent = False
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data):
        if not self._silent:
            self.said += data
        if self._in_cell:
            self._rows[-1][-1] += data


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return small_class(tmp_path_factory.mktemp("class"))


@pytest.fixture(scope="module")
def written(course):
    """The command's output, and the page that it wrote."""
    run = autograder("report", STAGE.name, cwd=course.folder)
    assert run.returncode == 0, run.stderr
    path = course.folder / "autograded" / f"report-{STAGE.assignment}.html"
    assert run.stdout.splitlines()[-1] == f"Written: {path}"
    source = path.read_text(encoding="utf-8")
    return SimpleNamespace(run=run, source=source, read=Reader(source))


@pytest.fixture
def copy(course, tmp_path):
    """A copy of the course, for a test that changes it."""
    return SimpleNamespace(
        folder=shutil.copytree(course.folder, tmp_path / "class"),
        page=lambda: Reader(page(collect(tmp_path / "class/submitted", tmp_path / "class/autograded", STAGE))),
        record=lambda student: record_path(tmp_path / "class" / "autograded", STAGE.assignment, student),
    )


# What it says


def test_the_most_frequent_bugs_come_first(written):
    lead = written.source.partition(NAMES_BEGIN)[0]
    assert "Three things to talk about" in lead
    found = re.findall(r'<li><h3>(.*?)</h3><p class="many">(.*?)</p><p>(.*?)</p>', lead)
    assert [(label, many) for label, many, _ in found] == [
        ("positions reset to 0", f"4 of {N_GRADED} students"),
        ("empty suffix not refused", f"3 of {N_GRADED} students"),
        ("saved cache mutated", f"2 of {N_GRADED} students"),
    ]
    assert found[0][2] == str(escape(POSITIONS_RESET.sentence))
    assert f"  4 of {N_GRADED}: positions reset to 0" in written.run.stdout


def test_the_part_for_the_lecture_names_no_student(written, course):
    lead = written.source.partition(NAMES_BEGIN)[0].partition("<body>")[2]
    for folder in (course.folder / "submitted").iterdir():
        assert not re.search(rf"\b{re.escape(str(escape(folder.name)))}\b", lead), folder.name


def test_the_summary_counts_the_class(written):
    said = written.read.said
    assert f"16 submissions: {N_GRADED} graded, {N_NOT_GRADED} not graded." in said
    assert "Median 6 of 14 points; 2 of 14 have them all." in said
    assert "Some checks had nothing to judge: not written yet (1 student)." in said


def test_every_check_has_its_failures_and_their_names_the_most_failed_first(written):
    _, *rows = written.read.tables["checks"]
    assert {int(row[0]): row[1] for row in rows} == {n: check.title for n, check in enumerate(CHECKS, 1)}
    failed = [int(row[3].removesuffix(f" of {N_GRADED}")) for row in rows]
    assert failed == sorted(failed, reverse=True)
    (position,) = [row for row in rows if row[1] == "The suffix continues at position prefix_len"]
    named = "positions reset to 0 (4), saved cache mutated (2), not written yet (1)"
    assert position[3:] == [f"8 of {N_GRADED}", "", named]


def test_every_student_has_the_points_of_the_gradebook(written, course):
    _, *rows = written.read.tables["students"]
    assert len(rows) == N_GRADED + N_NOT_GRADED
    for name, score, *scores in rows:
        points = scores[: len(CHECKS)]
        if name in ("broken", AS_RECORDED):
            assert (score, set(points), scores[-2]) == ("", {""}, "not graded")
        else:
            stored = course.scores(name)
            assert points == [f"{stored[check.id]:g}" for check in CHECKS]
            assert score == f"{sum(stored.values()):g}"


def test_a_failed_check_comes_with_its_message(written):
    (row,) = [row for row in written.read.tables["students"] if row[0] == "student-1"]
    assert row[-2].startswith("positions reset to 0")
    assert POSITIONS_RESET.sentence in row[-2]


def test_it_says_what_was_repaired_and_what_was_not_graded(written):
    _, *rows = written.read.tables["remarks"]
    reasons = {row[2]: row[1] for row in rows if row[0] == "not graded"}
    assert list(reasons) == ["broken", AS_RECORDED]
    assert f"{NAME} is not valid JSON" in reasons["broken"]
    assert ["repaired or odd", f"The notebook was named {STAGE.module} (1).ipynb.", "renamed"] in rows


def test_each_bug_has_its_students(written):
    _, *rows = written.read.tables["bugs"]
    assert rows[0] == ["positions reset to 0", "4", "student-1, student-2, student-3, student-4"]


def test_it_says_how_long_grading_took(written, course):
    records = json.loads((course.folder / "autograded" / f"report-{STAGE.assignment}.json").read_text())
    total = sum(record["seconds"] for record in records)
    assert f"{total:.0f} s of grading in total" in written.read.said


# Nothing of a student's is more than text


def test_a_students_text_adds_no_tag_and_no_attribute(written):
    known = "html head meta title style body main script h1 h2 h3 p ol ul li div table thead tbody tr th td bdi span "
    known += "details summary dl dt dd svg defs pattern rect circle line text"
    assert {tag for tag, _ in written.read.tags} <= set(known.split())
    assert [tag for tag, _ in written.read.tags].count("script") == 1
    names = {name for _, attributes in written.read.tags for name in attributes}
    assert not {n for n in names if n.startswith("on")} and not names & {"src", "href", "style", "action", "srcset"}


def test_hostile_names_and_messages_are_shown_literally(written):
    (row,) = [row for row in written.read.tables["students"] if "img" in row[0]]
    assert row[0] == HOSTILE
    assert "</script><script>document.title = 'taken'</script>" in row[-2]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", written.source)


def test_the_policy_allows_the_page_itself_and_nothing_else(written):
    (policy,) = [a["content"] for tag, a in written.read.tags if a.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and "unsafe" not in policy
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", written.source, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    head = written.source.partition("<style>")[0]
    assert "Content-Security-Policy" in head
    assert not re.search(r"https?:|//[a-z]", written.source.partition("<body>")[2].partition("<script>")[0])


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("a\x00b\ud800c\u2066", "a\ufffdb\ufffdc\ufffd"),
        ("a\u00a0b\tc\nd", "a b c\nd"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
    ],
)
def test_invisible_characters_are_replaced(given, seen):
    assert shown(given) == seen
    seen.encode("utf-8")


def test_a_long_text_is_cut():
    assert short("x" * 5000, 3000) == "x" * 3000 + " ..."


# When something is amiss


def test_scores_that_are_out_of_date_are_reported(copy):
    notebook = copy.folder / "submitted" / "right" / STAGE.assignment / NAME
    notebook.write_text(notebook.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    shutil.rmtree(copy.folder / "submitted" / "student-1")
    plain = json.loads(copy.record("student-2").read_text())
    copy.record("student-2").write_text(json.dumps(plain | {"checks_version": "older"}))
    found = copy.page()
    assert "The scores of 3 submissions are out of date" in found.said
    stale = {row[2]: row[1] for row in found.tables["remarks"] if row[0] == "out of date"}
    assert "handed in again" in stale["right"]
    assert "is gone" in stale["student-1"]
    assert "other checks (older)" in stale["student-2"]


def test_submissions_never_graded_and_unreadable_records_are_reported(copy):
    copy.record("right").unlink()
    copy.record("student-1").write_text("{")
    plain = json.loads(copy.record("student-2").read_text())
    copy.record("student-2").write_text(json.dumps(plain | {"score": "many"}))
    copy.record("student-3").write_text(json.dumps(plain | {"checks": [{"id": 1}], "student": "student-3"}))
    found = copy.page()
    told = {student: row[1] for row in found.tables["remarks"] for student in row[2].split(", ")}
    assert told["right"] == "handed in, and not graded yet."
    assert "cannot be read" in told["student-1"]
    assert "cannot be read" in told["student-2"] and "cannot be read" in told["student-3"]
    assert len(found.tables["students"]) == N_GRADED + N_NOT_GRADED + 1  # with the heading
    assert "16 submissions: 10 graded, 2 not graded, 4 not yet graded." in found.said


def test_code_that_ran_without_the_sandbox_is_reported(copy):
    plain = json.loads(copy.record("right").read_text())
    copy.record("right").write_text(json.dumps(plain | {"isolation": "bubblewrap is not installed."}))
    assert "bubblewrap is not installed." in copy.page().said


def test_the_file_of_all_records_is_enough(copy):
    before = copy.page().tables["students"]
    shutil.rmtree(copy.folder / "autograded" / ".records")
    assert copy.page().tables["students"] == before


def test_a_class_without_a_mistake_has_nothing_to_talk_about(copy):
    for path in (copy.folder / "submitted").iterdir():
        if path.name not in ("right", "renamed"):
            shutil.rmtree(path)
            copy.record(recorded_name(path.name)).unlink()
    found = copy.page()
    assert "Nothing to talk about" in found.said
    assert "2 submissions: 2 graded." in found.said


def test_unnamed_failures_become_topics_when_few_bugs_are_named(copy):
    for number in range(1, 11):
        shutil.rmtree(copy.folder / "submitted" / f"student-{number}")
        copy.record(f"student-{number}").unlink()
    found = copy.page()
    assert "Three things to talk about" in found.said
    assert "No known mistake explains the numbers" in found.said


def test_a_class_with_nothing_graded_has_a_report(copy):
    for path in (copy.folder / "submitted").iterdir():
        if path.name != "broken":
            shutil.rmtree(path)
            copy.record(recorded_name(path.name)).unlink()
    run = autograder("report", STAGE.name, "--course", copy.folder, cwd=copy.folder.parent)
    assert run.returncode == 0
    assert run.stdout.startswith(f"{STAGE.assignment}: 0 of 1 submissions graded\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["report", "kv"], "There is no stage 'kv'; the stages are start-here,"),
        (["report", "start-here"], "Nothing is graded in start-here; the stages with checks are forward-pass,"),
        (["report", "kv-cache"], "Nothing of 02-kv-cache is graded in "),
        (["report", STAGE.name, "--course", "submitted"], "submitted is not a course folder"),
        (["report", STAGE.name, "--output", "submitted"], "submitted cannot be written"),
        (["report", STAGE.name, "--output", "none/page.html"], "none/page.html cannot be written (No such file"),
    ],
)
def test_bad_input_is_answered_in_one_sentence(course, arguments, sentence):
    run = autograder(*arguments, cwd=course.folder)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"autograder: {sentence}"), run.stderr
    assert run.stderr.count("\n") == 1
    assert not list(course.folder.glob(".*.tmp"))


@pytest.mark.skipif(os.name != "posix", reason="makes a pipe with a name")
def test_a_page_never_replaces_a_pipe_or_device(course, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    run = autograder("report", STAGE.name, "--output", tmp_path / "pipe", cwd=course.folder)
    assert run.returncode == 2
    assert "pipe cannot be written (not an ordinary file); name a file with --output PATH." in run.stderr
    assert [p.is_fifo() for p in tmp_path.iterdir()] == [True]


def test_the_page_goes_where_it_is_wanted(course, tmp_path):
    run = autograder("report", STAGE.assignment, "--course", course.folder, "--output", "page.html", cwd=tmp_path)
    assert run.returncode == 0
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_the_folders_are_those_of_the_configuration(copy):
    for name in ("submitted", "autograded"):
        (copy.folder / name).rename(copy.folder / f"{name}-here")
    with open(copy.folder / CONFIG, "a", encoding="utf-8") as config:
        config.write("c.CourseDirectory.submitted_directory = 'submitted-here'\n")
        config.write("c.CourseDirectory.autograded_directory = 'autograded-here'\n")
        config.write("c.CourseDirectory.student_id_exclude = 'student-1,student-2'\n")
    before, after = N_GRADED + N_NOT_GRADED, N_GRADED + N_NOT_GRADED - 2
    report = autograder("report", STAGE.name, cwd=copy.folder)
    assert report.stdout.startswith(f"{STAGE.assignment}: {before - 2 - N_NOT_GRADED} of {after} submissions graded")
    assert (copy.folder / "autograded-here" / f"report-{STAGE.assignment}.html").is_file()
    unknown = autograder("grade", STAGE.name, "--student", "nobody", cwd=copy.folder)
    assert "submitted-here/STUDENT/" in unknown.stderr


def test_a_configuration_that_cannot_be_read_is_reported(copy):
    (copy.folder / CONFIG).write_text("c = (", encoding="utf-8")
    run = autograder("report", STAGE.name, cwd=copy.folder)
    assert run.returncode == 2 and run.stderr.count("\n") == 1
    assert "nbgrader_config.py cannot be used (SyntaxError" in run.stderr


# Drawings


def bars(svg):
    """The counts above the bars, by the labels below them."""
    ticks = dict(re.findall(r"class='tick' x='([\d.]+)' y='\d+'>(.*?)<", svg))
    return {ticks[x]: int(n) for x, n in re.findall(r"class='count' x='([\d.]+)' y='[\d.]+'>(\d+)<", svg)}


def test_every_number_of_points_has_a_bar():
    assert bars(score_histogram([0, 3, 3.5, 14, 14], 14)) == {"0": 1, "3": 2, "14": 2}


def test_many_points_share_bars():
    assert bars(score_histogram([0, 1, 39, 40], 40)) == {"0-1": 2, "38-39": 1, "40": 1}


@pytest.mark.parametrize("most", [0, 0.5, 1, 30, 31, 7.5, 1000])
def test_no_score_falls_out_of_the_picture(most):
    assert sum(bars(score_histogram([0, most / 2, most], most)).values()) == 3


def test_seconds_are_drawn_in_steps():
    assert bars(seconds_histogram([0.01, 1.0, 1.9, 150.0, 6000])) == {
        "under 0.1": 1,
        "1 to 2": 2,
        "100 to 200": 1,
        "over 5000": 1,
    }


def test_every_stage_can_be_reported(tmp_path):
    assert collect(tmp_path / "submitted", tmp_path / "autograded", find_stage("forward-pass")) is None
