"""The bugs that only the checks of save-and-reuse meet."""

from __future__ import annotations

from autograder.judge.bugs import define

NOTHING_RETURNED = define(
    "nothing-returned", "nothing returned", "The function returned None: it looks as if a return were missing."
)
NOT_A_CACHE = define(
    "not-a-cache",
    "something else than the cache returned",
    "Return the ModelCache that prefill filled, and it alone; the logits that prefill returns are not kept.",
)
LAST_PREFIX_ROW_MISSING = define(
    "last-prefix-row-missing",
    "last prefix token not saved",
    "It looks as if the last token of the prefix were not in the cache: all len(prefix_ids) tokens belong there.",
)
GENERATED_ROW_SAVED = define(
    "generated-row-saved",
    "next token saved as well",
    "The last row is that of the token that the model would generate next, which is not part of the prefix.",
)
PREFIX_LEN_IGNORED = define(
    "prefix-len-ignored",
    "prefix_len ignored",
    "It looks as if the positions were taken from the length of the cache: take them from prefix_len, or raise a "
    "ValueError when the two differ.",
)
POSITION_STUCK = define(
    "position-stuck",
    "every suffix token at position prefix_len",
    "It looks as if every token of the suffix stood at position prefix_len: token i stands at prefix_len + i.",
)
STOPS_ONE_EARLY = define(
    "stops-one-early",
    "logits of the last suffix token but one",
    "These are the logits after the last token of the suffix but one.",
)
ONLY_LAST_TOKEN = define(
    "only-last-suffix-token",
    "suffix tokens do not see each other",
    "It looks as if the last token of the suffix had seen the prefix only, and not the suffix before it: use one clone "
    "for the whole suffix.",
)
SAVED_CACHE_GROWS = define(
    "saved-cache-grows",
    "saved cache mutated",
    "The suffix was appended to the saved cache itself: work on saved.clone(). A shallow copy is not enough, as it has "
    "the same layers inside.",
)
CLONE_INCOMPLETE = define(
    "clone-incomplete",
    "only some layers cloned",
    "Some layers grew and others did not: the copy is deep for a part of the layers only. Clone them all.",
)
SAVED_ROWS_OVERWRITTEN = define(
    "saved-rows-overwritten",
    "rows of the saved cache overwritten",
    "The saved cache kept its length, but its numbers changed: something writes into its arrays.",
)
LEFT_BY_ERROR = define(
    "left-by-error",
    "suffix left in the saved cache by an error",
    "The suffix is in the saved cache when something raises on the way: taking it off again at the end is not enough. "
    "Work on saved.clone() instead.",
)
CLONES_SHARE_MEMORY = define(
    "clones-share-memory",
    "clones share their arrays",
    "The clones have their own lengths and write into the same arrays: a clone needs keys and values of its own.",
)
RECOMPUTED = define(
    "recomputed",
    "recomputes instead of reusing",
    "The prefix was run through the model again: its keys and values are in the cache, and its tokens are not needed "
    "any more.",
)
EMPTY_SUFFIX = define(
    "empty-suffix",
    "empty suffix not refused",
    "With an empty suffix there is no token to decode, and the logits after the prefix are not in the cache: look for "
    "it first, and raise a ValueError.",
)
NEGATIVE_PREFIX_LEN = define(
    "negative-prefix-len",
    "negative prefix_len not refused",
    "A negative prefix_len silently counts from the end of wpe: raise a ValueError.",
)
OUTSIDE_VOCABULARY = define(
    "outside-vocabulary",
    "ids outside the vocabulary not refused",
    "Only 0 to n_vocab - 1 are token ids; a negative one silently counts from the end of wte.",
)
PAST_THE_CONTEXT = define(
    "past-the-context",
    "context limit not refused",
    "Prefix and suffix together are longer than n_ctx, and no token may be dropped or moved silently: raise a "
    "ValueError.",
)
SUFFIX_ADDED_TO_PATH = define(
    "suffix-added-to-path",
    "file written under another name",
    "An ending was added to the name (np.savez does that): write to exactly the path that was given, for example "
    "through open(path, 'wb').",
)
VIEW_WRITTEN = define(
    "view-written",
    "a view written as it is",
    "The rows are those that lie one after the other in a larger buffer, of which keys and values are a view: make an "
    "array of the view first, with np.ascontiguousarray.",
)
OTHER_MODEL_ACCEPTED = define(
    "other-model-accepted",
    "another model's cache accepted",
    "Write model_fingerprint(weights) into the file, and refuse a file whose fingerprint is any other one.",
)
CHANGED_MODEL_ACCEPTED = define(
    "changed-model-accepted",
    "cache of a model with one change accepted",
    "The fingerprint must cover the config and the bytes of every weight, as model_fingerprint(weights) does, and a "
    "file with any other one must be refused.",
)
OTHER_LENGTHS_ACCEPTED = define(
    "other-lengths-accepted",
    "ids and rows that differ in number accepted",
    "Compare the number of rows with the number of ids, in the keys and the values of every layer.",
)
NOT_FINITE_ACCEPTED = define(
    "not-finite-accepted",
    "values that are not finite accepted",
    "Look for NaN and infinity with np.isfinite, in keys and values of every layer.",
)
LIBRARY_ERROR = define(
    "library-error",
    "another error instead of a ValueError",
    "The caller of read_prefix_cache expects a ValueError, whatever is raised inside: catch that, or look first, and "
    "raise a ValueError that says what is wrong with the file.",
)
