"""The bugs that only the checks of kv-cache meet."""

from __future__ import annotations

from autograder.judge.bugs import define

LENGTH_COUNTS_HEADS = define(
    "length-counts-heads",
    "len() gives n_head",
    "len() gives the number of heads: len(array) is the size of the first axis, and positions are the second.",
)
LENGTH_COUNTS_APPENDS = define(
    "length-counts-appends",
    "len() counts appends",
    "len() counts the calls of append: one append may bring several positions, k.shape[1] of them.",
)
LENGTH_OF_LAST_APPEND = define(
    "length-of-last-append",
    "len() is the last append's",
    "len() gives the size of the last append, not the sum of all.",
)
LENGTH_COUNTS_TWICE = define(
    "length-counts-twice",
    "len() counts K and V",
    "len() counts each position twice, once for its key and once for its value.",
)
CACHES_SHARE_STATE = define(
    "caches-share-state",
    "new caches share state",
    "A new cache already holds rows of another one: lists made in the class body or as a default argument are shared "
    "by all objects; make them in __init__.",
)
CACHE_SWAPPED = define(
    "cache-keys-values-exchanged",
    "cache returns V as keys",
    "keys holds what was appended as v, and values what was k.",
)
VALUES_ARE_KEYS = define(
    "cache-values-are-keys",
    "values returns the keys",
    "values holds the keys: v was not stored, or k was stored twice.",
)
ONLY_NEWEST = define(
    "only-newest-kept",
    "only the newest append kept",
    "Only the rows of the last append are there: append must add to the earlier rows, not replace them.",
)
NEWEST_FIRST = define(
    "newest-first", "new rows put in front", "The newest rows stand in front: new positions go to the end."
)
FIRST_OF_CHUNK = define(
    "chunk-first-row-only",
    "only the first row of a chunk stored",
    "Of an append of several positions only the first row was stored: k and v may have any k.shape[1] of 1 or more.",
)
SPARE_ROWS = define(
    "spare-rows-returned",
    "spare rows of the buffer returned",
    "keys or values also contains the unused rows at the end of the buffer: return the filled part only.",
)
ROWS_CUT = define(
    "buffer-never-grows",
    "buffer does not grow",
    "The buffer is full and did not grow: NumPy cuts a slice past the end of an array without an error, so the row was "
    "dropped silently.",
)
GROWTH_TOO_SMALL = define(
    "growth-too-small",
    "buffer grown too little for a chunk",
    "Single rows fit and a chunk does not: doubling the buffer once is not always enough, so grow it to at least the "
    "length that is needed.",
)
NO_ROOM_LEFT = define(
    "room-made-once",
    "a fixed number of rows",
    "Short texts fit and a long one does not, as in a buffer that is made once and never larger: a cache does not know "
    "how long the text will be, so make a larger buffer when it is full, of at least the length that is needed.",
)
LAST_ROW_CUT = define(
    "last-row-cut",
    "newest row left out",
    "The newest row is never there: the filled part of a buffer is [:, :length], and its last row is length - 1.",
)
ROWS_TWICE = define("rows-stored-twice", "every row stored twice", "Every row is there two times: append it once.")
GROWTH_LOSES_ROWS = define(
    "growth-loses-rows",
    "rows lost when the buffer grows",
    "The newest rows are right and the older ones are gone: when the buffer grows, copy the keys and the values that "
    "are already there.",
)
WRONG_AXIS = define(
    "joined-along-wrong-axis",
    "rows joined along the wrong axis",
    "The rows were joined along the wrong axis: positions are axis 1 of [n_head, n_seq, head_dim].",
)
TOKEN_MAJOR = define(
    "token-major-returned",
    "keys returned as [n_seq, n_head, head_dim]",
    "The axes are those of [n_seq, n_head, head_dim]: store it as you like, and return [n_head, n_seq, head_dim].",
)
RESHAPED = define(
    "cache-reshaped",
    "cache axes changed by a reshape",
    "Heads and positions are mixed up as by a reshape: use transpose or swapaxes to change the order of axes.",
)
LAYERS_SHARED = define(
    "layers-are-one-object",
    "all layers are one LayerCache",
    "All layers are one and the same LayerCache, as [LayerCache()] * n_layer makes them: make a new one for each.",
)
NUMBER_OF_LAYERS = define("number-of-layers-fixed", "n_layer ignored", "The number of layers does not follow n_layer.")
LENGTH_COUNTS_LAYERS = define(
    "length-counts-layers",
    "len() of the cache gives n_layer",
    "len(cache) gives the number of layers: it is the number of cached positions, the same in every layer.",
)
LENGTH_SUMMED = define(
    "length-summed-over-layers",
    "len() of the cache sums the layers",
    "len(cache) adds up the layers: a position counts once, though every layer has a row for it.",
)
CLONE_EMPTY = define("clone-empty", "clone has no rows", "The clone is a new, empty cache: the rows were not copied.")
CLONE_ROW_LOST = define(
    "clone-loses-a-row",
    "clone has one row less",
    "One row did not come along, the first or the last: copy all n_seq of them, [:, :n_seq].",
)
CLONE_LAYERS_MISSING = define(
    "clone-copies-one-layer",
    "clone copies one layer only",
    "Only one layer was copied; the others of the clone are empty.",
)
CLONE_LAYERS_ALIKE = define(
    "clone-layers-alike",
    "every layer of the clone is the same",
    "Every layer of the clone holds the rows of one layer.",
)
CLONE_VALUES = define(
    "clone-mixes-keys-and-values",
    "clone mixes up keys and values",
    "The clone holds keys where the values belong, or the other way round.",
)
CLONE_TAKES_ROWS = define(
    "clone-takes-the-rows",
    "clone takes the rows away",
    "The clone has the rows and the original has lost them: they must be copied, not handed over.",
)
CLONE_LENGTH = define(
    "clone-loses-length",
    "clone has the wrong len()",
    "The clone's rows are right and its len() is not: copy the length as well.",
)
CLONE_SHALLOW = define(
    "clone-shallow",
    "clone shares its layers",
    "The clone and the original share their LayerCache objects, so what one appends the other holds as well: copy "
    "every layer.",
)
CLONE_SOME_LAYERS = define(
    "clone-shares-some-layers",
    "clone shares some layers",
    "Some layers of the clone are copies and others are still the original's own objects: copy every layer.",
)
CLONE_SHARES_BUFFER = define(
    "clone-shares-buffer",
    "clone shares the buffers",
    "The lengths are separate and the memory is not: both write their new rows into the same buffer, and the later one "
    "wins. Copy the arrays.",
)
CLONE_OF_EMPTY = define(
    "clone-of-empty-shared",
    "an empty cache and its clone are one",
    "A clone that is made while the cache is empty still shares something with it: an empty cache is copied like any "
    "other, each layer a new object.",
)
CLONE_OUTDATED = define(
    "clone-outdated",
    "clone of an earlier state",
    "The clone holds the rows of an earlier clone and none that were appended since: copy the rows that are there at "
    "each call.",
)
CLONE_NOT_RETURNED = define(
    "clone-not-returned", "clone returns None", "clone() has to return the new cache: its return looks missing."
)
MASK_HIDES_SELF = define(
    "attend-mask-hides-self",
    "a token does not see itself",
    "It looks as if a token could not see its own key: the mask starts one position too early.",
)
MASK_AS_ZERO = define(
    "attend-mask-as-zero",
    "hidden scores set to 0",
    "Hidden scores look set to 0, which is an ordinary score: they must be -inf (or very negative) before the softmax.",
)
MASK_TOO_SMALL = define(
    "attend-mask-too-small",
    "hidden scores not small enough",
    "Hidden keys get through when visible scores are very negative, or hidden ones very large: set hidden scores to "
    "-np.inf, which no score is below, not to a number such as -10000.",
)
MASK_AFTER_SOFTMAX = define(
    "attend-mask-after-softmax",
    "mask applied after the softmax",
    "The mask looks as if it came after the softmax, so the weights of a query no longer add up to 1.",
)
SCORES_NO_ROOT = define(
    "attend-scores-no-root",
    "scores divided by head_dim",
    "It looks as if the scores were divided by head_dim instead of its square root.",
)
SOFTMAX_AXIS = define(
    "attend-softmax-over-queries",
    "softmax over the wrong axis",
    "The softmax looks taken over the queries: each query's weights over the keys, the last axis, must add up to 1.",
)
SOFTMAX_OVER_HEADS = define(
    "attend-softmax-over-heads",
    "softmax over the heads",
    "The softmax looks taken over the heads: each query's weights over the keys, the last axis, must add up to 1.",
)
SOFTMAX_SUM = define(
    "attend-weights-not-normalized",
    "weights not divided by their sum",
    "The weights look as if they had not been divided by their sum.",
)
NO_SOFTMAX = define(
    "attend-no-softmax", "no softmax", "It looks as if the scores were used as weights without a softmax."
)
SOFTMAX_OVERFLOW = define(
    "attend-softmax-overflow",
    "exp() overflows",
    "exp() of a large score overflows: subtract each row's maximum before exp(); it changes nothing else.",
)
SOFTMAX_GLOBAL_MAX = define(
    "attend-one-maximum",
    "one maximum for all rows",
    "It looks as if one maximum was subtracted from all rows, so a row of much smaller scores becomes 0/0: take the "
    "maximum along the last axis, with keepdims=True.",
)
SOFTMAX_HIDDEN_MAX = define(
    "attend-hidden-maximum",
    "maximum taken before the mask",
    "The largest score looks taken before the mask was applied: a hidden one may be so large that all visible ones "
    "become 0, and their sum too. Mask first.",
)
ATTEND_STALE = define(
    "attend-remembers-the-cache",
    "attend uses rows from an earlier call",
    "The result is that of the rows which the cache had at an earlier call: take layer_cache.keys and "
    "layer_cache.values anew in each call.",
)
ATTEND_CHANGES_CACHE = define(
    "attend-changes-cache",
    "attend changes the cache",
    "attend works on the cache's own arrays in place (such as keys *= ... or keys /= ...), or appends to it: compute "
    "new arrays instead.",
)
BYTES_KEYS_ONLY = define(
    "bytes-of-keys-only",
    "the values are not counted",
    "The number is half of what is needed: keys and values are stored.",
)
BYTES_ONE_LAYER = define(
    "bytes-of-one-layer",
    "one layer counted",
    "The number is that of one layer: every layer has its own keys and values.",
)
BYTES_ONE_HEAD = define(
    "bytes-of-one-head",
    "one head counted",
    "The number is that of one head: a row holds n_head heads of head_dim, which is n_embd numbers.",
)
BYTES_NO_SIZE = define(
    "numbers-not-bytes", "numbers, not bytes", "This counts numbers, not bytes: multiply by n_bytes."
)
BYTES_DEFAULT = define(
    "bytes-default-not-4",
    "n_bytes does not default to 4",
    "With n_bytes given it is right: its default must be 4, a float32.",
)
BYTES_IGNORED = define(
    "n-bytes-ignored", "n_bytes ignored", "The number does not depend on n_bytes, as if it were always 4."
)
BYTES_N_CTX = define(
    "bytes-of-full-context",
    "n_ctx used for n_seq",
    "The number is that of a full context: count n_seq positions, not n_ctx.",
)
BYTES_HEADS_TWICE = define(
    "bytes-heads-twice", "multiplied by n_head", "n_embd already contains all heads: do not multiply by n_head again."
)
BYTES_FLOAT = define(
    "bytes-as-float",
    "a float",
    "The value is right and it is a float: a number of bytes is an int, so use // or no division.",
)
