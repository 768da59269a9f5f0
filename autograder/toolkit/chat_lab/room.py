"""The chat as a widget: type a message, watch the answer come, and read what was reused."""

from __future__ import annotations

import html
import time
import warnings
from typing import Any

from autograder.toolkit.play.shown import Shown

N_NEW = 200
REFRESH_SECONDS = 0.05
# The conversation scrolls and shows its end, so that the line to type in stays where it is
_SCROLLED = "max-height:22em;overflow-y:auto;display:flex;flex-direction:column-reverse;line-height:1.4"


class ChatRoom(Shown):
    """A conversation with `Chat(weights, tokenizer)`; a second one without reuse only measures the cold time."""

    def __init__(self, chat_class: Any, weights: Any, tokenizer: Any, n_new: int = N_NEW) -> None:
        import ipywidgets as w

        self.chat = chat_class(weights, tokenizer)
        self._cold = chat_class(weights, tokenizer, reuse=False)
        self._tokenizer, self._n_new = tokenizer, n_new
        self._told: list[tuple[str, str, str]] = []  # question, answer, what was reused
        self.text = w.Text(placeholder="Type a message", layout={"width": "70%"})
        self.send = w.Button(description="Send", button_style="primary", tooltip="Send the message")
        self.reuse = w.Checkbox(True, description="Reuse the cache", indent=False)
        self.output = w.HTML()
        self.send.on_click(self._send)
        with warnings.catch_warnings():  # what is advised in its place also sends when the field is left
            warnings.simplefilter("ignore", DeprecationWarning)
            self.text.on_submit(self._send)
        self.box = w.VBox([self.output, w.HBox([self.text, self.send]), self.reuse])

    def say(self, text: str, reuse: bool = True) -> None:
        """Send a message, and show the answer while it comes."""
        before, ids, shown = list(self.chat.messages), [], 0.0

        def each(token_id: int) -> None:
            nonlocal shown
            ids.append(token_id)
            if time.monotonic() - shown > REFRESH_SECONDS:
                shown = time.monotonic()
                self._show((text, self._tokenizer.decode(ids), "..."))

        self.chat.reuse = reuse
        self._show((text, "", "..."))
        try:
            ids = self.chat.send(text, self._n_new, each)
        except ValueError as error:
            self._told.append((text, "", f"The message was refused: {error}."))
        else:
            answer, row = self._tokenizer.decode(ids), self.chat.log[-1]
            told = f"reused {row['reused']:,} of {row['prompt']:,} tokens, first token after {row['seconds']:.2f} s"
            self._show((text, answer, told))
            self._cold.messages = before
            self._cold.send(text, 1)
            self._told.append((text, answer, f"{told} ({self._cold.log[-1]['seconds']:.2f} s cold)"))
        self._show()

    def _send(self, _: Any = None) -> None:
        text = self.text.value.strip()
        if not text or self.send.disabled:
            return
        self.text.value, self.send.disabled = "", True
        try:
            self.say(text, self.reuse.value)
        finally:
            self.send.disabled = False

    def _show(self, now: tuple[str, str, str] | None = None) -> None:
        told = self._html([*self._told, now] if now else self._told)
        self.output.value = f"<div style='{_SCROLLED}'><div>{told}</div></div>"

    def _html(self, told: list[tuple[str, str, str]]) -> str:
        return "".join(
            f"<p><b>You:</b> {html.escape(question)}</p><p style='white-space:pre-wrap'>{html.escape(answer)}</p>"
            f"<p style='color:#595959'><small>{html.escape(log)}</small></p>"
            for question, answer, log in told
        )

    def still(self) -> tuple[dict[str, Any], dict[str, Any]]:
        lines = [line for question, answer, log in self._told for line in (f"You: {question}", answer, log)]
        text = "\n".join(lines) or "The chat is shown where the notebook runs."
        return {"text/html": self._html(self._told) or f"<p>{text}</p>", "text/plain": text}, {}
