"""The bugs that only the checks of failure-modes meet."""

from __future__ import annotations

from autograder.judge.bugs import define

# longest_common_prefix

COUNTS_EQUAL_PLACES = define(
    "counts-equal-places",
    "counts equal places after the first difference too",
    "Equal places after the first difference were counted too: stop at the first difference.",
)
COUNTS_LAST_INDEX = define(
    "counts-last-index",
    "the index of the last shared id, not a count",
    "This is the index of the last shared id: the number of shared ids is one more.",
)
COMPARES_WITH_IS = define(
    "compares-with-is",
    "ids compared with `is`",
    "It looks as if ids were compared with `is`, which asks whether two numbers are one object in memory: compare with "
    "==.",
)
NO_DIFFERENCE_FOUND = define(
    "no-difference-found",
    "no result where one list begins the other",
    "It looks as if only a difference ended the count: where one list is the beginning of the other there is none, and "
    "the result is the length of the shorter one.",
)
RUNS_PAST_THE_END = define(
    "runs-past-the-end",
    "counts past the end of a list",
    "It looks as if the count ran past the end of the shorter list: stop where either list ends.",
)

# candidate_log and lookup

LOOKUP_TAKES_WHOLE_PROMPT = define(
    "lookup-takes-whole-prompt",
    "an entry may cover the whole prompt",
    "An entry that covers the whole prompt was let through: it leaves no token to compute, and so no logits. A hit has "
    "to pass the gate, which is n < len(prompt).",
)
LOG_HIT_WITHOUT_GATE = define(
    "log-hit-without-gate",
    "a hit in spite of the gate",
    "The hit is the key condition alone: a hit has to pass the gate too.",
)
LOOKUP_NOT_LONGEST = define(
    "lookup-not-longest",
    "an entry that matches, not the longest",
    "The first, last or shortest of the entries that match was returned: take the longest of them.",
)
LOOKUP_NEAR_MISS = define(
    "lookup-near-miss",
    "an entry that does not match counts",
    "An entry was returned although not all of its ids begin the prompt: an entry is used whole or not at all. Look at "
    "what decides about a hit.",
)
LOOKUP_RANKS_FIRST = define(
    "lookup-ranks-first",
    "only the longest entry is tried",
    "It looks as if the longest entry were chosen first and only that one tried: when it does not match, or covers the "
    "whole prompt, a shorter one may still be right.",
)
LOOKUP_FAILS_ON_NO_HIT = define(
    "lookup-fails-on-no-hit",
    "raises when nothing matches",
    "max and min of an empty list raise: return None when there is no hit.",
)

# explain_miss

MISS_OF_LIVE = define(
    "miss-of-live",
    "counts of the live ids",
    "The number after `of` is that of the live ids: it is the number of stored ids, the length of the entry.",
)
MISS_SIDES_SWAPPED = define("miss-sides-swapped", "stored and live exchanged", "The two sides are exchanged.")

# render_chat

THINK_DROPPED = define(
    "think-dropped",
    "think block missing in history",
    "The empty think block is there when the model answers, and gone when the answer has become history.",
)
THINK_ONLY_LATEST = define(
    "think-only-latest",
    "think block kept for the latest answer only",
    "The think block stays with the newest answer only: every message of the assistant keeps it, however old it is.",
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
CONTENT_STRIPPED = define(
    "content-stripped",
    "whitespace at the ends of contents removed",
    "Spaces and newlines at the ends of a content are missing: leave it as it is.",
)
HISTORY_ADDS_AN_END = define(
    "history-adds-an-end",
    "a newline follows each content",
    "A newline follows each content in the history: it was not there while the answer was generated.",
)

# build_prompt

CHANGES_BEFORE_SYSTEM = define(
    "changes-first",
    "what changes stands before the system text",
    "What changes stands before the system text, so nothing after it is ever reused: put it after the messages.",
)
CHANGES_BEFORE_MESSAGES = define(
    "changes-before-messages",
    "time or notes stand before the messages",
    "Time or notes stand before the messages, so the conversation is computed anew when they change: put them after "
    "the messages.",
)
CHANGES_BEFORE_LAST = define(
    "changes-before-last-message",
    "what changes stands before the newest message",
    "What changes stands before the newest message: it comes after all messages.",
)
PROMPT_READS_CLOCK = define(
    "prompt-reads-the-clock",
    "two equal calls give two prompts",
    "Equal arguments gave two prompts: take the time from `now`, not from the clock, and nothing at random.",
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

# cache_key

KEY_NO_IDS = define("key-ignores-ids", "the ids are not in the key", "The key does not depend on the ids.")
KEY_FIELDS = {
    "model": "another model's keys and values would be taken for its own",
    "tokenizer": "equal ids that stand for another text would match",
    "dtype": "the stored bytes would be read as other numbers",
    "layout": "the axes of the stored arrays would be taken for others",
    "positions": "keys made with other positions would be reused",
    "tenant": "one tenant's entry would serve another",
}
KEY_IGNORES = {
    field: define(
        f"key-ignores-{field}", f"{field} is not in the key", f"The key does not depend on the {field}, and so {why}."
    )
    for field, why in KEY_FIELDS.items()
}
KEY_NOT_A_STRING = define(
    "key-not-a-string",
    "the key is not a string",
    "The notebook encodes keys and puts them together: return a string, such as hexdigest() gives.",
)
KEY_RUNS_TOGETHER = define(
    "key-runs-together",
    "fields run together",
    'The fields are put together without a border that holds: what ends one field can begin the next, so "ab" with '
    '"c" equals "a" with "bc". Quote the fields, as json.dumps of a list does.',
)
KEY_SALTED = define(
    "key-salted",
    "the key differs between processes",
    "Nothing is found again after a restart. hash() of a string and the order of a set are others in every Python "
    "process; so are random numbers, the time and the process's number. Use hashlib, on the arguments alone.",
)
