"""The bugs that only the checks of failure-modes meet."""

from __future__ import annotations

from autograder.judge.bugs import define

COUNTS_EQUAL_PLACES = define(
    "counts-equal-places",
    "counts equal places after the first difference too",
    "It looks as if equal places behind the first difference were counted too: stop at the first difference.",
)
COUNTS_LAST_INDEX = define(
    "counts-last-index",
    "the index of the last shared id, not a count",
    "It looks like the index of the last shared id: the number of shared ids is one more.",
)
COMPARES_WITH_IS = define(
    "compares-with-is",
    "ids compared with `is`",
    "It looks as if ids were compared with `is`, which asks whether two numbers are one object in memory: compare with "
    "==.",
)
SAME_LENGTH_IF_NO_DIFFERENCE = define(
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
COMMON_IDS_AS_A_SET = define(
    "common-ids-as-a-set",
    "ids in common, wherever they stand",
    "It looks as if the ids that stand anywhere in both lists were counted: only those at the beginning count.",
)
GIVES_THE_IDS = define(
    "gives-the-ids", "returns the shared ids, not their number", "The shared ids were returned: return their number."
)
LOOKUP_TAKES_WHOLE_PROMPT = define(
    "lookup-takes-whole-prompt",
    "n <= len(prompt): an entry may cover the whole prompt",
    "It looks as if n <= len(prompt) were allowed: an entry that covers the whole prompt leaves no token to compute, "
    "and so no logits. The condition is n < len(prompt).",
)
LOOKUP_LEAVES_TWO = define(
    "lookup-leaves-two",
    "at least two tokens are left",
    "It looks as if two tokens had to be left: an entry one id shorter than the prompt is good.",
)
LOOKUP_FIRST_HIT = define(
    "lookup-first-hit",
    "the first entry that matches, not the longest",
    "It looks as if the first entry that matches were returned: go on, and keep the longest.",
)
LOOKUP_LAST_HIT = define(
    "lookup-last-hit",
    "the last entry that matches, not the longest",
    "It looks as if the last entry that matches were returned: of those that match, take the longest.",
)
LOOKUP_SHORTEST = define(
    "lookup-shortest",
    "the shortest entry that matches",
    "It looks as if the shortest entry that matches were returned.",
)
LOOKUP_NEAR_MISS = define(
    "lookup-near-miss",
    "the entry that shares most, matching or not",
    "It looks as if the entry that shares the most ids were returned, although not all of its ids match: an entry is "
    "used whole or not at all.",
)
LOOKUP_RANKS_FIRST = define(
    "lookup-ranks-first",
    "only the longest entry is tried",
    "It looks as if the longest entry were chosen first and only that one compared: when it does not match, a shorter "
    "one still may.",
)
LOOKUP_LONGEST_COVERS = define(
    "lookup-gives-up-on-whole",
    "gives up when the longest match covers the prompt",
    "It looks as if the longest match were taken first, and given up because it covers the whole prompt: pass over it, "
    "and a shorter one is found.",
)
LOOKUP_LONGER_THAN_PROMPT = define(
    "lookup-longer-than-prompt",
    "an entry longer than the prompt matches",
    "It looks as if an entry that is longer than the prompt could match: comparing pair by pair ends with the shorter "
    "list. All ids of the entry must be there.",
)
LOOKUP_NOT_AN_ENTRY = define(
    "lookup-not-an-entry",
    "does not return the entry itself",
    "Return the entry itself, the object out of `entries` (or None), not its ids, index or length.",
)
LOOKUP_FAILS_ON_NO_HIT = define(
    "lookup-fails-on-no-hit",
    "raises when nothing matches",
    "It looks as if nothing were there to choose from: max of an empty list raises. Return None when there is no hit.",
)
LOG_HITS_ONLY = define(
    "log-hits-only",
    "only some of the entries are in the log",
    "Some entries have no row: what was refused, and why, is what the log is for.",
)
LOG_HIT_WITHOUT_GATE = define(
    "log-hit-without-gate",
    "a hit in spite of the gate",
    "It looks as if hit were the key condition alone: a hit has to pass the gate too.",
)
LOG_GATE_BY_SHARED = define(
    "gate-by-shared-ids",
    "gate compares the shared ids",
    "It looks as if gate compared the number of shared ids with the prompt: it says whether the entry is shorter.",
)
LOG_KEY_IS_ANY = define(
    "log-key-is-any",
    "key says that something is shared",
    "It looks as if key were True as soon as anything is shared: it says that all ids of the entry match.",
)
MISS_OF_LIVE = define(
    "miss-of-live",
    "counts of the live ids",
    "The number after `of` is that of the live ids: it is the number of stored ids, the length of the entry.",
)
MISS_SIDES_SWAPPED = define("miss-sides-swapped", "stored and live exchanged", "The two sides look exchanged.")
MISS_LAST_SHARED = define(
    "miss-last-shared",
    "names the last shared id",
    "It looks as if the last shared id were named: the next one is at index `common`.",
)
MISS_NO_END = define(
    "miss-no-end",
    "raises, or leaves a gap, where a side has ended",
    "Where a side has no next id, the line says `end`.",
)
MISS_PRINTED = define(
    "miss-printed", "prints the line, returns None", "It looks as if the line were printed: return it."
)
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
CONTEXT_LINES = define(
    "context-lines",
    "time and notes not each on a line",
    "The time and the notes are there, and not each on a line of its own, the time first and the notes in their order.",
)
TOOLS_LEFT_OUT = define(
    "tools-left-out",
    "tools are not in the prompt",
    "The tools belong into the prompt, whole: every key and every value.",
)
NONE_IN_PROMPT = define(
    "none-in-prompt",
    "an absent time is written as None",
    "Without a time, the prompt says None: leave the line out.",
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
KEY_SAME_FOR_ALL = define("key-same-for-all", "one key for everything", "Every argument gave the same key.")
KEY_IDS_ALONE = define(
    "key-ids-alone", "only the ids are in the key", "The key depends on the ids alone: all other arguments count too."
)
KEY_IGNORES_ID_ORDER = define(
    "key-ignores-id-order",
    "ids in another order give the same key",
    "Ids in another order, or with the same sum, give the same key: a key depends on each id and its place.",
)
KEY_SOME_IDS = define(
    "key-some-ids",
    "only some of the ids are in the key",
    "The key depends on some of the ids only: all of them count.",
)
KEY_IDS_WRAP = define(
    "key-ids-wrap",
    "ids kept in too few bits",
    "Ids that differ by a power of two give the same key: they look as if they were kept in too few bits.",
)
KEY_TOO_SHORT = define(
    "key-too-short",
    "keys collide",
    "The key has too few bits, so that different ids meet under one key by chance: keep the whole digest.",
)
KEY_RUNS_TOGETHER = define(
    "key-runs-together",
    "fields run together",
    'The fields are put together without a border that holds: what ends one field can begin the next, so "ab" with '
    '"c" equals "a" with "bc". Quote the fields, as json.dumps of a list does.',
)
KEY_SEPARATOR_IN_FIELD = define(
    "key-separator-in-field",
    "a field that holds the separator is ambiguous",
    "A field that holds the separator itself is ambiguous. Quote the fields, as json.dumps of a list does.",
)
KEY_IDS_RUN_TOGETHER = define(
    "key-ids-run-together",
    "ids run together",
    "The ids were put together without a separator, so [1, 23] and [12, 3] are one.",
)
KEY_SALTED = define(
    "key-salted",
    "hash() differs between processes",
    "It looks as if hash() were used: for text it is another number in every Python process, so nothing is found again "
    "after a restart. Use hashlib.",
)
KEY_FIELDS_EXCHANGED = define(
    "key-fields-exchanged",
    "fields are not told apart",
    "Two fields that exchange their values give the same key: each field has its own place.",
)
KEY_NEVER_FOUND = define(
    "key-never-found",
    "equal arguments, different keys",
    "Equal arguments gave different keys, so an entry would never be found again.",
)
KEY_NORMALIZED = define(
    "key-normalized",
    "texts are changed before they are compared",
    "Texts that differ only in case or in blanks gave the same key: take each text as it is.",
)
