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

    @property
    def keys(self):
        return np.concatenate(self._k, axis=1)

    @property
    def values(self):
        return np.concatenate(self._v, axis=1)

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

    @property
    def keys(self):
        return self._rows[: self._n, 0].swapaxes(0, 1)

    @property
    def values(self):
        return self._rows[: self._n, 1].swapaxes(0, 1)

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

    @property
    def keys(self):
        return self._all(0)

    @property
    def values(self):
        return self._all(1)

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
            shares = np.exp(scores - scores.max())
            out[head, i] = shares @ values[head, :seen] / shares.sum()
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
def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


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
    Right(
        "lists-of-arrays",
        "Keeps the appended arrays in lists and joins them when they are read; a clone, which is a dict, copies them.",
        {"layer-cache": LIST_OF_ROWS, "model-cache": CLONES_LISTS, "attend": ATTEND_ROW_BY_ROW},
    ),
    Right(
        "concatenation",
        "Makes new arrays at every append, so copying the layer objects is a full clone.",
        {"layer-cache": CONCATENATING, "model-cache": SHALLOW_IS_ENOUGH, "attend": ATTEND_EINSUM},
    ),
    Right(
        "token-major",
        "One buffer, token-major, given out as head-major views; NumPy integers inside; deepcopy.",
        {"layer-cache": TOKEN_MAJOR, "model-cache": DEEPCOPIES, "kv-cache-bytes": BYTES_BY_LAYER},
    ),
    Right(
        "float64-blocks",
        "float64 in blocks of 16 positions, raises before the first append, prints.",
        {"layer-cache": FLOAT64, "model-cache": CLONES_BLOCKS, "attend": ATTEND_ADDED_MASK},
    ),
    Right(
        "one-style-each",
        "attend with an added mask and a helper function in its cell, on the solution's own cache.",
        {"attend": ATTEND_ADDED_MASK, "model-cache": DEEPCOPIES},
    ),
]

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

WRONG = [
    Wrong(
        "len-of-the-array",
        "len(array) is the size of the first axis, the heads.",
        (
            (
                "layer-cache",
                "return self._length",
                "return 0 if self._keys is None else len(self.keys)",
            ),
        ),
        ("layer-cache-length", "model-cache-layers"),
        "length-counts-heads",
    ),
    Wrong(
        "counts-appends",
        "One more for each append, however many positions it brings.",
        (
            ("layer-cache", "        self._length = 0\n", "        self._length = self._appends = 0\n"),
            ("layer-cache", "        self._length = end\n", "        self._length = end\n        self._appends += 1\n"),
            ("layer-cache", "return self._length", "return self._appends"),
        ),
        ("layer-cache-length", "model-cache-layers"),
        "length-counts-appends",
    ),
    Wrong(
        "length-of-the-newest",
        "len() is what the last append brought.",
        (
            (
                "layer-cache",
                "        self._length = end\n",
                "        self._length = end\n        self._newest = k.shape[1]\n",
            ),
            ("layer-cache", "return self._length", "return self._newest if self._length else 0"),
        ),
        ("layer-cache-length", "model-cache-layers"),
        "length-of-last-append",
    ),
    Wrong(
        "keys-and-values-counted",
        "A position counts twice, once for its key and once for its value.",
        (("layer-cache", "return self._length", "return 2 * self._length"),),
        ("layer-cache-length", "model-cache-layers"),
        "length-counts-twice",
    ),
    Wrong(
        "class-attributes",
        "The buffers are class attributes that every LayerCache starts from.",
        (
            (
                "layer-cache",
                "        self._length = 0\n",
                "        self._length = 0\n        self.__dict__ = self.shared\n",
            ),
            (
                "layer-cache",
                '    """The keys and values of one layer."""\n',
                '    shared = {"_keys": None, "_values": None, "_length": 0}\n',
            ),
        ),
        ("layer-cache-length", *ROWS_WRONG),
        "caches-share-state",
    ),
    Wrong(
        "rows-lost-in-growth",
        "The larger buffer starts empty: the old rows are not copied.",
        (
            (
                "layer-cache",
                "            larger[:, : self._length] = buffer[:, : self._length]\n",
                "            larger[:] = 0\n",
            ),
        ),
        ("layer-cache-rows", "model-cache-layers", "clone-independent"),
        "growth-loses-rows",
    ),
    Wrong(
        "buffer-never-grows",
        "A buffer of 16 rows; what lies past its end is cut off by the slice.",
        (("layer-cache", " or end > self._keys.shape[1]:", ":"), ("layer-cache", _ROOM, "16, new")),
        ("layer-cache-rows", "clone-equal", "clone-independent", "attend-one-query", "attend-several-queries"),
        "buffer-never-grows",
    ),
    Wrong(
        "doubles-once",
        "The buffer is doubled once, which is too little for a long chunk.",
        (("layer-cache", _ROOM, "(16 if buffer is None else 2 * buffer.shape[1]), new"),),
        ("layer-cache-rows", "clone-equal", "clone-independent", "attend-one-query", "attend-several-queries"),
        "growth-too-small",
    ),
    Wrong(
        "room-for-1024",
        "A buffer of 1,024 rows, made at the first append.",
        (("layer-cache", " or end > self._keys.shape[1]:", ":"), ("layer-cache", _ROOM, "1024, new")),
        ("layer-cache-rows",),
        "room-made-once",
    ),
    Wrong(
        "newest-row-left-out",
        "keys and values end one row too early.",
        (
            (
                "layer-cache",
                "return None if self._keys is None else self._keys[:, : self._length]",
                "return self._keys[:, : self._length - 1]",
            ),
            (
                "layer-cache",
                "return None if self._values is None else self._values[:, : self._length]",
                "return self._values[:, : self._length - 1]",
            ),
        ),
        ROWS_WRONG,
        "last-row-cut",
    ),
    Wrong(
        "stored-twice",
        "What is appended is written two times.",
        (
            (
                "layer-cache",
                "end = self._length + k.shape[1]",
                "k, v = (np.concatenate([a, a], axis=1) for a in (k, v))\n        end = self._length + k.shape[1]",
            ),
            ("layer-cache", "return self._length", "return self._length // 2"),
        ),
        ROWS_WRONG,
        "rows-stored-twice",
    ),
    Wrong(
        "whole-buffer",
        "keys and values give out the spare rows as well.",
        (
            (
                "layer-cache",
                "return None if self._keys is None else self._keys[:, : self._length]",
                "return self._keys",
            ),
            (
                "layer-cache",
                "return None if self._values is None else self._values[:, : self._length]",
                "return self._values",
            ),
        ),
        ROWS_WRONG,
        "spare-rows-returned",
    ),
    Wrong(
        "keys-and-values-exchanged",
        "append stores k among the values and v among the keys.",
        (
            ("layer-cache", "self._length : end] = k", "self._length : end] = v"),
            ("layer-cache", "self._values[:, self._length : end] = v", "self._values[:, self._length : end] = k"),
        ),
        ROWS_WRONG,
        "cache-keys-values-exchanged",
    ),
    Wrong(
        "keys-stored-twice",
        "A line pasted and half changed: the values are the keys.",
        (("layer-cache", "self._values[:, self._length : end] = v", "self._values[:, self._length : end] = k"),),
        ROWS_WRONG,
        "cache-values-are-keys",
    ),
    Wrong(
        "replaces-instead-of-adding",
        "Every append starts at row 0 again.",
        (("layer-cache", "end = self._length + k.shape[1]", "self._length = 0\n        end = k.shape[1]"),),
        ("layer-cache-length", "layer-cache-rows", "model-cache-layers", "clone-independent", *ATTENDS),
        "only-newest-kept",
    ),
    Wrong(
        "first-row-of-a-chunk",
        "append stores one row, although a chunk brings several.",
        (
            (
                "layer-cache",
                "end = self._length + k.shape[1]",
                "k, v = k[:, :1], v[:, :1]\n        end = self._length + 1",
            ),
        ),
        ("layer-cache-length", *ROWS_WRONG),
        "chunk-first-row-only",
    ),
    Wrong(
        "half-precision",
        "The buffers are float16.",
        (("layer-cache", "new.shape[2]), np.float32", "new.shape[2]), np.float16"),),
        ROWS_WRONG,
        "half-precision",
    ),
    Wrong(
        "token-major-given-out",
        "keys and values are [n_seq, n_head, head_dim]; attend and clone turn them back.",
        (
            (
                "layer-cache",
                "return None if self._keys is None else self._keys[:, : self._length]",
                "return self._keys[:, : self._length].swapaxes(0, 1)",
            ),
            (
                "layer-cache",
                "return None if self._values is None else self._values[:, : self._length]",
                "return self._values[:, : self._length].swapaxes(0, 1)",
            ),
            (
                "model-cache",
                "new_layer.append(layer.keys, layer.values)",
                "new_layer.append(layer.keys.swapaxes(0, 1), layer.values.swapaxes(0, 1))",
            ),
            (
                "attend",
                "keys, values = layer_cache.keys, layer_cache.values",
                "keys, values = layer_cache.keys.swapaxes(0, 1), layer_cache.values.swapaxes(0, 1)",
            ),
        ),
        ROWS_WRONG,
        "token-major-returned",
    ),
    Wrong(
        "one-layer-object",
        "[LayerCache()] * n_layer is n_layer times the same object.",
        (("model-cache", "[LayerCache() for _ in range(n_layer)]", "[LayerCache()] * n_layer"),),
        ("model-cache-layers", "clone-equal", "clone-independent"),
        "layers-are-one-object",
    ),
    Wrong(
        "twelve-layers",
        "The number of layers is that of the model at hand.",
        (("model-cache", "[LayerCache() for _ in range(n_layer)]", "[LayerCache() for _ in range(12)]"),),
        ("model-cache-layers", "clone-equal", "clone-independent"),
        "number-of-layers-fixed",
    ),
    Wrong(
        "len-of-layers",
        "len(self.layers) instead of the length of one of them.",
        (("model-cache", "return len(self.layers[0]) if self.layers else 0", "return len(self.layers)"),),
        ("model-cache-layers",),
        "length-counts-layers",
    ),
    Wrong(
        "len-of-second-layer",
        "The length of a layer that a model of one layer does not have.",
        (("model-cache", "len(self.layers[0])", "len(self.layers[1])"),),
        ("model-cache-layers",),
    ),
    Wrong(
        "rows-compared-with-heads",
        "Looks at the number of heads to see whether the buffer is full.",
        (("layer-cache", "end > self._keys.shape[1]", "end > self._keys.shape[0]"),),
        ("layer-cache-rows",),
    ),
    Wrong(
        "len-summed",
        "The lengths of all layers added up.",
        (("model-cache", "return len(self.layers[0]) if self.layers else 0", "return sum(map(len, self.layers))"),),
        ("model-cache-layers",),
        "length-summed-over-layers",
    ),
    Wrong(
        "clone-shallow",
        "A new list of the same layer objects.",
        (
            (
                "model-cache",
                "        for layer, new_layer in zip(self.layers, copy.layers, strict=True):\n"
                "            if len(layer):\n"
                "                new_layer.append(layer.keys, layer.values)\n",
                "        copy.layers = list(self.layers)\n",
            ),
        ),
        ("clone-independent",),
        "clone-shallow",
    ),
    Wrong(
        "clone-of-the-first-layer",
        "The first layer is copied, the others are shared.",
        (
            (
                "model-cache",
                "        for layer, new_layer in zip(self.layers, copy.layers, strict=True):\n"
                "            if len(layer):\n"
                "                new_layer.append(layer.keys, layer.values)\n",
                "        if len(self):\n"
                "            copy.layers[0].append(self.layers[0].keys, self.layers[0].values)\n"
                "        copy.layers[1:] = self.layers[1:]\n",
            ),
        ),
        ("clone-independent",),
        "clone-shares-some-layers",
    ),
    Wrong(
        "clone-shares-buffers",
        "The layer objects are copied, their buffers are not.",
        (
            (
                "model-cache",
                "            if len(layer):\n                new_layer.append(layer.keys, layer.values)\n",
                "            new_layer.__dict__.update(layer.__dict__)\n",
            ),
        ),
        ("clone-independent",),
        "clone-shares-buffer",
    ),
    Wrong(
        "clone-of-empty-is-itself",
        "An empty cache has nothing to copy, so clone returns the cache itself.",
        (
            (
                "model-cache",
                "        copy = ModelCache",
                "        if len(self) == 0:\n            return self\n        copy = ModelCache",
            ),
        ),
        ("clone-independent",),
        "clone-of-empty-shared",
    ),
    Wrong(
        "clone-from-a-snapshot",
        "The first clone's rows are kept, and every later clone gets them.",
        (
            (
                "model-cache",
                "zip(self.layers, copy.layers, strict=True)",
                "zip(vars(self).setdefault('kept', __import__('copy').deepcopy(self.layers)), copy.layers)",
            ),
        ),
        ("clone-independent",),
        "clone-outdated",
    ),
    Wrong(
        "clone-without-its-last-row",
        "The slice of the rows to be copied ends one too early.",
        (
            (
                "model-cache",
                "new_layer.append(layer.keys, layer.values)",
                "new_layer.append(layer.keys[:, :-1], layer.values[:, :-1])",
            ),
        ),
        ("clone-equal", "clone-independent"),
        "clone-loses-a-row",
    ),
    Wrong(
        "clone-layers-alike",
        "Every layer of the clone gets the rows of the first.",
        (
            (
                "model-cache",
                "new_layer.append(layer.keys, layer.values)",
                "new_layer.append(self.layers[0].keys, self.layers[0].values)",
            ),
        ),
        ("clone-equal", "clone-independent"),
        "clone-layers-alike",
    ),
    Wrong(
        "clone-empty",
        "A new cache of the same shape, without its rows.",
        (("model-cache", "            if len(layer):\n", "            if len(new_layer):\n"),),
        ("clone-equal", "clone-independent"),
        "clone-empty",
    ),
    Wrong(
        "clone-returns-in-the-loop",
        "The return stands in the loop, so one layer is copied.",
        (("model-cache", "        return copy", "            return copy"),),
        ("clone-equal", "clone-independent"),
        "clone-copies-one-layer",
    ),
    Wrong(
        "clone-not-returned",
        "The return is forgotten.",
        (("model-cache", "        return copy", "        return None"),),
        ("clone-equal", "clone-independent"),
        "clone-not-returned",
    ),
    Wrong(
        "clone-mixes-keys-and-values",
        "clone appends values and keys in the wrong order.",
        (("model-cache", "new_layer.append(layer.keys, layer.values)", "new_layer.append(layer.values, layer.keys)"),),
        ("clone-equal", "clone-independent"),
        "clone-mixes-keys-and-values",
    ),
    Wrong(
        "clone-takes-the-rows",
        "The clone gets the layers and the original new, empty ones.",
        (
            (
                "model-cache",
                "        return copy",
                "        self.layers = [LayerCache() for _ in self.layers]\n        return copy",
            ),
        ),
        ("clone-equal", "clone-independent"),
        "clone-takes-the-rows",
    ),
    Wrong(
        "no-mask",
        "Every query sees every key.",
        (("attend", _RESULT, "return softmax(scores) @ values"),),
        ("attend-several-queries",),
        "no-causal-mask",
    ),
    Wrong(
        "mask-without-offset",
        "The mask of the forward pass: query i sees the keys 0 to i.",
        (("attend", _VISIBLE, "np.tri(n_query, n_seq, dtype=bool)"),),
        ATTENDS,
        "mask-without-offset",
    ),
    Wrong(
        "mask-multiplied",
        "The scores are multiplied by the mask, so hidden ones are 0.",
        (("attend", _RESULT, "return softmax(scores * visible) @ values"),),
        ("attend-several-queries",),
        "attend-mask-as-zero",
    ),
    Wrong(
        "mask-of-minus-100",
        "Hidden scores are -100, which visible ones may fall below.",
        (("attend", "scores, -np.inf", "scores, -100"),),
        ("attend-large-scores",),
        "attend-mask-too-small",
    ),
    Wrong(
        "queries-scaled-in-place",
        "q /= ... divides the caller's queries.",
        (
            (
                "attend",
                "scores = q @ keys.transpose(0, 2, 1) / head_dim**0.5",
                "q /= head_dim**0.5\n    scores = q @ keys.transpose(0, 2, 1)",
            ),
        ),
        ("attend-only-reads",),
        "input-changed",
    ),
    Wrong(
        "mask-shows-the-next-token",
        "One column too many: a token also sees the key after its own.",
        (("attend", "k=n_seq - n_query,", "k=n_seq - n_query + 1,"),),
        ("attend-several-queries",),
        "mask-sees-next",
    ),
    Wrong(
        "mask-hides-the-token-itself",
        "One column too few: a token does not see its own key.",
        (("attend", "k=n_seq - n_query,", "k=n_seq - n_query - (n_query > 1),"),),
        ("attend-several-queries",),
        "attend-mask-hides-self",
    ),
    Wrong(
        "mask-after-softmax",
        "Hidden weights become 0 after the softmax.",
        (("attend", _RESULT, "return visible * softmax(scores) @ values"),),
        ("attend-several-queries",),
        "attend-mask-after-softmax",
    ),
    Wrong(
        "softmax-over-queries",
        "The softmax along the wrong axis.",
        (("attend", _RESULT, _HIDDEN + _EXPS.replace("axis=-1", "axis=-2")),),
        ATTENDS,
        "attend-softmax-over-queries",
    ),
    Wrong(
        "softmax-over-heads",
        "The softmax along the axis of the heads.",
        (
            (
                "attend",
                _RESULT,
                _HIDDEN + "hidden = np.where(visible, scores, -1e30)\n    " + _EXPS.replace("axis=-1", "axis=0"),
            ),
        ),
        ATTENDS,
        "attend-softmax-over-heads",
    ),
    Wrong(
        "no-softmax",
        "The scores are the weights.",
        (("attend", _RESULT, "return np.where(visible, scores, 0) @ values"),),
        ATTENDS,
        "attend-no-softmax",
    ),
    Wrong(
        "scaled-without-root",
        "Divided by head_dim.",
        (("attend", "/ head_dim**0.5", "/ head_dim"),),
        ATTENDS,
        "attend-scores-no-root",
    ),
    Wrong(
        "unscaled",
        "The division by sqrt(head_dim) is forgotten.",
        (("attend", " / head_dim**0.5", ""),),
        ATTENDS,
        "scores-unscaled",
    ),
    Wrong(
        "scaled-by-n-embd",
        "Divided by the square root of n_embd.",
        (("attend", "/ head_dim**0.5", "/ (q.shape[0] * head_dim) ** 0.5"),),
        ATTENDS,
        "scores-scaled-by-n-embd",
    ),
    Wrong(
        "keys-for-values",
        "attend compares with the values and sums up the keys.",
        (("attend", "keys, values = layer_cache.keys", "values, keys = layer_cache.keys"),),
        ATTENDS,
        "keys-values-swapped",
    ),
    Wrong(
        "softmax-without-maximum",
        "exp() of the scores as they are.",
        (("attend", _RESULT, _HIDDEN + _EXPS.replace("hidden - hidden.max(axis=-1, keepdims=True)", "hidden")),),
        ("attend-large-scores",),
        "attend-softmax-overflow",
    ),
    Wrong(
        "maximum-before-mask",
        "The largest score is looked for among the hidden ones too.",
        (("attend", _RESULT, _HIDDEN + _EXPS.replace("hidden.max", "scores.max")),),
        ("attend-large-scores",),
        "attend-hidden-maximum",
    ),
    Wrong(
        "one-maximum",
        "The largest of all scores is subtracted, not each row's own.",
        (("attend", _RESULT, _HIDDEN + _EXPS.replace("max(axis=-1, keepdims=True)", "max()")),),
        ("attend-large-scores",),
        "attend-one-maximum",
    ),
    Wrong(
        "softmax-not-normalized",
        "The weights are not divided by their sum.",
        (("attend", _RESULT, _HIDDEN + _EXPS.replace(" / exps.sum(axis=-1, keepdims=True)", "")),),
        ATTENDS,
        "attend-weights-not-normalized",
    ),
    Wrong(
        "rows-of-the-first-call",
        "attend keeps what it took from the cache at its first call, in the cache.",
        (
            (
                "attend",
                "keys, values = layer_cache.keys, layer_cache.values",
                "keys, values = layer_cache.__dict__.setdefault('taken', (layer_cache.keys, layer_cache.values))",
            ),
        ),
        ("attend-one-query",),
        "attend-remembers-the-cache",
    ),
    Wrong(
        "keys-scaled-in-place",
        "keys /= ... divides the rows of the cache itself.",
        (
            (
                "attend",
                "scores = q @ keys.transpose(0, 2, 1) / head_dim**0.5",
                "keys /= head_dim**0.5\n    scores = q @ keys.transpose(0, 2, 1)",
            ),
        ),
        ("attend-only-reads",),
        "attend-changes-cache",
    ),
    Wrong(
        "bytes-of-the-keys",
        "The factor 2 is forgotten.",
        (("kv-cache-bytes", "2 * config.n_layer", "config.n_layer"),),
        ("memory-bytes",),
        "bytes-of-keys-only",
    ),
    Wrong(
        "bytes-of-one-layer",
        "The layers are forgotten.",
        (("kv-cache-bytes", "2 * config.n_layer", "2"),),
        ("memory-bytes",),
        "bytes-of-one-layer",
    ),
    Wrong(
        "bytes-of-one-head",
        "head_dim for n_embd.",
        (("kv-cache-bytes", "config.n_embd", "(config.n_embd // config.n_head)"),),
        ("memory-bytes",),
        "bytes-of-one-head",
    ),
    Wrong(
        "bytes-of-all-heads-twice",
        "Multiplied by n_head, which n_embd has in it.",
        (("kv-cache-bytes", "config.n_embd", "config.n_head * config.n_embd"),),
        ("memory-bytes",),
        "bytes-heads-twice",
    ),
    Wrong(
        "numbers-counted",
        "The size of a number is forgotten.",
        (("kv-cache-bytes", " * n_bytes", ""),),
        ("memory-bytes",),
        "numbers-not-bytes",
    ),
    Wrong(
        "always-4-bytes",
        "n_bytes is not used.",
        (("kv-cache-bytes", "* n_bytes", "* 4"),),
        ("memory-bytes",),
        "n-bytes-ignored",
    ),
    Wrong(
        "bytes-of-the-context",
        "n_ctx for n_seq.",
        (("kv-cache-bytes", "* n_seq *", "* config.n_ctx *"),),
        ("memory-bytes",),
        "bytes-of-full-context",
    ),
    Wrong(
        "bytes-default-2",
        "The default is half precision.",
        (("kv-cache-bytes", "n_bytes=4", "n_bytes=2"),),
        ("memory-bytes",),
        "bytes-default-not-4",
    ),
    Wrong(
        "bytes-as-float",
        "n_bytes given in bits and divided, which makes a float.",
        (("kv-cache-bytes", "* n_bytes", "* (8 * n_bytes) / 8"),),
        ("memory-bytes",),
        "bytes-as-float",
    ),
]
