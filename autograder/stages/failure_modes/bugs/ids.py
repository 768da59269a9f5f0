"""The bugs of longest_common_prefix, the log, lookup and explain_miss."""

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
ZERO_IS_NO_ID = define(
    "zero-is-no-id",
    "id 0 is taken for the end of a list",
    "It looks as if id 0 were taken for no id, as `or` takes it, or for what fills the shorter list: it is an id like "
    "any other.",
)
DIFFERENCE_LOOKED_UP = define(
    "difference-looked-up",
    "the place of an id looked up with index()",
    "It looks as if the place of the difference were looked up with index(), which finds the first place where that id "
    "stands: count the places instead.",
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
LOOKUP_STOPS_AT_MISS = define(
    "lookup-stops-at-a-miss",
    "an entry that misses ends the search for longer ones",
    "It looks as if an entry that misses decided about longer ones, as when the search ends there: each is compared.",
)
LOOKUP_SOME_IDS = define(
    "lookup-some-ids",
    "only the first ids of an entry are compared",
    "It looks as if only the first ids of an entry were compared: all of them must match, however many there are.",
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
LOOKUP_COMPARES_ENTRIES = define(
    "lookup-compares-entries",
    "raises when two entries of one length match",
    "It looks as if two entries were compared with each other, as max of (length, entry) does when the lengths are "
    "equal: give max a key.",
)
LOG_HITS_ONLY = define(
    "log-hits-only",
    "only some of the entries are in the log",
    "Some entries have no row: what was refused, and why, is what the log is for.",
)
LOG_MORE_ROWS = define(
    "log-more-rows",
    "the log has rows that belong to no entry",
    "Some rows belong to no entry: the log has one for each entry, without a heading or a sum.",
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
MISS_ENDS_EARLY = define(
    "miss-ends-early",
    "says end where one id is left",
    "It looks as if the last id of a list were passed over: a side says `end` only where no id is left.",
)
MISS_EMPTY_LIST = define(
    "miss-empty-list",
    "raises for an empty list",
    "It looks as if a list without ids were not thought of: its length is 0, and it has neither a first id nor a last.",
)
MISS_PRINTED = define(
    "miss-printed", "prints the line, returns None", "It looks as if the line were printed: return it."
)
