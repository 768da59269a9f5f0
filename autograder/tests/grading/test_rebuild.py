"""A submission is rebuilt from the course's notebook: only the student's sources survive, nothing honest is lost.

What happens to cells by accident and costs nothing is tests/broken/cases.py.
"""

import copy
import json

import pytest

from autograder.grading.rebuild import MAX_CELL, rebuild
from autograder.grading.written import plain_markdown, rendered_markdown
from autograder.notebooks.document import document_of

STUB = "    # YOUR CODE HERE\n    raise NotImplementedError()"
PREFILL = "def prefill(ids):\n    return ids"
DECODE = "def decode_step(token):\n    return token"


def nbgrader(name, grade=False, solution=False, locked=False):
    flags = {"grade": grade, "solution": solution, "locked": locked, "task": False, "schema_version": 3}
    return {"nbgrader": {"grade_id": name, **flags, **({"points": 2} if grade else {})}}


def cell(kind, name, source, **metadata):
    made = {"cell_type": kind, "id": name, "metadata": metadata, "source": source}
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def solution_source(code):
    head, body = code.split("\n", 1)
    return f"{head}\n    ### BEGIN SOLUTION\n{body}  # by the course\n    ### END SOLUTION"


SOURCE = {
    "cells": [
        cell("markdown", "prose-1", "# Prefill and decode"),
        cell("code", "imports", "import numpy as np", **nbgrader("imports", locked=True)),
        cell("code", "prefill", solution_source(PREFILL), **nbgrader("prefill", solution=True)),
        cell("code", "last-row", 'autograder.check("last-row")', **nbgrader("last-row", grade=True, locked=True)),
        cell("code", "decode-step", solution_source(DECODE), **nbgrader("decode-step", solution=True)),
        cell("code", "one-token", 'autograder.check("one-token")', **nbgrader("one-token", grade=True, locked=True)),
        cell("code", "chart-1", "plot_the_steps()", tags=["chart"]),
        cell(
            "markdown",
            "why",
            "Why?\n\n### BEGIN SOLUTION\nThe rubric.\n### END SOLUTION",
            **nbgrader("why", grade=True, solution=True),
        ),
    ],
    "metadata": {"kernelspec": {"name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


class Submission:
    """The released notebook as a student has it, solved."""

    def __init__(self):
        self.notebook = copy.deepcopy(SOURCE)
        self["prefill"]["source"], self["decode-step"]["source"] = PREFILL, DECODE
        self["why"]["source"] = "Why?\n\nYOUR ANSWER HERE"

    def __getitem__(self, name):
        return next(c for c in self.cells if c["id"] == name)

    @property
    def cells(self):
        return self.notebook["cells"]

    def at(self, name):
        return self.cells.index(self[name])

    def put(self, place, source, kind="code", **metadata):
        """Put a cell of the student's own after the named one, or at a place in the list."""
        index = place if isinstance(place, int) else self.at(place) + 1
        self.cells.insert(index, cell(kind, f"own-{len(self.cells)}", source, **metadata))

    def rebuilt(self):
        return rebuild(SOURCE, document_of(self.notebook, "work.ipynb"))


@pytest.fixture
def submission():
    return Submission()


def runs(rebuilt):
    """What is run of a trusted notebook, with its name."""
    return {c.label: c.source for c in rebuilt.runs}


def kinds(rebuilt):
    return [note.kind for note in rebuilt.notes]


def shown(rebuilt):
    return {c["id"]: c["source"] for c in rebuilt.notebook["cells"]}


SOLVED = {"imports": "import numpy as np", "prefill": PREFILL, "decode-step": DECODE}


def test_an_ordinary_submission_is_the_course_notebook_with_the_students_code(submission):
    rebuilt = submission.rebuilt()
    assert runs(rebuilt) == SOLVED
    assert [c["id"] for c in rebuilt.notebook["cells"]] == [c["id"] for c in SOURCE["cells"]]
    assert [c["metadata"] for c in rebuilt.notebook["cells"]] == [c["metadata"] for c in SOURCE["cells"]]
    assert kinds(rebuilt) == []


def test_no_solution_and_no_rubric_comes_from_the_course(submission):
    submission.cells.clear()
    text = json.dumps(submission.rebuilt().notebook)
    assert "by the course" not in text and "rubric" not in text and "SOLUTION" not in text


def test_the_course_notebook_is_not_changed(submission):
    before = copy.deepcopy(SOURCE)
    submission.rebuilt()
    assert before == SOURCE


# What is tampered with


def test_outputs_attachments_tags_and_metadata_are_dropped(submission):
    prefill = submission["prefill"]
    prefill["outputs"] = [{"output_type": "execute_result", "data": {"text/html": "<script>"}}]
    prefill["metadata"] |= {"tags": ["skip-execution"], "evil": "<script>"}
    submission["why"]["attachments"] = {"a.svg": {"image/svg+xml": "<script>"}}
    submission.notebook["metadata"]["evil"] = "<script>"
    assert "script" not in json.dumps(submission.rebuilt().notebook)
    assert submission.rebuilt().notebook["metadata"] == SOURCE["metadata"]


def test_points_and_flags_come_from_the_course(submission):
    submission["last-row"]["metadata"]["nbgrader"] |= {"points": 200, "solution": True, "schema_version": 99}
    trusted = next(c for c in submission.rebuilt().notebook["cells"] if c["id"] == "last-row")
    assert trusted["metadata"] == nbgrader("last-row", grade=True, locked=True)


def test_a_changed_check_cell_is_put_back_and_never_run(submission):
    submission["last-row"]["source"] = "print('full points')"
    rebuilt = submission.rebuilt()
    assert shown(rebuilt)["last-row"] == 'autograder.check("last-row")'
    assert [n.sentence for n in rebuilt.notes] == ["Put back the changed cell last-row."]
    assert runs(rebuilt) == SOLVED


def test_extra_markdown_is_shown_literally_after_what_it_followed(submission):
    submission.put("prefill", "# My notes <script>", kind="markdown")
    cells = submission.rebuilt().notebook["cells"]
    assert [c["id"] for c in cells[2:4]] == ["prefill", "extra-1"]
    assert cells[3]["source"] == plain_markdown("# My notes <script>")


def test_a_written_answer_is_rendered_without_what_is_active(submission):
    submission["why"]["source"] = "Because <b>positions</b> continue."
    assert shown(submission.rebuilt())["why"] == rendered_markdown("Because <b>positions</b> continue.")


def test_the_question_above_an_answer_is_the_courses_and_stays_as_it_is(submission):
    submission["why"]["source"] = "Why?\n\nBecause **positions** continue."
    assert shown(submission.rebuilt())["why"] == "Why?\n\n" + rendered_markdown("Because **positions** continue.")


def test_an_empty_answer_stays_exactly_as_released(submission):
    """nbgrader recognizes an unanswered question by the released text."""
    assert shown(submission.rebuilt())["why"] == "Why?\n\nYOUR ANSWER HERE"


def test_a_giant_solution_is_left_out_and_reported(submission):
    submission["prefill"]["source"] = PREFILL + "#" * MAX_CELL
    rebuilt = submission.rebuilt()
    assert "prefill" in rebuilt.notes[0].sentence and kinds(rebuilt) == ["too-large"]
    assert "prefill" not in runs(rebuilt) and len(shown(rebuilt)["prefill"]) < 100


def test_the_number_of_extra_cells_is_limited(submission):
    for _ in range(600):
        submission.put("decode-step", "x = 1")
    rebuilt = submission.rebuilt()
    assert kinds(rebuilt) == ["too-large"]
    assert len(rebuilt.runs) == 500 + len(SOLVED)


# What is broken


def test_own_cells_run_where_they_stood(submission):
    submission.put(0, "first = 1")
    submission.put("prefill", "after_prefill = 1")
    submission.put("why", "last = 1")
    labels = list(runs(submission.rebuilt()).values())
    assert labels == ["first = 1", "import numpy as np", PREFILL, "after_prefill = 1", DECODE, "last = 1"]


def test_charts_are_not_run_whoever_wrote_them(submission):
    submission["chart-1"]["source"] = "plot_the_steps(color='red')"
    submission.put("why", "another_chart()", tags=["chart"])
    rebuilt = submission.rebuilt()
    assert (runs(rebuilt), shown(rebuilt)["extra-1"]) == (SOLVED, "another_chart()")


def test_a_chart_without_its_tag_is_recognized_by_its_text(submission):
    submission["chart-1"].update(metadata={}, id="new")
    assert runs(submission.rebuilt()) == SOLVED


def test_a_deleted_solution_is_missing_and_nothing_replaces_it(submission):
    submission.cells.remove(submission["prefill"])
    rebuilt = submission.rebuilt()
    assert "prefill" not in runs(rebuilt)
    assert shown(rebuilt)["prefill"] == "# The cell prefill was not in the submitted notebook."
    assert [n.sentence for n in rebuilt.notes] == ["The solution cell prefill was not in the notebook."]


def test_the_notebook_of_another_stage_is_reported_in_one_sentence(submission):
    submission.notebook["cells"] = [
        {
            "cell_type": "code",
            "metadata": {},
            "source": "def attend(q, layer_cache):\n    return q",
            "id": "a",
            "outputs": [],
        },
        {
            "cell_type": "code",
            "metadata": {
                "nbgrader": {"grade": True, "grade_id": "attend-one-query", "locked": True, "solution": False}
            },
            "source": 'autograder.check("attend-one-query")',
            "id": "b",
            "outputs": [],
        },
    ]
    sentences = [n.sentence for n in submission.rebuilt().notes]
    assert sentences == ["None of the stage's solution cells is in the notebook; it looks like that of 02-kv-cache."]


def test_a_solution_merged_into_another_cell_still_counts(submission):
    submission.cells.remove(submission["decode-step"])
    submission["prefill"]["source"] = f"{PREFILL}\n\n\n{DECODE}"
    rebuilt = submission.rebuilt()
    assert DECODE in runs(rebuilt)["prefill"] and STUB not in "".join(runs(rebuilt).values())
    assert rebuilt.notes[0].sentence.endswith("decode-step was not in the notebook; its functions are in prefill.")


def test_a_helper_split_off_a_solution_still_runs(submission):
    submission["prefill"]["source"] = "def helper():\n    return 1"
    submission.put("prefill", PREFILL, **nbgrader("prefill", solution=True))
    rebuilt = submission.rebuilt()
    assert list(runs(rebuilt).values())[1:3] == ["def helper():\n    return 1", PREFILL]
    assert kinds(rebuilt) == ["split"]


def test_a_pasted_check_cell_changes_nothing(submission):
    submission.put("why", 'autograder.check("last-row")', **nbgrader("last-row", grade=True, locked=True))
    rebuilt = submission.rebuilt()
    assert [c["id"] for c in rebuilt.notebook["cells"]] == [c["id"] for c in SOURCE["cells"]]


def test_reordered_cells_go_back_to_their_order(submission):
    submission.cells.insert(2, submission.cells.pop(submission.at("decode-step")))
    rebuilt = submission.rebuilt()
    assert [c["id"] for c in rebuilt.notebook["cells"]] == [c["id"] for c in SOURCE["cells"]]
    assert list(runs(rebuilt)) == ["imports", "decode-step", "prefill"]
    assert [n.sentence for n in rebuilt.notes] == [
        "Moved back to the course's order: prefill, last-row; the code ran in the notebook's own."
    ]


def test_cells_without_metadata_are_recognized_by_what_they_define(submission):
    for each in submission.cells:
        each["metadata"] = {}
        del each["id"]
    rebuilt = submission.rebuilt()
    assert runs(rebuilt) == SOLVED
    assert kinds(rebuilt) == ["no-metadata", "recognized"]
    assert [c["id"] for c in rebuilt.notebook["cells"]] == [c["id"] for c in SOURCE["cells"]]


def test_a_cell_without_metadata_is_recognized_by_its_id(submission):
    submission["prefill"]["metadata"] = {}
    assert runs(submission.rebuilt()) == SOLVED


def test_own_cells_may_redefine_a_solution_as_they_do_in_the_notebook(submission):
    better = PREFILL + "  # better"
    submission.put("prefill", better)
    assert list(runs(submission.rebuilt()).values())[1:3] == [PREFILL, better]


def test_notes_written_into_the_courses_text_are_kept_below_it(submission):
    submission["prose-1"]["source"] += "\n\nMine."
    cells = submission.rebuilt().notebook["cells"]
    assert [c["source"] for c in cells[:2]] == ["# Prefill and decode", plain_markdown("# Prefill and decode\n\nMine.")]


def test_new_ids_never_collide_with_the_courses(submission):
    source = copy.deepcopy(SOURCE)
    source["cells"][0]["id"] = "extra-1"
    submission.put("prefill", "x = 1")
    rebuilt = rebuild(source, document_of(submission.notebook, "work.ipynb"))
    ids = [c["id"] for c in rebuilt.notebook["cells"]]
    assert len(set(ids)) == len(ids)


# What students do to cells that are not theirs


def test_a_helper_in_a_cell_of_the_courses_text_runs(submission):
    submission["prose-1"].update(cell_type="code", source="def helper(): return 1")
    rebuilt = submission.rebuilt()
    assert next(iter(runs(rebuilt).values())) == "def helper(): return 1"
    assert shown(rebuilt)["prose-1"] == "# Prefill and decode"


def test_a_setup_that_was_moved_below_a_solution_runs_before_it_and_where_it_stands(submission):
    submission.cells.append(submission.cells.pop(submission.at("imports")))
    sources = [c.source for c in submission.rebuilt().runs]
    assert sources == ["import numpy as np", PREFILL, DECODE, "import numpy as np"]


@pytest.mark.parametrize("question", ["Why?", "Why?\n\n", "Why?\n\nYOUR ANSWER HERE"])
def test_an_answer_split_off_its_question_is_the_answer(submission, question):
    submission["why"]["source"] = question
    submission.put("why", "Because.", kind="markdown", **nbgrader("why", grade=True, solution=True))
    rebuilt = submission.rebuilt()
    assert shown(rebuilt)["why"] == "Why?\n\n" + rendered_markdown("Because.")
    assert kinds(rebuilt) == []


def test_an_answer_in_two_cells_is_joined_and_reported(submission):
    submission["why"]["source"] = "Why?\n\nBecause."
    submission.put("why", "And so.", kind="markdown", **nbgrader("why", grade=True, solution=True))
    rebuilt = submission.rebuilt()
    assert shown(rebuilt)["why"] == "Why?\n\n" + rendered_markdown("Because.\n\nAnd so.")
    assert rebuilt.notes[0].sentence == "The question why has 2 cells with an answer; they were put together."


def test_code_beside_a_check_in_a_cell_of_ones_own_runs(submission):
    source = 'def helper(): return 1\nautograder.check("last-row")'
    submission.put("prefill", source)
    assert source in runs(submission.rebuilt()).values()


def test_an_unknown_check_is_not_run_and_is_reported(submission):
    submission.put("why", "answer = 42", **nbgrader("older-check", grade=True, locked=True))
    rebuilt = submission.rebuilt()
    assert (runs(rebuilt), kinds(rebuilt)) == (SOLVED, ["unknown-check"])
    assert "answer = 42" in shown(rebuilt)["extra-1"]


def test_code_is_shown_without_control_characters():
    """It runs as it was written."""
    submission = Submission()
    odd = "\n    # \x1b[2J\u202e\x00" + "e" + "\u0301" * 300
    submission["prefill"]["source"] = PREFILL + odd
    submission.put("prefill", f"x = 1{odd}")
    submission.put("prefill", f"words{odd}", kind="markdown")
    result = rebuild(SOURCE, document_of(submission.notebook, "notebook"))
    for shown in result.notebook["cells"]:
        assert shown["source"].replace("\n", "").isprintable() and "\u0301" * 4 not in shown["source"]
    assert sum("\ufffd[2J\ufffd" in shown["source"] for shown in result.notebook["cells"]) == 3
    assert {run.label for run in result.runs if "\x1b[2J\u202e" in run.source} == {"prefill", "cell 5"}
