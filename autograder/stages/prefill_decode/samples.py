"""Sample submissions of prefill-decode."""

from autograder.stages.samples import Right, Wrong

LISTS = '''
class LayerCache(list):
    """For each token its key and its value, [n_head, head_dim] each."""

    def append(self, k, v):
        self.extend((k[:, i], v[:, i]) for i in range(k.shape[1]))

    keys = property(lambda self: np.stack([k for k, _ in self], axis=1))
    values = property(lambda self: np.stack([v for _, v in self], axis=1))


class ModelCache(tuple):
    def __new__(cls, n_layer):
        return super().__new__(cls, (LayerCache() for _ in range(n_layer)))

    layers = property(lambda self: self)

    def __len__(self):
        return len(self[0])


def cached_block(x, block, n_head, layer_cache):
    """Every new token looks at the keys before it, one query at a time: no mask is needed."""
    a = layer_norm(x, block.ln_1.weight, block.ln_1.bias)
    rows = []
    for row in np.dot(a, block.attn.c_attn.weight) + block.attn.c_attn.bias:
        q, k, v = row.reshape(3, n_head, -1)
        layer_cache.append(k[:, None], v[:, None])
        keys, values = layer_cache.keys, layer_cache.values
        heads = []
        for h in range(n_head):
            s = keys[h].dot(q[h]) / np.sqrt(q.shape[1])
            w = np.exp(s - s.max())
            heads.append(w.dot(values[h]) / w.sum())
        rows.append(np.concatenate(heads))
    x = x + np.dot(np.stack(rows), block.attn.c_proj.weight) + block.attn.c_proj.bias
    m = gelu(np.dot(layer_norm(x, block.ln_2.weight, block.ln_2.bias), block.mlp.c_fc.weight) + block.mlp.c_fc.bias)
    return x + np.dot(m, block.mlp.c_proj.weight) + block.mlp.c_proj.bias
'''

STEPS_ADVANCE = """
def advance(token_ids, position, weights, cache):
    raise RuntimeError("not used here")
"""

STEPS_DECODE = '''
import warnings


def decode_step(token_id, position, weights, cache):
    """One token; a position that is not the next one is refused."""
    if position != len(cache):
        raise ValueError(f"position {position} does not continue a cache of {len(cache)}")
    if token_id < 0:
        raise IndexError(token_id)  # np.take raises it itself for one that is too large
    warnings.warn("a warning on stderr is no error", stacklevel=2)
    x = np.take(weights.wte, [token_id], axis=0) + np.take(weights.wpe, [position], axis=0)
    for i, block in enumerate(weights.blocks):
        x = cached_block(x, block, weights.config.n_head, cache.layers[i])
    return np.einsum("e,ve->v", layer_norm(x, weights.ln_f.weight, weights.ln_f.bias)[0], weights.wte)
'''

STEPS_PREFILL = '''
def prefill(prompt_ids, weights, cache):
    """By decode steps: slower, and right."""
    if not prompt_ids:
        raise ValueError("empty prompt")
    for token_id in prompt_ids:
        print("prefill", len(cache))
        logits = decode_step(token_id, len(cache), weights, cache)
    return logits
'''

FLOAT64_BLOCK = '''
def f64(array):
    return np.asarray(array, dtype=np.float64)


def linear(x, p):
    return x @ f64(p.weight) + f64(p.bias)


def norm(x, p):
    d = x - x.mean(axis=-1, keepdims=True)
    return d / np.sqrt((d**2).mean(axis=-1, keepdims=True) + 1e-5) * f64(p.weight) + f64(p.bias)


def cached_block(x, block, n_head, layer_cache):
    """Float64 throughout, on plain copies of the weights."""
    qkv = linear(norm(x, block.ln_1), block.attn.c_attn)
    q, k, v = (split_heads(p, n_head) for p in np.split(qkv, 3, axis=1))
    layer_cache.append(k, v)
    x = x + linear(merge_heads(attend(q, layer_cache)), block.attn.c_proj)
    return x + linear(gelu(linear(norm(x, block.ln_2), block.mlp.c_fc)), block.mlp.c_proj)
'''

FLOAT64_ADVANCE = """
def hidden_states(token_ids, positions, weights, cache):
    x = f64(weights.wte)[token_ids] + f64(weights.wpe)[positions]
    for layer, block in zip(cache.layers, weights.blocks):
        x = cached_block(x, block, weights.config.n_head, layer)
    return x


def advance(token_ids, position, weights, cache):
    if min(token_ids, default=0) < 0 or position < 0:
        raise IndexError("it would count from the end")
    x = hidden_states(list(token_ids), range(position, position + len(token_ids)), weights, cache)
    return f64(weights.wte) @ norm(x, weights.ln_f)[-1]
"""

FLOAT64_GENERATE = '''
def generate(prompt_ids, n_new, weights):
    """Calls neither prefill nor decode_step."""
    cache, new, feed, start = ModelCache(len(weights.blocks)), [], list(prompt_ids), 0
    if not feed or len(feed) + n_new - 1 > weights.config.n_ctx:
        raise ValueError("an empty prompt, or too many tokens")
    while len(new) < n_new:
        logits = advance(feed, start, weights, cache)
        new.append(np.argmax(logits))
        start, feed = start + len(feed), [new[-1]]
    return np.array(new, dtype=np.int64)
'''

EINSUM_BLOCK = '''
class Layer:
    """Preallocated, token-major: [capacity, 2, n_head, head_dim]."""

    def __init__(self):
        self.rows, self.n = None, 0

    def append(self, k, v):
        new = np.stack([k, v]).transpose(2, 0, 1, 3)
        if self.rows is None:
            self.rows = np.zeros((7, *new.shape[1:]), np.float32)
        while self.n + len(new) > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        self.rows[self.n : self.n + len(new)] = new
        self.n += len(new)

    keys = property(lambda self: self.rows[: self.n, 0].swapaxes(0, 1))
    values = property(lambda self: self.rows[: self.n, 1].swapaxes(0, 1))

    def __len__(self):
        return self.n


class ModelCache:
    def __init__(self, n_layer):
        self.layers = tuple(Layer() for _ in range(n_layer))

    def __len__(self):
        return len(self.layers[0])


def cached_block(x, block, n_head, layer):
    """Einsum for every product, with the mask as a sum of positions."""
    n_embd = x.shape[1]
    w = block.attn.c_attn.weight.reshape(n_embd, 3, n_head, -1)
    b = block.attn.c_attn.bias.reshape(3, n_head, 1, -1)
    normed = layer_norm(x, block.ln_1.weight, block.ln_1.bias)
    q, k, v = np.einsum("ne,ephd->phnd", normed, w) + b
    start = len(layer)
    layer.append(k, v)
    scores = np.einsum("hqd,hkd->hqk", q, layer.keys) / np.sqrt(q.shape[-1])
    later = np.arange(len(layer))[None] > start + np.arange(len(x))[:, None]
    scores = np.where(later, np.float32(-1e30), scores)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    heads = np.einsum("hqk,hkd->qhd", p / p.sum(-1, keepdims=True), layer.values).reshape(x.shape)
    x = x + np.einsum("ne,ef->nf", heads, block.attn.c_proj.weight) + block.attn.c_proj.bias
    hidden = np.einsum("ne,ef->nf", layer_norm(x, block.ln_2.weight, block.ln_2.bias), block.mlp.c_fc.weight)
    hidden = gelu(hidden + block.mlp.c_fc.bias)
    return x + np.einsum("nf,fe->ne", hidden, block.mlp.c_proj.weight) + block.mlp.c_proj.bias
'''

EINSUM_GENERATE = '''
def generate(prompt_ids, n_new, weights):
    """The prompt in chunks of 4."""
    cache = ModelCache(weights.config.n_layer)
    if len(prompt_ids) + n_new > weights.config.n_ctx + 1:
        raise IndexError("too long")
    if not prompt_ids:
        raise ValueError("empty")
    for start in range(0, len(prompt_ids), 4):
        logits = prefill(prompt_ids[start : start + 4], weights, cache)
    new = []
    for i in range(n_new):
        new += [np.argmax(logits)]
        if i + 1 < n_new:
            logits = decode_step(int(new[-1]), len(prompt_ids) + i, weights, cache)
    return new
'''

LAST_ROW_ADVANCE = '''
def advance(token_ids, position, weights, cache):
    """In the last block only the last row goes past attention; and q, k and v are three products."""
    n_head, n = weights.config.n_head, len(token_ids)
    if position < 0 or position + n > weights.config.n_ctx:
        raise ValueError("outside the context")
    if not all(0 <= i < len(weights.wte) for i in token_ids):
        raise ValueError("outside the vocabulary")
    x = np.stack([weights.wte[i] for i in token_ids]) + weights.wpe[position : position + n]
    for block, layer in zip(weights.blocks, cache.layers):
        is_last = block is weights.blocks[-1]
        a = layer_norm(x, block.ln_1.weight, block.ln_1.bias)
        e, w, b = a.shape[1], block.attn.c_attn.weight, block.attn.c_attn.bias
        q = split_heads((a @ w + b)[:, :e], n_head)
        k = split_heads((a @ w + b)[:, e : 2 * e], n_head)
        v = split_heads((a @ w + b)[:, 2 * e :], n_head)
        layer.append(k, v)
        if is_last:
            x, q = x[-1:], q[:, -1:]
        x = x + merge_heads(attend(q, layer)) @ block.attn.c_proj.weight + block.attn.c_proj.bias
        h = gelu(layer_norm(x, block.ln_2.weight, block.ln_2.bias) @ block.mlp.c_fc.weight + block.mlp.c_fc.bias)
        x = x + h @ block.mlp.c_proj.weight + block.mlp.c_proj.bias
    return (layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T)[0]
'''

RIGHT = [
    Right("lists", "The cache is a tuple of lists of rows; one query at a time, so no mask.", {"cached-block": LISTS}),
    Right(
        "steps",
        "prefill is a loop of decode steps, which refuse any position but the next; prints and warnings.",
        {"advance": STEPS_ADVANCE, "decode-step": STEPS_DECODE, "prefill": STEPS_PREFILL},
    ),
    Right(
        "float64",
        "Float64 copies of all weights; generate calls neither prefill nor decode_step and returns an array.",
        {"cached-block": FLOAT64_BLOCK, "advance": FLOAT64_ADVANCE, "generate": FLOAT64_GENERATE},
    ),
    Right(
        "einsum",
        "A cache of its own, token-major in one preallocated buffer; einsum throughout; the prompt in chunks.",
        {"cached-block": EINSUM_BLOCK, "generate": EINSUM_GENERATE},
    ),
    Right(
        "last-row",
        "Only the last row through the last block's MLP, and x @ weight written three times.",
        {"advance": LAST_ROW_ADVANCE},
    ),
]

ALL = (
    *("prefill-logits", "prefill-cache", "prefill-in-chunks", "decode-every-step", "decode-position"),
    *("decode-grows-cache", "generate-ids", "generate-work", "decode-context-limit"),
)
ALL_BUT_WORK = tuple(c for c in ALL if c != "generate-work")
IDS, LIMIT, WORK = ("generate-ids", "decode-context-limit"), ("decode-context-limit",), ("generate-work",)
# What several tokens at a time lose, what tokens lose that continue a cache, and what a wrong row of logits loses.
MANY = ("prefill-logits", "prefill-cache", "prefill-in-chunks", *IDS)
CONTINUED = ("prefill-in-chunks", "decode-every-step", "decode-position", "decode-grows-cache", *IDS)
LOGITS = ("prefill-logits", "prefill-in-chunks", "decode-every-step", "decode-position", *WORK, *IDS)

# Pieces of the solution
ATTEND = "heads = attend(q, layer_cache)"
ATTEND_AGAIN = """scores = q @ layer_cache.keys.transpose(0, 2, 1) / q.shape[2] ** 0.5
    scores = np.where(VISIBLE, scores, -np.inf)
    attention = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = attention / attention.sum(axis=-1, keepdims=True) @ layer_cache.values"""
LN_1, LN_2 = (f"layer_norm(x, block.{ln}.weight, block.{ln}.bias)" for ln in ("ln_1", "ln_2"))
LAYERS = "zip(weights.blocks, cache.layers, strict=True)"
IDS_OUTSIDE = "if min(token_ids) < 0 or max(token_ids) >= config.n_vocab:"
OUTSIDE = "if position < 0 or end > config.n_ctx:"
LAST_LINE = "return layer_norm(x[-1], weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T"
CHUNK = "return advance(prompt_ids, len(cache), weights, cache)"
STEP = "return advance([token_id], position, weights, cache)"
PREFILL = "logits = prefill(prompt_ids, weights, cache)"
NEXT = "logits = decode_step(new_ids[-1], len(cache), weights, cache)"
NEW_CACHE = "    cache = ModelCache(weights.config.n_layer)\n"
MORE = "if len(new_ids) < n_new:  # nothing is chosen after the last one"
DUMMIES = """\
    if not prompt_ids:
        raise ValueError("no prompt")
    copies = __import__("pickle").loads(__import__("pickle").dumps(weights))
    for block in weights.blocks:
        for matrix in (block.attn.c_attn, block.attn.c_proj, block.mlp.c_fc, block.mlp.c_proj):
            np.zeros((n_rows, len(matrix.weight))) @ matrix.weight
"""
BY_BLOCKS = """\
    ids = list(prompt_ids)
    for _ in range(n_new):
        x = copies.wte[ids] + copies.wpe[: len(ids)]
        for block in copies.blocks:
            x = transformer_block(x, block, copies.config.n_head)
        ids.append(int((layer_norm(x[-1], copies.ln_f.weight, copies.ln_f.bias) @ copies.wte.T).argmax()))
    return ids[len(prompt_ids) :]
"""


def wrong(name, about, mark, *pairs, loses, bug=None, also=()):
    """pairs: the text in the solution's cell and the text instead, in turn."""
    changes = tuple((mark, old, new) for old, new in zip(pairs[::2], pairs[1::2], strict=True))
    return Wrong(name, about, changes, loses, bug, also)


WRONG = [
    # The block
    wrong("append-swapped", "append(v, k).", "cached-block", "append(k, v)", "append(v, k)", loses=ALL,
          bug="keys-values-swapped"),
    wrong("appended-token-major", "append gets the rows with the positions first.", "cached-block", "append(k, v)",
          "append(k.swapaxes(0, 1), v.swapaxes(0, 1))", loses=ALL),
    wrong("added-to-the-normalized-x", "x is overwritten by ln_1 of x before attention.", "cached-block",
          f"qkv = linear({LN_1}, ", f"x = {LN_1}\n    qkv = linear(x, ", loses=ALL_BUT_WORK, bug="normed-residual"),
    wrong("ln_1-twice", "ln_1 stands where ln_2 belongs.", "cached-block", LN_2, LN_1, loses=ALL_BUT_WORK,
          bug="ln-1-twice"),
    wrong("heads-not-mixed", "The merged heads are added without c_proj.", "cached-block",
          "linear(merge_heads(heads), block.attn.c_proj)", "merge_heads(heads)", loses=ALL, bug="c-proj-missing"),
    wrong("attends-too-early", "The cache is attended over before the new rows are in it.", "cached-block",
          "    layer_cache.append(k, v)\n", "", "    x = x + linear(merge_heads(heads)",
          "    layer_cache.append(k, v)\n    x = x + linear(merge_heads(heads)", loses=ALL,
          bug="decode-attends-too-early"),
    wrong("merge-by-reshape", "The heads are merged by a reshape without the transpose.", "cached-block",
          "merge_heads(heads)", "heads.reshape(x.shape)", loses=MANY, bug="heads-merged-wrong"),
    wrong("qkv-order", "c_attn's parts are taken as k, q, v.", "cached-block", "q, k, v = (split", "k, q, v = (split",
          loses=ALL_BUT_WORK, bug="qkv-order"),
    wrong("half-precision", "Keys and values are rounded to float16 before they are stored.", "cached-block",
          "append(k, v)", "append(k.astype(np.float16), v.astype(np.float16))",
          loses=("prefill-cache", "prefill-in-chunks", "decode-grows-cache"), bug="half-precision"),
    wrong("new-rows-only", "Attention runs over the new rows alone, as in stage 1.", "cached-block", ATTEND,
          "own = LayerCache()\n    own.append(k, v)\n    heads = attend(q, own)", loses=CONTINUED,
          bug="cached-rows-ignored"),
    wrong("no-mask", "Attention is written out again, and the mask is forgotten.", "cached-block", ATTEND,
          ATTEND_AGAIN.replace("VISIBLE", "True"), loses=MANY, bug="no-causal-mask"),
    wrong("mask-no-offset", "Attention is written out again, with the mask of stage 1.", "cached-block", ATTEND,
          ATTEND_AGAIN.replace("VISIBLE", "np.tri(*scores.shape[1:], dtype=bool)"), loses=CONTINUED,
          bug="mask-without-offset"),
    wrong("sees-one-ahead", "The mask is one position too wide: a token sees the next one.", "cached-block", ATTEND,
          ATTEND_AGAIN.replace(
              "VISIBLE", "np.tri(*scores.shape[1:], scores.shape[2] - scores.shape[1] + 1, dtype=bool)"
          ), loses=MANY, bug="mask-sees-next"),
    # One pass
    wrong("one-layer", "Every block uses the first layer's cache.", "advance", "config.n_head, layer_cache)",
          "config.n_head, cache.layers[0])", loses=ALL),
    wrong("layers-reversed", "Block i uses the cache of the i-th layer from the end.", "advance", LAYERS,
          "zip(weights.blocks, cache.layers[::-1])",
          loses=("prefill-cache", *(c for c in CONTINUED if c != "generate-ids"))),
    wrong("no-final-norm", "ln_f is left out.", "advance", LAST_LINE, "return x[-1] @ weights.wte.T", loses=LOGITS,
          bug="no-final-layer-norm"),
    wrong("first-row", "The logits of the first new token.", "advance", "x[-1]", "x[0]",
          loses=("prefill-logits", "prefill-in-chunks", *IDS), bug="first-token-logits"),
    wrong("all-rows", "Logits of every token.", "advance", "layer_norm(x[-1],", "layer_norm(x,", loses=LOGITS),
    wrong("no-positions", "wpe is forgotten.", "advance", " + weights.wpe[position:end]", "", loses=ALL,
          bug="positions-missing"),
    wrong("one-position", "wpe[position] for all rows of a pass.", "advance", "wpe[position:end]", "wpe[position]",
          loses=MANY, bug="one-position"),
    wrong("one-position-the-last", "wpe[end - 1] for all rows of a pass.", "advance", "wpe[position:end]",
          "wpe[end - 1]", loses=MANY, bug="one-position"),
    wrong("limit-one-too-high",
          "The limit is one too high: a slice that ends early and leaves one row is broadcast to two.", "advance",
          "end > config.n_ctx", "end > config.n_ctx + 1", loses=LIMIT),
    wrong("limit-too-low", "The last position is refused.", "advance", "end > config.n_ctx", "end >= config.n_ctx",
          loses=("prefill-logits", "prefill-cache", "prefill-in-chunks", "decode-every-step", *LIMIT)),
    wrong("position-wrapped", "Positions start over past the end.", "advance", OUTSIDE, "if position < 0:",
          "wpe[position:end]", "wpe[np.arange(position, end) % config.n_ctx]", loses=LIMIT),
    wrong("negative-position-sliced", "A slice from a negative position to the next one.", "advance", OUTSIDE,
          "if end > config.n_ctx:", loses=LIMIT),
    wrong("negative-position", "A negative position counts from the end.", "advance", OUTSIDE,
          "if end > config.n_ctx:", "wpe[position:end]", "wpe[np.arange(position, end)]", loses=LIMIT),
    wrong("ids-unchecked", "A negative id counts from the end.", "advance",
          "if min(token_ids) < 0 or max(token_ids) >= config.n_vocab:", "if False:", loses=LIMIT),
    wrong("last-layer-apart",
          "The last block has a cache of its own. What it spoils looks like nothing that has a name.", "advance",
          LAYERS, "zip(weights.blocks, [*cache.layers[:-1], LayerCache()])", loses=("prefill-cache", *CONTINUED)),
    wrong("limit-of-the-trained-model", "n_ctx is written as a number.", "advance", "end > config.n_ctx", "end > 512",
          loses=("prefill-logits", "decode-every-step", *IDS)),
    wrong("layers-of-the-trained-model", "n_layer is written as a number.", "advance", LAYERS,
          "zip(weights.blocks[:12], cache.layers)", loses=("prefill-logits", "decode-every-step", "generate-ids")),
    # Prefill
    wrong("chunk-positions-reset", "Every chunk begins at position 0.", "prefill", CHUNK,
          CHUNK.replace("len(cache)", "0"), loses=("prefill-in-chunks", *LIMIT), bug="positions-reset"),
    wrong("own-cache", "prefill makes a cache of its own.", "prefill", CHUNK, f"{NEW_CACHE.lstrip()}    {CHUNK}",
          loses=("prefill-cache", "prefill-in-chunks", *IDS), bug="rows-not-in-the-cache"),
    wrong("last-not-cached", "The last prompt token is run on a copy of the cache.", "prefill", CHUNK,
          """if len(prompt_ids) > 1:
        advance(prompt_ids[:-1], len(cache), weights, cache)
    return advance(prompt_ids[-1:], len(cache), weights, cache.clone())""",
          loses=("prefill-cache", "prefill-in-chunks", *IDS)),
    wrong("fed-twice", "One pass fills the cache, a second one gives the logits.", "prefill", CHUNK,
          """start = len(cache)
    advance(prompt_ids, start, weights, cache)
    return advance(prompt_ids, start, weights, cache)""", loses=(*MANY, *WORK), bug="two-rows-a-token"),
    wrong("last-token-again", "The last token is fed once more, for its logits.", "prefill", CHUNK,
          CHUNK.replace("return ", "") + "\n    return decode_step(prompt_ids[-1], len(cache) - 1, weights, cache)",
          loses=MANY, also=WORK),
    wrong("decode-steps-not-counted",
          "prefill counts the tokens that it fed itself, so a prompt after decode steps begins too early.", "prefill",
          CHUNK, """start = getattr(cache, 'prefilled', len(cache))
    cache.prefilled = start + len(prompt_ids)
    return advance(prompt_ids, start, weights, cache)""", loses=("prefill-in-chunks",),
          bug="positions-shifted--2"),
    wrong("rows-remembered",
          "What a pass gave is remembered by its tokens and their positions, whatever stands before them.", "advance",
          "def advance(", "passes = {}\n\n\ndef advance(", f"    for block, layer_cache in {LAYERS}:\n",
          f"""    key = id(weights), position, tuple(token_ids)
    if key in passes:
        for layer, (k, v) in zip(cache.layers, passes[key][1]):
            layer.append(k, v)
        return passes[key][0]
    for block, layer_cache in {LAYERS}:
""", LAST_LINE, LAST_LINE.replace("return", "logits =") + """
    passes[key] = logits, [(c.keys[:, position:].copy(), c.values[:, position:].copy()) for c in cache.layers]
    return logits""", loses=("generate-ids", "prefill-logits", "prefill-in-chunks", "decode-every-step")),
    wrong("table-remembered-by-id", "wte is kept by the id() of the weights.", "advance", "def advance(",
          "tables = {}\n\n\ndef advance(", "weights.wte[np", "tables.setdefault(id(weights), weights.wte)[np",
          loses=("prefill-logits", "generate-ids")),
    wrong("empty-accepted", "An empty prompt gives zeros.", "prefill",
          'raise ValueError("prefill needs at least one token id")',
          "return np.zeros(weights.config.n_vocab, np.float32)", loses=LIMIT),
    # Decode
    wrong("position-ignored", "decode_step uses len(cache) for the position.", "decode-step", STEP,
          STEP.replace("position", "len(cache)"), loses=("decode-position",), bug="decode-position-ignored"),
    wrong("position-0-ignored", "decode_step takes position 0 for none.", "decode-step", STEP,
          STEP.replace("position", "position or len(cache)"), loses=("decode-position",),
          bug="decode-position-ignored"),
    wrong("one-too-far", "decode_step counts positions from 1.", "decode-step", STEP,
          STEP.replace("position", "position + 1"), loses=CONTINUED[1:], bug="positions-shifted-+1"),
    wrong("works-on-a-clone", "decode_step leaves the cache as it was.", "decode-step", STEP,
          STEP.replace("cache)", "cache.clone())"), loses=("decode-every-step", "decode-grows-cache", *IDS),
          bug="rows-not-in-the-cache"),
    wrong("appends-twice", "decode_step runs the token twice, once for the cache and once for the logits.",
          "decode-step", STEP, """logits = advance([token_id], position, weights, cache.clone())
    advance([token_id], position, weights, cache)
    advance([token_id], position, weights, cache)
    return logits""", loses=("decode-every-step", "decode-grows-cache", *IDS, *WORK), bug="two-rows-a-token"),
    wrong("oldest-row-overwritten", "Each step writes its keys over those of the first token, too.", "decode-step",
          STEP, f"""{STEP.replace("return", "logits =")}
    for layer in cache.layers:
        layer.keys[:, 0] = 9 * layer.keys[:, -1]
    return logits""", loses=("decode-every-step", "decode-grows-cache", *IDS)),
    wrong("window-slides", "When the cache is full, decode_step drops the oldest row.", "decode-step", STEP,
          f"""if len(cache) == weights.config.n_ctx:
        shorter = ModelCache(weights.config.n_layer)
        for old, new in zip(cache.layers, shorter.layers):
            new.append(old.keys[:, 1:], old.values[:, 1:])
        return advance([token_id], weights.config.n_ctx - 1, weights, shorter)
    {STEP}""", loses=LIMIT),
    # Generate
    wrong("recomputes", "The whole sequence is run again for each token, on a new cache.", "generate", NEXT,
          "logits = prefill(list(prompt_ids) + new_ids, weights, ModelCache(weights.config.n_layer))", loses=WORK,
          bug="generate-recomputes"),
    wrong("recomputes-on-copies",
          "The given recompute runs on copies of the weights; products with zeros look like the work of a cache.",
          "generate", NEW_CACHE, DUMMIES + "    return generate_recompute(prompt_ids, n_new, copies)\n", loses=WORK,
          bug="generate-recomputes"),
    wrong("recomputes-by-blocks-on-copies", "The same with a loop over the given transformer_block.", "generate",
          NEW_CACHE, DUMMIES + BY_BLOCKS, loses=WORK, bug="generate-recomputes"),
    wrong("prompt-run-twice", "The prompt is run once for the logits and once for the cache.", "generate", PREFILL,
          "logits = forward(prompt_ids, weights)[-1]\n    prefill(prompt_ids, weights, cache)", loses=WORK,
          bug="generate-prompt-run-twice"),
    wrong("prompt-remembered-by-id", "Caches are kept by the prompt and the id() of the weights.", "generate",
          "def generate(", "prefilled = {}\n\n\ndef generate(", NEW_CACHE, "", PREFILL,
          """key = id(weights), *prompt_ids
    if key not in prefilled:
        cache = ModelCache(weights.config.n_layer)
        prefilled[key] = cache, prefill(prompt_ids, weights, cache)
    cache, logits = prefilled[key][0].clone(), prefilled[key][1]""", loses=("generate-ids",)),
    wrong("prompt-run-again-every-16", "Every 16 ids, all tokens so far are run again on a new cache.", "generate",
          NEXT, """if len(new_ids) % 16 == 0:
                cache = ModelCache(weights.config.n_layer)
                logits = prefill(list(prompt_ids) + new_ids, weights, cache)
            else:
                logits = decode_step(new_ids[-1], len(cache), weights, cache)""", loses=WORK),
    wrong("prompt-cut-at-1024", "prefill runs the last 1,024 tokens, the context of GPT-2.", "prefill", CHUNK,
          CHUNK.replace("prompt_ids", "prompt_ids[-1024:]"), loses=("prefill-logits", "generate-ids")),
    wrong("ids-refused-late", "An id outside the vocabulary is refused when its rows are in the cache.", "advance",
          IDS_OUTSIDE, "outside = min(token_ids) < 0 or max(token_ids) >= config.n_vocab\n"
          "    token_ids = [i % config.n_vocab for i in token_ids]\n    if False:", LAST_LINE,
          f"if outside:\n        raise ValueError('an id outside the vocabulary')\n    {LAST_LINE}", loses=LIMIT),
    wrong("all-fed-again", "Prompt and new tokens are all fed again, to the same cache.", "generate", NEXT,
          "logits = prefill(list(prompt_ids) + new_ids, weights, cache)", loses=(*IDS, *WORK),
          bug="generate-feeds-all-again"),
    *(
        wrong(name, about, "generate", NEXT, NEXT.replace("len(cache)", position), loses=IDS, bug=bug)
        for name, about, position, bug in (
            ("restarts-at-0", "The positions of the new tokens are counted from 0.", "len(new_ids) - 1",
             "positions-reset"),
            ("stuck", "Every new token stands at position len(prompt_ids).", "len(prompt_ids)", None),
            ("one-too-early", "The first new token is given the position of the last prompt token.",
             "len(cache) - 1", "positions-shifted--1"),
            ("counted-twice", "The prompt's length is added to len(cache), which has it already.",
             "len(prompt_ids) + len(cache)", "positions-counted-twice"),
            ("restarts-at-1", "The index of a loop from 1 on is the position.", "len(new_ids)", "positions-reset"),
        )
    ),
    *(
        wrong(name, about, "generate", NEXT, step, loses=IDS, bug="generate-new-cache-each-step")
        for name, about, step in (
            ("each-on-an-empty-cache", "Each step has a new cache, which holds nothing of the prompt.",
             NEXT.replace("len(cache)", "len(prompt_ids) + len(new_ids) - 1").replace(
                 "cache)", "ModelCache(weights.config.n_layer))")),
            ("cache-left-unused", "Each new id goes through the forward pass, alone.",
             "logits = forward(new_ids[-1:], weights)[-1]"),
        )
    ),
    wrong("last-token-twice", "After prefill the last prompt token is decoded once more.", "generate", PREFILL,
          PREFILL.removeprefix("logits = ")
          + "\n    logits = decode_step(prompt_ids[-1], len(cache), weights, cache)", loses=IDS,
          bug="generate-last-token-twice"),
    wrong("not-fed-back", "The first new token is decoded again and again.", "generate", NEXT,
          NEXT.replace("[-1]", "[0]"), loses=IDS),
    wrong("one-step-too-many", "The last new token is fed as well.", "generate", MORE, "if True:", loses=LIMIT,
          bug="generate-one-step-too-many"),
    wrong("goes-on-with-another-models-cache",
          "A prompt that begins with what was fed last continues that cache, whatever the model.", "generate",
          "def generate(", "last = {'config': None}\n\n\ndef generate(", f"    {PREFILL}\n",
          """    known = last['ids'] if last['config'] == weights.config else []
    known = known if 0 < len(known) < len(prompt_ids) and known == prompt_ids[: len(known)] else []
    cache = last['cache'] if known else cache
    logits = prefill(prompt_ids[len(known) :], weights, cache)
""", "    return new_ids", """    ids = (list(prompt_ids) + new_ids)[: len(cache)]
    last.update(config=weights.config, ids=ids, cache=cache)
    return new_ids""", loses=("generate-ids",)),
    wrong("last-id-counted", "The last new token is counted against n_ctx.", "generate", "n_rows > n_ctx",
          "n_rows >= n_ctx", loses=LIMIT),
    wrong("cut-short", "n_new is lowered to what fits.", "generate",
          "    if n_rows > n_ctx:\n        raise ValueError(",
          "    if n_rows > n_ctx:\n        n_new = n_ctx + 1 - len(prompt_ids)\n        str(", loses=LIMIT),
    wrong("returns-prompt", "The prompt is returned too.", "generate", "return new_ids",
          "return list(prompt_ids) + new_ids", loses=IDS, bug="prompt-returned"),
    wrong("first-id-lost", "Only ids chosen after a decode step are returned.", "generate", "return new_ids",
          "return new_ids[1:]", loses=IDS),
    wrong("one-id-more", "The loop runs once too often.", "generate", "while len(new_ids) < n_new:",
          "while len(new_ids) <= n_new:", loses=IDS),
    wrong("zero-gives-one", "The first id is chosen before n_new is looked at.", "generate",
          "while len(new_ids) < n_new:", "while len(new_ids) < max(1, n_new):", loses=("generate-ids",)),
    wrong("sampled", "The next id is drawn, not chosen.", "generate",
          "int(logits.argmax())",
          "int((logits + np.random.default_rng(len(new_ids)).gumbel(size=logits.shape)).argmax())", loses=IDS,
          also=WORK),  # where no drawn id is the greedy one
    wrong("goes-on-with-the-last-cache",
          "A prompt that begins with the last one continues its cache, which holds the new tokens of then as well.",
          "generate", "def generate(", "last = {'ids': None}\n\n\ndef generate(", f"    {PREFILL}\n",
          """    known = last['ids'] if last['ids'] == prompt_ids[: len(last['ids'] or [])] else []
    cache = last['cache'] if known and len(known) < len(prompt_ids) else cache
    logits = prefill(prompt_ids[len(known) if len(cache) else 0 :], weights, cache)
    last.update(ids=list(prompt_ids), cache=cache)
""", loses=("generate-ids",)),
    wrong("stops-at-end-of-text", "The loop ends at the last id of the vocabulary, GPT-2's end-of-text token.",
          "generate", MORE, f"if new_ids[-1] == weights.config.n_vocab - 1:\n            break\n        {MORE}",
          loses=("generate-ids",), also=(*WORK, *LIMIT)),
    wrong("twenty-at-most", "n_new is never more than 20.", "generate", "    n_rows, n_ctx",
          "    n_new = min(n_new, 20)\n    n_rows, n_ctx", loses=("generate-ids",)),
    wrong("ids-remembered", "The ids of a prompt are remembered, whatever the model.", "generate", "def generate(",
          "texts = {}\n\n\ndef generate(", NEW_CACHE, f"""    key = weights.config, tuple(prompt_ids), n_new
    if key in texts:
        return texts[key]
{NEW_CACHE}""", "return new_ids", "texts[key] = new_ids\n    return new_ids", loses=("generate-ids",)),
    wrong("prompt-continued-again", "The cache of a prompt is kept by the id() of the weights, and continued again.",
          "generate", "def generate(", "prompts = {}\n\n\ndef generate(", f"{NEW_CACHE}    {PREFILL}\n",
          """    key = id(weights), tuple(prompt_ids)
    if key not in prompts:
        cache = ModelCache(weights.config.n_layer)
        prompts[key] = cache, prefill(prompt_ids, weights, cache)
    cache, logits = prompts[key]
""", loses=("generate-ids",), bug="generate-state-kept"),
    wrong("prompts-remembered", "The logits and rows of a prompt are remembered, whatever the model.", "prefill",
          "def prefill(", "prompts = {}\n\n\ndef prefill(", CHUNK,
          """if len(cache) or len(prompt_ids) < 4:
        return advance(prompt_ids, len(cache), weights, cache)
    key = weights.config, tuple(prompt_ids)
    if key not in prompts:
        logits = advance(prompt_ids, 0, weights, cache)
        prompts[key] = logits, [(c.keys.copy(), c.values.copy()) for c in cache.layers]
        return logits
    for layer, (k, v) in zip(cache.layers, prompts[key][1]):
        layer.append(k, v)
    return prompts[key][0]""", loses=("prefill-logits", "generate-ids")),
    wrong("cache-as-default", "The cache is a default argument, made once for all calls.", "generate",
          "n_new, weights):", "n_new, weights, caches={}):", "cache = ModelCache(weights.config.n_layer)",
          "cache = caches.setdefault(weights.config, ModelCache(weights.config.n_layer))", loses=(*IDS, *WORK),
          bug="generate-state-kept"),
]  # fmt: skip
