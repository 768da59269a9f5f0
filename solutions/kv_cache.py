# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 2. The KV cache
#
# **What you will build.** A memory for attention. Stage 1 runs the whole text through the model again for every new
# token. Nearly all of that work has been done before. You write `LayerCache`, which keeps the keys and values of one
# **layer**, as a block of the model is also called; `ModelCache`, which has one of those for every layer and can be
# cloned; `attend`, attention that reads them; and `kv_cache_bytes`, which counts the bytes they take. The next stages
# generate text with these, and save and reuse them.
#
# **Time.** About three hours.
#
# **What you should know.** Stage 1: queries, keys and values, heads, the causal mask. The functions you wrote there
# are in `given.py`, solved, so nothing depends on how far you got. `autograder.glossary("clone")` explains a term,
# `autograder.glossary()` all.
#
# **How to work.** As before. In a class there are several places with `# YOUR CODE HERE`, one in each method.

# %% setup="imports"
import numpy as np
from given import attention_weights, layer_norm, linear, softmax, split_heads, transformer_block

import autograder

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()

# %% [markdown]
# The switch from stage 1, for all cells that read a text: with `MODEL = "gpt2"` they use the real GPT-2, where it was
# fetched.

# %% tags=["chart"]
MODEL = None  # or "gpt2"
weights, tokenizer = autograder.load_both(MODEL)

# %% [markdown]
# ## The waste
#
# Writing one more token with stage 1's `generate_recompute` means a pass over the whole text. In attention, each
# position compares its query with the keys of all positions before it, which fills a triangle. One token later the
# triangle has one more row, and every row above it is filled again with the same numbers. The picture shows the third
# run for a prompt of 16 tokens, when two tokens have been added.

# %% tags=["chart"]
autograder.charts.steps_picture(16, n_steps=3)

# %% [markdown]
# On the left, all rows are computed in this step, and all keys and values (K and V, the two strips) with them. On the
# right, only the last row is computed. Its query needs the keys and values of all the earlier positions, and nothing
# else from them: the rows above are not kept. So the keys and values have to be kept, and the memory that keeps them is
# called the **KV cache**. (`00-start-here` explains the units. Here it is enough that left grows with the square of
# the length, and right in proportion to it.)
#
# Three questions decide whether that is allowed. Do the keys and values of earlier positions stay the same when the
# text grows? Is anything else needed from the earlier positions? And what does keeping them cost? We look at the first
# two now, with the model itself.
#
# ## Keys and values never change
#
# The function below runs a text through the first blocks of the model, with stage 1's functions, and gives the
# queries, keys and values of one layer.


# %% tags=["chart"]
def queries_keys_values(token_ids, layer):
    """q, k and v of one layer, each [n_head, n_seq, head_dim], with everything computed from scratch."""
    n_head = weights.config.n_head
    x = weights.wte[np.array(token_ids)] + weights.wpe[: len(token_ids)]
    for block in weights.blocks[:layer]:
        x = transformer_block(x, block, n_head)
    block = weights.blocks[layer]
    qkv = linear(layer_norm(x, block.ln_1.weight, block.ln_1.bias), block.attn.c_attn)
    return [split_heads(part, n_head) for part in np.split(qkv, 3, axis=-1)]


# %% tags=["chart"]
token_ids = tokenizer.encode("The king is dead, and the queen will")
shorter = token_ids[:-3]
print("longer: ", tokenizer.tokens(token_ids))
print("shorter:", tokenizer.tokens(shorter))
for layer in (0, 5, 11):
    _, k_long, v_long = queries_keys_values(token_ids, layer)
    _, k_short, v_short = queries_keys_values(shorter, layer)
    difference = max(abs(k_long[:, : len(shorter)] - k_short).max(), abs(v_long[:, : len(shorter)] - v_short).max())
    print(f"layer {layer:2}: keys {k_short.shape}, {k_long.shape}; shared rows differ by at most {difference:.1e}")

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Differences of about 1e-6 or 2e-6 at most, in keys and values of size 1 or so. That is the rounding
# of float32, not a change. With three more tokens, the earlier rows are the same as before.
#
# </details>
#
# The reason is the causal mask. A row of the table `x` is made from its own token, its position, and through attention
# from rows *before* it. Nothing ever comes from a later row. So a position's keys and values are settled as soon as
# its token is known, in every layer.
#
# The other direction is just as important: they depend on **all** the tokens before. Here one token in the middle is
# replaced, and the chart shows by how much each position's keys change, in each layer.

# %% tags=["chart"]
which_rows = autograder.guess(
    "The token at position 4 is replaced by another. Whose keys change, in the layers after the first?",
    choices=["position 4 alone", "positions 4 and later", "all positions"],
)
which_rows

# %% tags=["chart"]
place = 4
replaced = list(token_ids)
replaced[place] = tokenizer.encode(" not")[0]
layers = (0, 1, 2, 5, 8, 11)
keys = [(queries_keys_values(token_ids, layer)[1], queries_keys_values(replaced, layer)[1]) for layer in layers]
change = np.array([abs(before - after).max(axis=(0, 2)) for before, after in keys])
print("positions whose keys change in the last layer:", np.flatnonzero(change[-1] > 1e-4))
print(which_rows.beside("positions 4 and later"))
autograder.attention_charts.changed_keys(change, layers, tokenizer.tokens(token_ids), place, weights)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# No change to the left of the replaced token, in any layer. In layer 0 only the token itself changes: there the rows
# have not met yet. From layer 1 on, everything after it changes as well.
#
# </details>
#
# Keep this picture in mind. It is why a saved cache may be continued, and why it is good only for a text that begins
# with exactly the same tokens.
#
# ## Queries are used once
#
# A position's query is compared with the keys up to its own position, and the result is that position's row. No other
# row uses it. To see this, we replace all queries but the last by random numbers, and look at the last row of the
# result.

# %% tags=["chart"]
untouched = autograder.guess(
    "Which rows of the result stay as they were?",
    choices=["the last", "the first and the last", "the first half", "all"],
)
untouched

# %% tags=["chart"]
q, k, v = queries_keys_values(token_ids, layer=5)
spoiled = np.random.default_rng(0).normal(size=q.shape).astype(np.float32)
spoiled[:, -1] = q[:, -1]
difference = abs(attention_weights(q, k) @ v - attention_weights(spoiled, k) @ v).max(axis=(0, 2))
print("change of each row of the result:", difference.round(3))
untouched.beside("the first and the last")

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The last row has not changed at all, and neither has the first, whose query sees one key only and gives it everything,
# whatever the query is. All rows between have changed.
#
# </details>
#
# For the next token we need the last row only. So earlier queries can be forgotten: a cache keeps K and V and no Q.
#
# ## One layer's cache
#
# A `LayerCache` begins empty. `append(k, v)` adds the keys and values of one or more new positions, after those that
# are there. `keys` and `values` give everything so far. They are methods that are read without parentheses, like
# attributes: this is what the line `@property` above each of them does. `len()` says how many positions that is.
#
#     cache = LayerCache()            len(cache) is 0
#     cache.append(k, v)              k, v: [n_head, 5, head_dim]
#     cache.keys.shape                [n_head, 5, head_dim], len(cache) is 5
#     cache.append(k, v)              k, v: [n_head, 1, head_dim]
#     cache.keys.shape                [n_head, 6, head_dim], len(cache) is 6
#
# Two things are easy to get wrong. Positions are the **second** axis, after the heads. And several positions may come
# at once: a whole prompt first, and then single tokens, or chunks of any size.
#
# How you store the rows is up to you. Three ways are common:
#
# - **A list** of the arrays that were appended, joined whenever `keys` is read.
# - **Concatenation:** at every append, a new array with one row more, into which everything is copied.
# - **Preallocation:** a buffer with room to spare. A new row is written into the next free place, and `keys` is a view
#   of the filled part. When the buffer is full, make a larger one and copy the rows into it. If each new buffer is
#   twice as large as the one before, this happens so rarely that it hardly counts.
#
# All three pass the checks. The last one is the fastest, as you will measure below. Keep the numbers in float32 (or
# float64): in half precision they would not come out as they were put in, and the checks would see it. `keys` and
# `values` are only ever read by others, never written into, so a view is safe to hand out.
#
# Store the rows under names of your own, such as `self._keys` and `self._values`. The names `keys` and `values` are
# taken by the properties: `self.keys = ...` raises an `AttributeError`.


# %% solution="layer-cache"
class LayerCache:
    """The keys and values of one layer."""

    def __init__(self):
        """An empty cache."""
        ### BEGIN SOLUTION
        self._keys = self._values = None  # buffers [n_head, capacity, head_dim], made at the first append
        self._length = 0
        ### END SOLUTION

    def append(self, k, v):
        """Add n_new >= 1 positions after those already there, of which there may be any number.

        k and v are [n_head, n_new, head_dim].
        """
        ### BEGIN SOLUTION
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
        ### END SOLUTION

    @property
    def keys(self):
        """All keys so far, [n_head, n_seq, head_dim]; before the first append it may be anything."""
        ### BEGIN SOLUTION
        return None if self._keys is None else self._keys[:, : self._length]
        ### END SOLUTION

    @property
    def values(self):
        """All values so far, [n_head, n_seq, head_dim]; before the first append it may be anything."""
        ### BEGIN SOLUTION
        return None if self._values is None else self._values[:, : self._length]
        ### END SOLUTION

    def __len__(self):
        """How many positions are cached: n_seq, and 0 before the first append."""
        ### BEGIN SOLUTION
        return self._length
        ### END SOLUTION


# %% check="layer-cache-length"
autograder.check("layer-cache-length")

# %% check="layer-cache-rows"
autograder.check("layer-cache-rows")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The number of heads and `head_dim` are not known in `__init__`; they are when the first `k` arrives. With a buffer,
# three attributes are enough: one buffer for keys, one for values, and the number of rows in use. In `append`, work
# out the new length first, `k.shape[1]` more than before; see that the buffer has room for it; write; remember the
# length.
#
# Write a helper method if you like, for making a larger buffer that begins with the old rows. A chunk may be longer
# than the whole buffer, so "twice as large" is not always enough. Mind that NumPy does not complain about a slice that
# reaches past the end of an array; it cuts the slice.
#
# </details>
#
# ### Does it matter how the rows are stored?
#
# We fill a cache of the size of one layer of GPT-2 small, 12 heads of 64, token by token, and read the keys and values
# after each, as generating text does. Your `LayerCache` stands between two extremes: copying everything each time, and
# writing into one buffer that was made large enough beforehand.

# %% tags=["chart"]
copied = autograder.guess(
    "1,024 rows by concatenation, one by one: how many old rows are copied in all?",
    unit="rows",
)
copied

# %% tags=["chart"]
row = np.ones((12, 1, 64), np.float32)  # the keys of one position, and its values


def by_concatenation(n):
    keys, values = row, row
    for _ in range(n - 1):
        keys, values = np.concatenate([keys, row], axis=1), np.concatenate([values, row], axis=1)


# %% tags=["chart"]
def into_one_buffer(n):
    keys, values = np.empty((12, n, 64), np.float32), np.empty((12, n, 64), np.float32)
    for i in range(n):
        keys[:, i : i + 1], values[:, i : i + 1] = row, row


def with_your_cache(n):
    cache = LayerCache()
    for _ in range(n):
        cache.append(row, row)
        _ = cache.keys, cache.values


# %% tags=["chart"]
ways = {"concatenation": by_concatenation, "your LayerCache": with_your_cache, "one large buffer": into_one_buffer}
times = autograder.timing.sweep((64, 128, 256, 512, 1024), ways)
print(copied.beside(sum(range(1024)), "That is 0 + 1 + 2 + ... + 1,023."))
autograder.cost_charts.filling(times)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Both axes are logarithmic, so a straight line means a power, and its slope is the exponent: 1 for work in proportion
# to the length, 2 for its square. The two thin lines have these slopes. Concatenation copies up to n rows for each of n
# tokens, which grows as n squared, although at small lengths the fixed cost of a NumPy call hides it. One large buffer
# writes each row once. A preallocated `LayerCache` runs beside it, a little higher up: its methods are called for each
# row, and it grows now and then. A list that is joined at every read behaves like concatenation. (Where a machine is
# busy, or fetches memory slowly, the lines zigzag, and the larger lengths come out slower.)
#
# </details>
#
# ## A cache for the whole model
#
# Every layer has keys and values of its own, so a model needs one `LayerCache` for each. `ModelCache(n_layer)` holds
# them in `layers`. A new token adds **one row in every layer**, so all layers have the same length, and that is the
# length of the cache.
#
# `clone()` gives a cache with the same rows, which afterwards goes its own way. Stage 4 depends on it: one saved
# prefix serves many requests, and each continues a clone. What one of them appends must never show in another, in any
# layer. A **shallow** copy, which copies the outer object and shares what is inside, is not enough.


# %% solution="model-cache"
class ModelCache:
    """One LayerCache for each of a model's layers."""

    def __init__(self, n_layer):
        """n_layer empty LayerCaches in self.layers, a sequence."""
        ### BEGIN SOLUTION
        self.layers = [LayerCache() for _ in range(n_layer)]
        ### END SOLUTION

    def __len__(self):
        """How many positions are cached, the same in every layer."""
        ### BEGIN SOLUTION
        return len(self.layers[0]) if self.layers else 0
        ### END SOLUTION

    def clone(self):
        """A cache with the same rows in every layer. What either appends later does not show in the other."""
        ### BEGIN SOLUTION
        copy = ModelCache(len(self.layers))
        for layer, new_layer in zip(self.layers, copy.layers, strict=True):
            if len(layer):
                new_layer.append(layer.keys, layer.values)
        return copy
        ### END SOLUTION


# %% check="model-cache-layers"
autograder.check("model-cache-layers")

# %% check="clone-equal"
autograder.check("clone-equal")

# %% check="clone-independent"
autograder.check("clone-independent")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `[LayerCache()] * n_layer` is a list with the same object n_layer times. A comprehension makes a new one each time.
#
# For `clone`, think about what your `LayerCache` writes into when something is appended. With a buffer, the clone
# needs a buffer of its own: if both have the same one, both write their next row to the same place. The simplest clone
# uses only what you have already written: a new `ModelCache`, into whose layers the rows of the old ones are appended.
# A layer that is still empty has no rows to append. Other programs use Python's `copy.deepcopy`, which is just as
# correct; it also copies the unused part of a buffer.
#
# </details>
#
# Now fill it with what the model computes. The loop below does what generating will do: token after token, one new row
# in every layer.

# %% tags=["chart"]
cache = ModelCache(weights.config.n_layer)
for n_seq, token in enumerate(tokenizer.tokens(token_ids), start=1):
    for layer, layer_cache in enumerate(cache.layers):
        _, k, v = queries_keys_values(token_ids[:n_seq], layer)
        layer_cache.append(k[:, -1:], v[:, -1:])  # only the newest position; the others are there already
    print(f"{token!r:10} length {len(cache)}, keys of layer 0: {cache.layers[0].keys.shape}")

_, k, v = queries_keys_values(token_ids, layer)
difference = abs(cache.layers[layer].keys - k).max()
print(f"\nin layer {layer} the rows differ from a pass over the whole text by at most {difference:.1e}")

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The length grows by one a token, in every layer, and the rows that came one by one are those
# of a single pass over the text, up to rounding. (This loop still recomputes everything to *make* the rows. Doing
# without that is stage 3.)
#
# </details>
#
# ## Attention over the cache
#
# `attend(q, layer_cache)` is stage 1's attention with the keys and values taken from the cache. One thing is new:
# there may be fewer queries than keys. The queries are those of the **last** `n_query` positions, because only new
# positions have to be computed. So query 0 does not stand at position 0. The picture shows 8 cached positions and 3
# queries.

# %% tags=["chart"]
autograder.attention_charts.queries_at_the_end(n_query=3, n_seq=8)

# %% [markdown]
# When one token is decoded there is one query. It stands at the last position and sees everything, so nothing has to
# be hidden. When a prompt is prefilled into an empty cache there are as many queries as keys, and the mask is the
# triangle of stage 1. Your function serves both, and everything between.
#
# The rest is as before: scores are divided by `sqrt(head_dim)`, the softmax runs over the keys, and each row's largest
# visible score is subtracted before `exp`. Only read the cache: an in-place operation such as `keys *= 0.5` would
# change it for everyone.


# %% solution="attend"
def attend(q, layer_cache):
    """Causal attention of the newest positions over everything in the cache.

    q: [n_head, n_query, head_dim], the queries of the last n_query cached positions; their keys and values are in
    the cache already. Returns [n_head, n_query, head_dim]. Neither q nor the cache is changed. Scores may be of any
    size and sign, the hidden ones too: a million is nothing special.
    """
    ### BEGIN SOLUTION
    keys, values = layer_cache.keys, layer_cache.values
    n_query, n_seq, head_dim = q.shape[1], keys.shape[1], q.shape[2]
    scores = q @ keys.transpose(0, 2, 1) / head_dim**0.5  # [n_head, n_query, n_seq]
    visible = np.tri(n_query, n_seq, k=n_seq - n_query, dtype=bool)  # query i stands at position n_seq - n_query + i
    return softmax(np.where(visible, scores, -np.inf)) @ values
    ### END SOLUTION


# %% check="attend-one-query"
autograder.check("attend-one-query")

# %% check="attend-several-queries"
autograder.check("attend-several-queries")

# %% check="attend-large-scores"
autograder.check("attend-large-scores")

# %% check="attend-only-reads"
autograder.check("attend-only-reads")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Start from your `attention_weights`. The scores have the shape `[n_head, n_query, n_seq]`, where `n_seq` is the
# number of cached positions and `n_query` comes from `q`. At which position does query `i` stand? Look at the picture:
# 0 is at 5, 1 at 6, 2 at 7. Write that as a formula in `n_seq`, `n_query` and `i`, and check it with `n_query = 1` and
# with `n_query = n_seq`. `np.tri(rows, columns, k)` takes the number of the diagonal as its third argument.
#
# </details>
#
# The last row of a layer's attention can now be computed in two ways: by recomputing all rows, and by one query on the
# cache.

# %% tags=["chart"]
q, k, v = queries_keys_values(token_ids, layer=5)
all_rows = attention_weights(q, k) @ v
layer_cache = LayerCache()
layer_cache.append(k, v)
one_row = attend(q[:, -1:], layer_cache)
print("all rows:", all_rows.shape, " one row:", one_row.shape)
print(f"the last row differs by {abs(all_rows[:, -1:] - one_row).max():.1e}")

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A difference of about 1e-6 or less.
#
# </details>
#
# Now the time that both take in one layer of GPT-2 small, as the text grows. Recomputing starts from all queries and
# keys; your `attend` has one query, and a cache that is already filled.

# %% tags=["chart"]
one_query = autograder.guess(
    "After 1,024 tokens, attention for one row is how many times faster than for all?", unit="times"
)
one_query

# %% tags=["chart"]
rng = np.random.default_rng(0)
q, k, v = rng.normal(size=(3, 12, 1024, 64)).astype(np.float32)
filled = {n: LayerCache() for n in (64, 128, 256, 512, 1024)}
for n, layer_cache in filled.items():
    layer_cache.append(k[:, :n], v[:, :n])


def recompute_all_rows(n):
    return attention_weights(q[:, :n], k[:, :n]) @ v[:, :n]


# %% tags=["chart"]
ways = {"all rows recomputed": recompute_all_rows, "your attend, one query": lambda n: attend(q[:, :1], filled[n])}
times = autograder.timing.sweep(filled, ways, repeats=5)
all_rows, one_row = (series[-1].median for _, series in times.values())
print(one_query.beside(all_rows / one_row))
autograder.cost_charts.one_layer(times)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# On a machine that is not busy, recomputing has a slope of 2 or somewhat more: twice the text, four times the work. One
# query has a slope below or near 1, because part of its time is the fixed cost of the NumPy calls. At 1,024 tokens the
# two are far apart.
#
# </details>
#
# ## What it costs: memory
#
# The cache trades memory for time. How much memory? For every position, every layer keeps one key and one value for
# each head. All heads together are `n_embd` numbers. A number takes `n_bytes` bytes: 4 as float32, 2 in half
# precision, which is what large models are served in.


# %% solution="kv-cache-bytes"
def kv_cache_bytes(config, n_seq, n_bytes=4):
    """The bytes, as an int, of the keys and values of n_seq positions in all layers; each number takes n_bytes.

    config has n_layer, n_head, n_embd, n_ctx and n_vocab. No array is made: the bill may be for more memory than
    any computer has.
    """
    ### BEGIN SOLUTION
    return 2 * config.n_layer * n_seq * config.n_embd * n_bytes
    ### END SOLUTION


# %% check="memory-bytes"
autograder.check("memory-bytes")

# %% [markdown]
# <details><summary>Hint</summary>
#
# It is one product. Count by hand for a model of 1 layer and `n_embd` 2, with 1 position in float32: 2 numbers of a
# key and 2 of a value, 4 bytes each, is 16.
#
# </details>

# %% tags=["chart"]
bill = autograder.guess("How large is GPT-2 small's KV cache for 1,024 tokens, in float32?", unit="MB")
bill

# %% tags=["chart"]
_, k, v = queries_keys_values(token_ids, layer=0)
by_adding_up = (k.nbytes + v.nbytes) * weights.config.n_layer
print(f"the text above, by the formula: {kv_cache_bytes(weights.config, len(token_ids)):,} bytes")
print(f"by adding up the arrays:        {by_adding_up:,} bytes")
small = autograder.GPT2_SMALL
print(f"GPT-2 small, one token:         {kv_cache_bytes(small, 1):,} bytes")
print(f"GPT-2 small, 1,024 tokens:      {kv_cache_bytes(small, 1024):,} bytes")
print(bill.beside(kv_cache_bytes(small, 1024) / 1e6))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The same number twice. GPT-2 small takes 73,728 bytes for every token, 75.5 million for a full
# context.
#
# </details>
#
# ### Grouped queries
#
# Newer models save here. In **grouped-query attention** several heads of queries share one head of keys and values. A
# model with 32 heads of queries and 8 of keys and values keeps a quarter of the numbers. Your function can count that
# as well: give it a config whose `n_embd` is the width of the *keys*, which is the number of key heads times
# `head_dim`. The shapes below are published ones:
#
# - GPT-2: Radford et al. 2019, *Language Models are Unsupervised Multitask Learners*, table 2.
# - Llama 2: Touvron et al. 2023, *Llama 2: Open Foundation and Fine-Tuned Chat Models* (arXiv 2307.09288).
# - Mistral 7B: Jiang et al. 2023, *Mistral 7B* (arXiv 2310.06825), table 1.
# - Qwen2.5 7B: Qwen Team 2024, *Qwen2.5 Technical Report* (arXiv 2412.15115), table 1.
# - The idea: Ainslie et al. 2023, *GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
#   Checkpoints* (arXiv 2305.13245).


# %% tags=["chart"]
def key_shape(n_layer, n_key_heads, head_dim):  # as kv_cache_bytes needs it; n_ctx and n_vocab play no part in it
    return autograder.GPT2Config(n_layer, n_key_heads, n_key_heads * head_dim, n_ctx=1, n_vocab=1)


models = {
    "GPT-2 small (12 of 12 heads)": autograder.GPT2_SMALL,
    "GPT-2 XL (25 of 25 heads)": autograder.GPT2_XL,
    "Llama 2 7B (32 of 32 heads)": key_shape(32, 32, 128),
    "Llama 2 70B (8 of 64 heads)": key_shape(80, 8, 128),
    "Mistral 7B (8 of 32 heads)": key_shape(32, 8, 128),
    "Qwen2.5 7B (4 of 28 heads)": key_shape(28, 4, 128),
}

# %% tags=["chart"]
bytes_a_token = {name: kv_cache_bytes(config, 1, n_bytes=2) for name, config in models.items()}
autograder.cost_charts.token_in_memory(bytes_a_token)

# %% tags=["chart"]
lengths = [2**i for i in range(9, 18)]
chosen = ("GPT-2 XL (25 of 25 heads)", "Llama 2 7B (32 of 32 heads)", "Mistral 7B (8 of 32 heads)")
bills = {name: [kv_cache_bytes(models[name], n, n_bytes=2) / 1e9 for n in lengths] for name in chosen}
autograder.cost_charts.text_in_memory(lengths, bills)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Straight lines, one below the other. Llama 2 7B needs 524 kB a token. Mistral 7B, which has
# as many layers and a quarter of the key heads, needs 131 kB. Where a line crosses 24 GB, one text alone fills a
# graphics card with that much memory, and a server has many texts at once. That is why a cache that several requests
# can share is worth having: what they have in common needs to be kept only once.
#
# </details>
#
# ## Show a friend
#
# Put a sentence of your friend's into the cell, and let your friend guess. (Other models cut it into a few tokens more
# or less.)

# %% tags=["chart"]
heavier = autograder.guess("A sentence's cache in Llama 2 7B has how many times its bytes?", unit="times")
heavier

# %% tags=["chart"]
sentence = "The king is dead, and the queen will reign."
n_tokens = len(tokenizer.encode(sentence))
rows = [{"what": "the sentence itself", "bytes": len(sentence.encode())}]
rows += [{"what": f"its cache in {name}", "bytes": n_tokens * n} for name, n in bytes_a_token.items()]
_ = autograder.live_table(rows)
heavier.beside(rows[3]["bytes"] / rows[0]["bytes"])

# %% [markdown]
# ## Find the bug
#
# Play with somebody else's code, then choose the cause. You are told at once whether it fits, and why.

# %% tags=["chart"]
bug = autograder.puzzle("kv-cache")
bug

# %% tags=["chart"]
saved = bug.function()
saved.append(np.ones((1, 3, 2)))
clone = saved.clone()
clone.append(np.full((1, 2, 2), 7.0))
print("saved:", saved.keys[0, :, 0], " clone:", clone.keys[0, :, 0])

# %% tags=["chart"]
autograder.question("kv-cache", 1)

# %% tags=["chart"]
autograder.question("kv-cache", 2)

# %% [markdown]
# ## Questions
#
# Answer in a few sentences each. They are graded by hand.

# %% [markdown] written="which-rows-stay" points=2
# **Which rows stay right?** A cache holds the keys and values of a text of 100 tokens. Now the token at position 40 is
# replaced by another one. Which rows of the cache are still right, in which layers, and why? What is the least work
# that makes the cache right again?
#
# ### BEGIN SOLUTION
# **Rubric.**
#
# - 1 point: the rows 0 to 39 stay right in every layer, because a row depends only on its own token, its position and
#   the tokens before it (causal mask). A full point needs the reason.
# - 1 point: the rows 40 to 99 must be computed again, so the cache is cut to 40 rows and tokens 40 to 99 are run
#   through the model. An answer that recomputes row 40 alone gets half a point at most for this part: from layer 1 on,
#   the later rows have attended to the old token. Naming the exception, that in layer 0 only row 40 changes, is
#   welcome and not required.
# ### END SOLUTION

# %% [markdown] written="memory-bill" points=2
# **Whose memory?** A server keeps Llama 2 7B in half precision on a graphics card with 24 GB, of which about 14 GB hold
# the model. How many texts of 4,096 tokens fit into the rest at once? How many would fit with the shape of Mistral 7B?
# Then say what changes if all of these texts begin with the same 3,000 tokens, kept only once.
#
# ### BEGIN SOLUTION
# **Rubric.**
#
# - 1 point: 4,096 tokens take 4,096 * 524,288 bytes = 2.15 GB with Llama 2 7B, so 4 texts fit into 10 GB; with Mistral
#   7B's shape a text takes 0.54 GB, so 18 fit. Answers that take GB as 2**30 bytes, or use the chart, may differ by
#   one.
# - 1 point: the shared 3,000 tokens are paid once, 1.57 GB (Llama 2 7B), and each text adds only its own 1,096 tokens,
#   0.57 GB: (10 - 1.57) / 0.57 is 14 texts instead of 4. Half a point for saying without numbers that the prefix is
#   paid once and each text for its rest.
# ### END SOLUTION

# %% [markdown]
# ## What comes next
#
# Stage 3 puts the parts together. `prefill` runs a prompt through the model once and leaves its keys and values in a
# `ModelCache`; `decode_step` runs one token, with `attend` in every layer. You will see that the logits are those of
# recomputing, at every step, and measure how much time that saves. Stage 4 then saves a cache and lets many requests
# continue it through `clone`.
