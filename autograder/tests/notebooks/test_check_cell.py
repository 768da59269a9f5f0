"""A check cell in the student's own kernel."""

import os
import tempfile

import pytest

import autograder
from autograder.notebooks.check_cell import CheckFailed
from autograder.stages.samples import solved_cells

SOLVED = {"gelu": solved_cells("forward-pass")["gelu"]}


def run_check_cell(sources):
    namespace = {"autograder": autograder}
    for source in ("import numpy as np", *sources.values(), 'autograder.check("gelu-tanh")'):
        exec(source, namespace)


def test_it_reports_a_pass_and_returns_to_the_folder(capsys):
    here = os.getcwd()
    run_check_cell(SOLVED)
    assert capsys.readouterr().out.startswith("Passed: ")
    assert os.getcwd() == here


def test_a_failure_is_shown_without_a_traceback():
    with pytest.raises(CheckFailed, match=r"^Not yet: ") as caught:
        run_check_cell({"gelu": "def gelu(x):\n    return x"})
    assert caught.value._render_traceback_() == str(caught.value).splitlines()


@pytest.mark.parametrize("line", ["input('go? ')", "breakpoint()"])
def test_a_check_waits_for_no_input_as_in_grading(monkeypatch, capsys, line):
    asked = []
    monkeypatch.setattr("builtins.input", lambda prompt="": asked.append(prompt))
    monkeypatch.setattr("sys.breakpointhook", lambda: asked.append("breakpoint"))
    sources = {"gelu": SOLVED["gelu"].replace("    return ", f"    {line}\n    return ", 1)}
    if line.startswith("input"):
        with pytest.raises(CheckFailed, match="gelu raised EOFError"):
            run_check_cell(sources)
    else:
        run_check_cell(sources)
        assert capsys.readouterr().out.startswith("Passed: ")
    assert asked == []
    exec(line)
    assert len(asked) == 1  # the notebook's own are back


def test_a_file_that_cannot_be_removed_does_not_fail_the_check(monkeypatch, capsys):
    """On Windows, a file that the student's code holds open cannot be removed."""
    real = tempfile.TemporaryDirectory._rmtree

    def in_use(name, ignore_errors=False, **options):
        real(name, ignore_errors=True, **options)
        if not ignore_errors:
            raise PermissionError(13, "used by another process", name)

    monkeypatch.setattr(tempfile.TemporaryDirectory, "_rmtree", staticmethod(in_use))
    run_check_cell(SOLVED)
    assert capsys.readouterr().out.startswith("Passed: ")
