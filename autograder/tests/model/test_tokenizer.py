"""The tokenizer: any text round-trips, and its pieces are printable."""

from __future__ import annotations

import shutil

import pytest

from autograder.places import ROOT
from autograder.toolkit.model import ModelError, load_both, load_tokenizer
from autograder.toolkit.model import load as load_module
from autograder.toolkit.model.load import model_folder

TEXTS = [
    "",
    "First Citizen:\nBefore we proceed any further, hear me speak.\n",
    "  two  spaces\tand\r\nlines\n\n",
    "naïve café, 東京, 🙂, \x00\x7f",
    "don't I'll we've 1,024 ids!",
    "<|endoftext|>First<|endoftext|>",
]


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("tiny")


def test_the_vocabulary_is_the_models(tokenizer):
    assert tokenizer.n_vocab == 1024
    assert tokenizer.eot_id == 1023
    assert tokenizer.encode("<|endoftext|>") == [1023]
    assert repr(tokenizer) == "Tokenizer(n_vocab=1024)"


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_round_trips(tokenizer, text):
    ids = tokenizer.encode(text)
    assert all(type(i) is int and 0 <= i < 1024 for i in ids)
    assert tokenizer.decode(ids) == text


def test_the_whole_text_round_trips(tokenizer):
    path = ROOT / "data" / "tinyshakespeare.txt"
    text = path.read_text(encoding="utf-8")
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert len(ids) == pytest.approx(460_690, abs=10)


def test_pieces_are_printable_and_spell_the_text(tokenizer):
    pieces = tokenizer.tokens(tokenizer.encode("First Citizen:\nBefore we é"))
    assert "".join(pieces) == "First Citizen:\\nBefore we \\xc3\\xa9"
    assert tokenizer.tokens([1023]) == ["<|endoftext|>"]
    assert all(piece and piece.isprintable() for piece in tokenizer.tokens(range(1024)))


def test_half_a_character_decodes_to_a_replacement(tokenizer):
    first, _ = tokenizer.encode("é")
    assert tokenizer.decode([first]) == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("bad", [-1, 1024, 2**40])
def test_ids_outside_the_vocabulary(tokenizer, bad):
    for method in (tokenizer.decode, tokenizer.tokens):
        with pytest.raises(ValueError, match=rf"^token id {bad} is outside the vocabulary \(0 to 1023\)$"):
            method([0, bad])


def test_a_missing_and_a_damaged_file(tmp_path):
    with pytest.raises(ModelError, match=r"tokenizer.json is missing$"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"tokenizer.json: is not a tokenizer that") as caught:
        load_tokenizer(tmp_path)
    assert caught.value.__suppress_context__


def test_names_are_those_of_load_model(monkeypatch, tmp_path):
    with pytest.raises(ModelError, match="neither a folder nor the name of a model"):
        load_tokenizer("gpt3")
    shutil.copy(model_folder("tiny") / "tokenizer.json", tmp_path)
    monkeypatch.setenv("AUTOGRADER_MODEL", str(tmp_path))
    assert load_tokenizer().n_vocab == 1024


def test_a_published_shape_has_the_published_tokenizer(monkeypatch):
    from autograder.toolkit.model import tokenizer as module

    asked = []

    def remember(name):
        asked.append(name)
        return model_folder("tiny")

    monkeypatch.setattr(module, "model_folder", remember)
    load_tokenizer("gpt2-medium-shape")
    assert asked == ["gpt2-medium"]


# Both, to read text with


def test_a_model_that_was_not_fetched_is_reported_and_the_small_one_replaces_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(load_module, "fetched_folder", lambda name: tmp_path / name)
    weights, tokenizer = load_both("gpt2")
    assert (weights.config.n_layer, weights.config.n_vocab, tokenizer.n_vocab) == (12, 1024, 1024)
    assert capsys.readouterr().out == (
        "gpt2 is not on this machine, so this is the small model; `autograder fetch gpt2` gets it.\n"
    )


def test_without_a_name_the_small_model_is_loaded_silently(monkeypatch, capsys):
    monkeypatch.delenv("AUTOGRADER_MODEL", raising=False)
    weights, tokenizer = load_both()
    assert weights.config.n_vocab == tokenizer.n_vocab == 1024
    assert capsys.readouterr().out == ""
