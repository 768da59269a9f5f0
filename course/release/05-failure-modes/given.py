"""The functions of the earlier stages (The forward pass, The KV cache, Prefill and decode, Save and reuse a prefix
cache), as the course solved them. Made from the course's solutions, so that a stage can be solved and graded for
itself, whatever became of the ones before. Changes made here count for nothing: the file is replaced when the work
is graded. To build on functions of your own, load your notebook: mine =
autograder.load_notebook("../04-save-and-reuse/save_and_reuse.ipynb").
"""

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import autograder

# 1. The forward pass


def linear(x, layer):
    """x: [..., n_in]; layer.weight: [n_in, n_out]; layer.bias: [n_out]. Returns [..., n_out]."""
    return x @ layer.weight + layer.bias


def gelu(x):
    """GPT-2's GELU, the tanh form, of every element of x; an array of the same shape, whatever that is.

    x is not changed. Elements may be as large as they like.
    """
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))


def layer_norm(x, weight, bias, eps=1e-5):
    """Normalize every row of x to mean 0 and variance 1, then scale by weight and shift by bias.

    x: [..., n_embd], where ... is any number of axes, or none. weight, bias: [n_embd].
    Returns an array of x's shape; x is not changed.
    """
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return centered / np.sqrt(variance + eps) * weight + bias


def split_heads(x, n_head):
    """[n_seq, n_embd] to [n_head, n_seq, head_dim]: head h has features h * head_dim to (h + 1) * head_dim - 1."""
    n_seq, n_embd = x.shape
    return x.reshape(n_seq, n_head, n_embd // n_head).transpose(1, 0, 2)


def merge_heads(heads):
    """[n_head, n_seq, head_dim] back to [n_seq, n_embd]: undoes split_heads."""
    n_head, n_seq, head_dim = heads.shape
    return heads.transpose(1, 0, 2).reshape(n_seq, n_head * head_dim)


def softmax(scores):
    """exp(scores), each row along the last axis divided by its sum. Scores may be of any size, or -inf.

    scores: [..., n], at least one of each row finite. Returns an array of the same shape; scores is not changed.
    """
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def attention_weights(q, k):
    """The causal attention weights, [n_head, n_seq, n_seq]: what query i gives to each of the keys 0 to i, else 0.

    q, k: [n_head, n_seq, head_dim]. The last axis of the result adds up to 1. Scores of any size are allowed,
    of either sign: a million is nothing special.
    """
    n_seq, head_dim = q.shape[1:]
    scores = q @ k.transpose(0, 2, 1) / head_dim**0.5  # [n_head, n_seq, n_seq]: query by key
    return softmax(np.where(np.tri(n_seq, dtype=bool), scores, -np.inf))


def causal_self_attention(x, attn, n_head):
    """Multi-head causal self-attention: each row gathers from itself and the rows before it.

    x: [n_seq, n_embd]. attn.c_attn.weight: [n_embd, 3 * n_embd], for q, k and v in this order;
    attn.c_proj.weight: [n_embd, n_embd]; both have a bias. Returns [n_seq, n_embd].
    """
    qkv = linear(x, attn.c_attn)  # [n_seq, 3 * n_embd]
    q, k, v = (split_heads(part, n_head) for part in np.split(qkv, 3, axis=-1))
    heads = attention_weights(q, k) @ v  # [n_head, n_seq, head_dim]
    return linear(merge_heads(heads), attn.c_proj)


def feed_forward(x, mlp):
    """The MLP: linear, gelu, linear. mlp.c_fc widens x, [n_seq, n_embd], to 4 * n_embd; mlp.c_proj narrows it."""
    return linear(gelu(linear(x, mlp.c_fc)), mlp.c_proj)


def transformer_block(x, block, n_head):
    """One pre-norm GPT-2 block: attention of ln_1(x) is added to x, and then the MLP of ln_2(x) to this new x.

    x: [n_seq, n_embd]. block has ln_1 and ln_2 (weight, bias), attn, and mlp with c_fc and c_proj.
    Returns [n_seq, n_embd]; x is not changed.
    """
    x = x + causal_self_attention(layer_norm(x, block.ln_1.weight, block.ln_1.bias), block.attn, n_head)
    return x + feed_forward(layer_norm(x, block.ln_2.weight, block.ln_2.bias), block.mlp)


def forward(token_ids, weights):
    """The logits [n_seq, n_vocab]: row i scores the token that follows token i.

    token_ids: a list of n_seq ints. ValueError unless 1 <= n_seq <= weights.config.n_ctx; ValueError or IndexError
    for an id of n_vocab or more.
    weights: wte [n_vocab, n_embd], wpe [n_ctx, n_embd], blocks (in their order), ln_f, and config with n_head.
    """
    n_seq, config = len(token_ids), weights.config
    if not 1 <= n_seq <= config.n_ctx:
        raise ValueError(f"forward needs 1 to {config.n_ctx} token ids, got {n_seq}")
    x = weights.wte[np.asarray(token_ids)] + weights.wpe[:n_seq]
    for block in weights.blocks:
        x = transformer_block(x, block, config.n_head)
    return layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T


def generate_recompute(prompt_ids, n_new, weights):
    """The n_new greedy next ids, a list of n_new ints without the prompt; the whole sequence is run again for each.

    prompt_ids: a list of at least one id; it is not changed.
    ValueError when the prompt is empty, or when more than n_ctx tokens would have to be fed at once.
    """
    token_ids = list(prompt_ids)
    for _ in range(n_new):
        token_ids.append(int(forward(token_ids, weights)[-1].argmax()))
    return token_ids[len(prompt_ids) :]


# 2. The KV cache


class LayerCache:
    """The keys and values of one layer."""

    def __init__(self):
        """An empty cache."""
        self._keys = self._values = None  # buffers [n_head, capacity, head_dim], made at the first append
        self._length = 0

    def append(self, k, v):
        """Add n_new >= 1 positions after those already there, of which there may be any number.

        k and v are [n_head, n_new, head_dim].
        """
        if k.shape != v.shape or k.ndim != 3:
            raise ValueError(f"append needs k and v of one shape [n_head, n_new, head_dim], got {k.shape}, {v.shape}")
        end = self._length + k.shape[1]
        if self._keys is None or end > self._keys.shape[1]:
            self._keys, self._values = self._larger(self._keys, k, end), self._larger(self._values, v, end)
        self._keys[:, self._length : end] = k
        self._values[:, self._length : end] = v
        self._length = end

    def _larger(self, buffer, new, end):
        larger = np.empty((new.shape[0], 2 * end, new.shape[2]), np.float32)
        if buffer is not None:
            larger[:, : self._length] = buffer[:, : self._length]
        return larger

    @property
    def keys(self):
        """All keys so far, [n_head, n_seq, head_dim]; before the first append it may be anything."""
        return None if self._keys is None else self._keys[:, : self._length]

    @property
    def values(self):
        """All values so far, [n_head, n_seq, head_dim]; before the first append it may be anything."""
        return None if self._values is None else self._values[:, : self._length]

    def __len__(self):
        """How many positions are cached: n_seq, and 0 before the first append."""
        return self._length


class ModelCache:
    """One LayerCache for each of a model's layers."""

    def __init__(self, n_layer):
        """n_layer empty LayerCaches in self.layers, a sequence."""
        self.layers = [LayerCache() for _ in range(n_layer)]

    def __len__(self):
        """How many positions are cached, the same in every layer."""
        return len(self.layers[0]) if self.layers else 0

    def clone(self):
        """A cache with the same rows in every layer. What either appends later does not show in the other."""
        copy = ModelCache(len(self.layers))
        for layer, new_layer in zip(self.layers, copy.layers, strict=True):
            if len(layer):
                new_layer.append(layer.keys, layer.values)
        return copy


def attend(q, layer_cache):
    """Causal attention of the newest positions over everything in the cache.

    q: [n_head, n_query, head_dim], the queries of the last n_query cached positions; their keys and values are in
    the cache already. Returns [n_head, n_query, head_dim]. Neither q nor the cache is changed. Scores may be of any
    size and sign, the hidden ones too: a million is nothing special.
    """
    keys, values = layer_cache.keys, layer_cache.values
    n_query, n_seq, head_dim = q.shape[1], keys.shape[1], q.shape[2]
    scores = q @ keys.transpose(0, 2, 1) / head_dim**0.5  # [n_head, n_query, n_seq]
    visible = np.tri(n_query, n_seq, k=n_seq - n_query, dtype=bool)  # query i stands at position n_seq - n_query + i
    return softmax(np.where(visible, scores, -np.inf)) @ values


def kv_cache_bytes(config, n_seq, n_bytes=4):
    """The bytes, as an int, of the keys and values of n_seq positions in all layers; each number takes n_bytes.

    config has n_layer, n_head, n_embd, n_ctx and n_vocab. No array is made: the bill may be for more memory than
    any computer has.
    """
    return 2 * config.n_layer * n_seq * config.n_embd * n_bytes


# 3. Prefill and decode


def cached_block(x, block, n_head, layer_cache):
    """One block over the rows of n_new new tokens, which continue what layer_cache holds.

    x: [n_new, n_embd]. layer_cache: a LayerCache with any number of positions; it grows by n_new keys and values.
    Returns [n_new, n_embd]; x is not changed.
    """
    qkv = linear(layer_norm(x, block.ln_1.weight, block.ln_1.bias), block.attn.c_attn)
    q, k, v = (split_heads(part, n_head) for part in np.split(qkv, 3, axis=-1))  # each [n_head, n_new, head_dim]
    layer_cache.append(k, v)
    heads = attend(q, layer_cache)  # [n_head, n_new, head_dim]
    x = x + linear(merge_heads(heads), block.attn.c_proj)
    return x + feed_forward(layer_norm(x, block.ln_2.weight, block.ln_2.bias), block.mlp)


def advance(token_ids, position, weights, cache):
    """One pass over new tokens, the first of which stands at `position`; the logits [n_vocab] after the last.

    token_ids: a list of n_new >= 1 ids. cache: a ModelCache; each of its layers grows by n_new positions.
    ValueError, before anything is computed, unless all positions lie in 0 to n_ctx - 1 and all ids in 0 to
    n_vocab - 1.
    """
    config, end = weights.config, position + len(token_ids)
    if position < 0 or end > config.n_ctx:
        raise ValueError(f"positions {position} to {end - 1} do not fit into n_ctx = {config.n_ctx}")
    if min(token_ids) < 0 or max(token_ids) >= config.n_vocab:
        raise ValueError(f"token ids must lie in 0 to {config.n_vocab - 1}")
    x = weights.wte[np.asarray(token_ids)] + weights.wpe[position:end]  # [n_new, n_embd]
    for block, layer_cache in zip(weights.blocks, cache.layers, strict=True):
        x = cached_block(x, block, config.n_head, layer_cache)
    return layer_norm(x[-1], weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T


def prefill(prompt_ids, weights, cache):
    """One pass over the prompt, or the next chunk of it, which continues at position len(cache).

    prompt_ids: a list of at least one id, else ValueError; ValueError as well when it does not fit into n_ctx, or
    when an id does not lie in 0 to n_vocab - 1. A token that is refused gets no row.
    cache: a ModelCache; each of its layers grows by len(prompt_ids) positions.
    Returns the logits [n_vocab] after the last token.
    """
    if len(prompt_ids) == 0:
        raise ValueError("prefill needs at least one token id")
    return advance(prompt_ids, len(cache), weights, cache)


def decode_step(token_id, position, weights, cache):
    """One pass over a single token, which stands at `position`; the logits [n_vocab] of the token after it.

    cache: a ModelCache with the tokens before it; each of its layers grows by one position.
    ValueError when the position does not lie in 0 to n_ctx - 1, or the id not in 0 to n_vocab - 1; the token
    then gets no row.
    """
    return advance([token_id], position, weights, cache)


def generate(prompt_ids, n_new, weights):
    """The n_new greedy next ids, a list of ints without the prompt: one prefill, then one decode step a token.

    prompt_ids: a list of at least one id, else ValueError; it is not changed.
    ValueError when len(prompt_ids) + n_new - 1 is more than n_ctx.
    """
    n_rows, n_ctx = len(prompt_ids) + n_new - 1, weights.config.n_ctx
    if n_rows > n_ctx:
        raise ValueError(f"{len(prompt_ids)} prompt tokens and {n_new} new ones need {n_rows} rows; n_ctx is {n_ctx}")
    cache = ModelCache(weights.config.n_layer)
    logits = prefill(prompt_ids, weights, cache)
    new_ids = []
    while len(new_ids) < n_new:
        new_ids.append(int(logits.argmax()))
        if len(new_ids) < n_new:  # nothing is chosen after the last one
            logits = decode_step(new_ids[-1], len(cache), weights, cache)
    return new_ids


# 4. Save and reuse a prefix cache


def save_prefix_cache(prefix_ids, weights):
    """Run the prefix once and return the ModelCache that holds it: len(prefix_ids) rows in every layer.

    ValueError when the prefix is empty, is longer than n_ctx, or has an id outside the vocabulary.
    """
    saved = ModelCache(weights.config.n_layer)
    prefill(prefix_ids, weights, saved)
    return saved


def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    """Logits [n_vocab] after the last suffix token; suffix token i stands at position prefix_len + i.

    `saved` is not changed, whatever happens. `weights` are those it was saved with; do not compare them here.
    ValueError when the suffix is empty, prefix_len is negative, the suffix ends past position n_ctx - 1, or an id
    lies outside the vocabulary.
    """
    if len(suffix_ids) == 0:
        raise ValueError("the suffix is empty: keep back at least one token of the prompt")
    cache = saved.clone()  # the rows of the suffix go here
    return advance(suffix_ids, prefix_len, weights, cache)


def cache_facts(prefix_ids, weights):
    """What a file must say about itself: a dict of strings with fingerprint, prefix_len, dtype and layout.

    dtype is always "float32" and layout always "n_head, n_seq, head_dim".
    """
    return {
        "fingerprint": autograder.model_fingerprint(weights),
        "prefix_len": str(len(prefix_ids)),
        "dtype": "float32",
        "layout": "n_head, n_seq, head_dim",
    }


def as_tensors(cache, prefix_ids):
    """The arrays of a prefix cache by their names in the file, each in one piece."""
    tensors = {"prefix_ids": np.asarray(prefix_ids, np.int64)}
    for i, layer in enumerate(cache.layers):
        tensors[f"layers.{i}.keys"] = np.ascontiguousarray(layer.keys)
        tensors[f"layers.{i}.values"] = np.ascontiguousarray(layer.values)
    return tensors


def check_tensors(tensors, weights):
    """Return nothing when `tensors` is a whole prefix cache of this model; else ValueError naming the array."""
    config = weights.config
    ids = tensors.get("prefix_ids", np.empty(0, np.int64))
    if ids.dtype != np.int64 or ids.ndim != 1 or not 1 <= len(ids) <= config.n_ctx:
        raise ValueError(f"prefix_ids: {ids.dtype} {list(ids.shape)} is not a list of 1 to {config.n_ctx} ids")
    if ids.min() < 0 or ids.max() >= config.n_vocab:
        raise ValueError(f"prefix_ids: not all ids lie in 0 to {config.n_vocab - 1}")
    shape = (config.n_head, len(ids), config.n_embd // config.n_head)
    for name in (f"layers.{i}.{part}" for i in range(config.n_layer) for part in ("keys", "values")):
        array = tensors.get(name)
        if array is None or array.dtype != np.float32 or array.shape != shape:
            found = "missing" if array is None else f"{array.dtype} {list(array.shape)}"
            raise ValueError(f"{name}: {found}, where float32 {list(shape)} is needed")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: not all values are finite")


def write_prefix_cache(path, saved, prefix_ids, weights):
    """Write `saved`, and the ids it was made of, to the file `path`; ValueError when the two do not fit."""
    tensors = as_tensors(saved, prefix_ids)
    check_tensors(tensors, weights)
    save_file(tensors, path, cache_facts(prefix_ids, weights))


def read_prefix_cache(path, weights):
    """(saved, prefix_ids) as they were written, the ids as a list; ValueError names the field that does not fit.

    The field is file, fingerprint, prefix_len, dtype, layout, or the name of an array.
    """
    try:
        with safe_open(path, framework="np") as file:
            facts, names = file.metadata() or {}, file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, TypeError) as error:
        raise ValueError(f"file: {path} is not a whole cache file ({error})") from error
    prefix_ids = tensors.get("prefix_ids", np.empty(0, np.int64)).tolist()
    for field, needed in cache_facts(prefix_ids, weights).items():
        if facts.get(field) != needed:
            raise ValueError(f"{field}: the file says {facts.get(field)}, and {needed} is needed")
    check_tensors(tensors, weights)
    saved = ModelCache(weights.config.n_layer)
    for i, layer in enumerate(saved.layers):
        layer.append(tensors[f"layers.{i}.keys"], tensors[f"layers.{i}.values"])
    return saved, prefix_ids


class SharedLayer:
    """One layer of a saved prefix, which many requests read and none can write, and the tail of one request."""

    def __init__(self, saved_layer):
        self.prefix_keys, self.prefix_values = saved_layer.keys.view(), saved_layer.values.view()
        self.prefix_keys.flags.writeable = self.prefix_values.flags.writeable = False
        self.tail = LayerCache()

    def append(self, k, v):
        self.tail.append(k, v)

    def __len__(self):
        return self.prefix_keys.shape[1] + len(self.tail)


class SharedCache:
    """A cache that continues `saved` and copies none of its rows."""

    def __init__(self, saved):
        self.layers = [SharedLayer(layer) for layer in saved.layers]

    def __len__(self):
        return len(self.layers[0])


def attend_shared(q, layer):
    """`attend` over prefix and tail, without copying the prefix.

    q and the result: [n_head, n_query, head_dim]. layer: a SharedLayer; its tail ends with q's n_query positions.
    """
    n_query, head_dim = q.shape[1:]
    n_prefix, n_seq = layer.prefix_keys.shape[1], len(layer)
    to_prefix = q @ layer.prefix_keys.transpose(0, 2, 1)
    to_tail = q @ layer.tail.keys.transpose(0, 2, 1)
    scores = np.concatenate([to_prefix, to_tail], axis=-1) / head_dim**0.5  # [n_head, n_query, n_seq]
    visible = np.tri(n_query, n_seq, k=n_seq - n_query, dtype=bool)
    attention = softmax(np.where(visible, scores, -np.inf))
    return attention[..., :n_prefix] @ layer.prefix_values + attention[..., n_prefix:] @ layer.tail.values
