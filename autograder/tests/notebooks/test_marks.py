"""The marks in a script's cell headers: their meaning, and which are refused."""

import pytest

from autograder.judge.framework import Check
from autograder.notebooks import marks
from autograder.notebooks.errors import BuildError
from autograder.notebooks.regions import released
from autograder.stages import find_stage

STAGE = find_stage("prefill-decode")
SOLVED = '# %% solution="decode-step"\ndef decode_step():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n'
CHECK = '# %% check="same-logits"\nautograder.check("same-logits")\n'


def no_such_check(check_id):
    raise ValueError(f"There is no check {check_id!r}.")


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads the text of a script for a stage with one check, same-logits, of 3 points."""
    monkeypatch.setattr(
        marks, "checks_and_steps_of", lambda name: [Check(name, "same-logits", 3, "Same logits", lambda s, c: None)]
    )

    monkeypatch.setattr("autograder.notebooks.marks.find_check", no_such_check)

    def read_text(text):
        (tmp_path / "prefill_decode.py").write_text(text, encoding="utf-8")
        return marks.read_stage(STAGE, tmp_path)

    return read_text


def test_each_mark_has_its_metadata(read):
    prose, setup, solution, check, written, chart = read(
        "# %% [markdown]\n# # Title\n"
        '# %% setup="imports"\nimport numpy as np\n'
        + SOLVED
        + CHECK
        + '# %% [markdown] written="why" points=2\n# Why?\n'
        "# ### BEGIN SOLUTION\n# Because.\n# ### END SOLUTION\n"
        '# %% tags=["chart"]\nplot()\n'
    )
    flags = {
        cell.name: {key: cell.metadata["nbgrader"][key] for key in ("grade", "solution", "locked")}
        for cell in (setup, solution, check, written)
    }
    assert flags == {
        "imports": {"grade": False, "solution": False, "locked": True},
        "decode-step": {"grade": False, "solution": True, "locked": False},
        "same-logits": {"grade": True, "solution": False, "locked": True},
        "why": {"grade": True, "solution": True, "locked": False},
    }
    assert [c.cell_type for c in (prose, setup, written, chart)] == ["markdown", "code", "markdown", "code"]
    assert (prose.metadata, chart.metadata) == ({}, {"tags": ["chart"]})


def test_points_come_from_the_check(read):
    assert read(SOLVED + CHECK)[1].metadata["nbgrader"]["points"] == 3


def test_students_get_a_stub_for_each_solution(read):
    assert released(read(SOLVED + CHECK)[0].source) == (
        "def decode_step():\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    )


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (SOLVED, "prefill_decode.py has no cell for the check same-logits."),
        (CHECK + CHECK, "prefill_decode.py has two cells marked 'same-logits'; every mark's value is used once."),
        (CHECK + '# %% check="other"\nautograder.check("other")\n', "the check 'other', which does not exist"),
        (CHECK.replace("autograder.check(", "print("), 'holds one line, autograder.check("same-logits").'),
        (CHECK + "# %%\nx = 1\n", "prefill_decode.py, cell 2 has no mark; a code cell is setup, solution or check"),
        (CHECK + '# %% solution="a"\nx = 1\n', "cell 2 (solution='a') has no ### BEGIN SOLUTION"),
        (CHECK + '# %% solution="a"\n### BEGIN SOLUTION\nx = 1\n', "in line 1 without an ### END SOLUTION"),
        (CHECK + '# %% solution="a"\n# BEGIN SOLUTION\n# END SOLUTION\n', "a marker in line 1 that is not exactly"),
        (CHECK + '# %% solution="a"\n### END SOLUTION\n', "has an unexpected ### END SOLUTION in line 1"),
        (CHECK + '# %% setup="a"\n### BEGIN SOLUTION\n### END SOLUTION\n', "so it needs the mark solution or written"),
        (CHECK + '# %% setup="a" solution="b"\nx = 1\n', "has two marks, setup and solution"),
        (CHECK + '# %% setup="two words"\nx = 1\n', "letters, digits, - and _"),
        (CHECK + '# %% setup="a" points=2\nx = 1\n', "has points in its header, which has no meaning there"),
        (CHECK + '# %% [markdown] setup="a"\n# x\n', "is a markdown cell, which cannot have this mark"),
        (
            CHECK + '# %% [markdown] written="why"\n# Why?\n# ### BEGIN SOLUTION\n# So.\n# ### END SOLUTION\n',
            "needs its points in the header",
        ),
    ],
)
def test_a_wrong_header_is_refused_with_its_cell(read, script, reason):
    with pytest.raises(BuildError) as refused:
        read(script)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_check_of_another_stage_is_named_with_its_stage(read, monkeypatch):
    elsewhere = Check("kv-cache", "cache-grows", 1, "The cache grows", lambda s, c: None)
    monkeypatch.setattr("autograder.notebooks.marks.find_check", lambda check_id: elsewhere)
    with pytest.raises(BuildError, match="the check 'cache-grows', which belongs to kv-cache"):
        read(CHECK + '# %% check="cache-grows"\nautograder.check("cache-grows")\n')


def test_a_missing_script_is_named(tmp_path):
    with pytest.raises(BuildError, match=r"prefill_decode\.py is missing"):
        marks.read_stage(STAGE, tmp_path)
