"""The bugs that only the checks of save-and-reuse meet."""

from __future__ import annotations

from autograder.judge.bugs import define

LAST_PREFIX_ROW_MISSING = define(
    "last-prefix-row-missing",
    "last prefix token not saved",
    "It looks as if the last token of the prefix were not in the cache: all len(prefix_ids) tokens belong there.",
    look="which tokens are saved",
)
GENERATED_ROW_SAVED = define(
    "generated-row-saved",
    "next token saved as well",
    "The last row is that of the token that the model would generate next, which is not part of the prefix.",
    look="which tokens are saved",
)
PREFIX_LEN_IGNORED = define(
    "prefix-len-ignored",
    "prefix_len ignored",
    "It looks as if the positions were taken from the length of the cache: take them from prefix_len, or raise a "
    "ValueError when the two differ.",
    look="the positions of the new tokens",
)
POSITION_STUCK = define(
    "position-stuck",
    "every suffix token at position prefix_len",
    "It looks as if every token of the suffix stood at position prefix_len: token i stands at prefix_len + i.",
    look="the positions of the new tokens",
)
ONLY_LAST_TOKEN = define(
    "only-last-suffix-token",
    "suffix tokens do not see each other",
    "It looks as if the last token of the suffix had seen the prefix only, and not the suffix before it: use one clone "
    "for the whole suffix.",
    look="the cache of each suffix token",
)
SAVED_CACHE_GROWS = define(
    "saved-cache-grows",
    "saved cache mutated",
    "The suffix was appended to the saved cache itself: work on saved.clone(), which copies every layer. A shallow "
    "copy is not enough, as it has the same layers inside, nor is taking the suffix off again at the end.",
    look="the cache that the suffix is appended to",
)
CLONES_SHARE_MEMORY = define(
    "clones-share-memory",
    "clones share their arrays",
    "The clones have their own lengths and write into the same arrays: a clone needs keys and values of its own.",
    look="what is copied",
)
RECOMPUTED = define(
    "recomputed",
    "recomputes instead of reusing",
    "The prefix was run through the model again: its keys and values are in the cache, and its tokens are not needed "
    "any more.",
    look="what goes through the model",
)
EMPTY_SUFFIX = define(
    "empty-suffix",
    "empty suffix not refused",
    "With an empty suffix there is no token to decode, and the logits after the prefix are not in the cache: look for "
    "it first, and raise a ValueError.",
    look="what is refused",
)
PAST_THE_CONTEXT = define(
    "past-the-context",
    "context limit not refused",
    "Prefix and suffix together are longer than n_ctx, and no token may be dropped or moved silently: raise a "
    "ValueError.",
    look="what is refused",
)
VIEW_WRITTEN = define(
    "view-written",
    "views written as memory holds them",
    "It looks as if views were written, such as the filled part of a buffer: the file has what memory holds from there "
    "on. np.ascontiguousarray makes copies that can be written, as as_tensors does.",
    look="the arrays that are written",
)
OTHER_MODEL_ACCEPTED = define(
    "other-model-accepted",
    "another model's cache accepted",
    "The fingerprint must cover the config and the bytes of every weight, as model_fingerprint(weights) does, and a "
    "file with any other one must be refused.",
    look="the fingerprint",
)
TWO_SOFTMAXES = define(
    "two-softmaxes",
    "a softmax for the prefix and another for the tail",
    "It looks as if prefix and tail had a softmax each: all scores of a query go into one.",
    look="the softmax",
)
