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
# # 6. A store of blocks
#
# **What you will build.** The part that a serving engine adds to a saved prefix. Stages 4 and 5 look up whole
# entries: a prompt that differs from an entry in its last token alone finds none. Here every prompt is cut into
# *blocks* of a few tokens, and one store holds the blocks of all prompts, up to a capacity. A new prompt takes as
# many blocks from the left as match it, and computes the rest. You write the keys by which blocks are found, the
# store that compares and evicts, the function that serves a request from it, and blocks of 8-bit numbers.
#
# **Time.** About five hours. This stage is optional: it goes further than the five before.
#
# **What you should know.** Saving and reusing a prefix (stage 4), and how reuse fails (stage 5). What they built is in
# `given.py`. `autograder.glossary("tenant")` explains a term, `autograder.glossary()` all.
# Before most charts there is a guess: enter yours first.

# %% setup="imports"
import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from given import (
    ModelCache,
    advance,
    generate_with_prefix,
    kv_cache_bytes,
    longest_common_prefix,
    prefill,
    save_prefix_cache,
)

import autograder
from autograder.toolkit.work import bytes_held

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()


# %% setup="blocks"
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


# %% [markdown]
# The switch from stage 1, for all cells with a model: with `MODEL = "gpt2"` they use the real GPT-2, where it was
# fetched, and charts of measured times take minutes.

# %% tags=["chart"]
MODEL = None  # or "gpt2"
weights, tokenizer = autograder.load_both(MODEL)

# %% [markdown]
# ## 1. Why whole entries are not enough
#
# Stage 5 showed near misses. The stored entry and the live prompt share a beginning and then part, and since an
# entry is used whole or not at all, everything is computed. The picture shows two such prompts cut into blocks of four
# tokens. A box with a thick frame is a *full block*. The tokens at the end that fill no block are the *rest*.

# %% tags=["chart"]
stored = "First Citizen:\nBefore we proceed any further, hear."
live = "First Citizen:\nBefore we proceed, you know Caius."
prompts = {"stored": tokenizer.encode(stored), "live": tokenizer.encode(live)}
common = longest_common_prefix(prompts["stored"], prompts["live"])
names = {"live": [f"{'BC'[i >= common // 4]}{i}" for i in range(len(prompts["live"]) // 4)]}
autograder.block_charts.block_strip(
    {name: tokenizer.tokens(ids) for name, ids in prompts.items()}, 4, names=names, reused={"live": common // 4},
    title=f"The two share {common} tokens, and {common // 4} full blocks",
    note="Shaded blocks come out of the store.",
)  # fmt: skip

# %% [markdown]
# With whole entries, nothing of the stored prompt can be used. With blocks, the live prompt is served from the shaded
# ones, and only what comes after them is computed. The shared tokens after the last shaded block are lost: a block is
# used whole or not at all. So the question of stage 5 is still there, at a smaller size.
#
# Why only from the left? Because a row of keys and values depends on all tokens before it. A block in the middle of the
# prompt whose ids happen to be in the store, after something else, has other keys and values.
#
# ## 2. Keys: by what is a block found?
#
# The store is a dict from keys to blocks. A key has to stand for everything that the block's keys and values depend on.
# That is more than its own ids. The picture shows three prompts as a tree. The block "to be, or" occurs twice, at the
# same positions, after two different blocks: these are two blocks with different rows.

# %% tags=["chart"]
autograder.block_charts.block_tree(
    {"key 1": (None, "Hamlet says:"), "key 2": ("key 1", "to be, or"), "key 3": ("key 2", "not to be"),
     "key 4": ("key 2", "to sleep"), "key 5": (None, "Henry says:"), "key 6": ("key 5", "to be, or")},
    title="Equal ids after another beginning are another block",
    note="A key is made of the key before it and the block's own ids: it stands for the whole path from the left.",
)  # fmt: skip

# %% [markdown]
# So keys are **chained**: the key of block i is a digest of the key of block i - 1 and the ids of block i. Two prompts
# have the same key for block i exactly when all their ids up to its end are the same. The first block has no block
# before it. In its place stands the **context**: the facts that keys and values depend on besides the ids.
#
# Which facts are those? The cells after the guess leave out one at a time, and continue a prefix whose rows were made
# in other circumstances: by another model, in another dtype, at other positions, for another tenant. The chart shows by
# how much the logits are wrong.

# %% tags=["chart"]
harmless = autograder.guess(
    "One of the facts can be left out and every logit is still right. Which?",
    choices=("the model", "the dtype", "the positions", "the tenant"),
)
harmless

# %% tags=["chart"]
prefix_ids, suffix_ids = tokenizer.encode(stored), tokenizer.encode("\n\nAll:\nSpeak")
n_layer = weights.config.n_layer
other = autograder.random_model(weights.config, seed=1)


def saved_in(model=weights, start=0, dtype=np.float32):
    """The prefix, saved by a model, at positions from `start`, with rows rounded to a dtype."""
    cache = ModelCache(n_layer)
    advance(prefix_ids, start, model, cache)
    return cache_of([rows_of(cache, 0, len(prefix_ids)).astype(dtype)], n_layer)


# %% tags=["chart"]
worlds = saved_in(other), saved_in(dtype=np.float16), saved_in(start=1), saved_in()
saved = dict(zip(harmless.choices, worlds, strict=True))
right = prefill(prefix_ids + suffix_ids, weights, ModelCache(n_layer))
wrong = {name: generate_with_prefix(cache, len(prefix_ids), suffix_ids, weights) for name, cache in saved.items()}
autograder.charts.bar_chart(
    {name: abs(logits - right).max() for name, logits in wrong.items()},
    label="largest error of a logit", title="What is wrong when a fact is left out",
).show()  # fmt: skip
harmless.beside("the tenant", "What goes wrong without it is that somebody else's prompt is found.")

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Rows of another model give nonsense, and rows at other positions are far off as well. Rows rounded to half precision
# are off by only a little, which is harder to notice. Without the tenant every logit is right, and one customer's
# request is answered faster because another has sent the same text: stage 5's last question.
#
# </details>
#
# Now write the keys.


# %% solution="block-keys"
def block_keys(token_ids, block_size, context):
    """The keys of a prompt's full blocks, a list of strings: key i stands for all ids up to the end of block i.

    token_ids: a list of ids, maybe empty. Of n ids, n // block_size blocks are full; ids after them have no key.
    context: a dict of strings, what keys and values depend on besides the ids. The order of its keys is free.
    Each key depends on the ids of its block, on those of all blocks before it, and on the context: equal arguments
    give equal keys, also in another Python process, and what differs in anything has another key. A key has 16
    characters or more, so that keys are not equal by chance.
    """
    ### BEGIN SOLUTION
    key, keys = json.dumps(context, sort_keys=True), []
    for end in range(block_size, len(token_ids) + 1, block_size):
        key = hashlib.sha256(json.dumps([key, token_ids[end - block_size : end]]).encode()).hexdigest()
        keys.append(key)
    return keys
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# `json.dumps([key, ids])` is a string that cannot be read in two ways, and
# `hashlib.sha256(string.encode()).hexdigest()` a digest of it. Start with `key = json.dumps(context, sort_keys=True)`,
# and let `end` run through `block_size`, `2 * block_size`, ... up to `len(token_ids)`, that value included.
#
# </details>

# %% check="keys-full-blocks"
autograder.check("keys-full-blocks")

# %% check="keys-chained"
autograder.check("keys-chained")

# %% check="keys-context"
autograder.check("keys-context")

# %% [markdown]
# ## 3. match: the longest run from the left
#
# `match` asks for the prompt's blocks in order, and stops at the first one that is not there. What it found is a
# **run**. Three rules decide what belongs to it:
#
# - **A key is an index and no proof.** Two different blocks may have the same key: by chance when keys are short, on
#   purpose when somebody can choose prompts. So the block's own ids are compared, and what stands before it, which is
#   the block found just before, or the context for the first. The checks bring keys of four bits.
# - **One token is left.** A prompt of exactly k blocks takes k - 1 of them, because the logits come from computing its
#   last token.
# - **What is found counts as used**, which decides who is evicted later.
#
# In the picture, the prompt of the first row is stored. The other four rows show where the run of each prompt ends.

# %% tags=["chart"]
ids = tokenizer.encode(stored)[:12]
asked = {"stored": ids, "one more": [*ids, 11], "exactly": ids, "one less": ids[:11]}
asked["differs"] = [*ids[:5], 300, *ids[6:]]
runs = {"one more": 3, "exactly": 2, "one less": 2, "differs": 1}
autograder.block_charts.block_strip(
    {name: tokenizer.tokens(ids) for name, ids in asked.items()}, 4, reused=runs,
    title="Three blocks are stored. How many does each prompt take?",
    note="Shaded blocks are taken out of the store.",
)  # fmt: skip

# %% [markdown]
# `put` is the other half: the blocks of a prompt that are not there yet are cut out of its cache and kept. Where the
# store is full, it first calls `evict(blocks, run)` of the next section, which takes one block out, or returns False.
# Leave that call for later if you like, and begin with a store that never fills.
#
# The helpers in the second setup cell do the cutting and joining: `rows_of(cache, start, end)` copies rows out of a
# cache, `cache_of(run, n_layer)` makes a new cache from a run, and `Block` holds what is known about a block.


# %% solution="block-store"
class BlockStore:
    """Blocks of the prompts that were served, at most `capacity` of them, found again by their keys."""

    def __init__(self, capacity, block_size, key=block_keys, encode=as_it_is, decode=as_it_is):
        """An empty store.

        capacity: the most blocks it holds, 0 or more. key: called as block_keys is, and in its place; it may give
        two blocks one key. What is kept of a block's rows is encode(rows), and match gives decode of that.
        """
        ### BEGIN SOLUTION
        self.capacity, self.block_size = capacity, block_size
        self.key, self.encode, self.decode = key, encode, decode
        self.blocks = {}  # by key; those used least recently first
        ### END SOLUTION

    def __len__(self):
        """How many blocks it holds."""
        ### BEGIN SOLUTION
        return len(self.blocks)
        ### END SOLUTION

    def match(self, token_ids, context):
        """The rows of the longest run with which the prompt begins: a list of arrays, one a block, maybe empty.

        An array is [n_layer, 2, n_head, block_size, head_dim]. The run goes on as long as the store has, under the
        key of the prompt's next block, a Block with the same ids, and with the right one before it: the run's last
        block so far, or the context where there is none yet. It has (len(token_ids) - 1) // block_size blocks at
        most, so that a token is left. Its blocks count as used. What a caller writes into the arrays changes no
        block.
        """
        ### BEGIN SOLUTION
        run = self._run(token_ids, context)[: (len(token_ids) - 1) // self.block_size]
        self._use(run)
        return [self.decode(block.rows) for block in run]
        ### END SOLUTION

    def put(self, token_ids, context, cache):
        """Keep the full blocks of a prompt, from the first on, as far as there is room.

        cache: holds the rows of token_ids, and maybe more. Its arrays may change afterwards, so rows are copied.
        A block that is there already stays as it is. For a new one, a full store evicts the leaf used least
        recently, and keeps nothing of it. The prompt's own blocks are never evicted: where all others are gone, the
        rest of the prompt is not kept. Where a Block with other ids, or after another one, has the key, either of
        the two is kept; if it is the old one, stop: what comes after it could never be found. In the end, the
        prompt's blocks count as used.
        """
        ### BEGIN SOLUTION
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

        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# A helper that both methods use is worth its lines: the blocks with which the prompt begins, in order, each compared
# with the ids of its place and with what stands before it (`==` compares two Blocks as objects, and two contexts by
# what they hold). `match` takes the first `(len(token_ids) - 1) // block_size` of these. A Python dict keeps the order
# in which keys were put in, so taking a key out and putting it in again moves it to the end: that is all that "used"
# needs. Mark a run from its last block to its first; section 4 says why.
#
# </details>

# %% check="match-longest-run"
autograder.check("match-longest-run")

# %% check="match-compares-ids"
autograder.check("match-compares-ids")

# %% [markdown]
# ## 4. Capacity and eviction
#
# A store that is full must let a block go for each that it takes. Which one? The least recently used is the usual
# choice, but not every block may go. If block 2 of a prompt is evicted while block 3 stays, block 3 can never be found
# again, since a run ends at the first gap: its memory is wasted. So only a **leaf** is evicted, a block that no other
# continues.

# %% tags=["chart"]
autograder.block_charts.block_tree(
    {"A": (None, "used at 9"), "B": ("A", "used at 9"), "C": ("B", "used at 4"), "D": ("B", "used at 9"),
     "E": (None, "used at 2"), "F": ("E", "used at 2")},
    shaded=["A", "B", "D"], crossed=["F"], title="A full store of six blocks, and a block to be put in after D",
    note="C, D and F are leaves. D is in use. Of C and F, F was used less recently: F goes, and then E is a leaf.",
)  # fmt: skip

# %% [markdown]
# And the **run in use** stays: the blocks of the prompt that is being put in. When nothing else is left, the rest of
# the prompt is not kept. So a store of 3 blocks keeps the first 3 of a prompt of 10, and a store of 0 blocks keeps
# nothing and still works.
#
# Is it enough to look for the oldest block, and to find a leaf each time? A block is used whenever one that continues
# it is. If every run is marked as used from its last block to its first, then a block always stands after all those
# that continue it, and the oldest one outside the run is a leaf by itself.


# %% solution="evict"
def evict(blocks, run):
    """Take the leaf used least recently that is none of the run's blocks out of `blocks`; False if there is none.

    blocks: a dict of Blocks by their keys, those used least recently first. run: a list of Blocks.
    """
    ### BEGIN SOLUTION
    for block in blocks.values():
        if block not in run:  # the first such block is a leaf: what continues a block stands before it
            del blocks[block.key]
            return True
    return False
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# `blocks` is in the order of use, the oldest first, if your `match` and `put` keep it so. Go through its values, take
# the first that is none of the run's, and delete it under its key. If your store keeps the order in another way, change
# the cell above as you like, and leave `evict` out: the checks ask for `match`, `put` and `len` only.
#
# </details>

# %% check="store-capacity"
autograder.check("store-capacity")

# %% check="eviction-order"
autograder.check("eviction-order")

# %% [markdown]
# **What is stored belongs to the store.** The next check writes into a cache after its rows were put in, and into the
# rows that `match` gave. It also counts the bytes that the store keeps from being freed. A view such as
# `layer.keys[:, :4]` is small to look at, and holds the whole array that it shows.

# %% check="store-keeps-its-own"
autograder.check("store-keeps-its-own")

# %% [markdown]
# ## 5. serve: one request
#
# Now a request is four lines: match, join the run to a cache, compute what is left, put. The order matters. What can
# fail is the pass, and a request that fails must leave the store as it was.

# %% tags=["chart"]
autograder.block_charts.block_strip(
    {"request 1": tokenizer.tokens(prompts["stored"]), "request 2": tokenizer.tokens(prompts["live"])}, 4,
    names={"request 2": names["live"]}, reused={"request 2": common // 4},
    title="match finds B, the pass computes the rest, put keeps C",
    note="The rest at the end of a prompt is computed each time: it fills no block.",
)  # fmt: skip


# %% solution="serve"
def serve(store, prompt_ids, weights, context):
    """The logits [n_vocab] after the prompt. Blocks of the store are reused, and those of the prompt put into it.

    prompt_ids: a list of at least one id. Only the tokens after the longest run of blocks go through the model.
    ValueError when the prompt is empty, is longer than n_ctx, or has an id outside the vocabulary; the store then
    holds the blocks that it held before.
    """
    ### BEGIN SOLUTION
    cache = cache_of(store.match(prompt_ids, context), weights.config.n_layer)
    logits = prefill(prompt_ids[len(cache) :], weights, cache)
    store.put(prompt_ids, context, cache)
    return logits
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# `prefill` continues at `len(cache)` and raises the errors that are asked for. `put` gets the same ids and the same
# context as `match`.
#
# </details>

# %% check="serve-equals-recompute"
autograder.check("serve-equals-recompute")

# %% check="serve-keeps-apart"
autograder.check("serve-keeps-apart")

# %% [markdown]
# Try it. The second request is the near miss of section 1, the third one is another tenant's.

# %% tags=["chart"]
FINGERPRINT = autograder.model_fingerprint(weights)


def context_of(tenant="Globe Theatre", dtype="float32"):
    """What the rows of this notebook's model depend on besides the ids."""
    return {"model": FINGERPRINT, "dtype": dtype, "positions": "wpe from 0", "tenant": tenant}


# %% tags=["chart"]
store = BlockStore(capacity=64, block_size=4)
for name, tenant in (("stored", "Globe Theatre"), ("live", "Globe Theatre"), ("live", "Rose Theatre")):
    prompt_ids, context = prompts[name], context_of(tenant)
    n_reused = 4 * len(store.match(prompt_ids, context))
    logits = serve(store, prompt_ids, weights, context)
    error = abs(logits - prefill(prompt_ids, weights, ModelCache(n_layer))).max()
    print(f"{name:6} for {tenant:13}: {n_reused:2} of {len(prompt_ids)} tokens reused, logits off by {error:.0e}")

# %% [markdown]
# ## 6. Blocks of 8-bit numbers
#
# A store is worth as much as it can hold. Keys and values need not be kept in float32: an int8 takes a quarter of the
# space. A row of numbers becomes whole numbers from -127 to 127 and one **scale**, the size of a step.

# %% tags=["chart"]
row = [0.31, -1.27, 0.026, 0.644]
autograder.block_charts.steps_picture(
    row, title="Four numbers between whole steps",
    note="A step is 1.27 / 127 = 0.01. The stroke is the number itself.",
)  # fmt: skip

# %% [markdown]
# The error of a number is half a step at most. Each row has a scale of its own, so that one row of large numbers does
# not take the precision from all others.


# %% solution="quantize"
def quantize(array):
    """An array of floats as whole numbers and scales: (numbers, scales).

    array: [..., n]; the n numbers of its last axis are a row. numbers: int8, of the array's shape, -127 to 127.
    scales: float32, [..., 1], one for each row: its largest absolute value / 127. numbers * scales is the array up
    to half a step, which is scales / 2. A row of zeros gives zeros.
    """
    ### BEGIN SOLUTION
    scales = np.abs(array).max(axis=-1, keepdims=True) / np.float32(127)
    steps = array / np.where(scales == 0, 1, scales)
    return np.rint(steps).astype(np.int8), scales.astype(np.float32)
    ### END SOLUTION


def dequantize(quantized):
    """What quantize gave, a pair (numbers, scales), as an array of float32 again."""
    ### BEGIN SOLUTION
    numbers, scales = quantized
    return numbers * scales
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# `keepdims=True` leaves the last axis with length 1, so that scales broadcast against numbers. `np.rint` rounds;
# `astype(np.int8)` alone drops the fraction. Do not divide in place: the rows belong to somebody else.
#
# </details>

# %% check="int8-blocks"
autograder.check("int8-blocks")

# %% [markdown]
# A store of int8 is your store with two functions more: `encode` is called before a block is kept, `decode` when it is
# asked for. Its context says `"int8"`, because rows that went through int8 are other rows: a request that asks for
# float32 must not get them.

# %% tags=["chart"]
smaller = autograder.guess("How much smaller is a store of int8, scales and keys included?", unit="times")
smaller


# %% tags=["chart"]
def new_store(capacity=64, block_size=16, int8=False):
    return BlockStore(capacity, block_size, **({"encode": quantize, "decode": dequantize} if int8 else {}))


# %% tags=["chart"]
play_ids = np.random.default_rng(0).integers(0, weights.config.n_vocab, 481).tolist()
cache = save_prefix_cache(play_ids, weights)
stores, held = {"float32": new_store(), "int8": new_store(int8=True)}, {}
for dtype, store in stores.items():
    held[dtype] = bytes_held(lambda to=store, dtype=dtype: to.put(play_ids, context_of(dtype=dtype), cache))
title = "What a store of 30 blocks holds"
autograder.charts.bar_chart(held, label="bytes", unit="B", title=title, model=weights).show()
smaller.beside(held["float32"] / held["int8"])

# %% [markdown]
# And what does it cost? After the guess, a cell serves a prompt at each of several lengths from both stores and
# compares the logits with recomputing. A check allows a logit near 0 an error of 0.001.

# %% tags=["chart"]
off = autograder.guess("How large is the largest error of a logit when all rows went through int8?")
off

# %% tags=["chart"]
lengths, errors = [17, 49, 97, 193, 289, 385, 481], {dtype: [] for dtype in stores}
for n in lengths:
    right = prefill(play_ids[:n], weights, ModelCache(n_layer))
    for dtype, store in stores.items():
        errors[dtype].append(abs(serve(store, play_ids[:n], weights, context_of(dtype=dtype)) - right).max())
title = "Logits from blocks of float32 and of int8"
autograder.block_charts.error_chart(lengths, errors, title=title, model=weights).show()
off.beside(max(errors["int8"]))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# float32 is off by rounding alone. int8 is off by ten times the tolerance and more. That is
# not wrong, it is another representation: whether the answers are good enough is a question for whoever uses them, and
# no test against recompute will answer it. A store that mixes the two answers it without asking.
#
# </details>
#
# ## 7. What is it worth?
#
# The rest of the notebook measures your own store. A server's requests come in patterns. Here are four **traces**,
# lists of 200 requests in the order in which they came:
#
# | trace | requests |
# |---|---|
# | one system prompt | many users of one program: 200 tokens that all share, then a question of their own |
# | chats | ten conversations side by side; each turn sends all that was said before, and some more |
# | documents | short questions about ten documents, every second one about the first two, the others in turn |
# | mixed tenants | three tenants, one of them busy, with a public system prompt; a third of all prompts share nothing |
#
# ### The capacity, and who is evicted
#
# The **hit rate** is the share of all prompt tokens that were reused. A cell replays each trace on your store, without
# a model, and counts. Beside your store, which evicts the least recently used leaf, there are two others. *First in,
# first out* evicts the leaf that came first. *Best possible* knows the whole trace and keeps what will be needed
# soonest (Belady 1966): no store can do better, and no real one can know.

# %% tags=["chart"]
all_traces = autograder.traces.all_traces(weights.config.n_vocab)
capacities = [8, 16, 32, 64, 128, 192, 256]
rate = autograder.guess("'documents', room for 64 blocks of 16 tokens: what is your store's hit rate?", unit="%")
rate

# %% tags=["chart"]
by_capacity = {name: autograder.traces.by_capacity(new_store, one, capacities) for name, one in all_traces.items()}
totals = {name: autograder.traces.n_tokens(trace) for name, trace in all_traces.items()}
for name, computed in by_capacity.items():
    autograder.block_charts.hit_rates(capacities, computed, totals[name], title=f"Hit rate: {name}").show()
documents = by_capacity["documents"]["your store"][capacities.index(64)]
rate.beside(100 * (1 - documents / totals["documents"]))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# One system prompt needs its 12 blocks, and no more. The other traces gain with capacity, up
# to the point at which everything fits. The two orders of eviction hardly differ: a leaf is seldom used again after it
# was put in, and what is used often is no leaf. Both are far from the best possible, most of all for documents: those
# asked about in turn come back just after they were evicted. No order that looks at the past alone can see that.
#
# </details>
#
# The same in tokens that are left to compute, which is what a server pays for.

# %% tags=["chart"]
fewer = autograder.guess("'chats': how many times fewer tokens with 128 blocks than with 8?", unit="times")
fewer

# %% tags=["chart"]
for name, computed in by_capacity.items():
    autograder.block_charts.computed_tokens(capacities, computed, totals[name], title=f"Computed: {name}").show()
chats = by_capacity["chats"]["your store"]
fewer.beside(chats[0] / chats[capacities.index(128)])

# %% [markdown]
# ### The size of a block
#
# Small blocks reuse more: less is lost where two prompts part. But each block has a key to compute, a dict entry and
# arrays of its own. Large blocks waste room: the last block of a running request is allocated whole, and is not full.
# The chart shows the tokens computed and the room left empty, for `chats`, with room for everything.

# %% tags=["chart"]
waste = autograder.guess("Blocks of 64: how much room is empty in a last block, on average?", unit="tokens")
waste

# %% tags=["chart"]
sizes, trace = [1, 4, 8, 16, 32, 64, 128], all_traces["chats"]
computed = [autograder.traces.replay(new_store(100_000, size), trace) for size in sizes]
empty = [sum(-len(request.token_ids) % size for request in trace) for size in sizes]
autograder.charts.line_chart(
    {"computed": (sizes, computed), "left empty in last blocks": (sizes, empty)}, x_label="block size",
    x_unit="tokens", y_label="total", y_unit="tokens", log="x", title="The size of a block: 200 requests of chats",
).show()  # fmt: skip
waste.beside(empty[sizes.index(64)] / len(trace))

# %% [markdown]
# ### One store, or one for each tenant?
#
# With the tenant in the context, one store already keeps tenants apart. Some would rather give each a store of its own.
# The chart compares the two for the same room in all, and shows what leaving the tenant out would gain.

# %% tags=["chart"]
better = autograder.guess("96 blocks in all: which hits more?", choices=("one store", "one for each tenant"))
better

# %% tags=["chart"]
trace, rooms, replay = all_traces["mixed tenants"], [12, 24, 48, 96, 192, 288], autograder.traces.replay
each = [[request for request in trace if request.tenant == tenant] for tenant in "abc"]
together = [replace(request, tenant="all") for request in trace]
counts = {
    "one store": [replay(new_store(room), trace) for room in rooms],
    "one for each tenant": [sum(replay(new_store(room // 3), own) for own in each) for room in rooms],
    "tenant left out": [replay(new_store(room), together) for room in rooms],
}
autograder.block_charts.hit_rates(rooms, counts, totals["mixed tenants"], title="Three tenants").show()
better.beside(min(better.choices, key=lambda name: counts[name][rooms.index(96)]))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# When room is very short, one store serves better, because the room goes to whoever needs it.
# With more, a store for each is even a little better here: the busy tenant's prompts, a third of which share nothing,
# then drive out nobody else's blocks. Leaving the tenant out gains most where room is short, because the public prompt
# is stored once and not three times. That gain is the price of not letting one tenant find out what another has sent. A
# prompt that is the operator's own can be stored under a tenant of its own, and shared on purpose.
#
# </details>
#
# ### Seconds
#
# The time to first token is what a user waits for. The cell after the guess serves 200 requests of `one system prompt`
# twice, on the model itself: each computed whole, and through your store, which is empty at the beginning.

# %% tags=["chart"]
faster = autograder.guess("How many times sooner does the median request have its first token?", unit="times")
faster

# %% tags=["chart"]
store = new_store()
answers = {
    "nothing stored": lambda request: prefill(request.token_ids, weights, ModelCache(n_layer)),
    "through the store": lambda request: serve(store, request.token_ids, weights, context_of(request.tenant)),
}
times = autograder.traces.first_token_times(answers, all_traces["one system prompt"])
autograder.block_charts.waiting_times(times, title="200 requests with one system prompt", model=weights).show()
faster.beside(np.median(times["nothing stored"]) / np.median(times["through the store"]))

# %% [markdown]
# ### Blocks referenced, not copied
#
# `cache_of` copies a run into a cache, because stage 3's `attend` wants its keys in one array. An engine does not: its
# attention reads blocks where they are, through a list of their numbers, and a request has only the rows of its own
# tokens to itself. The cell after the guess holds ten running requests in memory in both ways.

# %% tags=["chart"]
times_more = autograder.guess("Ten requests share 480 tokens: how many times more do clones hold?", unit="times")
times_more

# %% tags=["chart"]
store, asked = stores["float32"], (play_ids, context_of())
jobs = {
    "lists of blocks, and own rows": lambda: [(store.match(*asked), rows_of(cache, 480, 481)) for _ in range(10)],
    "clones": lambda: [cache_of(store.match(*asked), n_layer) for _ in range(10)],
}
held = {name: bytes_held(job) for name, job in jobs.items()}
title = "Ten running requests: blocks referenced, or copied"
autograder.charts.bar_chart(held, label="bytes held", unit="B", title=title, model=weights).show()
a, b = held.values()
times_more.beside(b / a, "A store whose match copies shows no difference here.")

# %% [markdown]
# ### A window
#
# Some models let a token see only the last w tokens. Then a request needs the rows of these w tokens alone, and an
# engine can forget the others. What does that do to reuse? A run of blocks can be continued when the blocks of its last
# w tokens are there. Suppose a store keeps no more than that of each prompt.

# %% tags=["chart"]
lost = autograder.guess(
    "A window of 64 tokens: which trace loses its reuse?",
    choices=("one system prompt", "chats"),
)
lost

# %% tags=["chart"]
windows = {"32 tokens": 32, "64 tokens": 64, "128 tokens": 128, "256 tokens": 256, "no window": None}
computed = {
    name: {label: autograder.traces.with_window(all_traces[name], window, 16) for label, window in windows.items()}
    for name in lost.choices
}
title = "What is left to compute when only the window's rows are kept"
autograder.charts.bar_chart(computed, label="computed", unit="tokens", title=title).show()
lost.beside("one system prompt")

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A chat continues from its end, and those rows are kept, so a window costs it next to nothing. The prompts of users who
# have one system prompt part at its end. To continue there, a request needs the rows of the w tokens before that place,
# and the first of these were forgotten when a question went on past it. Only a window as long as the whole prompt keeps
# them. So a store with a window has to keep the rows before a branch on purpose.
#
# </details>
#
# ### Grouped heads
#
# In newer models several query heads share one head of keys and values. The size of a block falls in proportion, and so
# more blocks fit into the same room. Here for the shape of GPT-2 small, which has 12 heads:

# %% tags=["chart"]
share = autograder.guess("2 heads in place of 12, and int8: how many times smaller is a block?", unit="times")
share

# %% tags=["chart"]
whole = kv_cache_bytes(autograder.GPT2_SMALL, 16)
n_bytes = {f"{n} head{'s' * (n > 1)} of keys and values": whole * n // 12 for n in (12, 6, 4, 2, 1)}
n_bytes["2 heads, in int8"] = whole * 2 // 12 // 4
autograder.charts.bar_chart(
    n_bytes, label="a block of 16 tokens", unit="B", title="What grouped heads do to a block",
    note="12 layers, 64 numbers a head, float32; int8 without its scales.",
).show()  # fmt: skip
share.beside(whole / n_bytes["2 heads, in int8"])

# %% [markdown]
# ## Show a friend
#
# Let a friend write three prompts. Which of their blocks has your store served before?

# %% tags=["chart"]
texts = "Who killed the king, my lord?", "Who killed the king's brother?", "Who is the queen?"
store, reused = new_store(block_size=4), {}
asked = {f"prompt {i}": tokenizer.encode(text) for i, text in enumerate(texts, 1)}
for name, ids in asked.items():
    reused[name] = len(store.match(ids, context_of()))
    serve(store, ids, weights, context_of())
pieces = {name: tokenizer.tokens(ids) for name, ids in asked.items()}
autograder.block_charts.block_strip(pieces, 4, reused=reused, title="Three prompts through one store")

# %% [markdown]
# ## Find the bug
#
# Play with somebody else's code, then choose the cause. You are told at once whether it fits, and why.

# %% tags=["chart"]
bug = autograder.puzzle("block-cache")
bug

# %% tags=["chart"]
for prompt in ([1, 2, 3, 4], [3, 4], [9, 9, 3, 4, 5]):
    print(prompt, "->", bug.function(prompt, 2))

# %% tags=["chart"]
autograder.question("block-cache", 1)

# %% tags=["chart"]
autograder.question("block-cache", 2)

# %% [markdown]
# ## Questions
#
# Answer in a few sentences each. They are graded by hand.

# %% [markdown] written="which-block-size" points=2
# **Question 1.** Use the numbers of your charts. (a) What gets better and what gets worse when blocks become larger?
# Name one thing each with its numbers. (b) Give a kind of requests for which blocks of 128 tokens are as good as blocks
# of 4, and one for which they are useless.
#
# ### BEGIN SOLUTION
# **Rubric.** 1 point for (a): worse: shared tokens after the last full block are computed again, and more of a running
# request's last block stays empty, each with the chart's numbers; better: fewer keys, dict entries and arrays, so less
# to compute and compare for each request. 1 point for (b): as good where prompts share a beginning that is much
# longer than a block, or ends at a border of a block; useless where what they share is shorter than 128 tokens.
# ### END SOLUTION

# %% [markdown] written="key-or-ids" points=2
# **Question 2.** A colleague takes out the comparison of ids: "With 256 bits, two keys are never equal by chance." (a)
# Say when the colleague is right, and name one case in which the comparison still protects somebody. (b) Would a
# comparison of ids alone, with the context left out of keys and store, be safe? What can go wrong that it cannot see?
#
# ### BEGIN SOLUTION
# **Rubric.** 1 point for (a): right for a good digest of everything that the rows depend on, which is what engines
# rely on; the comparison protects where the digest is short or predictable, so that equal keys can be found on purpose,
# or where the key has a mistake, such as a missing chain or separator. 1 point for (b): no: the ids are equal and the
# rows are not, for another model, dtype or positions (wrong logits); or they are equal, and another tenant learns from
# the time that the prompt was sent before.
# ### END SOLUTION

# %% [markdown]
# ## 8. What engines do
#
# **vLLM** has this notebook's store, in its own words. Its design page "Automatic Prefix Caching" says: only full
# blocks are cached; a block's hash is made of the hash of the block before it, the ids of the block, and extra facts
# such as an adapter, an image or a *salt*, by which tenants are kept apart; SHA-256 is the default. A running request
# counts as a reference to its blocks. When it ends, its blocks go into a queue, the last one first, and what has waited
# longest is evicted: the leaf, least recently used. *What it costs:* one digest for each block of each prompt; the
# shared tokens after the last full block. *Where it fails:* ids are not compared, so everything rests on the hash. With
# Python's `hash`, which was used before, equal keys could be made on purpose.
#
# **SGLang** keeps a *radix tree* (Zheng et al. 2024, "SGLang: Efficient Execution of Structured Language Model
# Programs"): this notebook's tree, with runs of any length in place of blocks. A prompt walks down the tree by its ids
# themselves; where it leaves a run in the middle, the run is split in two. So there is no key to trust, and with pages
# of one token nothing is lost at borders. Leaves are evicted, the least recently used first, and a count of references
# protects what is in use. It also serves waiting requests in an order that keeps prefixes together. *What it costs:*
# walking and splitting, id by id, and a tree that one process owns, where keys could be looked up anywhere. *Where it
# fails:* an order that favors long matches lets a request without one wait.
#
# Neither is a cache of answers, and neither knows when two texts mean the same: what stage 5 says about a paraphrase
# and about compaction holds for blocks as well.
#
# Stages 1 to 6 lead from one matrix product to a server's memory. Each stage kept something so that it need
# not be computed again, and each had to say when that is right. The rule is the same in all of them: what is kept must
# be found by everything that it depends on, compared before it is used, and never changed by being used.
