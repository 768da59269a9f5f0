"""What the checks of the chat model share."""

from __future__ import annotations

CLOSE = {"atol": 1e-4, "rtol": 1e-3}  # one function in float32
START, END = "<|im_start|>", "<|im_end|>"
DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def chatml(messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
    """The right text of a conversation."""
    text = ""
    if messages[0]["role"] != "system":
        text = f"{START}system\n{DEFAULT_SYSTEM}{END}\n"
    for message in messages:
        text += START + message["role"] + "\n" + message["content"] + END + "\n"
    return text + (f"{START}assistant\n" if add_generation_prompt else "")
