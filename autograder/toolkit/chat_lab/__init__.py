"""What the chat-model notebook draws, measures and shows. The student's functions are passed in."""

from autograder.toolkit.chat.config import SMOLLM2
from autograder.toolkit.chat_lab.drawings import activations, bytes_of_a_cache, grouped_heads, norms, turned_pairs
from autograder.toolkit.chat_lab.real import eight_turns, real_model
from autograder.toolkit.chat_lab.room import ChatRoom
from autograder.toolkit.chat_lab.server import Server, beside_the_source

__all__ = [
    "SMOLLM2",
    "ChatRoom",
    "Server",
    "activations",
    "beside_the_source",
    "bytes_of_a_cache",
    "eight_turns",
    "grouped_heads",
    "norms",
    "real_model",
    "turned_pairs",
]
