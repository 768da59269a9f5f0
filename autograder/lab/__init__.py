"""The cache lab of the first notebook: an interactive view of what the KV cache and a shared prefix save.

    lab.decode_lab(weights, tokenizer)     # lab 1: prefill once, then decode
    lab.request_lab(weights, tokenizer)    # lab 2: the next request
    lab.ranking_in_chat(weights, tokenizer, lookup, explain_miss)    # stage 5's ranking failure in a chat model

The cost model (toolkit/costs.py) has pure functions; the drawings (toolkit/cost_drawings.py) turn numbers into text;
the measured passes (passes.py) are separate from both; widgets.py only connects them to sliders and buttons. The lab
measures with the judge's model, so it is not part of the toolkit, which graded code can import.
"""

from autograder.lab.chat_server import ranking_in_chat
from autograder.lab.widgets import decode_lab, request_lab

__all__ = ["decode_lab", "ranking_in_chat", "request_lab"]
