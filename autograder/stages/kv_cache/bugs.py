"""The bugs that only the checks of kv-cache meet."""

from __future__ import annotations

from autograder.judge.bugs import define

LENGTH_COUNTS_HEADS = define(
    "length-counts-heads", "len() gives n_head", "len() gives the number of heads: positions are the second axis."
)
LENGTH_COUNTS_APPENDS = define(
    "length-counts-appends", "len() counts appends", "len() counts the calls of append: add k.shape[1] for each."
)
LENGTH_OF_LAST_APPEND = define(
    "length-of-last-append", "len() is the last append's", "len() gives the size of the last append, not the sum."
)
CACHES_SHARE_STATE = define(
    "caches-share-state",
    "new caches share state",
    "A new cache already holds rows of another one: what is made in the class body or as a default argument is shared "
    "by all objects. Make it in __init__.",
)
CACHE_SWAPPED = define(
    "cache-keys-values-exchanged",
    "cache returns V as keys",
    "keys holds what was appended as v, and values what was k.",
)
ONLY_NEWEST = define(
    "only-newest-kept",
    "only the newest append kept",
    "Only the rows of the last append are there: append must add to the earlier rows.",
)
FIRST_OF_CHUNK = define(
    "chunk-first-row-only",
    "only the first row of a chunk stored",
    "Of an append of several positions only the first row was stored: k and v have k.shape[1] rows.",
)
SPARE_ROWS = define(
    "spare-rows-returned",
    "spare rows of the buffer returned",
    "keys or values also contains the unused rows at the end of the buffer: return the filled part only.",
)
BUFFER_FULL = define(
    "buffer-never-grows",
    "buffer does not grow",
    "The buffer is full and did not grow: NumPy cuts a slice past the end of an array without an error.",
)
LAST_ROW_CUT = define(
    "last-row-cut",
    "newest row left out",
    "The newest row is never there: the filled part of a buffer is [:, :length], and its last row is length - 1.",
)
GROWTH_LOSES_ROWS = define(
    "growth-loses-rows",
    "rows lost when the buffer grows",
    "The newest rows are right and older ones are 0: copy the keys and values into the new buffer when it grows.",
)
WRONG_AXIS = define(
    "joined-along-wrong-axis",
    "rows joined along the wrong axis",
    "The rows were joined along the wrong axis: positions are axis 1 of [n_head, n_seq, head_dim].",
)
TOKEN_MAJOR = define(
    "token-major-returned",
    "keys returned as [n_seq, n_head, head_dim]",
    "The axes are those of [n_seq, n_head, head_dim]: return [n_head, n_seq, head_dim].",
)
LAYERS_SHARED = define(
    "layers-are-one-object",
    "all layers are one LayerCache",
    "All layers are one and the same LayerCache, as [LayerCache()] * n_layer makes them: make a new one for each.",
)
LENGTH_COUNTS_LAYERS = define(
    "length-counts-layers",
    "len() of the cache gives n_layer",
    "len(cache) gives the number of layers: it is the number of cached positions, the same in every layer.",
)
CLONE_SHALLOW = define(
    "clone-shallow",
    "clone shares its layers",
    "The clone and the original share their LayerCache objects, so what one appends the other holds as well: copy "
    "every layer.",
)
CLONE_SHARES_BUFFER = define(
    "clone-shares-buffer",
    "clone shares the buffers",
    "The lengths are separate and the memory is not: both write their new rows into the same buffer, and the later one "
    "wins. Copy the arrays.",
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
BYTES_NO_SIZE = define(
    "numbers-not-bytes", "numbers, not bytes", "This counts numbers, not bytes: multiply by n_bytes."
)
BYTES_IGNORED = define(
    "n-bytes-ignored", "n_bytes ignored", "The number does not depend on n_bytes, as if it were always 4."
)
BYTES_N_CTX = define(
    "bytes-of-full-context",
    "n_ctx used for n_seq",
    "The number is that of a full context: count n_seq positions, not n_ctx.",
)
