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
# # 4. Save and reuse a prefix cache
#
# **What you will build.** Many requests begin with the same text: a system prompt (the instructions that a program puts
# before every conversation), a document, the first part of a conversation. You will run that text through the model
# once, save its KV cache, and let any number of requests continue from it. Then you will put the cache into a file and
# read it back, without ever accepting a file that does not fit. At the end you measure what it is worth: a request with
# 400 shared tokens and 8 of its own becomes many times faster. Serving engines, programs that answer many people with
# one model, do this. It is easy to get wrong without noticing, because a wrong cache raises no error.
#
# **Time.** About five hours.
#
# **What you should know.** The KV cache (stage 2), and prefill and decode (stage 3). You need not have finished them:
# `given.py`, beside this notebook, holds their functions. `autograder.glossary("prefix")` explains a term,
# `autograder.glossary()` all.
#
# **How to work.** As before.

# %% setup="imports"
import copy
import tempfile
from pathlib import Path

import given
import numpy as np
from given import LayerCache, ModelCache, advance, decode_step, prefill, softmax
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import autograder
from autograder.toolkit import reuse_charts
from autograder.toolkit.passage import PASSAGE
from autograder.toolkit.work import bytes_held, counting

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()

# %% [markdown]
# The switch from stage 1, for all cells that read or write a text: with `MODEL = "gpt2"` they use the real GPT-2, where
# it was fetched, and charts of measured times take minutes.

# %% tags=["chart"]
MODEL = None  # or "gpt2"
weights, tokenizer = autograder.load_both(MODEL)

# %% [markdown]
# ## What you have
#
# From the earlier stages:
#
# | name | what it does |
# |---|---|
# | `ModelCache(n_layer)` | the keys and values of all layers: `layers[i]` is a `LayerCache`, `clone()` makes a copy |
# | `layer.keys`, `layer.values` | `[n_head, n_seq, head_dim]` each: one row for each token seen so far |
# | `layer.append(k, v)` | adds the rows of n_new tokens, `[n_head, n_new, head_dim]` each |
# | `prefill(prompt_ids, weights, cache)` | runs tokens, the first at position `len(cache)`; the logits after the last |
# | `decode_step(token_id, position, weights, cache)` | runs one token, at `position`; the logits after it |
# | `advance(token_ids, position, weights, cache)` | runs tokens, the first at `position`; the logits after the last |
#
# `prefill` and `decode_step` are both short calls of `advance`. All three append one row for each token to every layer
# of `cache`. They raise a `ValueError` for a position that is negative or past `n_ctx - 1`, and for an id outside the
# vocabulary.
#
# ## The idea
#
# A **prompt** is what a request sends. Take three prompts that begin alike. The part they share is the **prefix**; the
# rest of each is its **suffix**.

# %% tags=["chart"]
prefix_text = "First Citizen:\nBefore we proceed any further, hear me speak.\n\n"
suffix_texts = {"A": "All:\nSpeak", "B": "MENENIUS:\nWhat", "C": "KING RICHARD III:\n"}
prefix_ids = tokenizer.encode(prefix_text)
suffixes = {name: tokenizer.encode(text) for name, text in suffix_texts.items()}

prompts = {f"request {name}": tokenizer.tokens(prefix_ids + ids) for name, ids in suffixes.items()}
autograder.charts.token_strip(
    prompts, shared=len(prefix_ids), positions=True, shared_label="the prefix, run once and saved",
    title="Three requests: the shaded tokens are the same, and are computed once",
    note="The number under a token is its position.",
)  # fmt: skip

# %% [markdown]
# Without a saved cache, each request runs all its tokens. With one, the prefix is run a single time, and each request
# runs only its suffix.
#
# Why is this allowed? In every layer, the key and the value of a token depend on three things: the token, its position,
# and the tokens *before* it. The **causal mask** hides all later tokens. So the rows of the prefix come out the same
# whatever follows, and can be kept.
#
# So a saved prefix serves the prompts that begin with *exactly* these tokens, and no others.
#
# ## Save
#
# Run the prefix through the model once, and keep the cache. It must hold exactly `len(prefix_ids)` rows in every layer:
# not one fewer, and not the rows of a token that the model would generate next. The logits of this run are not kept.


# %% solution="save-prefix-cache"
def save_prefix_cache(prefix_ids, weights):
    """Run the prefix once and return the ModelCache that holds it: len(prefix_ids) rows in every layer.

    ValueError when the prefix is empty, is longer than n_ctx, or has an id outside the vocabulary.
    """
    ### BEGIN SOLUTION
    saved = ModelCache(weights.config.n_layer)
    prefill(prefix_ids, weights, saved)
    return saved
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# Make an empty `ModelCache` for the model's number of layers, which is `weights.config.n_layer`. `prefill` fills the
# cache you pass and returns logits, which you do not need here. It raises the errors for you.
#
# </details>
#
# You may also bring a cache class of your own: define it in the cell above under the name `ModelCache`, with `layers`,
# `clone()` and `len`. How it stores its arrays is up to you, as long as `keys` and `values` show
# `[n_head, n_seq, head_dim]` in float32 or float64.

# %% check="saved-prefix-exact"
autograder.check("saved-prefix-exact")

# %% [markdown]
# ## The position rule
#
# GPT-2 is told where a token stands in one way: a row of `wpe` is added to it, row `p` for the token at **absolute
# position** `p`, counted from the beginning of the whole prompt. A request that reuses a prefix starts its work in the
# middle of a prompt. Its first token is *not* at position 0:
#
# > **Token `i` of the suffix stands at position `prefix_len + i`.**

# %% tags=["chart"]
pieces, n_prefix = tokenizer.tokens(prefix_ids + suffixes["A"]), len(prefix_ids)
starts = {"right": n_prefix, "reset": 0, "one too early": n_prefix - 1}
n_own = len(pieces) - n_prefix
positions = {name: [*range(n_prefix), *range(start, start + n_own)] for name, start in starts.items()}
autograder.charts.token_strip(
    dict.fromkeys(starts, pieces), shared=n_prefix, positions=positions, shared_label="saved prefix",
    title="The suffix continues where the prefix ended",
    note="All three run without an error. Only the first gives the right logits.",
)  # fmt: skip

# %% [markdown]
# The second and the third row are common mistakes. Nothing stops them: `wpe` has a row for every position
# below `n_ctx`, so a wrong position finds a row too. The text that comes out may even read well. Only the numbers are
# wrong. This is why the position is passed openly, as `prefix_len`, and why the checks call your function with a wrong
# `prefix_len` as well: the logits must then be *different*, or there must be a `ValueError`. A function that takes
# the position from somewhere else cannot be told that it is wrong.
#
# ## The saved cache stays pristine
#
# The suffix needs a cache to append its rows to. If it appends them to `saved`, the next request finds the first one's
# tokens after the prefix and takes them for a part of its own prompt. So:
#
# > **A request works on a clone. After it, `saved` is byte for byte what it was, also when the request failed.**
#
# A **clone** shares nothing that either side will write to. `cache.clone()` is one. `copy.copy(cache)` is not: it makes
# a new outer object with the *same* layers inside, so appending to the copy appends to the original.
#
# ## There is always a token to run
#
# The result of a request is the logits after its last token. They are computed when that token is run. The cache holds
# keys and values, no logits, so with an empty suffix there is nothing to compute them from: that is an error. When a
# whole prompt happens to be saved, the caller holds back its last token and passes that as the suffix.
#
# ## Reuse
#
# Now write it. The function gets no prefix ids, only the saved cache and the prefix's length.
#
# **Reuse counts as a whole.** Five of the six checks below, with 8 of the 14 points, all look at the logits and at
# `saved`. If the positions are reset, or if a request changes `saved`, none of the five gives points, and the messages
# say which of the two it is. What is wrong in a special case alone can cost one of them.


# %% solution="generate-with-prefix"
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    """Logits [n_vocab] after the last suffix token; suffix token i stands at position prefix_len + i.

    `saved` is not changed, whatever happens. `weights` are those it was saved with; do not compare them here.
    ValueError when the suffix is empty, prefix_len is negative, the suffix ends past position n_ctx - 1, or an id
    lies outside the vocabulary.
    """
    ### BEGIN SOLUTION
    if len(suffix_ids) == 0:
        raise ValueError("the suffix is empty: keep back at least one token of the prompt")
    cache = saved.clone()  # the rows of the suffix go here
    return advance(suffix_ids, prefix_len, weights, cache)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# There are two good ways to run the suffix. A loop calls `decode_step` for each token, with the position that the rule
# gives. Or one call of `advance` takes them all; at which position does the first one stand? Both give the same logits.
# In both cases check for an empty suffix first: a loop over no tokens never makes any logits to return.
#
# `prefill` is tempting and not good enough: it takes the position from `len(cache)` and never looks at `prefix_len`.
#
# </details>
#
# Six checks follow, one for each thing that can go wrong. They run your
# function on the trained model and on small random models of odd sizes, with prefixes of every length up to the limit.
#
# **Same answer.** The logits must be those of running the whole prompt from scratch.

# %% check="reuse-equals-recompute"
autograder.check("reuse-equals-recompute")

# %% [markdown]
# **Right positions.** With the right `prefix_len` the answer is right; with a wrong one it is not, or is refused.

# %% check="position-continues"
autograder.check("position-continues")

# %% [markdown]
# **A pristine cache.** The arrays are compared byte by byte after many requests. One of them has an id outside the
# vocabulary in the middle of its suffix, and must leave nothing behind when it fails there.

# %% check="saved-stays-pristine"
autograder.check("saved-stays-pristine")

# %% [markdown]
# **Several at once.** Two saved prefixes are used in turn, and two clones of one saved cache grow in turn.

# %% check="requests-in-turn"
autograder.check("requests-in-turn")

# %% [markdown]
# **Real reuse.** The check changes the saved keys or values of one layer. Your logits must then be those that the model
# gives with the changed rows. It also puts other numbers into those rows of `wpe` that only the prefix needs: reuse
# never reads them. The check fills such caches itself, through `ModelCache` and `append`, so your function can rely on
# `layers`, `keys`, `values` and `clone()`, and on nothing else that you may have attached to a cache.

# %% check="cache-is-used"
autograder.check("cache-is-used")

# %% [markdown]
# **Clear errors.** Where an error is due, `ValueError` and `IndexError` both count, wherever they are raised. A
# `TypeError` or an `UnboundLocalError` does not: it happens by accident, and says nothing to the caller. The logits of
# a request that fits must be right here too.

# %% check="reuse-refusals"
autograder.check("reuse-refusals")

# %% [markdown]
# ## The three requests
#
# Here they are, from scratch and from the saved prefix.


# %% tags=["chart"]
def from_scratch(prompt_ids, weights):
    """The logits after the whole prompt, with nothing saved."""
    return prefill(prompt_ids, weights, ModelCache(weights.config.n_layer))


def content(cache):
    """Every byte of a cache's keys and values."""
    return b"".join(array.tobytes() for layer in cache.layers for array in (layer.keys, layer.values))


# %% tags=["chart"]
saved = save_prefix_cache(prefix_ids, weights)
before = content(saved)
print(f"saved: {len(prefix_ids)} tokens, {len(saved.layers)} layers, {len(before):,} bytes")
for name, suffix_ids in suffixes.items():
    reused = generate_with_prefix(saved, len(prefix_ids), suffix_ids, weights)
    full = from_scratch(prefix_ids + suffix_ids, weights)
    token, other = (tokenizer.tokens([logits.argmax()])[0] for logits in (reused, full))
    off = abs(reused - full).max()
    print(f"request {name}: next token {token!r}, from scratch {other!r}, logits differ by {off:.0e}")
print("the saved cache is unchanged:", content(saved) == before)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The logits differ in the last bits only, because the numbers are added up in another order. The next token is the
# same, and the saved cache is the same at the end as at the beginning.
#
# </details>
#
# And the mistake: the same call with `prefix_len=0`. There is no error, unless you chose to raise one.

# %% tags=["chart"]
notice = autograder.guess(
    "With the positions reset, what will the five likeliest next tokens look like?",
    choices=["the same as before", "other tokens, and plausible ones", "nonsense"],
)
notice


# %% tags=["chart"]
def likeliest(logits):
    """The five likeliest next tokens, with their probabilities."""
    probabilities = softmax(logits)
    best = np.argsort(-probabilities)[:5]
    return ", ".join(f"{tokenizer.tokens([i])[0]!r} {probabilities[i]:.0%}" for i in best)


# %% tags=["chart"]
saved, suffix_ids = save_prefix_cache(prefix_ids, weights), suffixes["A"]
right = generate_with_prefix(saved, len(prefix_ids), suffix_ids, weights)
print("right:", likeliest(right))
try:
    reset = generate_with_prefix(saved, 0, suffix_ids, weights)
    print("reset:", likeliest(reset))
    print(f"the logits differ by up to {abs(reset - right).max():.2f}")
    print(notice.beside("other tokens, and plausible ones", "You would not notice."))
except (ValueError, IndexError) as error:
    print("your function refuses it:", error)

# %% [markdown]
# ## On disk
#
# A saved prefix is worth more when it outlives the process. A file, though, can be stale, cut off, or made with
# another model. In memory you know what you have. From a file you must *find out* before you use it, because a cache
# that does not fit gives wrong logits and no error, as you have just seen.
#
# The file is in the **safetensors** format: a header in plain JSON, then the bytes of each array. It holds
#
# | part | name | what |
# |---|---|---|
# | arrays | `prefix_ids` | the tokens of the prefix, int64 `[n_seq]` |
# | | `layers.0.keys`, `layers.0.values`, `layers.1.keys`, ... | float32 `[n_head, n_seq, head_dim]` each |
# | metadata | `fingerprint`, `prefix_len`, `dtype`, `layout` | the facts below, each as a string |
#
# The **fingerprint** says which model the cache belongs to. It is a hash, a short string computed from the model's
# config and the bytes of every weight; when any of them changes, another string comes out.
# `autograder.model_fingerprint(weights)` computes it. The name of a model would not do. Train it for one more step, and
# its name and its shapes stay the same, while every key and every value changes.
#
# You will write four short functions. The first two say what a file must be like; the writer and the reader both use
# them. Each of these two has a step, a check without points; the checks with points look at the last two only. So you
# may also choose another file format and divide the work differently, as long as the same files are refused.
#
# ### The facts


# %% solution="cache-facts"
def cache_facts(prefix_ids, weights):
    """What a file must say about itself: a dict of strings with fingerprint, prefix_len, dtype and layout.

    dtype is always "float32" and layout always "n_head, n_seq, head_dim".
    """
    ### BEGIN SOLUTION
    return {
        "fingerprint": autograder.model_fingerprint(weights),
        "prefix_len": str(len(prefix_ids)),
        "dtype": "float32",
        "layout": "n_head, n_seq, head_dim",
    }
    ### END SOLUTION


# %% check="step-cache-facts"
autograder.check("step-cache-facts")

# %% [markdown]
# ### The arrays
#
# The next function is given: it puts a cache and its ids into the dict that the file will hold. (A layer's
# `keys` are often a *view*, such as the filled part of a larger buffer. A file needs arrays that lie in memory in one
# piece, which `np.ascontiguousarray` sees to.)


# %% setup="as-tensors"
def as_tensors(cache, prefix_ids):
    """The arrays of a prefix cache by their names in the file, each in one piece."""
    tensors = {"prefix_ids": np.asarray(prefix_ids, np.int64)}
    for i, layer in enumerate(cache.layers):
        tensors[f"layers.{i}.keys"] = np.ascontiguousarray(layer.keys)
        tensors[f"layers.{i}.values"] = np.ascontiguousarray(layer.values)
    return tensors


# %% [markdown]
# `tensors` is a dict from names to arrays, as in the table. Raise a `ValueError` that begins with the name of the
# first array that is missing or wrong, such as `layers.3.values: ...`. For each layer's keys and values look at the
# dtype, the whole shape (where do its three numbers come from?), and whether every number is finite. For `prefix_ids`
# look at the dtype, that there is one axis, that there are 1 to `n_ctx` ids, and that they lie in the vocabulary. Mind
# this order: comparing ids of two axes may raise a `TypeError`, and a `ValueError` is needed there too.


# %% solution="check-tensors"
def check_tensors(tensors, weights):
    """Return nothing when `tensors` is a whole prefix cache of this model; else ValueError naming the array."""
    ### BEGIN SOLUTION
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
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# `tensors.get(name)` is None where there is no such array. Compare whole shapes, as tuples: `array.shape != (a, b, c)`.
# The number of rows must be the number of *ids*, not whatever the first layer has. `np.isfinite(array).all()` is False
# when there is a NaN or an infinity anywhere.
#
# </details>
#
# Run the step, and then see for yourself. The first call must return without an error; each of the others must name
# what is wrong. With one id too few, that is `layers.0.keys`: the ids alone look right, and the rows no longer fit
# them.


# %% check="step-check-tensors"
autograder.check("step-check-tensors")

# %% tags=["chart"]
good = as_tensors(save_prefix_cache(prefix_ids, weights), prefix_ids)
spoiled = good["layers.3.values"].copy()
spoiled[0, 2, 1] = np.nan
wrong = {
    "prefix_ids, one too few": {"prefix_ids": good["prefix_ids"][:-1]},
    "prefix_ids, too large": {"prefix_ids": good["prefix_ids"] + weights.config.n_vocab},
    "layers.0.keys, axes swapped": {"layers.0.keys": good["layers.0.keys"].swapaxes(0, 1)},
    "layers.2.keys, another dtype": {"layers.2.keys": good["layers.2.keys"].astype(np.float16)},
    "layers.3.values, with a NaN": {"layers.3.values": spoiled},
}

# %% tags=["chart"]
check_tensors(good, weights)
for name, part in wrong.items():
    try:
        check_tensors({**good, **part}, weights)
        print("accepted, although something is wrong:", name)
    except ValueError as error:
        print(error)

# %% [markdown]
# ### Write
#
# `save_file(tensors, path, metadata)` writes a dict of arrays, and a dict from strings to strings beside them. Write to
# exactly the `path` you are given, and add no ending to it. Check first, then write: a cache that is wrong must not be
# written to the disk.
#
# `as_tensors` makes the arrays. (A cache class of your own that holds float64 needs `.astype(np.float32)` as well.)


# %% solution="write-prefix-cache"
def write_prefix_cache(path, saved, prefix_ids, weights):
    """Write `saved`, and the ids it was made of, to the file `path`; ValueError when the two do not fit."""
    ### BEGIN SOLUTION
    tensors = as_tensors(saved, prefix_ids)
    check_tensors(tensors, weights)
    save_file(tensors, path, cache_facts(prefix_ids, weights))
    ### END SOLUTION


# %% [markdown]
# ### Read
#
# Reading goes from the outside in, and stops at the first thing that is wrong, with a `ValueError` that begins with the
# name of the field:
#
# 1. Is it a whole file at all? `safe_open` raises `SafetensorError` for one that is not. Catch it, and raise a
#    `ValueError` that begins with `file:`.
# 2. Are the facts those that `cache_facts` gives for *these* weights and the ids in the file? One that is not there is
#    wrong too.
# 3. Are the arrays right?
#
# Only then make a `ModelCache`, fill it, and return it. So a refused file changes nothing that is in memory.
#
# This is how a safetensors file is opened:
#
#     with safe_open(path, framework="np") as file:
#         facts = file.metadata()               # a dict of strings, or None
#         names = file.keys()                   # in no useful order
#         array = file.get_tensor(name)
#
# A header that is damaged in the right place can name a dtype that NumPy does not have; `get_tensor` then raises
# `TypeError`. And a file may be whole without holding any `prefix_ids`: then there are no ids to compare facts with, so
# see to it that this too ends in a `ValueError` and not in a `KeyError`.


# %% solution="read-prefix-cache"
def read_prefix_cache(path, weights):
    """(saved, prefix_ids) as they were written, the ids as a list; ValueError names the field that does not fit.

    The field is file, fingerprint, prefix_len, dtype, layout, or the name of an array.
    """
    ### BEGIN SOLUTION
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
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# Get the metadata and all arrays inside the `with`, and put a `try` around it. `file.metadata() or {}` is an empty dict
# where there are no metadata. For the facts, loop over `cache_facts(prefix_ids, weights).items()` and compare each with
# `facts.get(field)`. To fill the layers, build each name from the layer's *number*, as the writer did: sorted as
# strings, `layers.10` comes before `layers.2`.
#
# </details>
#
# **There and back.** The cache and the ids come back bit for bit, whatever the file's name is.

# %% check="cache-file-round-trip"
autograder.check("cache-file-round-trip")

# %% [markdown]
# **Refusals.** The check writes caches of other models with your own writer: one with other weights, some with a
# single number changed, one with the same weights and another number of heads. It writes ids that do not fit the
# rows or lie outside the vocabulary, and numbers that are not finite (here your writer may refuse as well; a file that
# it leaves behind anyway must be refused by the reader). It cuts a file short, empties it, and puts noise in its place.
# If your file has the format above, the check also makes files that your writer would not: with an array or a fact
# missing, or with one that is wrong. Any `ValueError` counts. The field is named for the person who has to find the
# reason; no check reads it.

# %% check="cache-file-refusals"
autograder.check("cache-file-refusals")

# %% [markdown]
# Now write a file, and read it back. Then spoil it.

# %% tags=["chart"]
folder = tempfile.TemporaryDirectory()  # removed with the kernel
path = Path(folder.name) / "citizen.safetensors"
saved = save_prefix_cache(prefix_ids, weights)
write_prefix_cache(path, saved, prefix_ids, weights)
print(f"{path.stat().st_size:,} bytes for {len(prefix_ids)} tokens")
loaded, loaded_ids = read_prefix_cache(path, weights)
now, again = (generate_with_prefix(cache, len(loaded_ids), suffixes["A"], weights) for cache in (saved, loaded))
print("the same logits from the file:", np.array_equal(now, again))

# %% tags=["chart"]
other_model, data = autograder.random_model(weights.config, seed=1), path.read_bytes()
for what, model, content_now in (("another model", other_model, data), ("a file cut off", weights, data[:-100])):
    path.write_bytes(content_now)
    try:
        read_prefix_cache(path, model)
    except ValueError as error:
        print(f"{what} -> {str(error).replace(folder.name, '...')}")
_ = path.write_bytes(data)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The file's size, the same logits from the cache that was read, and two refusals that name the field.
#
# </details>

# %% [markdown]
# ## What is it worth? Seconds
#
# Now measure your own functions. A speed-up proves nothing by itself: the first call of anything is slow, and whatever
# comes second then looks fast. So each function is called once before it is timed, all are timed in turn, and the chart
# shows medians. And there is a **control**: a prefix of the same length that nobody has seen before. It goes through
# the same functions, but it must be saved first. If it were as fast as the saved one, the speed-up would not come from
# reuse.
#
# The dotted line is the ideal: with a prefix of P and a suffix of S tokens, S of P + S tokens are run, so the time
# would shrink to S / (P + S).
#
# All charts from here on measure the model `timed`. With `timed = autograder.load_model("gpt2-shape")` they are drawn
# at the size of the real GPT-2, with random weights, in some minutes.

# %% tags=["chart"]
reuse_faster = autograder.guess(
    "With a saved prefix of 500 tokens, a request is how many times faster?",
    unit="times",
)
reuse_faster

# %% tags=["chart"]
timed = weights  # or autograder.load_model("gpt2-shape")
rng = np.random.default_rng(0)
n_suffix = 8


def random_ids(n):
    return rng.integers(0, timed.config.n_vocab, n).tolist()


# %% tags=["chart"]
def request_times(n):
    """The time of one request whose prefix has n tokens: with nothing saved, as the control, and with reuse."""
    known_ids, suffix_ids, control = random_ids(n), random_ids(n_suffix), "control: a prefix never seen"
    known = save_prefix_cache(known_ids, timed)
    ways = {
        "nothing saved": lambda: from_scratch(known_ids + suffix_ids, timed),
        control: lambda ids: generate_with_prefix(save_prefix_cache(ids, timed), n, suffix_ids, timed),
        "saved prefix": lambda: generate_with_prefix(known, n, suffix_ids, timed),
    }
    return autograder.timing.compare(ways, setup={control: lambda: random_ids(n)}, repeats=5)


# %% tags=["chart"]
times = {n: request_times(n) for n in (25, 100, 200, 300, 400, 500)}
reuse_charts.request_chart(times, n_suffix, model=timed).show()
for n, ways in times.items():
    faster = ways.ratio("nothing saved", "saved prefix")
    print(f"prefix of {n:3d} tokens: {faster:5.1f} times faster; ideal: {(n + n_suffix) / n_suffix:5.1f}")
reuse_faster.beside(faster)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# (On a machine that is not busy with other things; if a line zigzags, run the cell again.)
# Without a saved prefix the time grows with the prefix, a little faster than in proportion.
# The control lies on the same line: what makes the difference is that the prefix was *saved*, not that the code was
# warm. With the saved prefix the line is nearly flat.
#
# It does not reach the ideal. A request has costs that do not depend on its own tokens: the clone is copied, and for 8
# tokens each of the many small NumPy calls costs nearly as much as for one. If your function runs the suffix by
# `decode_step`, it makes all these calls 8 times, and with the shortest prefix it can even be slower than nothing
# saved. The last section measures both ways, and does something about the clone.
#
# </details>
#
# ## What is it worth? Many requests
#
# Saving is paid once and pays back with every request. Here 1, 2, 4, ... requests with one prefix of 200 tokens are
# served in both ways, each with a suffix of its own, the save included. The **break-even** is the number of requests
# at which both ways cost the same; with more, saving costs less.

# %% tags=["chart"]
pays_from = autograder.guess("At how many requests do both ways take the same time in all?", unit="requests")
pays_from

# %% tags=["chart"]
shared_ids, own_ids, counts = random_ids(200), [random_ids(n_suffix) for _ in range(8)], [0, 1, 2, 4, 6, 8]


def serve_from_scratch(n):
    for suffix_ids in own_ids[:n]:
        from_scratch(shared_ids + suffix_ids, timed)


def serve_with_saved_prefix(n):
    saved = save_prefix_cache(shared_ids, timed)
    for suffix_ids in own_ids[:n]:
        generate_with_prefix(saved, 200, suffix_ids, timed)


# %% tags=["chart"]
jobs = {"nothing saved": serve_from_scratch, "prefix saved first": serve_with_saved_prefix}
calls = {(label, n): lambda job=job, n=n: job(n) for label, job in jobs.items() for n in counts}
times = autograder.timing.compare(calls, repeats=3)
in_all = {label: [times[label, n] for n in counts] for label in jobs}
title = f"Total time: prefix of 200 tokens, suffixes of {n_suffix}"
reuse_charts.break_even_chart(counts, in_all, y_label="total time", title=title, model=timed).show()
pays_from.beside(reuse_charts.crossing(counts, *in_all.values()))

# %% [markdown]
# ## The same in tokens of work
#
# Seconds depend on the machine and on what else it is doing. The number of tokens that go through the model does not.
# The next cell counts them: `counting` puts a counter around `advance`, `prefill` and `decode_step` while your
# functions run.

# %% tags=["chart"]
fewer_from = autograder.guess("From how many requests on does the saved prefix run fewer tokens?", unit="requests")
fewer_from


# %% tags=["chart"]
def tokens_of_work(job, n):
    with counting(globals(), "advance", "prefill", "decode_step") as work:
        job(n)
    return work.tokens


work_in_all = {label: [tokens_of_work(job, n) for n in counts] for label, job in jobs.items()}
title = f"Tokens run: prefix of 200 tokens, suffixes of {n_suffix}"
look = {"y_label": "total work", "y_unit": "tokens", "title": title, "model": timed}
reuse_charts.break_even_chart(counts, work_in_all, **look).show()
fewer_from.beside(min(n for n, *work in zip(counts, *work_in_all.values(), strict=True) if work[0] > work[1]))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# In tokens, n requests cost n (P + S) from scratch and P + n S with a saved prefix: equal for one request, and the
# saved prefix wins from the second. In seconds the break-even lies a little later, by the cost of the clones, and of
# the 8 passes where the suffix goes token by token. (On a busy machine the lines may cross elsewhere, or more than
# once.) So saving hardly ever loses time. What it costs is memory: `2 * n_layer * n_embd` numbers for every token kept,
# for as long as it is kept.
#
# </details>
#
# A saved prefix makes the first token come sooner, and no later one: each of those is a decode step as before. And it
# keeps no answers.
#
# ## Show a friend
#
# Twenty actors forget the end of a line, and the prompter whispers: one system prompt, one saved prefix. Each is served
# while you watch, and then once more from scratch, to see what was saved.

# %% tags=["chart"]
saves = autograder.guess("Twenty requests: how many times shorter is their total wait?", unit="times")
saves

# %% tags=["chart"]
system = "You are the prompter of this theatre. You know every line of every play by heart.\n" * 6
system_ids = tokenizer.encode(system)
served = save_prefix_cache(system_ids, weights)


def answer(question_ids):
    return generate_with_prefix(served, len(system_ids), question_ids, weights)


# %% tags=["chart"]
def twenty_requests():
    for line in PASSAGE.splitlines()[1:21]:
        ids = tokenizer.encode(line.rsplit(maxsplit=2)[0])
        ways = {"reused": lambda q=ids: answer(q), "scratch": lambda q=ids: from_scratch(system_ids + q, weights)}
        times = autograder.timing.compare(ways, repeats=1)
        token = tokenizer.tokens([answer(ids).argmax()])[0]
        row = {"says": tokenizer.decode(ids), "next": token, "tokens": len(system_ids + ids), "computed": len(ids)}
        yield {**row, **{f"ms {way}": 1e3 * times[way].median for way in ways}}


told = "{computed} of {tokens} tokens were computed, in {ms reused} ms; from scratch it takes {ms scratch} ms."
rows = autograder.live_table(twenty_requests(), told)

# %% tags=["chart"]
reused, scratch = (sum(row[f"ms {way}"] for row in rows) for way in ("reused", "scratch"))
saves.beside(scratch / reused)

# %% [markdown]
# ## Find the bug
#
# Play with somebody else's code, then choose the cause. You are told at once whether it fits, and why.

# %% tags=["chart"]
bug = autograder.puzzle("save-and-reuse")
bug

# %% tags=["chart"]
for requests in ([(4, False)], [(4, True)], [(4, True), (4, True), (4, False)]):
    print(requests, "->", bug.function(12, requests), "rows of 12")

# %% tags=["chart"]
autograder.question("save-and-reuse", 1)

# %% tags=["chart"]
autograder.question("save-and-reuse", 2)

# %% [markdown]
# ## Questions
#
# Answer in a few sentences each. They are graded by hand.

# %% [markdown] written="why-positions" points=2
# **Question 1.** You have the saved cache of the prefix above. A new prompt has 10 other tokens first, and then exactly
# the tokens of the prefix. Somebody proposes to use the saved rows for these tokens anyway, and to run only what comes
# before and after. Name two reasons why the saved keys and values are not those that the new prompt needs. Suppose the
# model had no `wpe` and no positions at all: which of the two reasons would be left, and in which layers?
#
# ### BEGIN SOLUTION
# **Rubric.** 1 point: position. The rows were computed with rows 0, 1, 2, ... of `wpe`, and in the new prompt the same
# tokens stand 10 later; `wpe` is added before the first block, so keys and values of every layer change. 1 point:
# context. From the second layer on, a token's keys and values depend on the tokens before it, through attention, and
# in the new prompt there are ten more. Without positions this second reason is left, in every layer but the first. Half
# a point off when this last part is missing.
# ### END SOLUTION

# %% [markdown] written="when-to-save" points=2
# **Question 2.** Use the numbers of your charts. (a) For a prefix of 200 and suffixes of 8 tokens, at how many
# requests do both ways cost the same in tokens, and at how many in seconds on your machine? What makes the
# difference? (b) Give a situation in which saving prefixes is a bad idea although every request is served faster.
#
# ### BEGIN SOLUTION
# **Rubric.** 1 point for (a): break-even at 1 request in tokens (it pays from the second), a little above 1 in
# seconds, with the own chart's number; the difference is what does not count as tokens: cloning the cache, and the
# overhead of many small calls for few tokens. 1 point for (b): any sound case in which the memory is the limit or the
# rows are not used again, such as prefixes that are hardly ever repeated (a date at their beginning), very many
# different prefixes, or a cache that drives out something more useful.
# ### END SOLUTION

# %% [markdown]
# ## Going further: share the prefix instead of copying it
#
# This section is worth no points. The clone copies the whole prefix for every request, only so that there is a place to
# append the suffix. A request could instead *read* the saved arrays, which never change, and keep a short **tail** of
# its own for the suffix. No row of the prefix is copied then, and a hundred requests at the same time need the memory
# of one prefix and a hundred tails.
#
# These two classes hold such a request. They are given.


# %% setup="shared-cache"
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


# %% [markdown]
# What is missing is attention that looks in two places. Write it: the scores with both sets of keys stand side by side
# in one table, the mask and one softmax run over all of it, and each part is multiplied with its own values.
# (`softmax` is the one of stage 1.)


# %% solution="attend-shared"
def attend_shared(q, layer):
    """`attend` over prefix and tail, without copying the prefix.

    q and the result: [n_head, n_query, head_dim]. layer: a SharedLayer; its tail ends with q's n_query positions.
    """
    ### BEGIN SOLUTION
    n_query, head_dim = q.shape[1:]
    n_prefix, n_seq = layer.prefix_keys.shape[1], len(layer)
    to_prefix = q @ layer.prefix_keys.transpose(0, 2, 1)
    to_tail = q @ layer.tail.keys.transpose(0, 2, 1)
    scores = np.concatenate([to_prefix, to_tail], axis=-1) / head_dim**0.5  # [n_head, n_query, n_seq]
    visible = np.tri(n_query, n_seq, k=n_seq - n_query, dtype=bool)
    attention = softmax(np.where(visible, scores, -np.inf))
    return attention[..., :n_prefix] @ layer.prefix_values + attention[..., n_prefix:] @ layer.tail.values
    ### END SOLUTION


# %% check="step-attend-shared"
autograder.check("step-attend-shared")


# %% tags=["chart"]
def generate_sharing(cache, prefix_len, suffix_ids, weights):
    """`generate_with_prefix` on a SharedCache, which keeps the suffix's rows."""
    plain_attend, given.attend = given.attend, attend_shared  # `advance` calls this one
    try:
        return advance(suffix_ids, prefix_len, weights, cache)
    finally:
        given.attend = plain_attend


# %% [markdown]
# Are the logits right, and how much memory does a request hold? `tracemalloc` counts what NumPy allocates.

# %% tags=["chart"]
less_memory = autograder.guess(
    "A clone holds how many times as much memory as a request that shares?",
    unit="times",
)
less_memory


# %% tags=["chart"]
long_ids, suffix_ids = random_ids(400), random_ids(n_suffix)
long_prefix = save_prefix_cache(long_ids, timed)


def continue_sharing():
    cache = SharedCache(long_prefix)
    return cache, generate_sharing(cache, 400, suffix_ids, timed)


def continue_clone():
    cache = long_prefix.clone()
    return cache, advance(suffix_ids, 400, timed, cache)


# %% tags=["chart"]
difference = abs(continue_sharing()[1] - from_scratch(long_ids + suffix_ids, timed)).max()
print(f"logits differ by {difference:.0e} from those from scratch")
row_bytes = 2 * timed.config.n_layer * timed.config.n_embd * 4  # keys and values of one token
held = {"a clone": bytes_held(continue_clone), "a shared prefix": bytes_held(continue_sharing)}
for name, n_bytes in held.items():
    print(f"a request on {name:15} holds {n_bytes:9,} bytes, the room of {n_bytes / row_bytes:.0f} tokens")
less_memory.beside(held["a clone"] / held["a shared prefix"])

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A clone has room for all 408 tokens and, where a buffer is doubled when it is full, for nearly as many again. A shared
# prefix adds room for the 8 tokens of the suffix and a few more, however long the prefix is.
#
# </details>
#
# And the time. The last bar is `copy.deepcopy`, which users of other libraries call before each reuse, because there a
# call writes into the cache that it is given.

# %% tags=["chart"]
deepcopy_slower = autograder.guess("copy.deepcopy takes how many times as long as your clone?", unit="times")
deepcopy_slower


# %% tags=["chart"]
def token_by_token(saved, prefix_len, suffix_ids, weights):
    cache = saved.clone()
    for i, token_id in enumerate(suffix_ids):
        logits = decode_step(token_id, prefix_len + i, weights, cache)
    return logits


# %% tags=["chart"]
ways = {
    "clone, token by token": lambda: token_by_token(long_prefix, 400, suffix_ids, timed),
    "clone, in one pass": continue_clone,
    "shared prefix, in one pass": continue_sharing,
    "the clone alone": long_prefix.clone,
    "copy.deepcopy, as others do": lambda: copy.deepcopy(long_prefix),
}

# %% tags=["chart"]
title, note = "Where a reuse spends its time", f"A prefix of 400 tokens and a suffix of {n_suffix}."
times = dict(autograder.timing.compare(ways, repeats=9))
autograder.charts.bar_chart(times, label="time of a request", title=title, note=note, model=timed).show()
deepcopy_slower.beside(times["copy.deepcopy, as others do"].median / times["the clone alone"].median)

# %% [markdown]
# Serving engines go one step further. They cut every cache into **blocks** of, say, 16 tokens, and a request holds a
# list of block numbers. Blocks of a shared prefix are in many lists and are never written to; a request fills new
# blocks of its own. That is the same rule as yours, a pristine prefix and a private tail.
#
# ## What comes next
#
# You have trusted the caller to pass a prefix that really begins the prompt. In stage 5 you write that part: which
# saved entry fits a prompt, why one fits less than expected, and the ways in which reuse fails although every function
# here is right.
