"""Sample submissions of save-and-reuse."""

from __future__ import annotations

from autograder.stages.samples import Right, Wrong

# Right ones: each brings a cache of its own

_LISTS = """
class LayerCache:
    def __init__(self):
        self.k, self.v = [], []

    def append(self, k, v):
        self.k.append(np.array(k))
        self.v.append(np.array(v))

    @property
    def keys(self):
        return np.concatenate(self.k, axis=1)

    @property
    def values(self):
        return np.concatenate(self.v, axis=1)

    def __len__(self):
        return sum(k.shape[1] for k in self.k)


class ModelCache(list):
    def __init__(self, n_layer):
        super().__init__(LayerCache() for _ in range(n_layer))

    layers = property(lambda self: self)

    def clone(self):
        other = ModelCache(len(self))
        for mine, its in zip(self, other):
            its.k, its.v = list(mine.k), list(mine.v)  # the arrays are never written to
        return other


def save_prefix_cache(prefix_ids, weights):
    if not prefix_ids:
        raise ValueError("nothing to save")
    saved = ModelCache(weights.config.n_layer)
    for position, token_id in enumerate(prefix_ids):
        decode_step(token_id, position, weights, saved)
    return saved
"""

_TOKEN_BY_TOKEN = """
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    if not suffix_ids:
        raise ValueError("nothing to decode")
    work = saved.clone()
    logits = None
    for i, token_id in enumerate(suffix_ids):
        logits = decode_step(token_id, prefix_len + i, weights, work)
    return logits
"""

_PREALLOCATED = """
class LayerCache:
    def __init__(self, room=8):
        self.room, self.n, self.kv = room, 0, None

    def append(self, k, v):
        n_head, n_new, head_dim = k.shape
        if self.kv is None:
            self.kv = np.zeros((2, n_head, self.room, head_dim), dtype=np.float32)
        while self.n + n_new > self.room:
            self.kv = np.concatenate([self.kv, np.zeros_like(self.kv)], axis=2)
            self.room *= 2
        self.kv[0, :, self.n:self.n + n_new] = k
        self.kv[1, :, self.n:self.n + n_new] = v
        self.n += n_new

    keys = property(lambda self: self.kv[0, :, :self.n])
    values = property(lambda self: self.kv[1, :, :self.n])

    def __len__(self):
        return self.n


class ModelCache:
    def __init__(self, n_layer):
        self.layers = [LayerCache() for _ in range(n_layer)]

    def __len__(self):
        return self.layers[-1].n

    def clone(self):
        import copy

        return copy.deepcopy(self)


def save_prefix_cache(prefix_ids, weights):
    cache = ModelCache(weights.config.n_layer)
    advance(prefix_ids, 0, weights, cache)
    return cache
"""

_CONCATENATED = """
class LayerCache:
    def __init__(self):
        self.keys = self.values = None

    def append(self, k, v):
        self.keys = k.copy() if self.keys is None else np.concatenate((self.keys, k), axis=1)
        self.values = v.copy() if self.values is None else np.concatenate((self.values, v), axis=1)
        self.keys.flags.writeable = self.values.flags.writeable = False

    def __len__(self):
        return 0 if self.keys is None else self.keys.shape[1]


class ModelCache:
    def __init__(self, n_layer):
        self.layers = [LayerCache() for _ in range(n_layer)]

    def __len__(self):
        return len(self.layers[0])

    def clone(self):
        new = ModelCache(len(self.layers))
        for a, b in zip(self.layers, new.layers):
            b.keys, b.values = a.keys, a.values  # append replaces arrays and never writes into one
        return new


def save_prefix_cache(prefix_ids, weights):
    import warnings

    warnings.warn("saving a prefix takes a moment")
    cache = ModelCache(weights.config.n_layer)
    for begin in range(0, max(1, len(prefix_ids)), 4):
        prefill(prefix_ids[begin:begin + 4], weights, cache)
    print("saved", len(cache), "tokens")
    return cache
"""

_TOKEN_MAJOR = '''
class LayerCache:
    """Rows of tokens, [n_seq, n_head, head_dim], shown with the heads first."""

    def __init__(self):
        self.k_rows, self.v_rows = [], []

    def append(self, k, v):
        self.k_rows.extend(np.transpose(k, (1, 0, 2)).astype(np.float32))
        self.v_rows.extend(np.transpose(v, (1, 0, 2)).astype(np.float32))

    @property
    def keys(self):
        return np.asarray(self.k_rows).transpose(1, 0, 2)

    @property
    def values(self):
        return np.asarray(self.v_rows).transpose(1, 0, 2)

    def __len__(self):
        return len(self.k_rows)


class ModelCache:
    def __init__(self, n_layer):
        self.layers = [LayerCache() for _ in range(n_layer)]

    def __len__(self):
        return len(self.layers[0])

    def clone(self):
        copied = ModelCache(len(self.layers))
        for old, new in zip(self.layers, copied.layers):
            new.append(old.keys, old.values)
        return copied


def save_prefix_cache(prefix_ids, weights):
    cache = ModelCache(weights.config.n_layer)
    prefill(prefix_ids, weights, cache)
    return cache
'''

_FIRST_ROWS = """
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    if prefix_len < 0 or not suffix_ids:
        raise ValueError("there is no such prefix, or no suffix")
    cache = ModelCache(len(saved.layers))
    for old, new in zip(saved.layers, cache.layers):
        new.append(old.keys[:, :prefix_len], old.values[:, :prefix_len])
    return advance(suffix_ids, prefix_len, weights, cache)
"""

_FLOAT64 = '''
class LayerCache:
    def __init__(self):
        self.parts = ([], [])

    def append(self, k, v):
        for part, array in zip(self.parts, (k, v)):
            part.append(np.asarray(array, dtype=np.float64))

    keys = property(lambda self: np.hstack(self.parts[0]))
    values = property(lambda self: np.hstack(self.parts[1]))

    def __len__(self):
        return sum(part.shape[1] for part in self.parts[0])


class ModelCache:
    def __init__(self, n_layer):
        self.layers = [LayerCache() for _ in range(n_layer)]

    def __len__(self):
        return len(self.layers[0])

    def clone(self):
        from copy import deepcopy

        return deepcopy(self)


def in_float64(array):
    return np.asarray(array, dtype=np.float64)


def run(ids, position, weights, cache):
    """The whole pass in float64."""
    config = weights.config
    if not len(ids) or position < 0 or position + len(ids) > config.n_ctx:
        raise ValueError("these positions do not fit")
    if any(not 0 <= i < config.n_vocab for i in ids):
        raise IndexError("no such token")
    from given import attend, gelu, layer_norm

    x = in_float64(weights.wte)[ids] + in_float64(weights.wpe)[position:position + len(ids)]
    n, e = x.shape
    for block, layer in zip(weights.blocks, cache.layers):
        h = layer_norm(x, in_float64(block.ln_1.weight), in_float64(block.ln_1.bias))
        h = h @ in_float64(block.attn.c_attn.weight) + in_float64(block.attn.c_attn.bias)
        q, k, v = (np.swapaxes(p.reshape(n, config.n_head, -1), 0, 1) for p in np.split(h, 3, axis=1))
        layer.append(k, v)
        h = np.swapaxes(attend(q, layer), 0, 1).reshape(n, e)
        x = x + h @ in_float64(block.attn.c_proj.weight) + in_float64(block.attn.c_proj.bias)
        h = layer_norm(x, in_float64(block.ln_2.weight), in_float64(block.ln_2.bias))
        h = gelu(h @ in_float64(block.mlp.c_fc.weight) + in_float64(block.mlp.c_fc.bias))
        x = x + h @ in_float64(block.mlp.c_proj.weight) + in_float64(block.mlp.c_proj.bias)
    return layer_norm(x[-1], in_float64(weights.ln_f.weight), in_float64(weights.ln_f.bias)) @ weights.wte.T


def save_prefix_cache(prefix_ids, weights):
    cache = ModelCache(weights.config.n_layer)
    run(prefix_ids, 0, weights, cache)
    return cache
'''

_FLOAT64_REUSE = """
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    return run(suffix_ids, prefix_len, weights, saved.clone())
"""

_NPZ_WRITE = '''
def write_prefix_cache(path, saved, prefix_ids, weights):
    """A NumPy archive with everything stacked; the file object keeps np.savez from adding an ending."""
    with open(path, "wb") as file:
        np.savez(
            file,
            ids=np.array(prefix_ids),
            kv=np.stack([np.stack([layer.keys, layer.values]) for layer in saved.layers]),
            model=np.array(autograder.model_fingerprint(weights)),
        )
'''

_NPZ_READ = """
def read_prefix_cache(path, weights):
    try:
        with np.load(path, allow_pickle=False) as archive:
            ids, kv, model = archive["ids"], archive["kv"], str(archive["model"])
    except Exception as error:
        raise ValueError(f"the file is damaged: {error}") from error
    if model != autograder.model_fingerprint(weights):
        raise ValueError("model: another one")
    if kv.shape[3] != len(ids):
        raise ValueError("ids: not as many as rows")
    if not all(0 <= i < weights.config.n_vocab for i in ids):
        raise ValueError("ids: not in the vocabulary")
    if not np.all(np.isfinite(kv)):
        raise ValueError("kv: not finite")
    cache = ModelCache(len(kv))
    for layer, (keys, values) in zip(cache.layers, kv):
        layer.append(keys, values)
    return cache, list(ids)
"""

_TAR_WRITE = '''
import io
import json
import tarfile


def write_prefix_cache(path, saved, prefix_ids, weights):
    """A tar file, which ends in blocks of zeros."""
    tensors = {"prefix_ids": np.asarray(prefix_ids, np.int64)}
    for i, layer in enumerate(saved.layers):
        tensors |= {f"layers.{i}.keys": layer.keys, f"layers.{i}.values": layer.values}
    check_tensors(tensors, weights)
    contents = {"facts": json.dumps(cache_facts(prefix_ids, weights)).encode()}
    for name, array in tensors.items():
        file = io.BytesIO()
        np.save(file, array)
        contents[name] = file.getvalue()
    with tarfile.open(path, "w") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
'''

_TAR_READ = """
def read_prefix_cache(path, weights):
    try:
        with tarfile.open(path) as tar:
            contents = {member.name: tar.extractfile(member).read() for member in tar}
        facts = json.loads(contents.pop("facts"))
        tensors = {name: np.load(io.BytesIO(content)) for name, content in contents.items()}
    except (tarfile.TarError, OSError, KeyError, EOFError) as error:
        raise ValueError(f"file: {error}") from error
    prefix_ids = tensors["prefix_ids"].tolist() if "prefix_ids" in tensors else []
    if facts != cache_facts(prefix_ids, weights):
        raise ValueError("facts: not those of this model and these ids")
    check_tensors(tensors, weights)
    saved = ModelCache(weights.config.n_layer)
    for i, layer in enumerate(saved.layers):
        layer.append(tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"])
    return saved, prefix_ids
"""

_STRICT_LENGTH = """
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    if prefix_len != len(saved):
        raise ValueError(f"prefix_len is {prefix_len}, and the cache holds {len(saved)} tokens")
    if not 1 <= len(suffix_ids) <= weights.config.n_ctx - prefix_len:
        raise ValueError("the suffix is empty or does not fit")
    return prefill(suffix_ids, weights, saved.clone())
"""

# Five styles, and the ways in which people are wrong most often
IN_CLASS = (
    *("lists", "preallocated", "concatenated", "token-major", "float64"),
    *("positions-reset", "positions-plus-one", "saved-cache-mutated", "shallow-clone", "one-layer-cloned"),
    *("prefix-one-short", "first-suffix-logits", "recomputes", "empty-suffix", "no-fingerprint", "raises", "unsolved"),
)

RIGHT = [
    Right(
        "lists",
        "The cache is a list of layers, and a layer has a list of arrays; the suffix is decoded token by token.",
        {"save-prefix-cache": _LISTS, "generate-with-prefix": _TOKEN_BY_TOKEN},
    ),
    Right(
        "preallocated",
        "One buffer for keys and values, doubled when full; a file whose end can be cut off without a loss.",
        {"save-prefix-cache": _PREALLOCATED, "write-prefix-cache": _TAR_WRITE, "read-prefix-cache": _TAR_READ},
    ),
    Right(
        "concatenated",
        "np.concatenate at every append; clones share write-protected arrays; prints and warns.",
        {"save-prefix-cache": _CONCATENATED, "generate-with-prefix": _TOKEN_BY_TOKEN},
    ),
    Right(
        "token-major",
        "Rows of tokens inside, heads first outside; a request reads the first prefix_len of them.",
        {"save-prefix-cache": _TOKEN_MAJOR, "generate-with-prefix": _FIRST_ROWS},
    ),
    Right(
        "float64",
        "Everything in float64, with a pass and a file of its own.",
        {
            "save-prefix-cache": _FLOAT64,
            "generate-with-prefix": _FLOAT64_REUSE,
            "cache-facts": "",
            "check-tensors": "",
            "write-prefix-cache": _NPZ_WRITE,
            "read-prefix-cache": _NPZ_READ,
        },
    ),
    Right(
        "strict-length",
        "A prefix_len other than the cache's length is an error; NumPy's own file format.",
        {"generate-with-prefix": _STRICT_LENGTH, "write-prefix-cache": _NPZ_WRITE, "read-prefix-cache": _NPZ_READ},
    ),
]

# Wrong ones: the solution with one mistake

SAVE, REUSE, FACTS, TENSORS, WRITE, READ = (
    "save-prefix-cache",
    "generate-with-prefix",
    "cache-facts",
    "check-tensors",
    "write-prefix-cache",
    "read-prefix-cache",
)
EXACT, EQUAL, POSITION, PRISTINE, IN_TURN, USED, REFUSALS, ROUND_TRIP, FILE_REFUSALS = ALL = (
    "saved-prefix-exact",
    "reuse-equals-recompute",
    "position-continues",
    "saved-stays-pristine",
    "requests-in-turn",
    "cache-is-used",
    "reuse-refusals",
    "cache-file-round-trip",
    "cache-file-refusals",
)
TOGETHER = (EQUAL, POSITION, PRISTINE, IN_TURN, USED)  # the checks of reuse, which hold or fail as a whole
ANSWERS = (*TOGETHER, REFUSALS)  # the checks that look for right answers

_ADVANCE = "return advance(suffix_ids, prefix_len, weights, cache)"
_PREFILL = "prefill(prefix_ids, weights, saved)"
_CLONE = "cache = saved.clone()"


def _answer(text: str) -> tuple[tuple[str, str, str], ...]:
    return ((REUSE, _ADVANCE, text),)


def _loop(step: str) -> tuple[tuple[str, str, str], ...]:
    return _answer(f"for i, token_id in enumerate(suffix_ids):\n        {step}\n    return logits")


# fmt: off
WRONG = [
    Wrong("not-a-cache", "The cache and the logits are returned.",
          ((SAVE, "return saved", "return saved, weights.wte[0]"),), (EXACT, *ANSWERS), "not-a-cache"),
    Wrong("one-written-twice", "The keys are written as values too.",
          ((WRITE, "    check_tensors(", """    for i in range(len(saved.layers)):
        tensors[f"layers.{i}.values"] = tensors[f"layers.{i}.keys"]
    check_tensors("""),), (ROUND_TRIP, FILE_REFUSALS)),
    Wrong(
        "unsolved",
        "The stubs as released.",
        tuple(
            (mark, before, 'raise NotImplementedError("write me")\n    ' + before)
            for mark, before in (
                (SAVE, "saved = ModelCache("),
                (REUSE, "if len(suffix_ids)"),
                (WRITE, "tensors = as_tensors("),
                (READ, "try:"),
            )
        ),
        ALL,
        "not-written",
    ),
    Wrong("positions-reset", "The suffix begins at position 0.",
          _answer("return advance(suffix_ids, 0, weights, cache)"), ANSWERS, "positions-reset"),
    Wrong("positions-plus-one", "Positions counted from 1.",
          _loop("logits = decode_step(token_id, prefix_len + i + 1, weights, cache)"), ANSWERS,
          "positions-shifted-+1"),
    Wrong("positions-minus-one", "The last prefix position is used again.",
          _answer("return advance(suffix_ids, prefix_len - 1, weights, cache)"), ANSWERS, "positions-shifted--1"),
    Wrong("positions-plus-six", "The padding of a batch is counted along: every position is six too far on.",
          _answer("return advance(suffix_ids, prefix_len + 6, weights, cache)"), ANSWERS, "positions-shifted-+6"),
    Wrong("positions-minus-six", "And the other way round.",
          _answer("return advance(suffix_ids, prefix_len - 6, weights, cache)"), ANSWERS, "positions-shifted--6"),
    Wrong("positions-counted-twice", "The length of the cache is added to prefix_len.",
          _loop("logits = decode_step(token_id, prefix_len + len(cache), weights, cache)"), ANSWERS,
          "positions-counted-twice"),
    Wrong("position-stuck", "The loop forgets to add i.",
          _loop("logits = decode_step(token_id, prefix_len, weights, cache)"), ANSWERS, "position-stuck"),
    Wrong("prefix-len-ignored", "prefill takes the position from the cache, so prefix_len is never read.",
          _answer("return prefill(suffix_ids, weights, cache)"), (POSITION, REFUSALS), "prefix-len-ignored"),
    Wrong("saved-cache-mutated", "No clone.", ((REUSE, _CLONE, "cache = saved"),), TOGETHER, "saved-cache-grows"),
    Wrong("shallow-clone", "A clone with layers of its own whose buffers are shared.",
          ((SAVE, "def save_prefix_cache(", "import copy\n\n\nclass ModelCache(ModelCache):\n    def clone(self):\n"
          "        other = copy.copy(self)\n        other.layers = [copy.copy(layer) for layer in self.layers]\n"
          "        return other\n\n\ndef save_prefix_cache("),), (IN_TURN,), "clones-share-memory"),
    Wrong("one-layer-cloned", "Only the first layer is copied.",
          ((REUSE, _CLONE,
          "cache = ModelCache(0)\n    cache.layers = [saved.clone().layers[0], *saved.layers[1:]]"),), TOGETHER,
          "clone-incomplete"),
    Wrong("cut-back-at-the-end", "The suffix is appended to the saved cache and taken off afterwards.",
          ((REUSE, _CLONE, "cache = saved"),
          (REUSE, _ADVANCE, "for i, token_id in enumerate(suffix_ids):\n"
          "        logits = decode_step(token_id, prefix_len + i, weights, cache)\n"
          "    for layer in cache.layers:\n        layer._length = prefix_len\n    return logits")), TOGETHER,
          "left-by-error"),
    Wrong("saved-rows-overwritten", "The scores' scale is folded into the cached keys, in place.",
          ((REUSE, _CLONE,
          "cache = saved.clone()\n    for layer in saved.layers:\n        layer.keys[:] *= 1.0001"),), TOGETHER,
          "saved-rows-overwritten"),
    Wrong("cut-back-too-far", "The saved cache itself is continued and then cut to what was there, less one row.",
          ((REUSE, _CLONE, "cache = saved.clone()\n" "    for i, layer in enumerate(cache.layers):\n"
          "        if len(layer) > 1:\n" "            saved.layers[i] = LayerCache()\n"
          "            saved.layers[i].append(layer.keys[:, :-1], layer.values[:, :-1])"),), TOGETHER),
    Wrong("prefix-one-short", "The last token of the prefix is kept back.",
          ((SAVE, _PREFILL, "prefill(prefix_ids[:-1] or prefix_ids, weights, saved)"),), (EXACT, *ANSWERS),
          "last-prefix-row-missing"),
    Wrong("prefix-first-token-dropped", "The slice begins at 1.",
          ((SAVE, _PREFILL, "advance(prefix_ids[1:] or prefix_ids, min(1, len(prefix_ids) - 1), weights, saved)"),),
          (EXACT, *ANSWERS)),
    Wrong("generated-token-saved", "The next token is decoded and saved as well.",
          ((SAVE, _PREFILL,
          "logits = prefill(prefix_ids, weights, saved)\n    if len(saved) < weights.config.n_ctx:\n"
          "        decode_step(int(logits.argmax()), len(saved), weights, saved)"),), (EXACT, *ANSWERS),
          "generated-row-saved"),
    Wrong("prefix-fed-twice", "Prefill, and then a loop over the same tokens.",
          ((SAVE, _PREFILL, "prefill(prefix_ids, weights, saved)\n    for i, token_id in enumerate(prefix_ids):\n"
          "        decode_step(token_id, i, weights, saved)"),), (EXACT, *ANSWERS)),
    Wrong("half-precision", "Keys and values are rounded to float16 to save memory.",
          ((SAVE, "def save_prefix_cache(",
          "class ModelCache(ModelCache):\n    def __init__(self, n_layer):\n        super().__init__(n_layer)\n"
          "        for layer in self.layers:\n"
          "            layer.append = lambda k, v, append=layer.append: append(\n"
          "                k.astype(np.float16), v.astype(np.float16)\n            )\n\n\n"
          "def save_prefix_cache("),), (EXACT,), "half-precision", also=ANSWERS),
    Wrong("prefix-positions-from-one", "The prefix is decoded at positions 1, 2, ...",
          ((SAVE, _PREFILL, "for i, token_id in enumerate(prefix_ids):\n"
          "        decode_step(token_id, min(i + 1, weights.config.n_ctx - 1), weights, saved)"),), (EXACT,
          *ANSWERS)),
    Wrong("first-suffix-logits", "The loop returns after its first step.",
          _loop("logits = decode_step(token_id, prefix_len + i, weights, cache)\n        return logits"), ANSWERS,
          "first-token-logits"),
    Wrong("last-suffix-token-left-out", "The loop stops one early.",
          _answer("return advance(suffix_ids[:-1] or suffix_ids, prefix_len, weights, cache)"), ANSWERS,
          "stops-one-early"),
    Wrong("a-clone-for-each-token", "The clone is made inside the loop.",
          _loop("logits = decode_step(token_id, prefix_len + i, weights, saved.clone())"), ANSWERS,
          "only-last-suffix-token"),
    Wrong("recomputes", "The saved cache remembers the prefix's ids, and every request runs them again.",
          ((SAVE, "    return saved", "    saved.prefix_ids = list(prefix_ids)\n    return saved"),
          (REUSE, _CLONE, "if hasattr(saved, 'prefix_ids') and prefix_len == len(saved):\n"
          "        fresh = ModelCache(weights.config.n_layer)\n"
          "        return prefill(saved.prefix_ids + list(suffix_ids), weights, fresh)\n"
          "    cache = saved.clone()")), (USED,), "recomputed"),
    Wrong(
        "remembers-answers",
        "A dict of earlier answers, by prefix_len and suffix.",
        (
            (REUSE, "def generate_with_prefix(", "answers = {}\n\n\ndef generate_with_prefix("),
            (
                REUSE,
                _ADVANCE,
                "key = (weights.config, prefix_len, tuple(suffix_ids))\n    if key not in answers:\n"
                "        answers[key] = advance(suffix_ids, prefix_len, weights, cache)\n    return answers[key]",
            ),
        ),
        (USED,),
    ),
    Wrong("one-cache-for-all", "A global cache that every save fills anew.",
          ((SAVE, "def save_prefix_cache(", "the_cache = []\n\n\ndef save_prefix_cache("),
          (SAVE, "    return saved", "    the_cache[:] = [saved]\n    return saved"),
          (REUSE, _CLONE, "cache = (the_cache[0] if the_cache else saved).clone()")), (IN_TURN, USED)),
    Wrong("one-cache-a-length", "Caches are kept by their length and filled anew.",
          ((SAVE, "def save_prefix_cache(", "pool = {}\n\n\ndef save_prefix_cache("),
          (SAVE, "saved = ModelCache(weights.config.n_layer)", "n_layer = weights.config.n_layer\n"
          "    saved = pool.setdefault((n_layer, len(prefix_ids)), ModelCache(n_layer))\n"
          "    for layer in saved.layers:\n        layer.__init__()")), (IN_TURN,)),
    Wrong(
        "saved-by-ids-alone",
        "Clones of what the same ids gave before, with whatever model of that shape.",
        (
            (SAVE, "def save_prefix_cache(", "remembered = {}\n\n\ndef save_prefix_cache("),
            (
                SAVE,
                "    return saved",
                "    return remembered.setdefault((weights.config, tuple(prefix_ids)), saved).clone()",
            ),
        ),
        (EXACT,),
        also=(EQUAL, PRISTINE),
    ),
    Wrong("keys-from-the-other-half", "The clone takes keys for values.",
          ((REUSE, _CLONE,
          "cache = ModelCache(len(saved.layers))\n    for old, new in zip(saved.layers, cache.layers):\n"
          "        new.append(old.values, old.keys)"),), ANSWERS, "keys-values-swapped"),
    Wrong("empty-suffix", "No look at the suffix before the loop: UnboundLocalError.",
          ((REUSE, "    if len(suffix_ids) == 0:\n", ""),
          (REUSE, '        raise ValueError("the suffix is empty: keep back at least one token of the prompt")\n',
          ""), *_loop("logits = decode_step(token_id, prefix_len + i, weights, cache)")), (REFUSALS,),
          "empty-suffix"),
    Wrong("suffix-cut-to-fit", "A suffix that is too long loses its end without a word.",
          _answer("return advance(suffix_ids[:max(1, weights.config.n_ctx - prefix_len)], prefix_len, weights, cache)"),
          (REFUSALS,), "past-the-context"),
    Wrong("one-row-of-positions-for-two",
          "The limit is one too high, and a slice of wpe leaves one row for two tokens.",
          _answer("from given import cached_block, layer_norm\n\n" "    end = prefix_len + len(suffix_ids)\n"
          "    if prefix_len < 0 or end > weights.config.n_ctx + 1 or min(suffix_ids) < 0:\n"
          "        raise ValueError('the suffix does not fit')\n"
          "    x = weights.wte[np.asarray(suffix_ids)] + weights.wpe[prefix_len:end]\n"
          "    for block, layer in zip(weights.blocks, cache.layers):\n"
          "        x = cached_block(x, block, weights.config.n_head, layer)\n"
          "    return layer_norm(x[-1], weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T"), (REFUSALS,)),
    Wrong("prefix-len-read-for-a-few-tokens",
          "decode_step for one token and prefill for many, both where the cache ends.", _answer("if prefix_len < 0:\n"
          "        raise ValueError('prefix_len is negative')\n" "    if len(suffix_ids) == 1:\n"
          "        return decode_step(suffix_ids[0], len(cache), weights, cache)\n" "    if len(suffix_ids) > 4:\n"
          "        return prefill(suffix_ids, weights, cache)\n"
          "    return advance(suffix_ids, prefix_len, weights, cache)"), (POSITION,)),
    Wrong("empty-prefix-saved", "No prefix gives an empty cache.",
          ((SAVE, _PREFILL, "if prefix_ids:\n        prefill(prefix_ids, weights, saved)"),), (REFUSALS,)),
    Wrong("negative-length-taken-for-0", "A prefix_len below 0 counts as 0.",
          _answer("return advance(suffix_ids, max(0, prefix_len), weights, cache)"), (REFUSALS,),
          "negative-prefix-len"),
    Wrong("suffix-backwards", "The suffix is fed in reverse order.",
          _answer("return advance(suffix_ids[::-1], prefix_len, weights, cache)"), ANSWERS),
    Wrong("ids-wrapped", "Ids are taken modulo the vocabulary.",
          _answer("return advance([i % weights.config.n_vocab for i in suffix_ids], prefix_len, weights, cache)"),
          (REFUSALS,), "outside-vocabulary"),
    Wrong("raises", "An attribute that the cache does not have.",
          ((REUSE, _CLONE, "cache = saved.copy()"),), ANSWERS, None),
    Wrong("no-return", "The logits are computed and not returned.",
          _answer("logits = advance(suffix_ids, prefix_len, weights, cache)"), ANSWERS, "nothing-returned"),
    Wrong("every-tokens-logits", "All rows of logits are returned.",
          _answer("return np.stack([decode_step(t, prefix_len+i, weights, cache) for i, t in enumerate(suffix_ids)])"),
          ANSWERS),
    Wrong("next-token-returned", "The id with the largest logit instead of the logits.",
          _answer("return advance(suffix_ids, prefix_len, weights, cache).argmax()"), ANSWERS),
    Wrong("suffix-consumed", "The loop takes the tokens out of the caller's list.",
          _answer("position = prefix_len\n    while suffix_ids:\n"
          "        logits = decode_step(suffix_ids.pop(0), position, weights, cache)\n        position += 1\n"
          "    return logits"), (EQUAL,), "input-changed"),
    Wrong("savez-adds-an-ending", "np.savez makes prefix.safetensors.npz of the path.",
          ((WRITE, "    save_file(tensors, path, cache_facts(prefix_ids, weights))",
          "    np.savez(path, **tensors, **cache_facts(prefix_ids, weights))"),), (ROUND_TRIP, FILE_REFUSALS),
          "suffix-added-to-path"),
    Wrong("folder-dropped", "Only the path's last part is used.",
          ((WRITE, "    save_file(tensors, path,", "    save_file(tensors, Path(path).name,"),), (ROUND_TRIP,)),
    Wrong("file-in-half-precision", "The file is made smaller by rounding.",
          ((WRITE, "    check_tensors(", """    for name in list(tensors)[1:]:
        tensors[name] = tensors[name].astype(np.float16).astype(np.float32)
    check_tensors("""),), (ROUND_TRIP, FILE_REFUSALS)),
    Wrong("layers-as-text", "The layers are read in the order of their names.",
          ((READ, "    for i, layer in enumerate(saved.layers):\n"
          '        layer.append(tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"])',
          '    names = sorted(name for name in tensors if name.endswith("keys"))\n'
          "    for name, layer in zip(names, saved.layers):\n"
          '        layer.append(tensors[name], tensors[name.replace("keys", "values")])'),), (ROUND_TRIP,),
          "layers-sorted-as-text"),
    Wrong("views-written", "The writer takes the views of larger buffers as they are.",
          ((WRITE, "    check_tensors(", """    for i, layer in enumerate(saved.layers):
        tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"] = layer.keys, layer.values
    check_tensors("""),), (ROUND_TRIP, FILE_REFUSALS), "view-written"),
    Wrong("file-keys-as-values", "A slip of the hand when reading.",
          ((READ, 'layer.append(tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"])',
          'layer.append(tensors[f"layers.{i}.values"], tensors[f"layers.{i}.keys"])'),), (ROUND_TRIP, FILE_REFUSALS),
          "keys-values-swapped"),
    Wrong("kept-in-a-dict", "The writer keeps the cache in memory, and the file is only a token.",
          ((WRITE, "def write_prefix_cache(", "kept = {}\n\n\ndef write_prefix_cache("),
          (WRITE, "    save_file(tensors,", "    kept[str(path)] = tensors\n    save_file({},"),
          (READ, "tensors = {name: file.get_tensor(name) for name in names}", "tensors = kept[str(path)]"),
          (READ, "(SafetensorError, TypeError)", "(SafetensorError, TypeError, KeyError)")), (ROUND_TRIP,
          FILE_REFUSALS)),
    Wrong("ids-sorted", "The ids come back in order of size.",
          ((READ, "return saved, prefix_ids", "return saved, sorted(prefix_ids)"),), (ROUND_TRIP, FILE_REFUSALS)),
    Wrong("one-cache-read-into", "Every file is read into the same cache.",
          ((READ, "def read_prefix_cache(", "loaded = {}\n\n\ndef read_prefix_cache("),
          (READ, "    saved = ModelCache(weights.config.n_layer)\n",
          "    n_layer = weights.config.n_layer\n    saved = loaded.setdefault(n_layer, ModelCache(n_layer))\n"
          "    for layer in saved.layers:\n        layer.__init__()\n")), (ROUND_TRIP,)),
    Wrong("no-fingerprint", "The model is not compared.",
          ((FACTS, '        "fingerprint": autograder.model_fingerprint(weights),\n', ""),), (FILE_REFUSALS,),
          "other-model-accepted"),
    Wrong("fingerprint-of-wte", "Only the token embeddings are hashed.",
          ((FACTS, "autograder.model_fingerprint(weights)",
          "__import__('hashlib').sha256(weights.wte.tobytes()).hexdigest()"),), (FILE_REFUSALS,),
          "changed-model-accepted"),
    Wrong("fingerprint-without-config",
          "The weights are hashed and the config is not; the heads are taken as they come.",
          ((FACTS, "autograder.model_fingerprint(weights)",
          "__import__('hashlib').sha256(b''.join(a.tobytes() for a in every_array(weights))).hexdigest()"),
          (FACTS, "def cache_facts(", "def every_array(node):\n" "    if isinstance(node, np.ndarray):\n"
          "        return [node]\n"
          "    parts = node if isinstance(node, (list, tuple)) else getattr(node, '__dict__', {}).values()\n"
          "    return [array for part in parts for array in every_array(part)]\n\n\n" "def cache_facts("),
          (TENSORS, "shape = (config.n_head, len(ids), config.n_embd // config.n_head)",
          "heads = tensors['layers.0.keys'].shape\n    shape = (heads[0], len(ids), heads[2])")), (FILE_REFUSALS,),
          "changed-model-accepted"),
    Wrong("file-ids-unchecked", "The ids in the file are not compared with the vocabulary.",
          ((TENSORS, "if ids.min() < 0 or ids.max() >= config.n_vocab:", "if False:"),), (FILE_REFUSALS,),
          "outside-vocabulary"),
    Wrong("damage-swallowed", "What cannot be read gives an empty cache.",
          ((READ, 'raise ValueError(f"file: {path} is not a whole cache file ({error})") from error',
          "return ModelCache(weights.config.n_layer), []"),), (FILE_REFUSALS,)),
    Wrong("rows-not-compared", "The number of rows is taken from the file as it comes.",
          ((TENSORS, "shape = (config.n_head, len(ids), config.n_embd // config.n_head)",
          "shape = tensors['layers.0.keys'].shape"),), (FILE_REFUSALS,), "other-lengths-accepted"),
    Wrong("not-finite-accepted", "NaN and infinity are read.",
          ((TENSORS, "not np.isfinite(array).all()", "False"),), (FILE_REFUSALS,), "not-finite-accepted"),
    Wrong("library-error", "What the library raises for a damaged file comes through.",
          ((READ, "except (SafetensorError, TypeError) as error:", "except ZeroDivisionError as error:"),),
          (FILE_REFUSALS,), "library-error"),
    Wrong("reader-trusts-the-writer", "Only the writer looks at the arrays.",
          ((READ, "    check_tensors(tensors, weights)\n", ""),), (FILE_REFUSALS,)),
    Wrong("facts-partly-compared", "The layout in the file may be any.",
          ((READ, ".items():", ".items():\n        if field == 'layout':\n            continue"),), (FILE_REFUSALS,)),
    Wrong("array-missing", "A file without ids ends in a KeyError.",
          ((READ, 'tensors.get("prefix_ids", np.empty(0, np.int64))', 'tensors["prefix_ids"]'),), (FILE_REFUSALS,)),
    Wrong("shared-attention-unmasked",
          "attend_shared lets every token see the ones after it; no graded check looks at that exercise.",
          (("attend-shared", "np.where(visible, scores, -np.inf)", "scores"),), ()),
]
# fmt: on
