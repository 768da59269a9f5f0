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
# # 3. Prefill and decode
#
# **What you will build.** Text generation on top of the KV cache. Your `prefill` runs the whole prompt through the
# model in one pass and fills the cache. Your `decode_step` then runs a single token. Your `generate` puts the two
# together and writes the same text as `generate_recompute` of stage 1, for a fraction of the work. Every program that
# serves language models is split into these two phases, and their costs differ so much that they are measured
# separately.
#
# **Time.** About three hours.
#
# **What you should know.** Stage 1: the block, positions, logits. Stage 2: what a `LayerCache` holds, and that
# `attend` takes its queries to be the *last* cached positions. Both stages are here, solved, in `given.py`, so it does
# not matter how far you got with them. `autograder.glossary("chunk")` explains a term, `autograder.glossary()` all.
#
# **How to work.** As before.

# %% setup="imports"
import numpy as np
from given import (
    LayerCache,
    ModelCache,
    attend,
    feed_forward,
    forward,
    gelu,
    generate_recompute,
    layer_norm,
    linear,
    merge_heads,
    split_heads,
    transformer_block,
)

import autograder

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()

# %% [markdown]
# The switch from stage 1, for all cells that read or write a text: with `MODEL = "gpt2"` they use the real GPT-2, where
# it was fetched, and charts of measured times take minutes.

# %% tags=["chart"]
MODEL = None  # or "gpt2"
weights, tokenizer = autograder.load_both(MODEL)

# %% [markdown]
# To build on your own functions instead of the given ones, load your notebook and take what you need from it, in a
# cell of your own below this one:
#
#     mine = autograder.load_notebook("../02-kv-cache/kv_cache.ipynb")
#     ModelCache, attend = mine.ModelCache, mine.attend
#
# Grading always uses the given ones: your other notebooks cannot be read there. So do not put these lines into a
# solution cell.
#
# ## Two phases
#
# Suppose a prompt of 6 tokens, and 5 new tokens to be written after it. When a request comes in, all 6 tokens of the
# prompt are known. So they can go through the model together, in one **pass**, just as in `forward`: a table `x` with
# 6 rows, through all blocks. On the way each block appends 6 keys and 6 values to its layer's cache. This is
# called **prefill**, because it fills the cache before any token is written.
#
# The last row's logits decide the first new token. From here on, tokens come one at a time, since each depends on the
# one before it. A pass now has a table `x` of a single row. Its query needs the keys and values of all earlier
# positions, and those are in the cache. This is called **decode**, and one such pass is a decode step.
#
# The picture shows which pass computes which position. At a hatched position nothing is computed: its keys and values
# are read from the cache.

# %% tags=["chart"]
autograder.attention_charts.passes(n_prompt=6, n_generated=5)

# %% [markdown]
# Count the passes: prefill and 4 decode steps give 5 new tokens, because prefill already gives the first. Count the
# columns: position 10, that of the last new token, is never computed. That token is returned, and nothing comes after
# it, so it is never fed to the model and has no row in the cache. This gives a rule that you will need often:
#
# > **The cache holds prompt + generated - 1 rows.** Here 6 + 5 - 1 = 10.
#
# One more question before you begin.

# %% tags=["chart"]
rows_at_end = autograder.guess("A prompt of 100 tokens, 20 new ones: how many rows does the cache have at the end?")
rows_at_end

# %% tags=["chart"]
print(rows_at_end.beside(100 + 20 - 1, "The last new token is returned and never fed."))

# %% [markdown]
# ## One block, some of its rows cached
#
# Begin with a single block. It gets the rows of the *new* tokens only: `x` has `n_new` rows, all of the prompt's in
# prefill, one in decode. Compare it with `transformer_block`:
#
# - `ln_1`, the linear layers, `gelu` and the additions treat each row by itself. Nothing changes for them.
# - Attention makes queries, keys and values of the new rows. It appends the keys and values to the layer's cache.
#   *Then* it attends, so that a new token sees itself and the new tokens before it as well as all cached ones.
#
# You have all the parts: `linear`, `split_heads`, `merge_heads` and `feed_forward` from stage 1, `append` and `attend`
# from stage 2.


# %% solution="cached-block"
def cached_block(x, block, n_head, layer_cache):
    """One block over the rows of n_new new tokens, which continue what layer_cache holds.

    x: [n_new, n_embd]. layer_cache: a LayerCache with any number of positions; it grows by n_new keys and values.
    Returns [n_new, n_embd]; x is not changed.
    """
    ### BEGIN SOLUTION
    qkv = linear(layer_norm(x, block.ln_1.weight, block.ln_1.bias), block.attn.c_attn)
    q, k, v = (split_heads(part, n_head) for part in np.split(qkv, 3, axis=-1))  # each [n_head, n_new, head_dim]
    layer_cache.append(k, v)
    heads = attend(q, layer_cache)  # [n_head, n_new, head_dim]
    x = x + linear(merge_heads(heads), block.attn.c_proj)
    return x + feed_forward(layer_norm(x, block.ln_2.weight, block.ln_2.bias), block.mlp)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# `np.split(qkv, 3, axis=-1)` gives the parts for q, k and v, in this order; `split_heads` brings the heads of each to
# the front. Between them and the second layer norm there are three lines: append, attend, add. Keep the `x` from
# before the layer norm, because the result is added to that one.
#
# </details>
#
# With an empty cache the block must agree with `transformer_block`. And it must not matter whether the rows come all
# at once or in two parts.

# %% check="step-cached-block"
autograder.check("step-cached-block")

# %% tags=["chart"]
n_head = weights.config.n_head
rows = weights.wte[tokenizer.encode("The king is dead, and the queen")]
whole = transformer_block(rows, weights.blocks[0], n_head)
at_once = cached_block(rows, weights.blocks[0], n_head, LayerCache())
one_cache = LayerCache()
in_parts = [cached_block(part, weights.blocks[0], n_head, one_cache) for part in (rows[:3], rows[3:])]
print("at once, largest difference: ", abs(at_once - whole).max())
print("in parts, largest difference:", abs(np.concatenate(in_parts) - whole).max())
print("positions in the cache:", len(one_cache), "of", len(rows))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Two differences of about 0.000001 or less, which is what float32 leaves, and as many
# positions in the cache as there are rows.
#
# </details>
#
# ## One pass
#
# Prefill and decode are the same computation on a different number of rows. So write it once: `advance` takes the new
# tokens, and the position of the first of them, and carries them through the whole model.
#
# **Positions.** The first new token does not stand at position 0. In the picture above, pass 2 computes one token, and
# it stands at position 7. So it needs row 7 of `wpe`. The token itself does not tell its position, so the caller passes
# it. If you took row 0 instead, the code would run, and the text would even look plausible.
#
# **Logits.** `forward` returns logits for every row. Here only those after the last token are wanted, because only
# they decide what comes next. So apply `ln_f` and the product with `wte.T` to the last row alone: for a prompt of 500
# tokens that saves the product of 499 rows with the largest matrix in the model.
#
# **Errors.** `wpe` has `n_ctx` rows. Look before you compute, because NumPy does not: a slice that ends after the
# last row is silently cut short, and if one row is left, it is silently used for all tokens. A negative position or a
# negative id silently counts from the end. (The step below looks at right positions and ids only. What has to be
# refused is asked for by the last check of `generate`.)


# %% solution="advance"
def advance(token_ids, position, weights, cache):
    """One pass over new tokens, the first of which stands at `position`; the logits [n_vocab] after the last.

    token_ids: a list of n_new >= 1 ids. cache: a ModelCache; each of its layers grows by n_new positions.
    ValueError, before anything is computed, unless all positions lie in 0 to n_ctx - 1 and all ids in 0 to
    n_vocab - 1.
    """
    ### BEGIN SOLUTION
    config, end = weights.config, position + len(token_ids)
    if position < 0 or end > config.n_ctx:
        raise ValueError(f"positions {position} to {end - 1} do not fit into n_ctx = {config.n_ctx}")
    if min(token_ids) < 0 or max(token_ids) >= config.n_vocab:
        raise ValueError(f"token ids must lie in 0 to {config.n_vocab - 1}")
    x = weights.wte[np.asarray(token_ids)] + weights.wpe[position:end]  # [n_new, n_embd]
    for block, layer_cache in zip(weights.blocks, cache.layers, strict=True):
        x = cached_block(x, block, config.n_head, layer_cache)
    return layer_norm(x[-1], weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# It is `forward` with three changes: the slice of `wpe` begins at `position`, the loop goes over blocks and
# `cache.layers` side by side (`zip`), and the last line uses `x[-1]`, which is one row.
#
# </details>

# %% check="step-advance"
autograder.check("step-advance")

# %% tags=["chart"]
token_ids = tokenizer.encode("The king is dead, and the queen")
expected = forward(token_ids, weights)[-1]
cache = ModelCache(weights.config.n_layer)
print("largest difference from forward:", abs(advance(token_ids, 0, weights, cache) - expected).max())
print("positions in each layer:", [len(layer) for layer in cache.layers])

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A difference of about 0.000001 to 0.00001, and the same number of positions in all 12
# layers.
#
# </details>
#
# ## Prefill
#
# What is left of `prefill` is one decision: at which position does the prompt begin? Most often the cache is empty,
# and the answer is 0. But a prompt may also come in **chunks**, in several calls with the same cache. A server does
# this with a long prompt, to let other requests have their turn in between; a chat does it when the next message
# comes in. Each chunk continues where the one before it ended, and the cache knows where that is: the next position
# is the number of positions it holds, `len(cache)`.
#
# An empty prompt has no last token, so there are no logits to return. Say so with a `ValueError`.


# %% solution="prefill"
def prefill(prompt_ids, weights, cache):
    """One pass over the prompt, or the next chunk of it, which continues at position len(cache).

    prompt_ids: a list of at least one id, else ValueError; ValueError as well when it does not fit into n_ctx, or
    when an id does not lie in 0 to n_vocab - 1. A token that is refused gets no row.
    cache: a ModelCache; each of its layers grows by len(prompt_ids) positions.
    Returns the logits [n_vocab] after the last token.
    """
    ### BEGIN SOLUTION
    if len(prompt_ids) == 0:
        raise ValueError("prefill needs at least one token id")
    return advance(prompt_ids, len(cache), weights, cache)
    ### END SOLUTION


# %% check="prefill-logits"
autograder.check("prefill-logits")

# %% check="prefill-cache"
autograder.check("prefill-cache")

# %% check="prefill-in-chunks"
autograder.check("prefill-in-chunks")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two lines for the error and one call of `advance`. If the checks of one chunk pass and those of several fail, look
# at the position of the second chunk's first token.
#
# </details>
#
# The checks compare with a recompute in float64. Here is the same for you to play with: one prompt, cut into chunks
# of several sizes.

# %% tags=["chart"]
prompt_ids = tokenizer.encode("The king is dead, and the queen is gone to France. What shall we do, my lord?")
expected = forward(prompt_ids, weights)[-1]
print(f"a prompt of {len(prompt_ids)} tokens")
for size in (1, 4, 10, len(prompt_ids)):
    cache = ModelCache(weights.config.n_layer)
    chunks = [prompt_ids[start : start + size] for start in range(0, len(prompt_ids), size)]
    for chunk in chunks:
        logits = prefill(chunk, weights, cache)
    print(f"{len(chunks):3} chunks of up to {size:2}: largest difference {abs(logits - expected).max():.1e}")

# %% [markdown]
# <details><summary>What you should see</summary>
#
# About 1e-06 to 1e-05 on every line. Chunks of one token are also right: that is a prompt
# fed one token at a time. What it costs you will see below.
#
# </details>
#
# ## Decode
#
# A decode step is a pass over one token. The caller passes the token's position. Use it as it is: `decode_step` must
# not replace it by `len(cache)`. In correct use the two are equal, so you may raise a `ValueError` when they are not.
# But a function that silently corrects its caller hides the caller's mistake, and in stage 5 you will need to see such
# mistakes.


# %% solution="decode-step"
def decode_step(token_id, position, weights, cache):
    """One pass over a single token, which stands at `position`; the logits [n_vocab] of the token after it.

    cache: a ModelCache with the tokens before it; each of its layers grows by one position.
    ValueError when the position does not lie in 0 to n_ctx - 1, or the id not in 0 to n_vocab - 1; the token
    then gets no row.
    """
    ### BEGIN SOLUTION
    return advance([token_id], position, weights, cache)
    ### END SOLUTION


# %% check="decode-every-step"
autograder.check("decode-every-step")

# %% check="decode-position"
autograder.check("decode-position")

# %% check="decode-grows-cache"
autograder.check("decode-grows-cache")

# %% [markdown]
# <details><summary>Hint</summary>
#
# One line. `advance` takes a list.
#
# </details>
#
# The next cell walks through a text token by token and compares each step with row `position` of one big recompute.
# Remember why one recompute is enough: what comes later never changes an earlier row. After that it makes a mistake on
# purpose: one token is given a position that is one too far.

# %% tags=["chart"]
how_wrong = autograder.guess(
    "How far are the logits off when a single token stands one position too far?",
    choices=["about 0.00001, as before", "about 0.01", "about 0.3, or more"],
)
how_wrong

# %% tags=["chart"]
expected = forward(prompt_ids, weights)  # [n_seq, n_vocab], every row at once
cache = ModelCache(weights.config.n_layer)
logits = prefill(prompt_ids[:4], weights, cache)
differences = [abs(logits - expected[3]).max()]
for position in range(4, len(prompt_ids)):
    logits = decode_step(prompt_ids[position], position, weights, cache)
    differences.append(abs(logits - expected[position]).max())
print("largest difference at any step:", max(differences))

# %% tags=["chart"]
cache = ModelCache(weights.config.n_layer)
prefill(prompt_ids[:4], weights, cache)
try:
    shifted = decode_step(prompt_ids[4], 5, weights, cache)  # it stands at 4
except ValueError as error:
    print("Your decode_step refuses a position one too far:", error)
else:
    off = abs(shifted - expected[4]).max()
    print("the same with a position one too far:", off)
    print(how_wrong.beside("about 0.3, or more" if off > 0.1 else "about 0.01"))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# About 0.00001 in the first line. The second number is some tens of thousands of times larger. (If your `decode_step`
# raises an error for a position that is not `len(cache)`, the cell says so instead, and the guess stays open.) No
# tolerance has to be chosen with care to tell a right position from a wrong one.
#
# </details>
#
# ## Generate
#
# Now the loop. Prefill gives logits, the largest logit gives a new token, a decode step gives new logits, and so on.
# The new token's position is the number of tokens before it, and that is `len(cache)` at this moment.
#
# Mind the two ends.
#
# - **The last new token is not fed.** Nothing is chosen after it. So `n_new` tokens need `n_new - 1` decode steps, and
#   the cache ends with `len(prompt_ids) + n_new - 1` rows. This must work as long as that number is at most `n_ctx`.
# - **Refuse early.** A request that cannot fit is best refused before anything is computed, not after half of the
#   text.
#
# With `n_new = 0` the result is an empty list.
#
# One check counts work: the ids that the given functions, your `prefill` and your `decode_step` get, and the rows that
# are multiplied by the arrays in `weights`. It fails only when too many tokens go through the model. Work that it
# cannot see, such as products with weights that you prepared beforehand, is not counted.


# %% solution="generate"
def generate(prompt_ids, n_new, weights):
    """The n_new greedy next ids, a list of ints without the prompt: one prefill, then one decode step a token.

    prompt_ids: a list of at least one id, else ValueError; it is not changed.
    ValueError when len(prompt_ids) + n_new - 1 is more than n_ctx.
    """
    ### BEGIN SOLUTION
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
    ### END SOLUTION


# %% check="generate-ids"
autograder.check("generate-ids")

# %% check="generate-work"
autograder.check("generate-work")

# %% check="decode-context-limit"
autograder.check("decode-context-limit")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Make a new `ModelCache` in each call. Choose first, then feed, and feed only while another token is wanted: the newest
# token alone.
#
# </details>
#
# Now let it write, and follow the rule as it does.

# %% tags=["chart"]
prompt_ids = tokenizer.encode("ROMEO:\nMy lord, ")
new_ids = generate(prompt_ids, 40, weights)
print(tokenizer.decode(prompt_ids + new_ids))
print("\nthe same as by recompute:", new_ids == generate_recompute(prompt_ids, 40, weights))

# %% tags=["chart"]
cache = ModelCache(weights.config.n_layer)
logits = prefill(prompt_ids, weights, cache)
print("generated   rows in the cache   prompt + generated - 1")
for n_generated in range(1, 6):
    new_id = int(logits.argmax())
    print(f"{n_generated:9}   {len(cache):17}   {len(prompt_ids) + n_generated - 1:22}")
    logits = decode_step(new_id, len(cache), weights, cache)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Text like that of stage 1, `True`, and two columns that agree in every line.
#
# </details>
#
# ## Two speeds
#
# Whoever waits for an answer notices two things. How long until the first word appears? This is the **time to first
# token**, and it is the time of the prefill. And how fast do the words come after that? This is measured in **tokens
# per second**, and it is set by the time of one decode step.
#
# The chart shows the time to first token, for prompts of several lengths, in two ways: with your `prefill`, in one
# pass; and with the same prompt fed by decode steps, one token at a time. Both send the same number of tokens through
# the model, and both fill the cache with the same rows. (On a busy machine the lines of this chart and of those below
# zigzag, and the factors differ from what is said here: run the cell again.)

# %% tags=["chart"]
one_pass_faster = autograder.guess(
    "For 512 tokens, one pass is how many times faster than one at a time?", unit="times"
)
one_pass_faster

# %% tags=["chart"]
many_ids = tokenizer.encode("The king is dead, and the queen is gone to France. What shall we do, my lord?\n" * 30)


def in_one_pass(n_prompt, cache):
    return prefill(many_ids[:n_prompt], weights, cache)


def by_steps(n_prompt, cache):
    for position, token_id in enumerate(many_ids[:n_prompt]):
        decode_step(token_id, position, weights, cache)


# %% tags=["chart"]
ways = {"one token at a time": by_steps, "one pass": in_one_pass}
first = autograder.timing.sweep((8, 32, 128, 256, 512), ways, setup=lambda n: ModelCache(weights.config.n_layer))
steps_of_512, pass_of_512 = (series[-1].best for _, series in first.values())
print(f"prefill of 512 tokens: {512 / pass_of_512:6.0f} tokens per second")
print(f"decode steps:          {512 / steps_of_512:6.0f} tokens per second")
print(one_pass_faster.beside(steps_of_512 / pass_of_512))
autograder.cost_charts.first_token(first, weights)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# One pass is several times faster, although the number of tokens is the same. A decode step
# has to fetch every weight of the model from memory to use it for a single row, and to call every NumPy function for a
# single row. A pass over 512 rows does both once for all of them. This is why prompts are read so much faster than
# answers are written, by this model and by the largest ones. It is also why `prefill` should be one pass, although
# the checks would accept decode steps.
#
# </details>
#
# ## A square and a line
#
# Now the question that the cache is there for: what does one new token cost when it stands at position `n`?
#
# - **By recompute** all `n` tokens go through the model for it. The linear layers cost as much for each of them, so
#   their time grows with `n`. Attention compares every query with every key, so its time grows with `n * n`.
# - **With the cache** one token goes through the model. The linear layers cost the same at every position. Only
#   attention grows: its one query is compared with `n` keys.
#
# And what does a whole text of `n` tokens cost? All the tokens on the way have to be paid for. By recompute that is
# a sum of terms that grow with `n`, so the total grows like a square, or faster. With the cache it is a sum of terms
# that stay nearly the same, so the total grows in a straight line.
#
# On axes that are both logarithmic, a power of `n` is a straight line, and its slope is the exponent: 1 for a line, 2
# for a square. So the charts can be read by their slopes. For measuring, take a model that is wide, so that time goes
# into arithmetic and not into Python, and has room for 1,024 positions. Its weights are random. What it says is
# noise, and what it costs is real. With `wide = autograder.load_model("gpt2-shape")` the same charts are drawn at the
# size of the real GPT-2, in some minutes.

# %% tags=["chart"]
cache_faster = autograder.guess(
    "At position 1,000, the cache makes a new token how many times faster?",
    unit="times",
)
cache_faster

# %% tags=["chart"]
shape = autograder.GPT2Config(n_layer=2, n_head=4, n_embd=256, n_ctx=1024, n_vocab=512)
wide = autograder.random_model(shape, seed=0)
wide_ids = [7 * i % 512 for i in range(1024)]
positions = [10, 20, 50, 100, 200, 500, 1000]
before = {n: ModelCache(wide.config.n_layer) for n in positions}  # everything before the n-th token
for n, cache in before.items():
    prefill(wide_ids[: n - 1], wide, cache)

# %% tags=["chart"]
recompute = {"recompute": lambda n: forward(wide_ids[:n], wide)}
with_cache = {"cached": lambda n, cache: decode_step(wide_ids[n - 1], n - 1, wide, cache)}
one = autograder.timing.sweep(positions, recompute)
one |= autograder.timing.sweep(positions, with_cache, setup=lambda n: before[n].clone(), repeats=9)
print(cache_faster.beside(one["recompute"][1][-1].median / one["cached"][1][-1].median))
autograder.cost_charts.one_token(one, wide)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A slope somewhat above 1 for recompute: the linear layers' 1, bent upward by attention at
# the right end. A slope near 0 with the cache. At position 1,000 the cached token is hundreds of times faster.
#
# </details>
#
# The next chart adds these times up, position by position, to what the whole text has cost by then. Between the
# measured positions it interpolates linearly. It begins at 50 tokens, because in shorter texts most of the time goes
# into calling functions and not into arithmetic. To show that such a sum can be trusted, the cell after it lets
# `generate` and `generate_recompute` really write 50 tokens, and prints the clock's time beside the sum's.

# %% tags=["chart"]
in_all_faster = autograder.guess(
    "All 1,000 tokens: the cache makes the whole text how many times faster?", unit="times"
)
in_all_faster


# %% tags=["chart"]
def paid_so_far(times):
    """The seconds for a text up to each of `text_lengths`, from the times of one token at `positions`."""
    one_token = np.interp(range(1, 1001), positions, [time.median for time in times])
    return [float(one_token[:n].sum()) for n in text_lengths]


text_lengths = [50, 100, 200, 500, 1000]
paid = {way: (text_lengths, paid_so_far(times)) for way, (_, times) in one.items()}
print(in_all_faster.beside(paid["recompute"][1][-1] / paid["cached"][1][-1]))
autograder.cost_charts.whole_text(paid, wide)

# %% tags=["chart"]
for way, write in (("recompute", generate_recompute), ("cached", generate)):
    clock = autograder.timing.measure(lambda write=write: write(wide_ids[:1], 50, wide), repeats=3, warmup=0)
    print(f"{way:9}: 50 tokens take {paid[way][1][0]:.3f} s as a sum, {clock.median:.3f} s by the clock")

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Slopes near 2 and near 1. They are not exact, and should not be. At the left end calls still
# cost some time however few rows they have, which flattens the lines. At the right end attention's share grows, and
# would take the slopes to 3 and 2 in much longer texts. The sums and the clock agree roughly; a busy machine adds
# noise.
#
# </details>
#
# ## The two phases in one table

# %% tags=["chart"]
helped = autograder.guess(
    "A prompt's first 400 tokens are saved in a cache. What gets faster?", choices=["prefill", "decode", "both"]
)
helped

# %% tags=["chart"]
(_, of_steps), (_, of_pass) = first.values()  # at 8, 32, 128, 256, 512 tokens, three runs each; the fastest counts
s_128, s_256, s_512 = (one.best for one in of_steps[-3:])
decode, decode_before = (s_512 - s_256) / 256, (s_256 - s_128) / 128  # of one step, on average
rows = {
    "measured: milliseconds": (f"{1000 * pass_of_512:.0f} for 512 tokens", f"{1000 * decode:.1f} for one token"),
    "measured: tokens per second": (f"{512 / pass_of_512:.0f}", f"{1 / decode:.0f}"),
    "measured: at twice the length, times as long": (pass_of_512 / of_pass[-2].best, decode / decode_before),
}
_ = autograder.live_table({"": name, "prefill": p, "decode": d} for name, (p, d) in rows.items())

# %% tags=["chart"]
print(helped.beside("prefill"))

# %% [markdown]
# Those are your numbers. This holds for the two phases in every program that serves language models:
#
# | | prefill | decode |
# |---|---|---|
# | what it does | runs all tokens of the prompt in one pass | runs one new token a pass |
# | bound by | compute: each weight is used for many rows | memory bandwidth: each weight is fetched for one row |
# | grows with | the length of the prompt | the number of new tokens, and a little with the length so far |
# | what the user feels | the time to first token | the tokens per second |
# | can a saved prefix help? | yes: what is saved is not computed again | no: every new token is computed anyway |
#
# (The weights of the course's model are so small that they fit into the processor's cache. Here a decode step spends
# most of its time calling NumPy; with a model of several gigabytes it waits for memory.) The last row is the one to
# remember for the rest of the course: a prefix cache saves prefill. It does not make decode any faster.
#
# ## Show a friend
#
# The same text is written twice, side by side: by your `forward`, and with your cache. Each has a clock that runs only
# while it computes, so the race is fair. The switch at the top of the notebook lets the real GPT-2 race.

# %% tags=["chart"]
prompt_ids = tokenizer.encode("ROMEO:\nMy lord, I come to tell you of the king.\n\nJULIET:\n")


def by_cache(n_new):
    cache = ModelCache(weights.config.n_layer)
    logits = prefill(prompt_ids, weights, cache)
    for _ in range(n_new):
        yield (new_id := int(logits.argmax()))
        logits = decode_step(new_id, len(cache), weights, cache)


# %% tags=["chart"]
def by_recompute(n_new):
    ids = list(prompt_ids)
    for _ in range(n_new):
        ids.append(int(forward(ids, weights)[-1].argmax()))
        yield ids[-1]


seconds = autograder.race(tokenizer, {"recompute": by_recompute(100), "cache": by_cache(100)})

# %% [markdown]
# ## Find the bug
#
# Play with somebody else's `generate`, then choose the cause.

# %% tags=["chart"]
bug = autograder.puzzle("prefill-decode")
bug

# %% tags=["chart"]
for n_prompt, n_new in ((6, 1), (6, 2), (3, 4)):
    print(f"prompt {n_prompt}, new {n_new}:", bug.function(n_prompt, n_new))

# %% tags=["chart"]
autograder.question("prefill-decode", 1)

# %% tags=["chart"]
autograder.question("prefill-decode", 2)

# %% [markdown]
# ## Questions
#
# Answer in a few sentences each. They are graded by hand.

# %% [markdown] written="the-missing-row" points=2
# **1. The missing row.** A chat program has answered a prompt of `P` tokens with `G` generated tokens, by your
# `generate`. It kept the cache, to save work when the user's next message comes. How many rows does the cache hold,
# and which token of the conversation has none? What exactly must be fed to the model first when the next message
# arrives, and at which position?
#
# ### BEGIN SOLUTION
# It holds `P + G - 1` rows. The last generated token has none: it was chosen from the logits and never fed. So the
# next prefill must begin with that token, at position `P + G - 1`, which is `len(cache)`, and continue with the
# tokens of the new message. Whoever starts with the message itself leaves a token out: everything after it stands one
# position too early and never sees the last word of the answer.
#
# *Rubric. 1 point: P + G - 1 rows, and the last generated token is the one without a row, because nothing was chosen
# after it. 1 point: it is fed first, at position P + G - 1, before the tokens of the new message.*
# ### END SOLUTION

# %% [markdown] written="same-work-other-time" points=2
# **2. The same work, another time.** Request A has a prompt of 400 tokens and gets an answer of 20. Request B has a
# prompt of 20 tokens and gets an answer of 400. How many tokens go through the model for each? Which of the two is
# finished first, and why? For which one does the user see the first word sooner?
#
# ### BEGIN SOLUTION
# The same number for both: 400 + 20 - 1 = 419. A is finished first, by far: 400 of its tokens go through in one
# pass, which fetches each weight once for all of them, and only 19 steps follow. B needs 399 passes of one row each,
# and each fetches all weights again. But B's user sees the first word sooner, because the time to first token is the
# time of the prefill, and 20 tokens take less than 400.
#
# *Rubric. 1 point: 419 each, and A is finished first because one pass over many rows is cheaper than as many passes
# over one row (weights fetched once, calls made once). 1 point: B shows its first word sooner, because its prefill is
# shorter.*
# ### END SOLUTION

# %% [markdown]
# ## What comes next
#
# The cost of generating a text now grows in proportion to its length, not like a square. The prompt is still paid for
# in full, by every request, even when a thousand requests begin with the same text. In stage 4, **save and reuse**, you
# keep the cache of such a prefix and continue it with one suffix after another. All you need is here: `prefill` makes
# the cache, `decode_step` continues it, and the position says where. What can go wrong is here as well: a position that
# is not what it should be, and a cache that grows when it should not.
