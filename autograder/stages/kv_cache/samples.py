"""Sample submissions of stage 2, kv-cache."""

from autograder.stages.samples import Right, Wrong

# Whole cells in other styles

LIST_OF_ROWS = '''
class LayerCache:
    """A list of what was appended, joined when it is read."""

    def __init__(self):
        self._k, self._v = [], []

    def append(self, k, v):
        self._k.append(k)
        self._v.append(v)
        return self

    keys = property(lambda self: np.concatenate(self._k, axis=1))
    values = property(lambda self: np.concatenate(self._v, axis=1))

    def __len__(self):
        return sum(k.shape[1] for k in self._k)
'''

CLONES_LISTS = '''
class ModelCache(dict):
    """Each layer by its number."""

    def __init__(self, n_layer):
        super().__init__((i, LayerCache()) for i in range(n_layer))

    @property
    def layers(self):
        return tuple(self.values())

    def __len__(self):
        return len(self[0])

    def clone(self):
        # the lists are copied; the arrays in them are shared, which is safe because nobody writes into them
        other = ModelCache(len(self.layers))
        for mine, theirs in zip(self.layers, other.layers):
            theirs._k, theirs._v = list(mine._k), list(mine._v)
        return other
'''

CONCATENATING = '''
class LayerCache:
    """New arrays at every append."""

    def __init__(self):
        self.keys = self.values = None

    def append(self, k, v):
        first = self.keys is None
        self.keys = np.array(k) if first else np.concatenate([self.keys, k], axis=1)
        self.values = np.array(v) if first else np.concatenate([self.values, v], axis=1)

    def __len__(self):
        return 0 if self.keys is None else self.keys.shape[1]
'''

SHALLOW_IS_ENOUGH = """
import copy


class ModelCache:
    def __init__(self, n_layer):
        self.layers = [LayerCache() for _ in range(n_layer)]

    def __len__(self):
        return len(self.layers[0])

    def clone(self):
        # append makes new arrays and leaves the old ones alone, so a copy of each layer object is a clone
        new = copy.copy(self)
        new.layers = [copy.copy(layer) for layer in self.layers]
        return new
"""

TOKEN_MAJOR = '''
class LayerCache:
    """One buffer [capacity, 2, n_head, head_dim]: a token's key and value lie side by side."""

    def __init__(self):
        self._rows, self._n = None, np.int64(0)

    def append(self, k, v):
        rows = np.stack([k, v]).transpose(2, 0, 1, 3)
        if self._rows is None:
            self._rows = np.zeros((4, *rows.shape[1:]), np.float32)
        while self._n + len(rows) > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self._n : self._n + len(rows)] = rows
        self._n += len(rows)

    keys = property(lambda self: self._rows[: self._n, 0].swapaxes(0, 1))
    values = property(lambda self: self._rows[: self._n, 1].swapaxes(0, 1))

    def __len__(self):
        return int(self._n)
'''

DEEPCOPIES = """
import copy


class ModelCache:
    def __init__(self, n_layer):
        self.layers = [LayerCache() for _ in range(n_layer)]

    def __len__(self):
        lengths = {len(layer) for layer in self.layers}
        assert len(lengths) == 1
        return lengths.pop()

    def clone(self):
        return copy.deepcopy(self)
"""

FLOAT64 = '''
class LayerCache:
    """float64 inside, in blocks of 16 positions."""

    BLOCK = 16

    def __init__(self):
        self.blocks = []
        self.n_seq = 0

    def append(self, k, v):
        for i in range(k.shape[1]):
            if self.n_seq % self.BLOCK == 0:
                self.blocks.append(np.zeros((2, k.shape[0], self.BLOCK, k.shape[2])))
            self.blocks[-1][:, :, self.n_seq % self.BLOCK] = k[:, i], v[:, i]
            self.n_seq += 1

    def _all(self, which):
        if not self.blocks:
            raise ValueError("nothing was appended yet")
        return np.concatenate([block[which] for block in self.blocks], axis=1)[:, : self.n_seq]

    keys = property(lambda self: self._all(0))
    values = property(lambda self: self._all(1))

    def __len__(self):
        return self.n_seq
'''

CLONES_BLOCKS = """
class ModelCache:
    def __init__(self, n_layer):
        print("a new cache")
        self.layers = [LayerCache() for _ in range(n_layer)]

    def __len__(self):
        return min(map(len, self.layers))

    def clone(self):
        new = ModelCache(len(self.layers))
        for i, layer in enumerate(self.layers):
            new.layers[i].blocks = [block.copy() for block in layer.blocks]
            new.layers[i].n_seq = layer.n_seq
        return new
"""

ATTEND_ROW_BY_ROW = """
def attend(q, layer_cache):
    import warnings

    warnings.warn("attend goes row by row")
    keys, values = layer_cache.keys, layer_cache.values
    n_head, n_query, head_dim = q.shape
    first = len(layer_cache) - n_query
    out = np.zeros(q.shape)
    for head in range(n_head):
        for i in range(n_query):
            seen = first + i + 1
            scores = keys[head, :seen].astype(np.float64) @ q[head, i] / head_dim**0.5
            weights = np.exp(scores - scores.max())
            out[head, i] = weights @ values[head, :seen] / weights.sum()
    return out
"""

ATTEND_EINSUM = """
def attend(q, layer_cache):
    keys, values = np.asarray(layer_cache.keys), np.asarray(layer_cache.values)
    scores = np.einsum("hqd,hkd->hqk", q, keys) * q.shape[-1] ** -0.5
    n_query, n_seq = scores.shape[1:]
    hidden = np.triu(np.ones((n_query, n_seq), bool), k=n_seq - n_query + 1)
    scores = np.where(hidden, np.finfo(scores.dtype).min, scores)
    scores = scores - scores.max(-1)[..., None]
    log_sum = np.log(np.exp(scores).sum(-1))[..., None]
    return np.einsum("hqk,hkd->hqd", np.exp(scores - log_sum), values)
"""

ATTEND_ADDED_MASK = '''
def attend(q, layer_cache):
    """The mask is added, as GPT-2's own code did it."""
    position = np.arange(len(layer_cache))
    mask = np.where(position[-q.shape[1] :, None] >= position, 0, -1e10)
    return np.matmul(softmax(np.matmul(q, np.swapaxes(layer_cache.keys, 1, 2)) / np.sqrt(q.shape[2]) + mask), layer_cache.values)
'''  # noqa: E501 - a student's line

BYTES_BY_LAYER = """
def kv_cache_bytes(config, n_seq, n_bytes=4):
    one_row = np.int64(config.n_head * (config.n_embd // config.n_head))
    return sum(n_seq * (one_row + one_row) * n_bytes for _ in range(config.n_layer))
"""

RIGHT = [
    Right("lists-of-arrays",
          "Lists of the appended arrays, joined when they are read; a clone, which is a dict, copies them.",
          {"layer-cache": LIST_OF_ROWS, "model-cache": CLONES_LISTS, "attend": ATTEND_ROW_BY_ROW}),
    Right("concatenation", "Makes new arrays at every append, so copying the layer objects is a full clone.",
          {"layer-cache": CONCATENATING, "model-cache": SHALLOW_IS_ENOUGH, "attend": ATTEND_EINSUM}),
    Right("token-major", "One buffer, token-major, given out as head-major views; NumPy integers inside; deepcopy.",
          {"layer-cache": TOKEN_MAJOR, "model-cache": DEEPCOPIES, "kv-cache-bytes": BYTES_BY_LAYER}),
    Right("float64-blocks", "float64 in blocks of 16 positions, raises before the first append, prints.",
          {"layer-cache": FLOAT64, "model-cache": CLONES_BLOCKS, "attend": ATTEND_ADDED_MASK}),
]  # fmt: skip

ATTENDS = ("attend-one-query", "attend-several-queries", "attend-large-scores", "attend-only-reads")
# A LayerCache that does not hold its rows: nothing that stands on it can be judged.
ROWS_WRONG = ("layer-cache-rows", "model-cache-layers", "clone-equal", "clone-independent", *ATTENDS)

# Pieces of the solution's attend, and of its growing buffer
_VISIBLE = "np.tri(n_query, n_seq, k=n_seq - n_query, dtype=bool)"
_RESULT = "return softmax(np.where(visible, scores, -np.inf)) @ values"
_EXPS = """exps = np.exp(hidden - hidden.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True) @ values"""
_HIDDEN = "hidden = np.where(visible, scores, -np.inf)\n    "
_ROOM = "2 * end, new"
_KEYS = "return None if self._keys is None else self._keys[:, : self._length]"
_VALUES = "return None if self._values is None else self._values[:, : self._length]"
_COPIED = """        for layer, new_layer in zip(self.layers, copy.layers, strict=True):
            if len(layer):
                new_layer.append(layer.keys, layer.values)
"""
SEVERAL, LARGE, BYTES = ("attend-several-queries",), ("attend-large-scores",), ("memory-bytes",)
CLONES = ("clone-equal", "clone-independent")

# By cell: name, about, the checks it loses, its bug, and, in turn, a text in the solution and the text instead.
IN_ONE_CELL = {
    "layer-cache": [
        ("len-of-the-array", "len(array) is the size of the first axis, the heads.",
         ("layer-cache-length", "model-cache-layers"), "length-counts-heads", "return self._length",
         "return 0 if self._keys is None else len(self.keys)"),
        ("keys-and-values-counted", "A position counts twice, once for its key and once for its value.",
         ("layer-cache-length", "model-cache-layers"), None, "return self._length", "return 2 * self._length"),
        ("arrays-counted", "The number of arrays, which is that of a model's layers by chance.",
         ("layer-cache-length", "model-cache-layers", *CLONES), None, "return self._length", "return 2"),
        ("rows-lost-in-growth", "The larger buffer starts empty: the old rows are not copied.",
         ("layer-cache-rows", "model-cache-layers", "clone-independent"), None,
         "            larger[:, : self._length] = buffer[:, : self._length]\n", "            larger[:] = 0\n"),
        ("doubles-once", "The buffer is doubled once, which is too little for a long chunk.",
         ("layer-cache-rows", "clone-equal", "clone-independent", "attend-one-query", "attend-several-queries"),
         None, _ROOM, "(16 if buffer is None else 2 * buffer.shape[1]), new"),
        ("keys-stored-twice", "A line pasted and half changed: the values are the keys.", ROWS_WRONG,
         "one-array-for-both", "self._values[:, self._length : end] = v",
         "self._values[:, self._length : end] = k"),
        ("values-returned-as-keys", "keys returns the values.", ROWS_WRONG, "one-array-for-both", _KEYS, _VALUES),
        ("keys-returned-as-values", "values returns the keys.", ROWS_WRONG, "one-array-for-both", _VALUES, _KEYS),
        ("joined-along-the-heads", "The rows are joined along the first axis.", ROWS_WRONG, "joined-along-wrong-axis",
         _KEYS, "return np.concatenate(np.split(self._keys[:, : self._length], self._length, axis=1))",
         _VALUES, "return np.concatenate(np.split(self._values[:, : self._length], self._length, axis=1))"),
        ("replaces-instead-of-adding", "Every append starts at row 0 again.",
         ("layer-cache-length", "layer-cache-rows", "model-cache-layers", "clone-independent", *ATTENDS),
         "only-newest-kept", "end = self._length + k.shape[1]", "self._length = 0\n        end = k.shape[1]"),
        ("first-row-of-a-chunk", "append stores one row, although a chunk brings several.",
         ("layer-cache-length", *ROWS_WRONG), None, "end = self._length + k.shape[1]",
         "k, v = k[:, :1], v[:, :1]\n        end = self._length + 1"),
        ("half-precision", "The buffers are float16.", ROWS_WRONG, "half-precision", "new.shape[2]), np.float32",
         "new.shape[2]), np.float16"),
        ("rows-compared-with-heads", "Looks at the number of heads to see whether the buffer is full.",
         ("layer-cache-rows",), None, "end > self._keys.shape[1]", "end > self._keys.shape[0]"),
        ("counts-appends", "One more for each append, however many positions it brings.",
         ("layer-cache-length", "model-cache-layers"), "length-counts-appends",
         "        self._length = 0\n", "        self._length = self._appends = 0\n", "        self._length = end\n",
         "        self._length = end\n        self._appends += 1\n", "return self._length", "return self._appends"),
        ("length-of-the-newest", "len() is what the last append brought.",
         ("layer-cache-length", "model-cache-layers"), "length-of-last-append", "        self._length = end\n",
         "        self._length = end\n        self._newest = k.shape[1]\n", "return self._length",
         "return self._newest if self._length else 0"),
        ("class-attributes", "The buffers are class attributes that every LayerCache starts from.",
         ("layer-cache-length", *ROWS_WRONG), "caches-share-state", "        self._length = 0\n",
         "        self._length = 0\n        self.__dict__ = self.shared\n",
         '    """The keys and values of one layer."""\n',
         '    shared = {"_keys": None, "_values": None, "_length": 0}\n'),
        ("buffer-never-grows", "A buffer of 16 rows; what lies past its end is cut off by the slice.",
         ("layer-cache-rows", "clone-equal", "clone-independent", "attend-one-query", "attend-several-queries"),
         "rows-cut-off", " or end > self._keys.shape[1]:", ":", _ROOM, "16, new"),
        ("room-for-1024", "A buffer of 1,024 rows, made at the first append.",
         ("layer-cache-rows", "attend-one-query"), None,
         " or end > self._keys.shape[1]:", ":", _ROOM, "1024, new"),
        ("equal-chunk-skipped", "A chunk that is equal to the last rows is taken for the same one.",
         ("layer-cache-rows",), None, "        end = self._length + k.shape[1]\n",
         """        if self._length >= k.shape[1] and np.array_equal(self.keys[:, -k.shape[1] :], k):
            return
        end = self._length + k.shape[1]
"""),
        ("rows-of-zeros-skipped", "A chunk of zeros is taken for room that was not used.", ("layer-cache-rows",), None,
         "        end = self._length + k.shape[1]\n",
         "        if not k.any():\n            return\n        end = self._length + k.shape[1]\n"),
        ("newest-row-left-out", "keys and values end one row too early.", ROWS_WRONG, "rows-cut-off",
         _KEYS, "return self._keys[:, : self._length - 1]", _VALUES, "return self._values[:, : self._length - 1]"),
        ("stored-twice", "What is appended is written two times.", ROWS_WRONG, None,
         "end = self._length + k.shape[1]",
         "k, v = (np.concatenate([a, a], axis=1) for a in (k, v))\n        end = self._length + k.shape[1]",
         "return self._length", "return self._length // 2"),
        ("whole-buffer", "keys and values give out the spare rows as well.", ROWS_WRONG, "spare-rows-returned",
         _KEYS, "return self._keys", _VALUES, "return self._values",
         "np.empty(", "np.zeros("),  # what np.empty finds in memory may be anything
        ("keys-and-values-exchanged", "append stores k among the values and v among the keys.", ROWS_WRONG,
         "keys-values-swapped", "self._length : end] = k", "self._length : end] = v",
         "self._values[:, self._length : end] = v", "self._values[:, self._length : end] = k"),
    ],
    "model-cache": [
        ("one-layer-object", "[LayerCache()] * n_layer is n_layer times the same object.",
         ("model-cache-layers", "clone-equal", "clone-independent"), "layers-are-one-object",
         "[LayerCache() for _ in range(n_layer)]", "[LayerCache()] * n_layer"),
        ("twelve-layers", "The number of layers is that of the model at hand.",
         ("model-cache-layers", "clone-equal", "clone-independent"), None, "[LayerCache() for _ in range(n_layer)]",
         "[LayerCache() for _ in range(12)]"),
        ("len-of-layers", "len(self.layers) instead of the length of one of them.", ("model-cache-layers",),
         "length-counts-layers", "return len(self.layers[0]) if self.layers else 0", "return len(self.layers)"),
        ("len-of-second-layer", "The length of a layer that a model of one layer does not have.",
         ("model-cache-layers",), None, "len(self.layers[0])", "len(self.layers[1])"),
        ("len-summed", "The lengths of all layers added up.", ("model-cache-layers",), None,
         "return len(self.layers[0]) if self.layers else 0", "return sum(map(len, self.layers))"),
        ("clone-shallow", "A new list of the same layer objects.", ("clone-independent",), "clone-shallow",
         _COPIED,
         "        copy.layers = list(self.layers)\n"),
        ("clone-of-the-first-layer", "The first layer is copied, the others are shared.", ("clone-independent",),
         None,
         _COPIED,
         "        if len(self):\n            copy.layers[0].append(self.layers[0].keys, self.layers[0].values)\n"
         "        copy.layers[1:] = self.layers[1:]\n"),
        ("clone-shares-buffers", "The layer objects are copied, their buffers are not.", ("clone-independent",),
         "clone-shares-buffer",
         "            if len(layer):\n                new_layer.append(layer.keys, layer.values)\n",
         "            new_layer.__dict__.update(layer.__dict__)\n"),
        ("length-of-a-clone-kept", "The length of a clone is what it was when it was made.", ("clone-independent",),
         None,
         "return len(self.layers[0]) if self.layers else 0",
         "return getattr(self, '_length', len(self.layers[0]) if self.layers else 0)",
         "return copy", "copy._length = len(self)\n        return copy"),
        ("clone-of-256-rows", "A clone holds the last 256 rows.", CLONES, None,
         "new_layer.append(layer.keys, layer.values)",
         "new_layer.append(layer.keys[:, -256:], layer.values[:, -256:])"),
        ("clone-of-empty-is-itself", "An empty cache has nothing to copy, so clone returns the cache itself.",
         ("clone-independent",), None, "        copy = ModelCache",
         "        if len(self) == 0:\n            return self\n        copy = ModelCache"),
        ("clone-from-a-snapshot", "The first clone's rows are kept, and every later clone gets them.",
         ("clone-independent",), None, "zip(self.layers, copy.layers, strict=True)",
         "zip(vars(self).setdefault('kept', __import__('copy').deepcopy(self.layers)), copy.layers)"),
        ("clone-without-its-last-row", "The slice of the rows to be copied ends one too early.", CLONES, None,
         "new_layer.append(layer.keys, layer.values)", "new_layer.append(layer.keys[:, :-1], layer.values[:, :-1])"),
        ("clone-layers-alike", "Every layer of the clone gets the rows of the first.", CLONES, None,
         "new_layer.append(layer.keys, layer.values)",
         "new_layer.append(self.layers[0].keys, self.layers[0].values)"),
        ("clone-empty", "A new cache of the same shape, without its rows.", CLONES, None,
         "            if len(layer):\n", "            if len(new_layer):\n"),
        ("clone-not-returned", "The return is forgotten.", CLONES, "clone-not-returned", "        return copy",
         "        return None"),
        ("clone-takes-the-rows", "The clone gets the layers and the original new, empty ones.", CLONES, None,
         "        return copy", "        self.layers = [LayerCache() for _ in self.layers]\n        return copy"),
    ],
    "attend": [
        ("no-mask", "Every query sees every key.", SEVERAL, "no-causal-mask", _RESULT,
         "return softmax(scores) @ values"),
        ("mask-without-offset", "The mask of the forward pass: query i sees the keys 0 to i.", ATTENDS,
         "mask-without-offset", _VISIBLE, "np.tri(n_query, n_seq, dtype=bool)"),
        ("mask-multiplied", "The scores are multiplied by the mask, so hidden ones are 0.", SEVERAL,
         "mask-zeros", _RESULT, "return softmax(scores * visible) @ values"),
        ("mask-of-minus-100", "Hidden scores are -100, which visible ones may fall below.", LARGE,
         "mask-too-small", "scores, -np.inf", "scores, -100"),
        ("queries-scaled-in-place", "q /= ... divides the caller's queries.", ("attend-only-reads",),
         "input-changed", "scores = q @ keys.transpose(0, 2, 1) / head_dim**0.5",
         "q /= head_dim**0.5\n    scores = q @ keys.transpose(0, 2, 1)"),
        ("mask-shows-the-next-token", "One column too many: a token also sees the key after its own.", SEVERAL,
         "mask-sees-next", "k=n_seq - n_query,", "k=n_seq - n_query + 1,"),
        ("mask-hides-the-token-itself", "One column too few: a token does not see its own key.", SEVERAL,
         "mask-strict", "k=n_seq - n_query,", "k=n_seq - n_query - (n_query > 1),"),
        ("mask-after-softmax", "Hidden weights become 0 after the softmax.", SEVERAL, None,
         _RESULT, "return visible * softmax(scores) @ values"),
        ("softmax-over-queries", "The softmax along the wrong axis.", ATTENDS, "softmax-over-queries",
         _RESULT, _HIDDEN + _EXPS.replace("axis=-1", "axis=-2")),
        ("no-softmax", "The scores are the weights.", ATTENDS, None, _RESULT,
         "return np.where(visible, scores, 0) @ values"),
        ("scaled-without-root", "Divided by head_dim.", ATTENDS, "scores-no-root", "/ head_dim**0.5",
         "/ head_dim"),
        ("unscaled", "The division by sqrt(head_dim) is forgotten.", ATTENDS, "scores-unscaled", " / head_dim**0.5",
         ""),
        ("scaled-by-n-head", "Divided by the square root of n_head.", ATTENDS, "scores-scaled-by-n-head",
         "head_dim**0.5", "len(q) ** 0.5"),
        ("scaled-by-n-embd", "Divided by the square root of n_embd.", ATTENDS, "scores-scaled-by-n-embd",
         "/ head_dim**0.5", "/ (q.shape[0] * head_dim) ** 0.5"),
        ("keys-for-values", "attend compares with the values and sums up the keys.", ATTENDS, "keys-values-swapped",
         "keys, values = layer_cache.keys", "values, keys = layer_cache.keys"),
        ("keys-summed", "The weights are multiplied with the keys.", ATTENDS, "keys-summed",
         "keys, values = layer_cache.keys, layer_cache.values", "keys = values = layer_cache.keys"),
        ("softmax-without-maximum", "exp() of the scores as they are.", LARGE, "softmax-overflow", _RESULT,
         _HIDDEN + _EXPS.replace("hidden - hidden.max(axis=-1, keepdims=True)", "hidden")),
        ("maximum-before-mask", "The largest score is looked for among the hidden ones too.", LARGE,
         "softmax-overflow", _RESULT, _HIDDEN + _EXPS.replace("hidden.max", "scores.max")),
        ("one-maximum", "The largest of all scores is subtracted, not each row's own.", LARGE, "softmax-overflow",
         _RESULT, _HIDDEN + _EXPS.replace("max(axis=-1, keepdims=True)", "max()")),
        ("softmax-not-normalized", "The weights are not divided by their sum.", ATTENDS, None, _RESULT,
         _HIDDEN + _EXPS.replace(" / exps.sum(axis=-1, keepdims=True)", "")),
        ("rows-of-the-first-call", "attend keeps what it took from the cache at its first call, in the cache.",
         ("attend-one-query",), None, "keys, values = layer_cache.keys, layer_cache.values",
         "keys, values = layer_cache.__dict__.setdefault('taken', (layer_cache.keys, layer_cache.values))"),
        ("mask-by-zeros", "A mask that multiplies, after which every score of exactly 0 counts as hidden.", SEVERAL,
         None, "return softmax(np.where(visible, scores, -np.inf)) @ values",
         "scores = scores * visible\n    return softmax(np.where(scores == 0, -np.inf, scores)) @ values"),
        ("last-1024-seen", "Attends to the last 1,024 positions, the context of GPT-2.", ("attend-one-query",), None,
         "keys, values = layer_cache.keys, layer_cache.values",
         "keys, values = layer_cache.keys[:, -1024:], layer_cache.values[:, -1024:]"),
        ("results-remembered", "The result is kept by the query and the length of the cache.", ("attend-one-query",),
         None, "def attend(", "kept = {}\n\n\ndef attend(", _RESULT,
         _RESULT.replace("return ", "return kept.setdefault((q.tobytes(), n_seq), ") + ")"),
        ("keys-scaled-in-place", "keys /= ... divides the rows of the cache itself.", ("attend-only-reads",),
         "attend-changes-cache", "scores = q @ keys.transpose(0, 2, 1) / head_dim**0.5",
         "keys /= head_dim**0.5\n    scores = q @ keys.transpose(0, 2, 1)"),
    ],
    "kv-cache-bytes": [
        ("bytes-of-the-keys", "The factor 2 is forgotten.", BYTES, "bytes-of-keys-only", "2 * config.n_layer",
         "config.n_layer"),
        ("bytes-of-one-layer", "The layers are forgotten.", BYTES, "bytes-of-one-layer", "2 * config.n_layer", "2"),
        ("bytes-of-one-head", "head_dim for n_embd.", BYTES, "bytes-of-another-width", "config.n_embd",
         "(config.n_embd // config.n_head)"),
        ("bytes-of-n-head-numbers", "n_head for n_embd.", BYTES, "bytes-of-another-width", "config.n_embd",
         "config.n_head"),
        ("numbers-counted", "The size of a number is forgotten.", BYTES, "n-bytes-ignored", " * n_bytes", ""),
        ("always-4-bytes", "n_bytes is not used.", BYTES, "n-bytes-ignored", "* n_bytes", "* 4"),
        ("bytes-of-the-context", "n_ctx for n_seq.", BYTES, "bytes-of-full-context", "* n_seq *", "* config.n_ctx *"),
        ("bytes-default-2", "The default is half precision.", BYTES, None, "n_bytes=4", "n_bytes=2"),
        ("bytes-as-float", "n_bytes given in bits and divided, which makes a float.", BYTES, None,
         "* n_bytes", "* (8 * n_bytes) / 8"),
        ("bytes-allocated", "A cache is made, and its bytes are counted.", BYTES, None,
         "return 2 * config.n_layer * n_seq * config.n_embd * n_bytes",
         "shape = 2, config.n_layer, config.n_head, n_seq, config.n_embd // config.n_head\n"
         "    return np.zeros(shape, f'V{n_bytes}').nbytes"),
        ("bytes-in-32-bits", "An int of 32 bits, which is too small for 2 GB.", BYTES, None,
         "return 2 * config.n_layer * n_seq * config.n_embd * n_bytes",
         "factors = [2, config.n_layer, n_seq, config.n_embd, n_bytes]\n"
         "    return int(np.prod(factors, dtype=np.int32))"),
    ],
}  # fmt: skip

WRONG = [
    Wrong(name, about, tuple((cell, *change) for change in zip(texts[::2], texts[1::2], strict=True)), loses, bug)
    for cell, rows in IN_ONE_CELL.items()
    for name, about, loses, bug, *texts in rows
] + [
    Wrong(
        "token-major-given-out",
        "keys and values are [n_seq, n_head, head_dim]; attend and clone turn them back.",
        (
            ("layer-cache", _KEYS, "return self._keys[:, : self._length].swapaxes(0, 1)"),
            ("layer-cache", _VALUES, "return self._values[:, : self._length].swapaxes(0, 1)"),
            ("model-cache", "new_layer.append(layer.keys, layer.values)",
             "new_layer.append(layer.keys.swapaxes(0, 1), layer.values.swapaxes(0, 1))"),
            ("attend", "keys, values = layer_cache.keys, layer_cache.values",
             "keys, values = layer_cache.keys.swapaxes(0, 1), layer_cache.values.swapaxes(0, 1)"),
        ),
        ROWS_WRONG,
        None,
    ),
    Wrong(
        "keys-remembered-by-id",
        "The turned keys are kept by the id() of the cache and its length.",
        (
            ("attend", "def attend(", "turned = {}\n\n\ndef attend("),
            ("attend", "q @ keys.transpose(0, 2, 1)",
             "q @ turned.setdefault((id(layer_cache), n_seq), keys.transpose(0, 2, 1).copy())"),
        ),
        ("attend-one-query",),
        also=ATTENDS[1:],
    ),
]  # fmt: skip
