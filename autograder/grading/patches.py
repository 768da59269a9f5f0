"""What of nbgrader's is replaced, because neither a subclass nor a hook reaches it; everything else is extended.

Its command makes an Autograde converter by itself, so a subclass is never asked. As of nbgrader 0.9.6:

| nbgrader's | why | breaks when that changes (tests/grading/) |
|---|---|---|
| `BaseConverter.init_notebooks` | it stops where no folder holds a notebook | `test_one_bad_submission.py::test_no_old_score_survives_when_nobody_hands_in_a_notebook_any_more` |
| `BaseConverter.convert_notebooks` | it grades one after the other, and asks the gradebook hundreds of times for each | `test_class_run.py::test_both_commands_store_the_same_scores` |
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable

from nbgrader.converters import Autograde


def grade_with(converter: Autograde, run: Callable[[], None]) -> None:
    """Have the converter call `run` in place of its own loop over the submissions."""
    converter.convert_notebooks = run


def find_submissions_with(find: Callable[[Autograde], bool]) -> None:
    """Have every converter look for submissions by `find`, and itself where that gives False.

    The class's method, as a converter calls it before it makes its exporter.
    """
    find_notebooks = Autograde.init_notebooks

    def init_notebooks(converter: Autograde) -> None:
        if not find(converter):
            find_notebooks(converter)

    Autograde.init_notebooks = init_notebooks
