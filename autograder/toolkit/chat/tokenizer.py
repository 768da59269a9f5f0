"""The tokenizer and the chat template of a chat model, both from the model's own files."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from autograder.toolkit.chat.load import chat_folder
from autograder.toolkit.model.config import ModelError
from autograder.toolkit.model.load import read_json
from autograder.toolkit.model.tokenizer import BYTE_CHARACTERS, Tokenizer

START, END = "<|im_start|>", "<|im_end|>"  # of a message in ChatML; each is one token


class ChatTokenizer(Tokenizer):
    """Text to token ids and back, and messages to text by the model's own template."""

    def __init__(self, inner: Any, template: str | None = None) -> None:
        self._inner = inner
        self._template_text = template
        if self.end_id is None:
            raise ModelError(f"the tokenizer has no token {END}, with which a message of this course's chat ends")

    @cached_property
    def end_id(self) -> int | None:
        """The id of the token with which a message ends."""
        return self._inner.token_to_id(END)

    @cached_property
    def _template(self) -> Any:
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        if self._template_text is None:
            raise ModelError("this tokenizer has no chat template")
        # A template is a program from outside. The two settings are those with which templates are written.
        return ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(self._template_text)

    def render(self, messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
        """The conversation as the model's own template has it."""
        return self._template.render(messages=messages, add_generation_prompt=add_generation_prompt)


def load_chat_tokenizer(name_or_path: str | Path = "smollm2") -> ChatTokenizer:
    """The tokenizer and the template of the same models as load_llama takes."""
    from tokenizers import Tokenizer as Inner

    folder = chat_folder(name_or_path)
    path = folder / "tokenizer.json"
    try:
        inner = Inner.from_file(str(path))
    except Exception:  # the library raises plain Exception, with a parser's message
        raise ModelError(f"{path}: is missing, or not a tokenizer that the tokenizers library can read") from None
    beside = folder / "chat_template.jinja"  # newer folders have the template in a file of its own
    if beside.is_file():
        return ChatTokenizer(inner, beside.read_text(encoding="utf-8"))
    return ChatTokenizer(inner, read_json(folder / "tokenizer_config.json").get("chat_template"))


def byte_tokenizer(turned: bool = False) -> ChatTokenizer:
    """A tokenizer for random models: one token for each byte, and the special tokens of ChatML.

    turned: whether the ids are counted down, so that each token has another one, and decode puts blanks between
    tokens: the text of a list is then not that of its tokens one by one.
    """
    from tokenizers import decoders

    vocabulary = ["<|endoftext|>", START, END, *BYTE_CHARACTERS]
    inner = bpe(vocabulary[:: -1 if turned else 1], [], vocabulary[:3])
    if turned:
        inner.decoder = decoders.WordPiece(cleanup=False)
    return ChatTokenizer(inner)


def bpe(vocabulary: list[str], merges: list[tuple[str, str]], special: list[str]) -> Any:
    """A byte-level BPE tokenizer (of the library tokenizers) in which digits and special tokens are one token each."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    inner = Tokenizer(models.BPE({token: i for i, token in enumerate(vocabulary)}, merges))
    digits, as_bytes = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.pre_tokenizer = pre_tokenizers.Sequence([digits, as_bytes])
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    return inner
