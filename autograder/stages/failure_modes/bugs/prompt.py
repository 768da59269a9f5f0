"""The bugs of build_prompt."""

from __future__ import annotations

from autograder.judge.bugs import define

CHANGES_BEFORE_SYSTEM = define(
    "changes-first",
    "what changes stands before the system text",
    "Something that changes, such as the time, stands before the system text, so nothing after it is ever reused: put "
    "it behind the messages.",
)
CHANGES_BEFORE_LAST = define(
    "changes-before-last-message",
    "what changes stands before the newest message",
    "Something that changes stands before the newest message: it comes behind all messages.",
)
TIME_BEFORE_MESSAGES = define(
    "time-before-messages",
    "the time stands before the messages",
    "The time stands before the messages, so the conversation is computed anew at each call: put it behind them.",
)
NOTES_BEFORE_MESSAGES = define(
    "notes-before-messages",
    "notes stand before the messages",
    "The notes stand before the messages, so the conversation is computed anew when they change: put them behind.",
)
TIME_LEFT_OUT = define(
    "time-left-out", "the time is not in the prompt", "Reuse is easy without the time: the model must be told it."
)
NOTES_LEFT_OUT = define("notes-left-out", "a note is not in the prompt", "Every note belongs in the prompt.")
PROMPT_READS_CLOCK = define(
    "prompt-reads-the-clock",
    "two equal calls give two prompts",
    "Equal arguments gave two prompts: take the time from `now`, not from the clock, and nothing at random.",
)
EMPTY_CONTEXT = define(
    "empty-context",
    "a context message without time and notes",
    "Without a time and notes there is nothing to tell: leave the context message out.",
)
CONTEXT_ROLE = define(
    "context-role",
    "time and notes have another role than context",
    "The time and notes stand in a message with another role: nobody has said them, so their role is context.",
)
CONTEXT_IN_MESSAGE = define(
    "context-in-last-message",
    "time and notes appended to the newest message",
    "The time and notes are a part of the newest message, which will be there without them in the next turn: put them "
    "into a message of their own.",
)
CONTEXT_SPLIT = define(
    "context-split",
    "time and notes in several messages",
    "The time and notes are divided among several messages: one message holds them all.",
)
PARTS_NOT_RENDERED = define(
    "parts-not-rendered",
    "the parts are not written as messages",
    "The parts are put together without START and roles: write them with render_chat, as the messages they are.",
)
SYSTEM_ROLE = define(
    "system-role",
    "the first message has another role than system",
    "The first message has another role: the system text and the tools are a message of the system.",
)
MESSAGES_REWRITTEN = define(
    "messages-rewritten",
    "the messages are not handed over as they are",
    "The messages were changed on their way: hand them to render_chat as they are, roles and contents.",
)
MESSAGE_STRIPPED = define(
    "message-stripped",
    "blanks at the ends of messages removed",
    "Blanks or newlines at the ends of a text are missing: take the system text and the messages as they are.",
)
MESSAGES_WINDOW = define(
    "messages-window",
    "only the newest messages are in the prompt",
    "Only the newest messages are there: when the oldest one is left out, all that stands behind it moves, and nothing "
    "is reused from there on.",
)
CONTEXT_LINES = define(
    "context-lines",
    "time and notes not each on a line",
    "The time and the notes are there, and not each on a line of its own, the time first and the notes in their order.",
)
TOOLS_LEFT_OUT = define(
    "tools-left-out",
    "tools are not in the prompt",
    "The tools belong in the prompt, whole: every key and every value.",
)
TOOLS_BEHIND_MESSAGES = define(
    "tools-behind-messages",
    "the tools are not in the system message",
    "The tools stand behind the first message: they stay the same, and belong in it, after the system text.",
)
TOOLS_BEFORE_SYSTEM = define(
    "tools-before-system",
    "the tools stand before the system text",
    "The tools stand before the system text: they come after it, on a new line.",
)
TOOLS_NOT_JSON = define(
    "tools-not-json",
    "the tools are not JSON",
    "The tools look like Python's text for them, such as str gives, with other quotes and True for true: write them "
    "with json.dumps.",
)
TOOLS_CHANGED = define(
    "tools-changed",
    "a text in the tools was changed",
    "A value in the tools is another one in the prompt: change nothing in the text that json.dumps gives. For JSON "
    'without blanks there is its option separators=(",", ":"), which leaves those inside the texts.',
)
NO_TOOLS_NO_LIST = define(
    "no-tools-no-list",
    "no JSON list where there are no tools",
    "Without tools there is a JSON list all the same, an empty one.",
)
TOOLS_SORTED = define(
    "tools-sorted",
    "the tools are put in another order",
    "The tools are in another order than in the list: only the keys of a dict may be sorted.",
)
NONE_IN_PROMPT = define(
    "none-in-prompt",
    "an absent time is written as None",
    "Without a time, the prompt says None: leave the line out.",
)
GENERATION_PROMPT_TWICE = define(
    "generation-prompt-twice",
    "the generation prompt stands there twice",
    "The generation prompt stands there twice: render_chat adds it, and nothing comes behind it.",
)
NO_GENERATION_PROMPT = define(
    "no-generation-prompt",
    "prompt does not end with the generation prompt",
    "The prompt does not end with the generation prompt, so the model is not asked to answer.",
)
KEYS_AS_THEY_COME = define(
    "keys-as-they-come",
    "JSON keys in the order in which they come",
    "Two keys that change places change the prompt: write the keys in sorted order.",
)
KEYS_SORTED_ON_TOP = define(
    "keys-sorted-on-top",
    "only the outer keys are sorted",
    "The outer keys are sorted, those of the dicts inside are not: sort at every depth.",
)
LIST_SORTED = define(
    "list-sorted",
    "lists are sorted too",
    "The order of a list was changed: it means something, unlike the order of keys.",
)
