"""The checks of stage 7: a chat model of the Llama architecture, and a conversation that reuses its cache."""

# isort: off
from autograder.stages.chat_model import functions  # noqa: F401
from autograder.stages.chat_model import model  # noqa: F401
from autograder.stages.chat_model import chatml  # noqa: F401
from autograder.stages.chat_model import chat  # noqa: F401
