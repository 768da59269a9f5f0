"""Sample submissions of save-and-reuse."""

from __future__ import annotations

from autograder.stages.kv_cache.samples import RIGHT as OF_STAGE_2
from autograder.stages.samples import Right, Wrong

# Right ones. Those with a cache of their own have one of stage 2's.

_CACHES = {of.name: of.cells.get("layer-cache", "") + of.cells.get("model-cache", "") for of in OF_STAGE_2}

_SAVE_TOKEN_BY_TOKEN = """
def save_prefix_cache(prefix_ids, weights):
    if not prefix_ids:
        raise ValueError("nothing to save")
    saved = ModelCache(weights.config.n_layer)
    for position, token_id in enumerate(prefix_ids):
        decode_step(token_id, position, weights, saved)
    return saved
"""

_SAVE_IN_CHUNKS = """
def save_prefix_cache(prefix_ids, weights):
    import warnings

    warnings.warn("saving a prefix takes a moment")
    cache = ModelCache(weights.config.n_layer)
    for begin in range(0, max(1, len(prefix_ids)), 4):
        prefill(prefix_ids[begin:begin + 4], weights, cache)
    print("saved", len(cache), "tokens")
    return cache
"""

_SAVE_AT_ONCE = """
def save_prefix_cache(prefix_ids, weights):
    cache = ModelCache(weights.config.n_layer)
    prefill(prefix_ids, weights, cache)
    return cache
"""

_SAVE_IN_FLOAT64 = """
import dataclasses


def in_float64(part):
    if isinstance(part, np.ndarray):
        return part.astype(np.float64)
    if isinstance(part, tuple):
        return tuple(map(in_float64, part))
    if not dataclasses.is_dataclass(part):
        return part
    return type(part)(*(in_float64(getattr(part, field.name)) for field in dataclasses.fields(part)))


def save_prefix_cache(prefix_ids, weights):
    cache = ModelCache(weights.config.n_layer)
    advance(prefix_ids, 0, in_float64(weights), cache)
    return cache
"""

_REUSE_TOKEN_BY_TOKEN = """
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    if not suffix_ids:
        raise ValueError("nothing to decode")
    work = saved.clone()
    logits = None
    for i, token_id in enumerate(suffix_ids):
        logits = decode_step(token_id, prefix_len + i, weights, work)
    return logits
"""

_REUSE_FIRST_ROWS = """
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    if prefix_len < 0 or not suffix_ids:
        raise ValueError("there is no such prefix, or no suffix")
    cache = ModelCache(len(saved.layers))
    for old, new in zip(saved.layers, cache.layers):
        new.append(old.keys[:, :prefix_len], old.values[:, :prefix_len])
    return advance(suffix_ids, prefix_len, weights, cache)
"""

_REUSE_IN_FLOAT64 = """
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    return advance(suffix_ids, prefix_len, in_float64(weights), saved.clone())
"""

_REUSE_STRICTLY = """
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    if prefix_len != len(saved):
        raise ValueError(f"prefix_len is {prefix_len}, and the cache holds {len(saved)} tokens")
    if not 1 <= len(suffix_ids) <= weights.config.n_ctx - prefix_len:
        raise ValueError("the suffix is empty or does not fit")
    return prefill(suffix_ids, weights, saved.clone())
"""

_WRITE_NPZ = '''
def write_prefix_cache(path, saved, prefix_ids, weights):
    """A NumPy archive with everything stacked; the file object keeps np.savez from adding an ending."""
    kv = np.stack([np.stack([layer.keys, layer.values]) for layer in saved.layers])
    with open(path, "wb") as file:
        np.savez(file, ids=np.array(prefix_ids), kv=kv, model=np.array(autograder.model_fingerprint(weights)))
'''

_READ_NPZ = """
def read_prefix_cache(path, weights):
    try:
        with np.load(path, allow_pickle=False) as archive:
            ids, kv, model = archive["ids"], archive["kv"], str(archive["model"])
    except Exception as error:
        raise ValueError(f"the file is damaged: {error}") from error
    if model != autograder.model_fingerprint(weights):
        raise ValueError("model: another one")
    if kv.shape[3] != len(ids) or not all(0 <= i < weights.config.n_vocab for i in ids):
        raise ValueError("ids: not as many as rows, or not in the vocabulary")
    if not np.all(np.isfinite(kv)):
        raise ValueError("kv: not finite")
    cache = ModelCache(len(kv))
    for layer, (keys, values) in zip(cache.layers, kv):
        layer.append(keys, values)
    return cache, list(ids)
"""

_WRITE_TAR = '''
import io
import json
import tarfile


def write_prefix_cache(path, saved, prefix_ids, weights):
    """A tar file, which ends in blocks of zeros."""
    tensors = as_tensors(saved, prefix_ids)
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

_READ_TAR = """
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

SAVE, REUSE, FACTS, TENSORS, WRITE, READ = (
    "save-prefix-cache",
    "generate-with-prefix",
    "cache-facts",
    "check-tensors",
    "write-prefix-cache",
    "read-prefix-cache",
)
_NPZ = {WRITE: _WRITE_NPZ, READ: _READ_NPZ}

# Other styles, and the ways in which people are wrong most often
IN_CLASS = (
    *("lists", "concatenated", "token-major", "float64", "strict-length"),
    *("positions-reset", "positions-plus-one", "saved-cache-mutated", "shallow-clone", "one-layer-cloned"),
    *("prefix-one-short", "first-suffix-logits", "recomputes", "empty-suffix", "no-fingerprint", "raises", "unsolved"),
)

RIGHT = [
    Right(
        "lists",
        "A layer has a list of arrays; prefix and suffix are decoded token by token.",
        {SAVE: _CACHES["lists-of-arrays"] + _SAVE_TOKEN_BY_TOKEN, REUSE: _REUSE_TOKEN_BY_TOKEN},
    ),
    Right(
        "concatenated",
        "New arrays at every append; the prefix is run in chunks; prints and warns.",
        {SAVE: _CACHES["concatenation"] + _SAVE_IN_CHUNKS, REUSE: _REUSE_TOKEN_BY_TOKEN},
    ),
    Right(
        "token-major",
        "A buffer of tokens' rows, of which a request reads the first prefix_len; a file whose end can be cut off.",
        {
            SAVE: _CACHES["token-major"] + _SAVE_AT_ONCE,
            REUSE: _REUSE_FIRST_ROWS,
            WRITE: _WRITE_TAR,
            READ: _READ_TAR,
        },
    ),
    Right(
        "float64",
        "Everything in float64, with a file of its own.",
        {
            SAVE: _CACHES["float64-blocks"] + _SAVE_IN_FLOAT64,
            REUSE: _REUSE_IN_FLOAT64,
            FACTS: "",
            TENSORS: "",
            **_NPZ,
        },
    ),
    Right(
        "strict-length",
        "A prefix_len other than the cache's length is an error; NumPy's own file format.",
        {REUSE: _REUSE_STRICTLY, **_NPZ},
    ),
]

# Wrong ones: the solution with one mistake

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
SAVED = (EXACT, *ANSWERS)
FILE = (ROUND_TRIP, FILE_REFUSALS)
REFUSED = (FILE_REFUSALS,)

Changes = tuple[tuple[str, str, str], ...]


def _save(text: str) -> Changes:
    return ((SAVE, "prefill(prefix_ids, weights, saved)", text),)


def _clone(text: str) -> Changes:
    return ((REUSE, "cache = saved.clone()", text),)


def _answer(text: str) -> Changes:
    return ((REUSE, "return advance(suffix_ids, prefix_len, weights, cache)", text),)


def _loop(step: str) -> Changes:
    return _answer(f"for i, token_id in enumerate(suffix_ids):\n        {step}\n    return logits")


def _decoded_at(position: str, cache: str = "cache") -> Changes:
    return _loop(f"logits = decode_step(token_id, {position}, weights, {cache})")


def _before(mark: str, line: str, text: str) -> Changes:
    """Lines before one of a cell."""
    return ((mark, line, text + line),)


def _written(text: str) -> Changes:
    """Lines before the arrays are looked at and written."""
    return _before(WRITE, "    check_tensors(", text)


# fmt: off
WRONG = [
    Wrong("unsolved", "The stubs as released.",
          tuple(change for mark, line in ((SAVE, "saved = ModelCache("), (REUSE, "if len(suffix_ids)"),
                                          (WRITE, "tensors = as_tensors("), (READ, "try:"))
                for change in _before(mark, line, 'raise NotImplementedError("write me")\n    ')), ALL, "not-written"),
    # What is saved
    Wrong("not-a-cache", "The cache and the logits are returned.",
          ((SAVE, "return saved", "return saved, weights.wte[0]"),), SAVED),
    Wrong("prefix-one-short", "The last token of the prefix is kept back.",
          _save("prefill(prefix_ids[:-1] or prefix_ids, weights, saved)"), SAVED, "last-prefix-row-missing"),
    Wrong("prefix-first-token-dropped", "The slice begins at 1.",
          _save("advance(prefix_ids[1:] or prefix_ids, min(1, len(prefix_ids) - 1), weights, saved)"), SAVED),
    Wrong("generated-token-saved", "The next token is decoded and saved as well.",
          _save("logits = prefill(prefix_ids, weights, saved)\n    if len(saved) < weights.config.n_ctx:\n"
                "        decode_step(int(logits.argmax()), len(saved), weights, saved)"), SAVED, "generated-row-saved"),
    Wrong("prefix-fed-twice", "Prefill, and then a loop over the same tokens.",
          _save("prefill(prefix_ids, weights, saved)\n    for i, token_id in enumerate(prefix_ids):\n"
                "        decode_step(token_id, i, weights, saved)"), SAVED),
    Wrong("prefix-positions-from-one", "The prefix is decoded at positions 1, 2, ...",
          _save("for i, token_id in enumerate(prefix_ids):\n"
                "        decode_step(token_id, min(i + 1, weights.config.n_ctx - 1), weights, saved)"), SAVED),
    Wrong("prefix-cut-at-1024", "Only as many tokens as GPT-2's context has are saved.",
          _save("prefill(prefix_ids[:1024], weights, saved)"), (EXACT,), "last-prefix-row-missing"),
    Wrong("empty-prefix-saved", "No prefix gives an empty cache.",
          _save("if prefix_ids:\n        prefill(prefix_ids, weights, saved)"), (REFUSALS,)),
    Wrong("half-precision", "Keys and values are rounded to float16 to save memory.",
          _before(SAVE, "    return saved", "    for layer in saved.layers:\n"
                  "        rounded = layer.keys.astype(np.float16), layer.values.astype(np.float16)\n"
                  "        layer.__init__()\n        layer.append(*rounded)\n"),
          (EXACT,), "half-precision", also=ANSWERS),
    # Positions
    Wrong("positions-reset", "The suffix begins at position 0.",
          _answer("return advance(suffix_ids, 0, weights, cache)"), ANSWERS, "positions-reset"),
    Wrong("positions-plus-one", "Positions counted from 1.",
          _decoded_at("prefix_len + i + 1"), ANSWERS, "positions-shifted-+1"),
    Wrong("positions-minus-one", "The last prefix position is used again.",
          _decoded_at("prefix_len + i - 1"), ANSWERS, "positions-shifted--1"),
    Wrong("positions-plus-six", "The padding of a batch is counted along: every position is six too far on.",
          _decoded_at("prefix_len + i + 6"), ANSWERS, "positions-shifted-+6"),
    Wrong("positions-minus-six", "And the other way round.",
          _answer("return advance(suffix_ids, prefix_len - 6, weights, cache)"), ANSWERS, "positions-shifted--6"),
    Wrong("positions-counted-twice", "The length of the cache is added to prefix_len.",
          _decoded_at("prefix_len + len(cache)"), ANSWERS, "positions-counted-twice"),
    Wrong("position-stuck", "The loop forgets to add i.", _decoded_at("prefix_len"), ANSWERS, "position-stuck"),
    Wrong("prefix-len-ignored", "prefill takes the position from the cache, so prefix_len is never read.",
          _answer("return prefill(suffix_ids, weights, cache)"), (POSITION, REFUSALS), "prefix-len-ignored"),
    Wrong("prefix-len-read-for-a-few-tokens",
          "decode_step for one token and prefill for many, both where the cache ends.",
          _answer("if prefix_len < 0:\n        raise ValueError('prefix_len is negative')\n"
                  "    for token_id in suffix_ids if len(suffix_ids) == 1 else ():\n"
                  "        return decode_step(token_id, len(cache), weights, cache)\n"
                  "    if len(suffix_ids) > 4:\n        return prefill(suffix_ids, weights, cache)\n"
                  "    return advance(suffix_ids, prefix_len, weights, cache)"), (POSITION,), "prefix-len-ignored"),
    Wrong("prefix-len-not-read-for-many-tokens", "prefill for a suffix of more than 32 tokens.",
          _answer("if len(suffix_ids) > 32:\n        return prefill(suffix_ids, weights, cache)\n"
                  "    return advance(suffix_ids, prefix_len, weights, cache)"), (POSITION,), "prefix-len-ignored"),
    Wrong("last-token-of-a-chunk-left-out", "Chunks of 8; a last one of a single token is left out.",
          _answer("for i in range(0, len(suffix_ids), 8):\n"
                  "        if i and i + 1 == len(suffix_ids):\n            break\n"
                  "        logits = advance(suffix_ids[i : i + 8], prefix_len + i, weights, cache)\n    return logits"),
          (EQUAL,)),
    Wrong("chunks-of-256-overlap", "Each chunk of 256 but the first begins one position too early.",
          _answer("for i in range(0, len(suffix_ids), 256):\n"
                  "        start = prefix_len + i - (i > 0)\n"
                  "        logits = advance(suffix_ids[i : i + 256], start, weights, cache)\n    return logits"),
          (EQUAL,)),
    # The saved cache and clones
    Wrong("saved-cache-mutated", "No clone.", _clone("cache = saved"), TOGETHER, "saved-cache-grows"),
    Wrong("shallow-clone", "A clone with layers of its own whose buffers are shared.",
          _before(SAVE, "def save_prefix_cache(", "class ModelCache(ModelCache):\n    def clone(self):\n"
                  "        other = copy.copy(self)\n        other.layers = list(map(copy.copy, self.layers))\n"
                  "        return other\n\n\n"), (IN_TURN,), "clones-share-memory"),
    Wrong("one-layer-cloned", "Only the first layer is copied.",
          _clone("cache = ModelCache(0)\n    cache.layers = [saved.clone().layers[0], *saved.layers[1:]]"), TOGETHER,
          "saved-cache-grows"),
    Wrong("cut-back-at-the-end", "The suffix is appended to the saved cache and taken off afterwards.",
          (*_clone("cache = saved"),
           *_loop("logits = decode_step(token_id, prefix_len + i, weights, cache)\n"
                  "    for layer in cache.layers:\n        layer._length = prefix_len")), TOGETHER,
          "saved-cache-grows"),
    Wrong("put-back-at-the-end", "The saved cache itself is continued, and gets its old layers back afterwards.",
          _clone("old = saved.clone()\n    cache = saved\n"
                 "    logits = advance(suffix_ids, prefix_len, weights, cache)\n"
                 "    saved.layers = old.layers\n    return logits"), TOGETHER, "saved-cache-grows"),
    Wrong("cut-back-too-far", "The saved cache itself is continued and then cut to what was there, less one row.",
          _clone("cache = saved.clone()\n    for i, layer in enumerate(cache.layers):\n        if len(layer) > 1:\n"
                 "            saved.layers[i] = LayerCache()\n"
                 "            saved.layers[i].append(layer.keys[:, :-1], layer.values[:, :-1])"), TOGETHER),
    Wrong("saved-rows-overwritten", "The scores' scale is folded into the cached keys, in place.",
          _clone("cache = saved.clone()\n    for layer in saved.layers:\n        layer.keys[:] *= 1.0001"), TOGETHER),
    Wrong("a-clone-for-each-token", "The clone is made inside the loop.",
          _decoded_at("prefix_len + i", "saved.clone()"), ANSWERS, "only-last-suffix-token"),
    Wrong("keys-from-the-other-half", "The clone takes keys for values.",
          _clone("cache = ModelCache(len(saved.layers))\n    for old, new in zip(saved.layers, cache.layers):\n"
                 "        new.append(old.values, old.keys)"), ANSWERS, "keys-values-swapped"),
    Wrong("one-cache-for-all", "A global cache that every save fills anew.",
          (*_before(SAVE, "def save_prefix_cache(", "the_cache = []\n\n\n"),
           *_before(SAVE, "    return saved", "    the_cache[:] = [saved]\n"),
           *_clone("cache = (the_cache[0] if the_cache else saved).clone()")), (IN_TURN, USED)),
    Wrong("one-cache-a-length", "Caches are kept by their length and filled anew.",
          (*_before(SAVE, "def save_prefix_cache(", "pool = {}\n\n\n"),
           (SAVE, "saved = ModelCache(weights.config.n_layer)", "n_layer = weights.config.n_layer\n"
            "    saved = pool.setdefault((n_layer, len(prefix_ids)), ModelCache(n_layer))\n"
            "    for layer in saved.layers:\n        layer.__init__()")), (IN_TURN,)),
    Wrong("saved-by-ids-alone", "Clones of what the same ids gave before, with whatever model of that shape.",
          (*_before(SAVE, "def save_prefix_cache(", "remembered = {}\n\n\n"),
           (SAVE, "return saved", "return remembered.setdefault((weights.config, tuple(prefix_ids)), saved).clone()")),
          (EXACT,), also=(EQUAL, PRISTINE)),
    Wrong("saved-by-ids-and-the-id-of-the-weights", "Clones of what the same ids gave with weights of the same id().",
          (*_before(SAVE, "def save_prefix_cache(", "remembered = {}\n\n\n"),
           (SAVE, "return saved", "return remembered.setdefault((id(weights), tuple(prefix_ids)), saved).clone()")),
          (EXACT,)),
    Wrong("saved-by-the-sum-of-ids", "Clones of what ids of the same number and sum gave before.",
          (*_before(SAVE, "def save_prefix_cache(", "remembered = {}\n\n\n"),
           (SAVE, "return saved", "key = id(weights), len(prefix_ids), sum(prefix_ids)\n"
            "    return remembered.setdefault(key, saved).clone()")), (EXACT,)),
    Wrong("wrong-after-blocks-of-32", "A mistake in the last row of a prefix of 32 tokens and no other.",
          ((SAVE, "return saved", "if len(prefix_ids) == 32:\n"
            "        saved.layers[-1].values[:, -1] += 1\n    return saved"),), (EXACT,)),
    Wrong("wrong-past-a-block-of-32", "A mistake in the last row of a prefix of 33 tokens and no other.",
          ((SAVE, "return saved", "if len(prefix_ids) == 33:\n"
            "        saved.layers[-1].values[:, -1] += 1\n    return saved"),), (EXACT,)),
    Wrong("layers-that-are-there", "As many layers are looked at and read as the file has.",
          (("check-tensors", "for i in range(config.n_layer) for", "for i in range(len(tensors) // 2) for"),
           ("read-prefix-cache", "for i, layer in enumerate(saved.layers):",
            "for i, layer in enumerate(saved.layers[: len(tensors) // 2]):")), REFUSED),
    Wrong("fingerprint-remembered-by-id", "The fingerprint is kept by the id() of the weights.",
          (*_before("cache-facts", "def cache_facts(", "known = {}\n\n\n"),
           ("cache-facts", "autograder.model_fingerprint(weights)",
            "known.setdefault(id(weights), autograder.model_fingerprint(weights))")), REFUSED),
    Wrong("saved-once", "The very cache that the same prefix gave before, whatever has become of it.",
          (*_before(SAVE, "def save_prefix_cache(", "remembered = {}\n\n\n"),
           (SAVE, "return saved", "return remembered.setdefault((id(weights), tuple(prefix_ids)), saved)")),
          (EXACT, USED)),
    # The answer
    Wrong("raises", "An attribute that the cache does not have.", _clone("cache = saved.copy()"), ANSWERS),
    Wrong("first-suffix-logits", "The loop returns after its first step.",
          _loop("logits = decode_step(token_id, prefix_len + i, weights, cache)\n        return logits"), ANSWERS,
          "first-token-logits"),
    Wrong("wrong-after-full-blocks", "The position is one too large where the prefix fills blocks of 128.",
          _answer("return advance(suffix_ids, prefix_len + (prefix_len % 128 == 0), weights, cache)"), (EQUAL,),
          "positions-shifted-+1"),
    Wrong("last-suffix-token-left-out", "The loop stops one early.",
          _answer("return advance(suffix_ids[:-1] or suffix_ids, prefix_len, weights, cache)"), ANSWERS),
    Wrong("suffix-backwards", "The suffix is fed in reverse order.",
          _answer("return advance(suffix_ids[::-1], prefix_len, weights, cache)"), ANSWERS),
    Wrong("no-return", "The logits are computed and not returned.",
          _answer("logits = advance(suffix_ids, prefix_len, weights, cache)"), ANSWERS),
    Wrong("every-tokens-logits", "All rows of logits are returned.",
          _answer("return np.stack([decode_step(t, prefix_len+i, weights, cache) for i, t in enumerate(suffix_ids)])"),
          ANSWERS),
    Wrong("suffix-consumed", "The loop takes the tokens out of the caller's list.",
          _answer("position = prefix_len\n    while suffix_ids:\n        token_id = suffix_ids.pop(0)\n"
                  "        logits = decode_step(token_id, position, weights, cache)\n        position += 1\n"
                  "    return logits"), (EQUAL,), "input-changed"),
    Wrong("recomputes", "The saved cache remembers the prefix's ids, and every request runs them again.",
          (*_before(SAVE, "    return saved", "    saved.prefix_ids = list(prefix_ids)\n"),
           *_clone("if hasattr(saved, 'prefix_ids') and prefix_len == len(saved):\n"
                   "        fresh = ModelCache(weights.config.n_layer)\n"
                   "        return prefill(saved.prefix_ids + list(suffix_ids), weights, fresh)\n"
                   "    cache = saved.clone()")), (USED,), "recomputed"),
    Wrong("remembers-answers-by-id", "A dict of earlier answers, by the id() of the cache, prefix_len and suffix.",
          (*_before(REUSE, "def generate_with_prefix(", "answers = {}\n\n\n"),
           *_answer("key = (id(saved), id(weights), prefix_len, tuple(suffix_ids))\n    if key not in answers:\n"
                    "        answers[key] = advance(suffix_ids, prefix_len, weights, cache)\n    return answers[key]")),
          (USED,)),
    Wrong("half-precision-in-use", "A request continues a copy in float16.",
          _clone("cache = ModelCache(len(saved.layers))\n    for old, new in zip(saved.layers, cache.layers):\n"
                 "        new.append(old.keys.astype(np.float16), old.values.astype(np.float16))"), (USED,)),
    Wrong("remembers-answers-by-a-sum", "A dict of earlier answers, by the suffix and the sum of keys and values.",
          (*_before(REUSE, "def generate_with_prefix(", "answers = {}\n\n\n"),
           *_answer("key = id(weights), prefix_len, tuple(suffix_ids), *(a.sum() for layer in saved.layers for a in "
                    "(layer.keys, layer.values))\n    if key not in answers:\n"
                    "        answers[key] = advance(suffix_ids, prefix_len, weights, cache)\n    return answers[key]")),
          (USED,)),
    Wrong("remembers-answers", "A dict of earlier answers, by prefix_len and suffix.",
          (*_before(REUSE, "def generate_with_prefix(", "answers = {}\n\n\n"),
           *_answer("key = (weights.config, prefix_len, tuple(suffix_ids))\n    if key not in answers:\n"
                    "        answers[key] = advance(suffix_ids, prefix_len, weights, cache)\n    return answers[key]")),
          (USED,)),
    # Refusals
    Wrong("empty-suffix", "No look at the suffix before the loop: UnboundLocalError.",
          ((REUSE, "if len(suffix_ids) == 0:", "if False:"), *_decoded_at("prefix_len + i")), (REFUSALS,),
          "empty-suffix"),
    Wrong("suffix-cut-to-fit", "A suffix that is too long loses its end without a word.",
          _answer("return advance(suffix_ids[:max(1, weights.config.n_ctx - prefix_len)], prefix_len, weights, cache)"),
          (REFUSALS,), "past-the-context"),
    Wrong("one-row-of-positions-for-two", "The limit is one too high: a slice of wpe leaves one row for two tokens.",
          _answer("from given import cached_block, layer_norm\n\n    end = prefix_len + len(suffix_ids)\n"
                  "    if prefix_len < 0 or end > weights.config.n_ctx + 1 or min(suffix_ids) < 0:\n"
                  "        raise ValueError('the suffix does not fit')\n"
                  "    x = weights.wte[np.asarray(suffix_ids)] + weights.wpe[prefix_len:end]\n"
                  "    for block, layer in zip(weights.blocks, cache.layers):\n"
                  "        x = cached_block(x, block, weights.config.n_head, layer)\n"
                  "    return layer_norm(x[-1], weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T"), (REFUSALS,),
          "past-the-context"),
    Wrong("negative-length-taken-for-0", "A prefix_len below 0 counts as 0.",
          _answer("return advance(suffix_ids, max(0, prefix_len), weights, cache)"), (REFUSALS,)),
    Wrong("ids-wrapped", "Ids are taken modulo the vocabulary.",
          _answer("return advance([i % weights.config.n_vocab for i in suffix_ids], prefix_len, weights, cache)"),
          (REFUSALS,)),
    # The file
    Wrong("one-written-twice", "The keys are written as values too.",
          _written("    for i in range(len(saved.layers)):\n"
                   '        tensors[f"layers.{i}.values"] = tensors[f"layers.{i}.keys"]\n'), FILE),
    Wrong("file-in-half-precision", "The file is made smaller by rounding.",
          _written("    for name in list(tensors)[1:]:\n"
                   "        tensors[name] = tensors[name].astype(np.float16).astype(np.float32)\n"), FILE),
    Wrong("views-written", "The writer takes the views of larger buffers as they are.",
          _written("    for i, layer in enumerate(saved.layers):\n"
                   '        tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"] = layer.keys, layer.values\n'),
          FILE, "view-written"),
    Wrong("savez-adds-an-ending", "np.savez makes prefix.safetensors.npz of the path.",
          ((WRITE, "save_file(tensors, path, cache_facts(prefix_ids, weights))",
            "np.savez(path, **tensors, **cache_facts(prefix_ids, weights))"),), FILE),
    Wrong("folder-dropped", "Only the path's last part is used.",
          ((WRITE, "save_file(tensors, path,", "save_file(tensors, Path(path).name,"),), (ROUND_TRIP,)),
    Wrong("kept-in-a-dict", "The writer keeps the cache in memory, and the file is only a token.",
          (*_before(WRITE, "def write_prefix_cache(", "kept = {}\n\n\n"),
           (WRITE, "    save_file(tensors,", "    kept[str(path)] = tensors\n    save_file({},"),
           (READ, "tensors = {name: file.get_tensor(name) for name in names}", "tensors = kept[str(path)]"),
           (READ, "(SafetensorError, TypeError)", "(SafetensorError, TypeError, KeyError)")), FILE),
    Wrong("ids-in-16-bits", "Ids are written as numbers of 16 bits.",
          _written('    tensors["prefix_ids"] = tensors["prefix_ids"].astype(np.uint16).astype(np.int64)\n'),
          (ROUND_TRIP,)),
    Wrong("layers-as-text", "The layers are read in the order of their names.",
          ((READ, "for i, layer in enumerate(saved.layers):",
            'order = sorted(range(len(saved.layers)), key=str)\n    for i, layer in zip(order, saved.layers):'),),
          (ROUND_TRIP,), "layers-sorted-as-text"),
    Wrong("file-keys-as-values", "A slip of the hand when reading.",
          ((READ, 'layer.append(tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"])',
            'layer.append(tensors[f"layers.{i}.values"], tensors[f"layers.{i}.keys"])'),), FILE, "keys-values-swapped"),
    Wrong("ids-sorted", "The ids come back in order of size.",
          ((READ, "return saved, prefix_ids", "return saved, sorted(prefix_ids)"),), FILE),
    Wrong("one-cache-read-into", "Every file is read into the same cache.",
          (*_before(READ, "def read_prefix_cache(", "loaded = {}\n\n\n"),
           (READ, "saved = ModelCache(weights.config.n_layer)", "n_layer = weights.config.n_layer\n"
            "    saved = loaded.setdefault(n_layer, ModelCache(n_layer))\n"
            "    for layer in saved.layers:\n        layer.__init__()")), (ROUND_TRIP,)),
    # What a file is refused for
    Wrong("no-fingerprint", "The model is not compared.",
          ((FACTS, '        "fingerprint": autograder.model_fingerprint(weights),\n', ""),), REFUSED,
          "other-model-accepted"),
    Wrong("fingerprint-of-wte", "Only the token embeddings are hashed.",
          ((FACTS, "autograder.model_fingerprint(weights)",
            "__import__('hashlib').sha256(weights.wte.tobytes()).hexdigest()"),), REFUSED, "other-model-accepted"),
    Wrong("fingerprint-of-four-digits", "The first four digits of the fingerprint.",
          ((FACTS, "autograder.model_fingerprint(weights)", "autograder.model_fingerprint(weights)[:4]"),), REFUSED,
          "other-model-accepted"),
    Wrong("ids-of-all-reads", "All reads return one list of ids, the last one's.",
          (*_before(READ, "def read_prefix_cache(", "read_ids = []\n\n\n"),
           (READ, "return saved, prefix_ids", "read_ids[:] = prefix_ids\n    return saved, read_ids")), (ROUND_TRIP,)),
    Wrong("fingerprint-without-config", "Heads are taken as they come, and the weights are hashed without the config.",
          ((FACTS, "autograder.model_fingerprint(weights)",
            "__import__('hashlib').sha256(repr(every_array(weights)).encode()).hexdigest()"),
           *_before(FACTS, "def cache_facts(", "def every_array(node):\n    if isinstance(node, np.ndarray):\n"
                    "        return node.tobytes()\n    parts = node if isinstance(node, tuple) else "
                    "getattr(node, '__dict__', {}).values()\n    return list(map(every_array, parts))\n\n\n"),
           (TENSORS, "shape = (config.n_head, len(ids), config.n_embd // config.n_head)",
            "heads = tensors['layers.0.keys'].shape\n    shape = (heads[0], len(ids), heads[2])")), REFUSED,
          "other-model-accepted"),
    Wrong("file-ids-unchecked", "The ids in the file are not compared with the vocabulary.",
          ((TENSORS, "if ids.min() < 0 or ids.max() >= config.n_vocab:", "if False:"),), REFUSED),
    Wrong("ids-of-two-axes", "Ids of two axes are compared as they are, which raises a TypeError.",
          ((TENSORS, "or ids.ndim != 1 ", ""),
           (TENSORS, "ids.min() < 0 or ids.max()", "min(ids.tolist()) < 0 or ids.max()")), REFUSED),
    Wrong("rows-not-compared", "The number of rows is taken from the file as it comes.",
          ((TENSORS, "shape = (config.n_head, len(ids), config.n_embd // config.n_head)",
            "shape = tensors['layers.0.keys'].shape"),), REFUSED),
    Wrong("not-finite-accepted", "NaN and infinity are read.",
          ((TENSORS, "not np.isfinite(array).all()", "False"),), REFUSED),
    Wrong("damage-swallowed", "What cannot be read gives an empty cache.",
          ((READ, 'raise ValueError(f"file: {path} is not a whole cache file ({error})") from error',
            "return ModelCache(weights.config.n_layer), []"),), REFUSED),
    Wrong("library-error", "What the library raises for a damaged file comes through.",
          ((READ, "except (SafetensorError, TypeError) as error:", "except ZeroDivisionError as error:"),), REFUSED),
    Wrong("reader-trusts-the-writer", "Only the writer looks at the arrays.",
          ((READ, "    check_tensors(tensors, weights)\n", ""),), REFUSED),
    Wrong("facts-partly-compared", "The layout in the file may be any.",
          ((READ, ".items():", ".items():\n        if field == 'layout':\n            continue"),), REFUSED),
    Wrong("array-missing", "A file without ids ends in a KeyError.",
          ((READ, 'tensors.get("prefix_ids", np.empty(0, np.int64))', 'tensors["prefix_ids"]'),), REFUSED),
    Wrong("shared-attention-unmasked", "attend_shared lets every token see the ones after it; no points are lost.",
          (("attend-shared", "np.where(visible, scores, -np.inf)", "scores"),), ()),
]
# fmt: on
