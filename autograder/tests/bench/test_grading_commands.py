"""The benchmark of the commands that grade a class: its submissions, its comparison with stock nbgrader, its goals."""

import os
import subprocess
import sys

import pytest

from autograder.bench import grading_commands
from autograder.bench.grading_commands import Run, goals, looping_source, mixed_class, stock_seconds, times_stock
from autograder.stages import find_stage

STAGE = find_stage("save-and-reuse")


def test_a_class_has_every_kind_of_submission_and_a_small_one_has_most():
    kinds = [kind for kind, _, _ in mixed_class(STAGE, 200)]
    assert {k: kinds.count(k) for k in ("looping", "crashing", "unsolved")} == dict.fromkeys(
        ("looping", "crashing", "unsolved"), 2
    )
    assert kinds.count("right") > kinds.count("wrong") > 50
    assert {kind for kind, _, _ in mixed_class(STAGE, 40)} == {"right", "wrong", "looping"}


def test_the_looping_function_loops_and_the_others_are_unchanged():
    source = 'def first(x):\n    return x\n\n\ndef second(\n    x,\n):\n    """Text."""\n    return x\n'
    changed = looping_source(source, "second")
    assert changed == source.replace('    """Text', '    while True: pass\n    """Text')
    compile(changed, "cell", "exec")
    looping = next(sources for kind, sources, _ in mixed_class(STAGE, 200) if kind == "looping")
    assert sum("while True: pass" in source for source in looping.values()) == 1


def test_stock_nbgrader_is_compared_on_the_same_number_of_submissions():
    stock = (6.0, 2.0)
    assert stock_seconds(200, stock) == 406
    assert times_stock(Run("", 200, 40.6, 0.0, 0.0), stock) == pytest.approx(10)


def test_a_goal_says_by_how_much_it_is_missed():
    runs = [Run(what, 200, seconds, 1.0, 1.0) for what, seconds in (("a", 70.0), ("b", 100.0), ("c", 10.0), ("d", 1.0))]
    verdicts = [goal.verdict for goal in goals(runs, (6.0, 2.0))]
    assert verdicts == ["met", "met", "missed by 75%", "met"]


def test_memory_of_a_command_and_of_the_processes_it_starts(tmp_path):
    program = "import subprocess, sys, time; subprocess.run([sys.executable, '-c', {!r}])"
    child = "data = bytearray(80 * 2**20); import time; time.sleep(1)"
    run = grading_commands.run("", 1, [sys.executable, "-c", program.format(child)], tmp_path)
    assert run.own_mb < 60 < run.child_mb < 200


def test_the_output_of_a_command_that_fails_is_in_the_error(tmp_path):
    with pytest.raises(RuntimeError, match="broken"):
        grading_commands.run("", 1, [sys.executable, "-c", "raise ValueError('broken')"], tmp_path)


def test_the_command_refuses_an_empty_class():
    command = [sys.executable, "-m", "autograder.bench.grading_commands", "--n", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=os.getcwd())
    assert done.returncode == 2 and "at least 1" in done.stderr
