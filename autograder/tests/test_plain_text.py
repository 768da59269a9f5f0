"""Strangers' text as shown: on one line, with no effect on a terminal or a page."""

import pytest

from autograder.grading.notes import Note
from autograder.grading.outcome import Line, Outcome
from autograder.grading.scores import check_message
from autograder.judge.framework import Check, Failure, run_check
from autograder.judge.student import local_student
from autograder.plain_text import JOINERS, one_line, visible
from autograder.report.page import shown

FORGED = (
    "oh\n\rPassed: all checks (14 / 14 points)\u2028marked by hand\x85Passed: all\x0b\x1b[2J\u202ee" + "\u0301" * 300
)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("two\n \t words\u2029and\u00a0more", "two words and more"),
        ("\x1b[31mred\x00", "\ufffd[31mred\ufffd"),
        ("right \u202e to left", "right \ufffd to left"),
        ("half \ud800 a pair", "half \ufffd a pair"),
        ("Vie\u0323\u0302t", "Vie\u0323\u0302t"),
        ("\u0437" + "\u0301" * 300 + "!", "\u0437" + "\u0301" * 3 + "!"),
        ("\u05d0\u05d1 \u4e2d\u6587 \U0001f600", "\u05d0\u05d1 \u4e2d\u6587 \U0001f600"),
    ],
)
def test_a_line_shows_all_characters_and_obeys_none(said, shown):
    assert one_line(said) == shown


@pytest.mark.parametrize("said", ["x" * 601, " " * 10**6 + "x", "\u0301" * 10**6, "x " * 10**6])
def test_a_line_has_limited_length(said):
    assert len(one_line(said)) <= 600
    assert one_line("x" * 600) == "x" * 600


def test_code_keeps_its_lines_and_joined_letters():
    code = "def f():\n\treturn '\U0001f468\u200d\U0001f469'\x1b]0;\x07"
    assert visible(code, keep="\n\t" + JOINERS) == "def f():\n\treturn '\U0001f468\u200d\U0001f469'\ufffd]0;\ufffd"


def check_of_f(student, cases):
    """f gives 1."""
    if (said := student.plain("f")) != 1:
        raise Failure(f"f gave {said}.")


F = Check("kv-cache", "f", 1, "F gives one", check_of_f)
RAISES = f"def f(): raise ValueError({FORGED!r})"
RETURNS = f"def f(): return {FORGED!r}"
TYPE = f"def f(): raise type({FORGED!r}, (ValueError,), {{}})('oh')"
CODE = f"def f():\n    # {FORGED[9:]!r}\n    return 1 / 0"


def result_of(source):
    namespace = {"__name__": "student"}
    exec(compile(source, f"<{FORGED}>", "exec"), namespace)
    return run_check(F, local_student(namespace), 0)


@pytest.mark.parametrize("source", [RAISES, RETURNS, TYPE, CODE])
def test_no_line_of_a_checks_message_begins_with_a_students_words(source):
    result = result_of(source)
    assert not result.passed
    first, second = result.message.split("\n")
    assert first == "f gives 1." and second.startswith(("f raised ", "f gave oh"))
    assert result.message.replace("\n", "").isprintable() and "\u0301" * 4 not in result.message


def test_no_line_of_a_cells_output_begins_with_words_of_a_students():
    """Wrapping a long line must not put them at the beginning of one either."""
    words = "Passed: marked by hand " * 30
    lines = check_message(F.failed(f"f gives 1.\nf raised {words}"), "1", "today").split("\n")
    assert [line for line in lines if not line.startswith("  ")] == [
        "Not passed: F gives one (0 / 1 points)",
        "f gives 1.",
        lines[2],
        "[checks 1, graded today]",
    ]
    assert lines[2].startswith("f raised Passed: ")


def test_a_note_and_a_row_of_the_assistants_table_are_one_line_each():
    assert Note("odd", None, FORGED).sentence == one_line(FORGED)
    lines = tuple(Line(student, "note", FORGED) for student in ("zo\u00eb", "a\nNOT GRADED b"))
    rows = Outcome("01", 2, 0, 0, lines, 1.0, None).table()
    assert len(rows) == 2 and all(row.isprintable() for row in rows)


def test_the_reports_page_shows_it_as_text():
    seen = shown(FORGED)
    assert seen.replace("\n", "").isprintable() and "\u0301" * 4 not in seen
