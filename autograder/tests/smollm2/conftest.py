"""The real chat model, for the tests of `make test-chat`, which need it fetched."""

import pytest

from autograder.toolkit.chat.load import load_llama
from autograder.toolkit.chat.tokenizer import load_chat_tokenizer


@pytest.fixture(scope="session")
def weights():
    return load_llama("smollm2")


@pytest.fixture(scope="session")
def tokenizer():
    return load_chat_tokenizer("smollm2")
