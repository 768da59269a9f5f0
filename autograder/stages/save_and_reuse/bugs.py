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
ALL_LOGITS = define(
    "logits-of-all-new-tokens",
    "logits of every suffix token",
    "These are the logits after each token of the suffix: return the last row only.",
)
TOKEN_RETURNED = define(
    "token-returned", "next token returned", "This looks like the id of the next token: return the logits, [n_vocab]."
)
LAST_PREFIX_ROW_MISSING = define(
    "last-prefix-row-missing",
    "last prefix token not saved",
    "It looks as if the last token of the prefix were not in the cache: all len(prefix_ids) tokens belong there.",
)
FIRST_PREFIX_ROW_MISSING = define(
    "first-prefix-row-missing",
    "first prefix token not saved",
    "It looks as if the first token of the prefix were not in the cache: all len(prefix_ids) tokens belong there.",
)
GENERATED_ROW_SAVED = define(
    "generated-row-saved",
    "one token too many saved",
    "There is one row more than the prefix has tokens: the token that comes next is not part of the prefix.",
)
PREFIX_SAVED_TWICE = define(
    "prefix-saved-twice",
    "prefix fed twice",
    "There are twice as many rows as the prefix has tokens: it was fed to the model two times.",
)
CACHE_PADDED = define(
    "cache-padded",
    "cache padded to n_ctx",
    "Every layer has n_ctx rows: keys and values are only the rows that are filled, not the whole buffer.",
)
CACHE_EMPTY = define(
    "cache-empty",
    "nothing saved",
    "The cache that was returned is empty: return the one that prefill filled.",
)
SAVED_FROM_MEMORY = define(
    "saved-from-memory",
    "another model's saved cache given out again",
    "It looks as if saved caches were remembered by their ids alone: with another model the same ids have other keys "
    "and values.",
)
TOKENS_FIRST = define(
    "tokens-first",
    "axes in another order",
    "The axes look like [n_seq, n_head, head_dim]; however they are stored, keys and values show themselves as "
    "[n_head, n_seq, head_dim].",
)
PREFIX_POSITIONS_SHIFTED = define(
    "prefix-positions-shifted",
    "prefix positions do not start at 0",
    "The rows look as if the prefix had been given positions that start at 1: its first token stands at position 0.",
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
LAST_PREFIX_LOGITS = define(
    "last-prefix-logits", "logits of the prefix", "These are the logits after the prefix, before any of the suffix."
)
STOPS_ONE_EARLY = define(
    "stops-one-early",
    "last suffix token left out",
    "These are the logits after the last but one token of the suffix: its last token was not fed.",
)
ONLY_LAST_TOKEN = define(
    "only-last-suffix-token",
    "suffix tokens do not see each other",
    "It looks as if the last token of the suffix had seen the prefix only, and not the suffix before it: use one clone "
    "for the whole suffix.",
)
SUFFIX_REVERSED = define(
    "suffix-reversed", "suffix in reverse order", "It looks as if the suffix had been fed in reverse order."
)
LAST_PREFIX_TOKEN_TWICE = define(
    "last-prefix-token-twice",
    "last prefix token fed again",
    "It looks as if the last token of the prefix had been fed a second time, before the suffix: it is in the cache "
    "already.",
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
    "The saved cache kept its length, and yet its numbers changed: something writes into the arrays that it shares.",
)
SAVED_CACHE_SHRINKS = define(
    "saved-cache-shrinks",
    "rows of the saved cache dropped",
    "The saved cache lost rows: taking the suffix off again went too far. Work on saved.clone() instead.",
)
LEFT_BY_ERROR = define(
    "left-by-error",
    "suffix left behind by an error",
    "It looks as if the suffix were taken off again at the end, which does not happen when something raises on the "
    "way. Work on saved.clone() instead.",
)
CLONES_SHARE_MEMORY = define(
    "clones-share-memory",
    "clones share their arrays",
    "The two clones write into the same arrays: a clone needs keys and values of its own, not only a list or a length "
    "of its own.",
)
ONE_CACHE_FOR_ALL = define(
    "one-cache-for-all",
    "every request uses the cache saved last",
    "The answer is that of the other prefix: it looks as if there were one cache for all. Make a new one each time, "
    "and use the one that was passed.",
)
RECOMPUTED = define(
    "recomputed",
    "recomputes instead of reusing",
    "It looks as if the prefix were run through the model again: its keys and values are in the cache, and its tokens "
    "are not needed any more.",
)
ANSWERS_FROM_MEMORY = define(
    "answers-from-memory",
    "answers remembered",
    "It gave the same logits as for the unaltered cache: it looks as if earlier answers were remembered instead of "
    "computed from the cache.",
)
ONE_LAYER_IGNORED = define(
    "some-layers-ignored",
    "a layer's cache is not used",
    "It gave the same logits as for the unaltered cache, although another layer's change was noticed: some layers' "
    "keys or values are not read from the cache.",
)
EMPTY_SUFFIX = define(
    "empty-suffix",
    "empty suffix not refused",
    "With an empty suffix there is no token to decode, and the logits after the prefix are not in the cache: look for "
    "it first, and raise a ValueError.",
)
EMPTY_PREFIX = define(
    "empty-prefix", "empty prefix not refused", "A prefix without tokens leaves nothing to save: raise a ValueError."
)
NEGATIVE_PREFIX_LEN = define(
    "negative-prefix-len",
    "negative prefix_len not refused",
    "A negative prefix_len silently counts from the end of wpe: raise a ValueError.",
)
OUTSIDE_VOCABULARY = define(
    "outside-vocabulary",
    "ids outside the vocabulary not refused",
    "A negative id silently counts from the end of wte, and is no token: raise a ValueError.",
)
PAST_THE_CONTEXT = define(
    "past-the-context",
    "context limit not refused",
    "Prefix and suffix together are longer than n_ctx, and no token may be dropped or moved without a word: raise a "
    "ValueError.",
)
SUFFIX_ADDED_TO_PATH = define(
    "suffix-added-to-path",
    "file written under another name",
    "An ending was added to the name (np.savez does that): write to exactly the path that was given, for example "
    "through open(path, 'wb').",
)
FOLDER_DROPPED = define(
    "folder-dropped",
    "folder of the path dropped",
    "The path has a folder in it, which is there: write to exactly the path that was given.",
)
FILE_HALF_PRECISION = define(
    "file-half-precision",
    "file kept in half precision",
    "The numbers that come back are the old ones rounded to float16: write them as they are.",
)
NOT_IN_THE_FILE = define(
    "not-in-the-file",
    "content is not in the file",
    "It looks as if more were needed than the bytes of the file, such as its name or what a process keeps in memory.",
)
FACTS_OF_A_PROCESS = define(
    "facts-of-a-process",
    "fingerprint differs between processes",
    "A file that the other process wrote itself can be read there: it looks as if the fingerprint were another one in "
    "each process, as hash() of text, id() and random numbers are.",
)
READ_CACHES_SHARED = define(
    "read-caches-shared",
    "one cache for all that is read",
    "It looks as if one cache were handed out for several files or calls: make a new ModelCache each time.",
)
FILE_KEYS_VALUES_SWAPPED = define(
    "file-keys-values-swapped", "K and V swapped in the file", "Keys and values came back in each other's place."
)
VIEW_WRITTEN = define(
    "view-written",
    "a view written as it is",
    "The first head came back right and the others did not, as when a view of a larger buffer is written: make a plain "
    "array of it first, by np.ascontiguousarray.",
)
ONE_WRITTEN_TWICE = define(
    "one-written-twice",
    "keys or values written twice",
    "Keys and values came back equal: one of the two was written, or read, in both places.",
)
FILE_LAYERS_AS_TEXT = define(
    "file-layers-as-text",
    "layers read in the order of text",
    "The layers came back sorted as text, with layer 10 before layer 2: go through them by number.",
)
IDS_CHANGED = define(
    "ids-changed", "prefix ids not as written", "The second thing returned is the list of the prefix's token ids."
)
NO_FINGERPRINT = define(
    "no-fingerprint",
    "another model's cache accepted",
    "It looks as if the reader did not compare the model's fingerprint: write model_fingerprint(weights) into the file "
    "and compare it when reading.",
)
FINGERPRINT_PARTIAL = define(
    "fingerprint-partial",
    "fingerprint of a part of the model",
    "Quite another model is refused, and one that differs in a single weight is not: the fingerprint must cover the "
    "bytes of every weight. model_fingerprint(weights) does.",
)
CONFIG_NOT_COMPARED = define(
    "config-not-compared",
    "config not compared",
    "The same weights under another number of heads are another model: the fingerprint must cover the config too.",
)
LENGTH_NOT_COMPARED = define(
    "length-not-compared",
    "ids and rows not compared",
    "It looks as if the number of ids and the number of rows in each layer were never compared.",
)
FILE_IDS_OUTSIDE = define(
    "file-ids-outside-vocabulary",
    "ids outside the vocabulary accepted",
    "It looks as if the ids in the file were not compared with 0 and n_vocab.",
)
NOT_FINITE_ACCEPTED = define(
    "not-finite-accepted",
    "non-finite values accepted",
    "Look for NaN and infinity with np.isfinite, in keys and values of every layer.",
)
DAMAGE_ACCEPTED = define(
    "damage-accepted",
    "damaged file accepted",
    "It looks as if errors of reading were swallowed: a file that is not whole must not give a cache.",
)
LIBRARY_ERROR = define(
    "library-error",
    "another error instead of a ValueError",
    "Whoever calls read_prefix_cache expects a ValueError: catch what the library raises, and raise a ValueError where "
    "an assert stands. Say what is wrong with the file.",
)
