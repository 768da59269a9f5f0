"""The bugs in the files bugs.txt, and the code that names them."""

import re
from pathlib import Path

import pytest

import autograder
from autograder.judge.bugs import BUGS, read
from autograder.judge.framework import checks_of
from autograder.stages import GRADED_STAGES
from autograder.stages.forward_pass import bugs as tables

PACKAGE = Path(autograder.__file__).parent


def constant(key):
    return key.upper().replace("-", "_")


def test_the_code_names_every_bug_and_no_other():
    for stage in GRADED_STAGES:
        checks_of(stage.name)  # reads the stage's bugs
    files = [*PACKAGE.glob("judge/*.py"), *PACKAGE.glob("stages/*/*.py")]
    code = "\n".join(
        path.read_text("utf-8") for path in files if path.name != "samples.py" and "test_" not in path.name
    )
    assert set(re.findall(r"\b(?:own|bugs)\.([A-Z]\w+)", code)) <= {*map(constant, BUGS), *vars(tables)}
    written = [key for key in BUGS if not key.startswith("positions-shifted-")]
    assert [key for key in written if not re.search(rf'\b{constant(key)}\b|"{key}"', code)] == []


def test_a_bug_has_a_line_for_what_tables_and_assistants_need_and_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("autograder.judge.bugs.BUGS", {})
    (tmp_path / "bugs.txt").write_text("# Two\na-bug | a bug\n    It is\n    here.\nno-words | none | the place\n")
    found = read(str(tmp_path / "module.py"))
    assert [(n, b.key, b.label, b.sentence, b.look) for n, b in found.items()] == [
        ("A_BUG", "a-bug", "a bug", "It is here.", ""),
        ("NO_WORDS", "no-words", "none", "", "the place"),
    ]
    with pytest.raises(ValueError, match="'a-bug' is defined twice"):
        read(str(tmp_path / "module.py"))
