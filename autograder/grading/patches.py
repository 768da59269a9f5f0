"""Replaces the parts of nbgrader that neither a subclass nor a hook reaches; everything else is extended.

nbgrader's command creates an Autograde converter itself, so it never uses a subclass. As of nbgrader 0.9.6:

| nbgrader's | why | the test that breaks when it changes (tests/grading/) |
|---|---|---|
| `BaseConverter.init_notebooks` | it stops if no folder holds a notebook | `test_one_bad_submission.py::test_no_old_score_survives_when_nobody_hands_in_a_notebook_any_more` |
| `BaseConverter.convert_notebooks` | it grades one at a time, with hundreds of queries to the gradebook for each | `test_class_run.py::test_both_commands_store_the_same_scores` |
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable

from nbgrader.converters import Autograde


def grade_with(converter: Autograde, run: Callable[[], None]) -> None:
    """Make the converter call `run` instead of its own loop over the submissions."""
    converter.convert_notebooks = run


def find_submissions_with(find: Callable[[Autograde], bool]) -> None:
    """Make every converter find submissions with `find`, or in its own way if that returns False.

    The method of the class is replaced, because a converter calls it before it makes its exporter.
    """
    find_notebooks = Autograde.init_notebooks

    def init_notebooks(converter: Autograde) -> None:
        if not find(converter):
            find_notebooks(converter)

    Autograde.init_notebooks = init_notebooks
