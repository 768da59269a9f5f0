"""The functions of the earlier stages (The forward pass, The KV cache, Prefill and decode, Save and reuse a prefix
cache, How prefix reuse fails, A store of blocks), as the course solved them. Made from the course's solutions, so
that a stage can be solved and graded for itself, whatever became of the ones before. Changes made here count for
nothing: the file is replaced when the work is graded. To build on functions of your own, load your notebook: mine =
autograder.load_notebook("../06-block-cache/block_cache.ipynb").
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

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


# 5. How prefix reuse fails


START = "<|endoftext|>"  # begins every message; a special token, one id
NO_THOUGHT = "[think]"  # an empty think block: the model is asked to answer at once
GENERATION_PROMPT = f"{START}assistant\n{NO_THOUGHT}"  # where the model takes over


@dataclass(frozen=True, eq=False)
class Entry:
    """One saved prefix: its token ids, and the ModelCache made from them (None where only the ids matter)."""

    token_ids: list[int]
    cache: Any = None
    name: str = ""


def drifting_render_chat(messages, add_generation_prompt=False):
    """A chat template with a fault, which you will find."""
    text = ""
    for message in messages:
        text += f"{START}{message['role']}\n{message['content']}"
    if add_generation_prompt:
        text += GENERATION_PROMPT
    return text


def longest_common_prefix(a, b):
    """How many ids the two lists share from the start, as an int.

    a, b: lists of token ids, of any lengths; either may be empty.
    Counting ends at the first difference: [5, 7, 9, 2] and [5, 7, 8, 2] share 2. Where one list is the beginning of
    the other, the result is the length of the shorter one. There is no error to raise.
    """
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n


def candidate_log(entries, prompt_ids):
    """What is decided about each entry, and by which figures: a list of dicts, one for each entry, in their order.

    entries: a sequence of objects with .token_ids, maybe empty. prompt_ids: a list of at least one id.
    The keys of each dict:
        "n": the number of ids of the entry
        "common": how many ids entry and prompt share from the start
        "gate": True when the entry is shorter than the prompt
        "key": True when all ids of the entry are the first ids of the prompt
        "hit": True when both are True
    """
    rows = []
    for entry in entries:
        n = len(entry.token_ids)
        common = longest_common_prefix(entry.token_ids, prompt_ids)
        gate, key = n < len(prompt_ids), common == n
        rows.append({"n": n, "common": common, "gate": gate, "key": key, "hit": gate and key})
    return rows


def lookup(entries, prompt_ids):
    """The entry to reuse for a prompt: the very object out of `entries`, or None.

    entries: a sequence of objects with .token_ids, in any order, maybe empty. prompt_ids: a list, not empty.
    Only whole entries count: all ids of the entry begin the prompt, and at least one token of the prompt is left.
    Of those, the longest is returned, or any of them where the same ids are stored twice; None where there is none.
    """
    rows = candidate_log(entries, prompt_ids)
    hits = [entry for entry, row in zip(entries, rows, strict=True) if row["hit"]]
    return max(hits, key=lambda entry: len(entry.token_ids), default=None)


@dataclass
class ScriptedServer:
    """A server's parts. outcome: "hit" (an entry is found), "miss" (none is), "raises" (the reuse of it fails)."""

    outcome: str

    def find(self):
        return None if self.outcome == "miss" else "entry"

    def reuse(self, entry):
        if self.outcome == "raises":
            raise ValueError("the suffix is empty")
        return "logits by reuse"

    def recompute(self):
        return "logits by recompute"


def serve_openly(server):
    """Answer one request: (the logits, a line for the log).

    server.find() gives an entry or None, server.reuse(entry) gives logits or raises, and server.recompute() gives
    logits. Without an entry, and where the reuse raises, the logits are recomputed.
    The line is "hit", "miss", or "failed: " and what the error says.
    """
    entry = server.find()
    if entry is None:
        return server.recompute(), "miss"
    try:
        return server.reuse(entry), "hit"
    except Exception as error:
        return server.recompute(), f"failed: {error}"


def explain_miss(stored_ids, live_ids):
    """One line that says where a stored entry and a live prompt diverge.

    stored_ids, live_ids: lists of token ids, of any lengths; either may be empty.
    For stored [5, 7, 9, 2] and live [5, 7, 8], where 2 ids are shared from the start and 4 are stored, the line is

        common=2 of 4; stored next: 9; live next: 8

    The last two numbers are the first id after the shared ones on each side; without an id there, it says `end`.
    For stored [5, 7] and live [5, 7, 8]:

        common=2 of 2; stored next: end; live next: 8
    """
    common = longest_common_prefix(stored_ids, live_ids)

    def next_id(ids):
        return ids[common] if common < len(ids) else "end"

    return f"common={common} of {len(stored_ids)}; stored next: {next_id(stored_ids)}; live next: {next_id(live_ids)}"


def render_chat(messages, add_generation_prompt=False):
    """The messages as one string, in which turn n's prompt and its answer are the beginning of turn n + 1's prompt.

    messages: a list of dicts with the keys "role" ("system", "user", "assistant", "context") and "content", a
    string of any kind: empty, with spaces and newlines at its ends, or with the template's own markers in it.
    Each message becomes START, its role, a newline, and its content, unchanged. A message of the assistant has
    NO_THOUGHT before its content, as the model had it in front of it when it answered.
    With add_generation_prompt=True the string ends with GENERATION_PROMPT.
    No messages give an empty string, or the generation prompt alone.
    """
    text = ""
    for message in messages:
        thought = NO_THOUGHT if message["role"] == "assistant" else ""
        text += f"{START}{message['role']}\n{thought}{message['content']}"
    return text + GENERATION_PROMPT if add_generation_prompt else text


def build_prompt(system, tools, messages, now=None, notes=()):
    """A whole prompt as a string: what stays the same first, what changes from call to call last.

    system: a string. tools: a list of dicts, such as json.dumps takes. messages: the conversation, as render_chat
    takes it. now: the time as a string, not empty and without a newline, or None. notes: recalled notes, a list of
    such strings, maybe empty.
    What render_chat makes of these, in this order:
        1. a message with the role "system": the text `system`, a newline, and the tools as one JSON list, with
           nothing after it. The order of a dict's keys makes no difference at any depth; the order of a list stays.
        2. the messages, all of them and as they are
        3. one message with the role "context": the time and then the notes, in their order, each on its own line.
           Without a time there is no line for it; without a time and notes there is no such message.
        4. the generation prompt
    """
    tools_json = json.dumps(tools, sort_keys=True)
    changing = ([] if now is None else [now]) + list(notes)
    parts = [{"role": "system", "content": f"{system}\n{tools_json}"}, *messages]
    if changing:
        parts.append({"role": "context", "content": "\n".join(changing)})
    return render_chat(parts, add_generation_prompt=True)


def cache_key(token_ids, model, tokenizer, dtype, layout, positions, tenant):
    """The key, a string, under which the cache of these ids may be found again.

    token_ids: a list of at least one id. A vocabulary may have 200,000 ids and more. All others are strings, of any
    length, with any characters: the fingerprints of model and tokenizer, the dtype and the layout of the stored
    arrays ("float32", "n_head, n_seq, head_dim"), how positions are counted ("wpe from 0"), and the tenant.
    Equal arguments give equal keys, also in another Python process. Arguments that differ in anything give
    different keys: model "ab" with tokenizer "c" is not model "a" with tokenizer "bc", and ids [1, 23] are not
    [12, 3]. If the key is a digest, it keeps at least 64 bits (16 hexadecimal digits), so that keys are not equal
    by chance either.
    """
    fields = [list(token_ids), model, tokenizer, dtype, layout, positions, tenant]
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()


# 6. A store of blocks


@dataclass(eq=False)
class Block:
    """The keys and values of block_size tokens. Two blocks are equal only if they are the same object."""

    key: str
    token_ids: list[int]  # of this block alone
    before: Any  # the Block before it; for the first of a prompt, the context
    rows: Any  # what the store's `encode` made of [n_layer, 2, n_head, block_size, head_dim]


def rows_of(cache, start, end):
    """A copy of rows start to end - 1 of a cache, [n_layer, 2, n_head, end - start, head_dim]: keys 0, values 1.

    It is write-protected, so that whoever is handed it can read it, and cannot change it for the others.
    """
    rows = np.stack([(layer.keys[:, start:end], layer.values[:, start:end]) for layer in cache.layers])
    rows.flags.writeable = False
    return rows


def cache_of(run, n_layer):
    """A new ModelCache that begins with the rows of a run, a list of arrays as rows_of makes them, maybe empty."""
    cache = ModelCache(n_layer)
    if run:
        for layer, (keys, values) in zip(cache.layers, np.concatenate(run, axis=3), strict=True):
            layer.append(keys, values)
    return cache


def as_it_is(rows):
    return rows


def block_keys(token_ids, block_size, context):
    """The keys of a prompt's full blocks, a list of strings: key i stands for all ids up to the end of block i.

    token_ids: a list of ids, maybe empty. Of n ids, n // block_size blocks are full; ids after them have no key.
    context: a dict of strings, what keys and values depend on besides the ids. The order of its keys is free.
    Each key depends on the ids of its block, on those of all blocks before it, and on the context: equal arguments
    give equal keys, also in another Python process, and what differs in anything has another key. A key has 16
    characters or more, so that keys are not equal by chance.
    """
    key, keys = json.dumps(context, sort_keys=True), []
    for end in range(block_size, len(token_ids) + 1, block_size):
        key = hashlib.sha256(json.dumps([key, token_ids[end - block_size : end]]).encode()).hexdigest()
        keys.append(key)
    return keys


class BlockStore:
    """Blocks of the prompts that were served, at most `capacity` of them, found again by their keys."""

    def __init__(self, capacity, block_size, key=block_keys, encode=as_it_is, decode=as_it_is):
        """An empty store.

        capacity: the most blocks it holds, 0 or more. key: called as block_keys is, and in its place; it may give
        two blocks one key. What is kept of a block's rows is encode(rows), and match gives decode of that.
        """
        self.capacity, self.block_size = capacity, block_size
        self.key, self.encode, self.decode = key, encode, decode
        self.blocks = {}  # by key; those used least recently first

    def __len__(self):
        """How many blocks it holds."""
        return len(self.blocks)

    def match(self, token_ids, context):
        """The rows of the longest run with which the prompt begins: a list of arrays, one a block, maybe empty.

        An array is [n_layer, 2, n_head, block_size, head_dim]. The run goes on as long as the store has, under the
        key of the prompt's next block, a Block with the same ids, and with the right one before it: the run's last
        block so far, or the context where there is none yet. It has (len(token_ids) - 1) // block_size blocks at
        most, so that a token is left. Its blocks count as used. What a caller writes into the arrays changes no
        block.
        """
        run = self._run(token_ids, context)[: (len(token_ids) - 1) // self.block_size]
        self._use(run)
        return [self.decode(block.rows) for block in run]

    def put(self, token_ids, context, cache):
        """Keep the full blocks of a prompt, from the first on, as far as there is room.

        cache: holds the rows of token_ids, and maybe more. Its arrays may change afterwards, so rows are copied.
        A block that is there already stays as it is. For a new one, a full store evicts the leaf used least
        recently, and keeps nothing of it. The prompt's own blocks are never evicted: where all others are gone, the
        rest of the prompt is not kept. Where a Block with other ids, or after another one, has the key, either of
        the two is kept; if it is the old one, stop: what comes after it could never be found. In the end, the
        prompt's blocks count as used.
        """
        size, run = self.block_size, self._run(token_ids, context)
        for i, key in enumerate(self.key(token_ids, size, context)):
            if i < len(run):
                continue
            if key in self.blocks or (len(self) >= self.capacity and not evict(self.blocks, run)):
                break  # another block's key, or no room
            rows = rows_of(cache, i * size, (i + 1) * size)
            before = run[-1] if run else dict(context)
            run.append(Block(key, token_ids[i * size : (i + 1) * size], before, self.encode(rows)))
            self.blocks[key] = run[-1]
        self._use(run)

    def _run(self, token_ids, context):
        """The blocks with which the prompt begins."""
        run, size = [], self.block_size
        for i, key in enumerate(self.key(token_ids, size, context)):
            block, before = self.blocks.get(key), run[-1] if run else context
            if block is None or block.token_ids != token_ids[i * size : (i + 1) * size] or block.before != before:
                break
            run.append(block)
        return run

    def _use(self, run):
        """Move the blocks of a run to the end, its last one first: so a block stands after all that continue it."""
        for block in reversed(run):
            self.blocks[block.key] = self.blocks.pop(block.key)


def evict(blocks, run):
    """Take the leaf used least recently that is none of the run's blocks out of `blocks`; False if there is none.

    blocks: a dict of Blocks by their keys, those used least recently first. run: a list of Blocks.
    """
    for block in blocks.values():
        if block not in run:  # the first such block is a leaf: what continues a block stands before it
            del blocks[block.key]
            return True
    return False


def serve(store, prompt_ids, weights, context):
    """The logits [n_vocab] after the prompt. Blocks of the store are reused, and those of the prompt put into it.

    prompt_ids: a list of at least one id. Only the tokens after the longest run of blocks go through the model.
    ValueError when the prompt is empty, is longer than n_ctx, or has an id outside the vocabulary; the store then
    holds the blocks that it held before.
    """
    cache = cache_of(store.match(prompt_ids, context), weights.config.n_layer)
    logits = prefill(prompt_ids[len(cache) :], weights, cache)
    store.put(prompt_ids, context, cache)
    return logits


def quantize(array):
    """An array of floats as whole numbers and scales: (numbers, scales).

    array: [..., n]; the n numbers of its last axis are a row. numbers: int8, of the array's shape, -127 to 127.
    scales: float32, [..., 1], one for each row: its largest absolute value / 127. numbers * scales is the array up
    to half a step, which is scales / 2. A row of zeros gives zeros.
    """
    scales = np.abs(array).max(axis=-1, keepdims=True) / np.float32(127)
    steps = array / np.where(scales == 0, 1, scales)
    return np.rint(steps).astype(np.int8), scales.astype(np.float32)


def dequantize(quantized):
    """What quantize gave, a pair (numbers, scales), as an array of float32 again."""
    numbers, scales = quantized
    return numbers * scales
