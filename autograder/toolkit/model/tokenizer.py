"""The byte-level BPE tokenizer of a model's folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder.toolkit.model.config import PUBLISHED, ModelError
from autograder.toolkit.model.load import SHAPES, is_fetched, load_model, model_folder, resolve_name
from autograder.toolkit.model.weights import Weights

END_OF_TEXT = "<|endoftext|>"


class Tokenizer:
    """Text to token ids and back."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _inner(self) -> Any:  # a tokenizers.Tokenizer
        from tokenizers import Tokenizer as Inner

        try:
            return Inner.from_file(str(self._path))
        except Exception:  # the library raises plain Exception, with a parser's message
            raise ModelError(f"{self._path}: is not a tokenizer that the tokenizers library can read") from None

    @cached_property
    def n_vocab(self) -> int:
        return self._inner.get_vocab_size()

    @cached_property
    def eot_id(self) -> int | None:
        return self._inner.token_to_id(END_OF_TEXT)

    def encode(self, text: str) -> list[int]:
        return self._inner.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids; bytes that are no whole UTF-8 character become U+FFFD."""
        return self._inner.decode(self._checked(ids), skip_special_tokens=False)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        r"""Each token on its own, printable: spaces as they are, a newline as \n, half a character as \xc3."""
        return [self._printable(i) for i in self._checked(ids)]

    def _printable(self, token_id: int) -> str:
        token = self._inner.id_to_token(token_id)
        if token == END_OF_TEXT:
            return token
        text = bytes(BYTE_CHARACTERS[character] for character in token).decode("utf-8", errors="backslashreplace")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    def _checked(self, ids: Iterable[int]) -> list[int]:
        checked = [int(i) for i in ids]
        for i in checked:
            if not 0 <= i < self.n_vocab:
                raise ValueError(f"token id {i} is outside the vocabulary (0 to {self.n_vocab - 1})")
        return checked

    def __repr__(self) -> str:
        return f"Tokenizer(n_vocab={self.n_vocab})"


def tokenizer_fingerprint(tokenizer: Tokenizer) -> str:
    """A SHA-256 of everything that decides which ids a text gets: tokenizer.json, as hexadecimal digits."""
    return hashlib.sha256(tokenizer._path.read_bytes()).hexdigest()


def load_tokenizer(name_or_path: str | Path | None = None) -> Tokenizer:
    """The tokenizer of the same models as load_model takes; that of "gpt2" also serves "gpt2-shape"."""
    name = resolve_name(name_or_path)
    if name in SHAPES:
        name = next(published for published in PUBLISHED if f"{published}-shape" == name)
    path = model_folder(name) / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"{path} is missing")
    tokenizer = Tokenizer(path)
    if name != "tiny":  # the course's own is read when it is used: most notebooks are graded without
        _ = tokenizer.n_vocab
    return tokenizer


def load_both(name_or_path: str | Path | None = None) -> tuple[Weights, Tokenizer]:
    """A model's weights and its tokenizer, to read and write text with.

    If a published model was not fetched, a sentence says so and the small one is loaded instead.
    """
    name = resolve_name(name_or_path)
    if name in PUBLISHED and not is_fetched(name):
        print(f"{name} is not on this machine, so this is the small model; `autograder fetch {name}` gets it.")
        name = "tiny"
    return load_model(name), load_tokenizer(name)


def _byte_of_character() -> dict[str, int]:
    """GPT-2's printable character for each byte: the byte itself if it is printable, otherwise one from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


BYTE_CHARACTERS = _byte_of_character()
