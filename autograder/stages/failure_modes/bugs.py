"""The bugs that only the checks of failure-modes meet."""

from __future__ import annotations

from autograder.judge.bugs import define

COUNTS_EQUAL_PLACES = define(
    "counts-equal-places",
    "counts equal places after the first difference too",
    "Equal places after the first difference were counted too: stop at the first difference.",
)
COMPARES_WITH_IS = define(
    "compares-with-is",
    "ids compared with `is`",
    "Every id above 256 counts as different, as with `is`: that asks whether two are one object. Compare with ==.",
)
LOG_REORDERED = define(
    "log-reordered",
    "the log in another order",
    "The rows are right, and stand in another order: row i of the log is about entry i, so do not sort it.",
    look="the order of the rows",
)
LOOKUP_TAKES_WHOLE_PROMPT = define(
    "lookup-takes-whole-prompt",
    "an entry may cover the whole prompt",
    "An entry that covers the whole prompt was let through: it leaves no token to compute, and so no logits. A hit has "
    "to pass the gate, which is n < len(prompt).",
    look="the gate",
)
LOOKUP_NOT_LONGEST = define(
    "lookup-not-longest",
    "an entry that matches, not the longest",
    "The first, last or shortest of the entries that match was returned: take the longest of them.",
    look="the choice among the hits",
)
LOOKUP_NEAR_MISS = define(
    "lookup-near-miss",
    "an entry that does not match counts",
    "An entry was returned although not all of its ids begin the prompt: an entry is used whole or not at all. Look at "
    "what decides about a hit.",
    look="what decides about a hit",
)
LOOKUP_RANKS_FIRST = define(
    "lookup-ranks-first",
    "only the longest entry is tried",
    "It looks as if the longest entry were chosen first and only that one tried: when it does not match, or covers the "
    "whole prompt, a shorter one may still be right.",
    look="the order of matching and choosing",
)
THINK_DROPPED = define(
    "think-dropped",
    "think block missing in history",
    "The empty think block is there when the model answers, and gone when the answer has become history.",
    look="the think block",
)
THINK_ONLY_LATEST = define(
    "think-only-latest",
    "think block kept for the latest answer only",
    "The think block stays with the newest answer only: every message of the assistant keeps it, however old it is.",
    look="the think block",
)
THINK_NOT_ASKED = define(
    "think-not-asked",
    "generation prompt without the think block",
    "The generation prompt has lost its think block. That makes the prompts agree, but the model is asked something "
    "else: keep the block, in the history as well.",
    look="the generation prompt",
)
CONTENT_STRIPPED = define(
    "content-stripped",
    "whitespace at the ends of contents removed",
    "Spaces and newlines at the ends of a content are missing: leave it as it is.",
    look="the contents",
)
HISTORY_ADDS_AN_END = define(
    "history-adds-an-end",
    "a newline follows each content",
    "A newline follows each content in the history: it was not there while the answer was generated.",
    look="the ends of messages",
)
CHANGES_EARLY = define(
    "changes-early",
    "time or notes stand too early",
    "What stands after them is computed anew whenever they change: put them after all messages.",
    look="where the time and the notes stand",
)
PROMPT_READS_CLOCK = define(
    "prompt-reads-the-clock",
    "two equal calls give two prompts",
    "Equal arguments gave two prompts: take the time from `now`, not from the clock, and nothing at random.",
    look="where the time comes from",
)

KEYS_AS_THEY_COME = define(
    "keys-as-they-come",
    "JSON keys in the order in which they come",
    "Two keys that change places change the prompt: write the keys in sorted order, at every depth.",
    look="how the tools become a string",
)
KEY_IGNORES = define(
    "key-ignores-an-argument",
    "an argument is not in the key",
    "The key does not depend on it, so an entry of other ids, another model or another tenant would be taken for this "
    "one.",
    look="what goes into the key",
)
KEY_RUNS_TOGETHER = define(
    "key-runs-together",
    "fields run together",
    'The fields are joined without a reliable separator: what ends one field can begin the next, so "ab" with '
    '"c" equals "a" with "bc". Quote the fields, as json.dumps of a list does.',
    look="how the fields are joined",
)
KEY_SALTED = define(
    "key-salted",
    "the key differs between processes",
    "Nothing is found again after a restart. hash() of a string and the order of a set differ between Python "
    "processes; so do random numbers, the time and the process's number. Use hashlib, on the arguments alone.",
    look="how the key is computed",
)
