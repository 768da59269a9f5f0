"""A real chat model: the Llama architecture's shape, weights and loader, and the model's own tokenizer."""

from autograder.toolkit.chat.config import SMOLLM2, LlamaConfig
from autograder.toolkit.chat.load import load_llama
from autograder.toolkit.chat.random_weights import random_llama
from autograder.toolkit.chat.tokenizer import byte_tokenizer, load_chat_tokenizer

__all__ = ["SMOLLM2", "LlamaConfig", "byte_tokenizer", "load_chat_tokenizer", "load_llama", "random_llama"]
