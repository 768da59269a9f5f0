"""The glossary as a notebook shows it."""

import re

import pytest

import autograder
from autograder.notebooks.marks import read_stage
from autograder.places import SOLUTIONS
from autograder.stages import STAGES


def test_it_holds_all_terms_of_the_syllabus():
    assert {"tail", "tenant", "n_embd, n_head, n_layer, n_vocab", "wte"} <= set(autograder.glossary())


def test_a_word_chooses_the_terms_that_hold_it():
    assert set(autograder.glossary("Token")) >= {"token, token id", "tokenizer", "time to first token"}
    assert "tail" not in autograder.glossary("Token")
    assert str(autograder.glossary("attention unit")).startswith("attention unit: How the cache lab counts")


def test_it_is_a_table_where_markdown_is_shown():
    assert autograder.glossary("tail")._repr_markdown_().splitlines()[2].startswith("| **tail** | The rows")


def test_an_unknown_word_is_reported():
    with pytest.raises(ValueError, match="no term of the glossary contains 'bread'"):
        autograder.glossary("bread")


def test_it_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert autograder.glossary("tail")


def test_in_the_worker_it_says_nothing(monkeypatch):
    monkeypatch.setattr(autograder, "_in_worker", True)
    monkeypatch.delitem(vars(autograder), "glossary", raising=False)
    assert autograder.glossary("tail") is None


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_every_notebook_says_how_to_read_the_glossary(stage):
    text = "\n".join(cell.source for cell in read_stage(stage, SOLUTIONS))
    assert "`autograder.glossary()`" in text
    words = set(re.findall(r'autograder\.glossary\("(.+?)"\)', text))
    assert words and all(autograder.glossary(word) for word in words)
