"""`autograder test` on a student's folder: what it prints, its exit status, and how fast it is."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from autograder.cli.sample_class import write_submission
from autograder.cli.watch import watch_file
from autograder.judge.framework import checks_of
from autograder.places import ROOT
from autograder.stages import find_stage
from autograder.stages.samples import Wrong, setup_cells, submissions_of
from autograder.tests.command import COMMAND, autograder
from autograder.toolkit.model.load import model_folder

STAGE = find_stage("save-and-reuse")
CHECKS = checks_of(STAGE.name)
MOST = sum(check.points for check in CHECKS)
ALL_PASS = f"save-and-reuse: {len(CHECKS)} / {len(CHECKS)} checks, {MOST} / {MOST} points"


RELEASE = ROOT / "course" / "release"  # as students get it


def test_a_stage_may_be_named_by_its_number(student):
    result = autograder("test", "--stage", "4", cwd=student({}).parent)
    assert "save-and-reuse, " not in result.stderr
    assert result.stdout.strip().splitlines()[-1] == "missing: every check"


def test_in_the_folder_above_all_stages_are_checked_and_the_complete_ones_counted(tmp_path):
    """As in lab/, which has a folder for each stage."""
    kv_cache = find_stage("kv-cache")
    sources = submissions_of("kv-cache")[0].sources(kv_cache)
    write_submission(RELEASE / kv_cache.assignment, tmp_path / "lab" / kv_cache.assignment, kv_cache, sources)
    shutil.copytree(RELEASE / STAGE.assignment, tmp_path / "lab" / STAGE.assignment)
    result = autograder("test", cwd=tmp_path / "lab")
    assert result.returncode == 1
    lines = result.stdout.strip().splitlines()
    assert lines[-1] == "1 / 2 stages complete"
    assert "complete" in lines and any(line.startswith("missing: ") for line in lines)


@pytest.fixture
def student(tmp_path):
    """Makes a student's folder with these solution cells, and returns the notebook in it."""

    def make(sources, name="work"):
        return write_submission(RELEASE / STAGE.assignment, tmp_path / name, STAGE, sources)

    return make


def solution():
    return submissions_of(STAGE.name)[0].sources(STAGE)


def edit(notebook, old, new):
    """Replace a text in a notebook's solution cells, and save it."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    changed = 0
    for cell in content["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and old in source:
            cell["source"] = source.replace(old, new)
            changed += 1
    assert changed
    notebook.write_text(json.dumps(content), encoding="utf-8")


def test_a_solved_notebook_is_found_and_passes(student):
    notebook = student(solution())
    result = autograder("test", cwd=notebook.parent)
    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith(f"{notebook.name}, stage save-and-reuse\n")
    assert result.stdout.strip().splitlines()[-2:] == [ALL_PASS, "complete"]
    titles = re.findall(r"^passed +[\d.]+ / [\d.]+  (.+)$", result.stdout, re.MULTILINE)
    assert titles == [check.title for check in CHECKS]


def test_the_checks_say_what_is_wrong_in_a_notebook(student):
    submission = next(s for s in submissions_of(STAGE.name) if isinstance(s, Wrong) and s.bug == "positions-reset")
    result = autograder("test", "--stage", "save-and-reuse", cwd=student(submission.sources(STAGE)).parent)
    assert result.returncode == 1
    lost = [check for check in CHECKS if check.id in submission.loses]
    assert re.findall(r"^FAILED +0 / [\d.]+  (.+)$", result.stdout, re.MULTILINE) == [check.title for check in lost]
    left = MOST - sum(check.points for check in lost)
    assert f"{len(CHECKS) - len(lost)} / {len(CHECKS)} checks, {left} / {MOST} points" in result.stdout
    assert result.stdout.splitlines()[-1] == "missing: " + "; ".join(check.title for check in lost)


def test_a_hint_is_what_was_seen_then_where_to_look_then_the_cause(student):
    submission = next(s for s in submissions_of(STAGE.name) if isinstance(s, Wrong) and s.bug == "positions-reset")
    notebook = student(submission.sources(STAGE))
    seen, look, cause = (
        "generate_with_prefix is off by up to",
        "Look at the positions of the new tokens: in generate_with_prefix and save_prefix_cache",
        "were given positions 0, 1, 2, ... again",
    )
    for level, wanted in (("1", [1, 0, 0]), ("2", [1, 1, 0]), ("3", [1, 1, 1])):
        told = autograder("test", "--hint", level, cwd=notebook.parent).stdout
        first = told.partition("\n\n")[2].partition("\n\n")[0]
        assert [first.count(part) for part in (seen, look, cause)] == wanted
        assert told.count(look) <= 1 and told.count(cause) <= 1  # the others say which check they follow from
        assert 'This follows from the check "Reusing the prefix gives the same logits as recomputing".' in told
        assert ("--hint 2 also says where to look" in told) == (level != "3")
    assert autograder("test", "--hint", "4", cwd=notebook.parent).returncode == 2


def test_a_failed_step_is_shown_and_the_checks_that_build_on_it_say_to_begin_there(student):
    checked = solution()["check-tensors"]
    notebook = student({**solution(), "check-tensors": checked.replace("np.isfinite(array).all()", "True")})
    result = autograder("test", "--hint", "2", cwd=notebook.parent)
    assert f"save-and-reuse: {len(CHECKS) - 1} / {len(CHECKS)} checks" in result.stdout
    step = "check_tensors accepts whole caches and names what is wrong"
    assert re.search(rf"^FAILED +step  {step}$", result.stdout, re.MULTILINE)
    assert f'Begin with the check "{step}"' in result.stdout
    assert step not in result.stdout.splitlines()[-1]  # it has no points


def test_a_notebook_as_released_lists_the_functions_to_write(student):
    result = autograder("test", cwd=student({}).parent)
    assert result.returncode == 1
    assert result.stdout.count("to do") == len(CHECKS)
    assert "FAILED" not in result.stdout
    assert f"save-and-reuse: 0 / {len(CHECKS)} checks, 0 / {MOST} points" in result.stdout


def test_a_cell_that_cannot_be_run_is_named_with_its_line(student):
    notebook = student({**solution(), "read-prefix-cache": "def read_prefix_cache(path, weights)\n    return None"})
    result = autograder("test", cwd=notebook.parent)
    assert result.returncode == 1
    line = "def read_prefix_cache(path, weights)"
    where = f"line 1 of the cell with read_prefix_cache: {line}"
    cause = f"he cell with read_prefix_cache raised SyntaxError: expected ':' ({where})."
    first, *others = result.stdout.split(cause)
    assert first.endswith("Before the checks, t") and "/" not in first.partition("stage save-and-reuse")[2]
    assert len(others) == 2 and "read_prefix_cache is not defined. T" in others[0]  # and in the first check alone
    assert re.search(r"^passed +\d / \d  The suffix continues at position prefix_len$", result.stdout, re.MULTILINE)


def test_a_renamed_notebook_is_known_by_the_checks_it_calls(student, tmp_path):
    notebook = student({})
    moved = tmp_path / "elsewhere"
    shutil.copytree(notebook.parent, moved)
    (moved / notebook.name).rename(moved / "my work.ipynb")
    assert autograder("test", cwd=moved).stdout.startswith("my work.ipynb, stage save-and-reuse")


def test_notes_of_grading_are_shown_before_the_checks(student, tmp_path):
    notebook = student({})
    content = json.loads(notebook.read_text(encoding="utf-8"))
    stub = next(c for c in content["cells"] if "def save_prefix_cache" in "".join(c["source"]))
    content["cells"].insert(0, {**stub, "id": "copy"})
    stub["source"] = solution()[stub["metadata"]["nbgrader"]["grade_id"]]
    notebook.write_text(json.dumps(content), encoding="utf-8")
    place = content["cells"].index(stub) + 1
    other = {"cell_type": "code", "source": "class LayerCache:\n    pass", "metadata": {}}
    (notebook.parent / "save_and_reuse (1).ipynb").write_text(json.dumps({"cells": [other]}), encoding="utf-8")

    name = stub["metadata"]["nbgrader"]["grade_id"]
    assert first_lines(notebook) == [
        "save_and_reuse.ipynb is the one that is graded; there is also save_and_reuse (1).ipynb.",
        f"The cell {name} was there 2 times; the first solved copy counts (cell {place}), left out: cell 1.",
    ]
    assert first_lines(notebook.parent / "save_and_reuse (1).ipynb") == [
        "The notebook is named save_and_reuse (1).ipynb; hand it in as save_and_reuse.ipynb.",
        "None of the stage's functions is in the notebook; it looks like that of 02-kv-cache.",
    ]


def test_a_notebook_in_the_folder_of_another_stage_is_reported(student):
    notebook = student({}, name="02-kv-cache")
    assert first_lines(notebook) == [
        "This is the notebook of 04-save-and-reuse, in the folder of 02-kv-cache; do not hand it in there."
    ]


def first_lines(notebook):
    """What is said before the first check."""
    result = autograder("test", str(notebook), cwd=notebook.parent)
    head = re.split(r"(?m)^(?:passed|FAILED|to do) ", result.stdout)[0]
    return [line for line in head.splitlines()[1:] if line]


def test_a_notebook_with_merge_marks_is_refused_as_in_grading(student):
    notebook = student({})
    notebook.write_text("<<<<<<< HEAD\n" + notebook.read_text(encoding="utf-8"), encoding="utf-8")
    result = autograder("test", cwd=notebook.parent)
    assert result.returncode == 2 and "it holds the markers of a merge conflict" in result.stderr


def test_a_python_file_is_checked_as_well(student):
    folder = student({}).parent
    code = "\n\n\n".join([cell.source for cell in setup_cells(STAGE.name)] + list(solution().values()))
    (folder / "mine.py").write_text(code, encoding="utf-8")
    result = autograder("test", "mine.py", "--stage", "save-and-reuse", cwd=folder)
    assert result.stdout.strip().splitlines()[-2:] == [ALL_PASS, "complete"]


def test_an_edited_given_file_is_reported(student):
    """Grading takes the course's own, so points that need the edited one are points only here."""
    notebook = student({})
    own = notebook.parent / "given.py"
    assert "given.py is not the course's" not in autograder("test", cwd=notebook.parent).stdout
    own.write_bytes(own.read_bytes().replace(b"\n", b"\r\n"))  # as git may check it out
    assert "given.py is not the course's" not in autograder("test", cwd=notebook.parent).stdout
    own.write_text(own.read_text(encoding="utf-8") + "\nx = 1\n", encoding="utf-8")
    said = autograder("test", cwd=notebook.parent).stdout
    assert "given.py is not the course's, which is used for grading: copy the course's here again." in said


def test_the_folder_of_all_stages_is_enough_when_the_stage_is_named(student, tmp_path):
    notebook = student(solution())
    lab = tmp_path / "lab"
    shutil.copytree(notebook.parent, lab / STAGE.assignment)
    assert autograder("test", "--stage", STAGE.name, cwd=lab).stdout.strip().splitlines()[-2:] == [ALL_PASS, "complete"]
    assert autograder("test", cwd=lab).returncode == 2


def test_a_damaged_given_file_is_named(student):
    notebook = student(solution())
    (notebook.parent / "given.py").write_text("def prefill(:\n", encoding="utf-8")
    result = autograder("test", cwd=notebook.parent)
    assert result.returncode == 2
    assert "given.py cannot be imported" in result.stderr


def test_a_model_that_cannot_be_read_is_named(student, tmp_path):
    copy = shutil.copytree(model_folder("tiny"), tmp_path / "model")
    (copy / "model.safetensors").write_bytes(b"")
    result = autograder("test", "--model", str(copy), cwd=student(solution()).parent)
    assert result.returncode == 2
    assert "model.safetensors" in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="makes links")
@pytest.mark.parametrize(
    ("given", "sandboxed"),
    [
        *((given, True) for given in ("by name", "by relative path", "in the environment", "as links")),
        ("by relative path", False),
    ],
)
def test_a_model_may_be_given_by_name_or_by_any_path(student, tmp_path, monkeypatch, given, sandboxed):
    """The worker has another home and working directory."""
    if not sandboxed:
        monkeypatch.setenv("AUTOGRADER_SANDBOX", "limits")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    notebook = student(solution())
    if given in ("by name", "in the environment"):
        shutil.copytree(model_folder("tiny"), tmp_path / "cache" / "autograder" / "models" / "gpt2")
    elif given == "as links":
        (notebook.parent / "mymodel").mkdir()
        blobs = shutil.copytree(model_folder("tiny"), tmp_path / "blobs")
        for path in blobs.iterdir():
            (notebook.parent / "mymodel" / path.name).symlink_to(path)
    else:
        shutil.copytree(model_folder("tiny"), notebook.parent / "mymodel")
    if given == "in the environment":
        result = autograder("test", cwd=notebook.parent, AUTOGRADER_MODEL="gpt2")
    else:
        result = autograder("test", "--model", "gpt2" if given == "by name" else "mymodel", cwd=notebook.parent)
    assert result.returncode == 0, result.stdout


def test_a_given_py_that_cannot_be_read_is_reported(student):
    notebook = student(solution())
    (notebook.parent / "given.py").unlink()
    (notebook.parent / "given.py").mkdir()
    result = autograder("test", cwd=notebook.parent)
    assert result.returncode == 2
    assert re.search(r"given\.py cannot be read \(.*\); copy the assignment's there again\.$", result.stderr.strip())


# Watching


class Watching:
    """A running `autograder test --watch`, whose output is read as it comes."""

    def __init__(self, notebook):
        self.process = subprocess.Popen(
            [*COMMAND, "test", str(notebook), "--watch"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.lines = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))

    def wait_for(self, text, count=1, seconds=30):
        """The time at which the count-th line with this text arrived."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = [moment for moment, line in list(self.lines) if text in line]
            if len(found) >= count:
                return found[count - 1]
            assert self.process.poll() is None, self.text
            time.sleep(0.01)
        raise AssertionError(f"no {text!r} within {seconds} s in:\n{self.text}")

    @property
    def text(self):
        return "\n".join(line for _, line in self.lines)


@pytest.fixture
def watch():
    """Starts watching a notebook; it is ended with the test."""
    with contextlib.ExitStack() as stack:

        def start(notebook):
            watching = Watching(notebook)
            stack.callback(watching.process.wait)
            stack.callback(watching.process.kill)
            watching.wait_for("to be saved")
            return watching

        yield start


def test_every_save_is_checked(student, watch):
    notebook = student(solution())
    watching = watch(notebook)
    assert ALL_PASS in watching.text
    for number in (2, 3):
        edit(notebook, "def save_prefix_cache", "# changed\ndef save_prefix_cache")
        watching.wait_for("stage save-and-reuse", count=number)
        watching.wait_for("to be saved", count=number)


def test_a_save_while_the_checks_run_is_checked_after_them(student):
    notebook, act_saw = student({}), []

    def act():
        act_saw.append(notebook.read_text(encoding="utf-8"))
        if len(act_saw) < 3:
            notebook.write_text(f"saved {len(act_saw)}", encoding="utf-8")  # nobody watches the folder at this moment
            return 1
        raise KeyboardInterrupt

    watch_file(notebook, act)
    assert act_saw[1:] == ["saved 1", "saved 2"]


def test_an_error_that_saving_again_cannot_fix_is_reported_once(student, watch):
    notebook = student({})
    (notebook.parent / "given.py").write_text("def broken(:", encoding="utf-8")
    watching = watch(notebook)
    assert watching.text.count("stage save-and-reuse") == 1, watching.text


def test_a_file_that_replaces_the_old_one_is_noticed(student, watch):
    notebook = student(solution())
    watching = watch(notebook)
    other = student({}, name="other")
    os.replace(other, notebook)
    watching.wait_for(f"0 / {len(CHECKS)} checks")


def test_a_half_written_file_is_waited_for(student, watch):
    notebook = student({})
    whole = student(solution(), name="other").read_text(encoding="utf-8")
    watching = watch(notebook)
    notebook.write_text(whole[: len(whole) // 2], encoding="utf-8")
    time.sleep(0.4)
    notebook.write_text(whole, encoding="utf-8")
    watching.wait_for(ALL_PASS)
    assert "not valid JSON" not in watching.text


def test_a_file_that_stays_broken_is_reported_and_watching_continues(student, watch):
    notebook = student(solution())
    whole = notebook.read_text(encoding="utf-8")
    watching = watch(notebook)
    notebook.write_text("{", encoding="utf-8")
    watching.wait_for("not valid JSON")
    notebook.unlink()
    time.sleep(0.3)
    notebook.write_text(whole, encoding="utf-8")
    watching.wait_for(ALL_PASS, count=2)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_ends_watching_quietly(student, watch):
    # As in a terminal: these tests may have been started in the background, where a shell has interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        watching = watch(student(solution()))
    finally:
        signal.signal(signal.SIGINT, before)
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(timeout=10) == 0
    assert "Traceback" not in watching.text
