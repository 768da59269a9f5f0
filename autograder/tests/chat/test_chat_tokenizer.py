"""The tokenizer of a chat model, and the model's own template."""

import json

import pytest

from autograder.toolkit.chat.tokenizer import END, START, ChatTokenizer, bpe, byte_tokenizer, load_chat_tokenizer
from autograder.toolkit.model import ModelError

TEMPLATE = (
    "{% for m in messages %}\n{{ m.role }}: {{ m.content }}\n    {% endfor %}{% if add_generation_prompt %}?{% endif %}"
)
MESSAGES = [{"role": "user", "content": "Who?"}]


def test_each_byte_and_each_special_token_is_one_id():
    tokenizer = byte_tokenizer()
    text = f"{START}user\nnaïve 12{END}"
    ids = tokenizer.encode(text)
    assert len(ids) == 2 + len("user\nnaïve 12".encode())
    assert ids[-1] == tokenizer.end_id
    assert tokenizer.decode(ids) == text
    assert tokenizer.tokens(ids)[0] == START


def test_digits_are_single_tokens_also_where_a_merge_would_join_them():
    tokenizer = ChatTokenizer(bpe(["1", "2", "12", "a", "aa", END], [("1", "2"), ("a", "a")], [END]))
    assert tokenizer.encode("12aa") == [0, 1, 4]


@pytest.mark.parametrize("file", ["tokenizer_config.json", "chat_template.jinja"])
def test_the_template_comes_from_the_models_folder(tmp_path, file):
    byte_tokenizer()._inner.save(str(tmp_path / "tokenizer.json"))
    text = json.dumps({"chat_template": TEMPLATE}) if file.endswith("json") else TEMPLATE
    (tmp_path / file).write_text(text)
    tokenizer = load_chat_tokenizer(tmp_path)
    assert tokenizer.render(MESSAGES, add_generation_prompt=True) == "user: Who?\n?"


def test_a_template_cannot_reach_python():
    tokenizer = ChatTokenizer(byte_tokenizer()._inner, "{{ messages.__class__.__mro__ }}")
    with pytest.raises(Exception, match="unsafe"):
        tokenizer.render(MESSAGES)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(ModelError, match=r"tokenizer.json: is missing"):
        load_chat_tokenizer(tmp_path)
    with pytest.raises(ModelError, match="no chat template"):
        byte_tokenizer().render(MESSAGES)
    with pytest.raises(ModelError, match=r"no token <\|im_end\|>"):
        ChatTokenizer(bpe(["a"], [], []))
