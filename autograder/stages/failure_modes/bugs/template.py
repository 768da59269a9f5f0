"""The bugs of render_chat."""

from __future__ import annotations

from autograder.judge.bugs import define

THINK_DROPPED = define(
    "think-dropped",
    "think block missing in history",
    "The empty think block is there when the model answers, and gone when the answer has become history.",
)
THINK_ONLY_LATEST = define(
    "think-only-latest",
    "think block kept for the latest answer only",
    "The think block stays with one answer and is dropped from another: every message of the assistant keeps it, "
    "however old it is.",
)
THINK_NOT_DOUBLED = define(
    "think-not-doubled",
    "no think block before an answer that begins with one",
    "The think block is missing before an answer that begins with the same text: that text is the answer's own, and "
    "the template's block stands before it all the same.",
)
THINK_NOT_ASKED = define(
    "think-not-asked",
    "generation prompt without the think block",
    "The generation prompt has lost its think block. That makes the prompts agree, but the model is asked something "
    "else: keep the block, in the history as well.",
)
GENERATION_PROMPT_ALWAYS = define(
    "generation-prompt-always",
    "generation prompt added when not asked for",
    "The generation prompt is there although add_generation_prompt is False.",
)
THINK_FOR_OTHERS = define(
    "think-for-others",
    "think block in messages that are not the assistant's",
    "Something stands before the content of a message that is not the assistant's: only the assistant's have the think "
    "block.",
)
CONTENT_STRIPPED = define(
    "content-stripped",
    "blanks at the ends of contents removed",
    "Blanks or newlines at the ends of a content are missing: leave it as it is.",
)
CARRIAGE_RETURNS_REMOVED = define(
    "carriage-returns-removed",
    "carriage returns in contents removed",
    "Carriage returns are missing from a content: leave it as it is, line ends included.",
)
MARKERS_REMOVED = define(
    "markers-removed",
    "markers in a content removed",
    "A content that looks like a marker of the template was changed: replacing text in contents changes what was said.",
)
EMPTY_MESSAGE_DROPPED = define(
    "empty-message-dropped",
    "empty messages left out",
    "A message with an empty content is missing: it has its START and role like any other.",
)
MESSAGES_ONE_BY_ONE = define(
    "messages-not-one-by-one",
    "messages merged, moved, left out or refused for their role",
    "It looks as if messages of one role were put together, or some were moved, left out or refused for their role: "
    "each is written by itself, as they come.",
)
CONTENT_NORMALIZED = define(
    "content-normalized",
    "letters and accents brought into one form",
    "Letters and their accents were brought into one form: the text looks the same, and its tokens are others.",
)
GENERATION_PROMPT_LEFT_OUT = define(
    "generation-prompt-left-out",
    "no generation prompt behind an answer",
    "The generation prompt is left out behind some messages: it is added wherever it is asked for.",
)
NO_MESSAGES_REFUSED = define(
    "no-messages-refused",
    "an empty list of messages is refused",
    "No messages are no mistake: they give an empty text, or the generation prompt alone.",
)
THINK_AFTER_ANSWER = define(
    "think-after-answer",
    "think block behind the answer",
    "In the history the think block stands behind the answer: it was in front of it when the model answered.",
)
CONTENT_AFTER_END = define(
    "history-adds-an-end",
    "something follows the answer in history only",
    "What comes behind the answer in the history was not there while it was generated.",
)
