"""The bugs that only the checks of kv-cache meet; those of attention stand in forward_pass/bugs.py."""

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
    look="where the lists or arrays are made",
)
ONLY_NEWEST = define(
    "only-newest-kept",
    "only the newest append kept",
    "Only the rows of the last append are there: append must add to the earlier rows.",
    look="what becomes of the earlier rows",
)
SPARE_ROWS = define(
    "spare-rows-returned",
    "spare rows of the buffer returned",
    "keys or values also contains the unused rows at the end of the buffer: return the filled part only.",
    look="the end of the filled part",
)
ROWS_CUT_OFF = define(
    "rows-cut-off",
    "newest rows left out",
    "The newest rows are not there. The filled part of a buffer is [:, :length]; NumPy cuts a slice past the end of an "
    "array short without an error, so the buffer has to grow first.",
    look="the end of the filled part",
)
ONE_FOR_BOTH = define(
    "one-array-for-both",
    "keys and values hold the same rows",
    "keys and values hold the same rows: one of the two is stored, or returned, in place of the other.",
    look="which array is stored and returned where",
)
JOINED_WRONG = define(
    "joined-along-wrong-axis",
    "rows joined along the wrong axis",
    "The rows are joined along another axis than that of the positions, which is the second: axis=1.",
    look="how the rows are joined",
)
LAYERS_SHARED = define(
    "layers-are-one-object",
    "all layers are one LayerCache",
    "All layers are one and the same LayerCache, as [LayerCache()] * n_layer makes them: make a new one for each.",
    look="how the layers are made",
)
LENGTH_COUNTS_LAYERS = define(
    "length-counts-layers",
    "len() of the cache gives n_layer",
    "len(cache) gives the number of layers: it is the number of cached positions, the same in every layer.",
)
CLONE_SHALLOW = define(
    "clone-shallow",
    "clone shares its layers",
    "What one appends, another holds as well: a cache and its clones share LayerCache objects, or what is inside them. "
    "Copy every layer, and what it holds.",
    look="what is copied",
)
CLONE_SHARES_BUFFER = define(
    "clone-shares-buffer",
    "clone shares the buffers",
    "The lengths are separate and the memory is not: both write their new rows into the same buffer, and the later one "
    "wins. Copy the arrays.",
    look="what is copied",
)
CLONE_NOT_RETURNED = define(
    "clone-not-returned",
    "clone returns None",
    "clone() has to return the new cache: its return looks missing.",
    look="what is returned",
)
KEYS_SUMMED = define(
    "keys-summed",
    "the keys summed up in place of the values",
    "It looks as if the weights were multiplied with the keys: what is summed up are the values.",
    look="what the weights are multiplied with",
)
ATTEND_CHANGES_CACHE = define(
    "attend-changes-cache",
    "attend changes the cache",
    "attend works on the cache's own arrays in place (such as keys *= ... or keys /= ...), or appends to it: compute "
    "new arrays instead.",
    look="what is changed in place",
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
BYTES_WIDTH = define(
    "bytes-of-another-width",
    "n_head or head_dim used for n_embd",
    "Another number stands where n_embd belongs: the keys of a position in a layer are n_head heads of head_dim "
    "numbers, which are n_embd.",
)
BYTES_IGNORED = define(
    "n-bytes-ignored", "n_bytes ignored", "The number does not depend on n_bytes: multiply by it, whatever it is."
)
BYTES_N_CTX = define(
    "bytes-of-full-context",
    "n_ctx used for n_seq",
    "The number is that of a full context: count n_seq positions, not n_ctx.",
)
