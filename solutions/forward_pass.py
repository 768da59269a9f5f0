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
# # 1. The forward pass
#
# At the end of this notebook, text appears on your screen, one token after the other, and every number behind it is
# computed by functions that you wrote.
#
# **What you will build.** The whole of GPT-2's inference, in about fifty lines of NumPy: a function `forward` that
# takes the tokens of a text and says, for each of them, which token is likely to come next; and a function that
# writes text with it. The weights are those of a real, if small, GPT-2. Everything later in the course, the cache
# above all, saves work that you first have to see here, done in full.
#
# **Time.** About four hours.
#
# **What you should know.** Python, and NumPy's shapes, broadcasting, slicing, `reshape`, `transpose` and `@`. You
# need to know nothing about transformers. It helps to have seen a linear layer, `x @ weight + bias`.
# `autograder.glossary("logits")` in a cell explains a term, and `autograder.glossary()` shows all of them.
#
# **How to work.** Read from the top. Where a cell says `# YOUR CODE HERE`, replace the two lines below the docstring
# with your code, run the cell, then run the check cell under it. A check says what holds and what does not. Two folded
# lines under its message give hints: where to look, and the cause. (In a terminal, `autograder test --hint 3` shows
# both.) Cells that draw charts or print something are yours to change; they are worth no points.

# %% setup="imports"
import numpy as np

import autograder

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()

# %% [markdown]
# **One switch.** All cells that read or write text use the small GPT-2 of the course. With `MODEL = "gpt2"` they use
# the real one, after `autograder fetch gpt2` in a terminal, and charts of measured times take minutes; where it was
# not fetched, the cell says so and the small one stays. The results that this notebook describes are those of the small
# one. The switch makes no difference to the checks, which load their own models.

# %% tags=["chart"]
MODEL = None  # or "gpt2"
weights, tokenizer = autograder.load_both(MODEL)

# %% [markdown]
# ## Tokens
#
# As in `00-start-here`, a **tokenizer** cuts the text into **tokens**, each with a number, its **token id**. An open
# box stands for a space, which belongs to the word after it.
#
# Now and then a cell asks you to **guess** before you run the next one. A guess that turns out wrong is worth more than
# a result that was only read. Nothing depends on it. (Where no box appears, write your guess into the call:
# `autograder.guess(..., mine=5)`.)

# %% tags=["chart"]
n_tokens = autograder.guess("Into how many tokens is 'The king is dead, and the queen' cut?", unit="tokens")
n_tokens

# %% tags=["chart"]
text = "The king is dead, and the queen"
token_ids = tokenizer.encode(text)
print(n_tokens.beside(len(token_ids)))
print(token_ids)
words = tokenizer.tokens(token_ids)
autograder.charts.token_strip({"tokens": words}, shared=0, positions=True, title="A text as the model reads it")

# %% [markdown]
# There are `n_vocab` different tokens in all, which are called the **vocabulary**. The small number under each token is
# its **position**: its place in the text, counted from 0. The model can look at `n_ctx` tokens at most.
#
# ## The model on one page
#
# The model turns the tokens into a table of numbers, `x`, of shape `[n_seq, n_embd]`. **One row stands for one
# position.** Here `n_seq` is the number of tokens, and `n_embd` is how many numbers describe a token; a row is called
# the **hidden state** of its token. The table keeps this shape all the way. Each of the `n_layer` **blocks** adds
# something to it, and at the end each row is turned into one number for each token of the vocabulary.
#
# In the picture below, the table is the thick line, which is called the **residual stream**. A block does not replace
# the table. It reads it, twice, and each time adds a result to it.

# %% tags=["chart"]
autograder.attention_charts.model_drawing(weights.config)

# %% [markdown]
# Row `i` of the result belongs to position `i` and says which token comes *next*: the larger a number, the likelier
# that token is at position `i + 1`. These numbers are called **logits**.
#
# Rows meet in one place only, in attention. Everything else treats each row by itself.
#
# ## One row on its way through a block
#
# Before any formula, here is what happens to the row of one token in the first block, with the model's own numbers.
# Read it from top to bottom. You will write every step of it, and come back to this picture when you do.

# %% tags=["chart"]
autograder.attention_charts.row_through_block(weights, token_ids, words, position=3)

# %% [markdown]
# - **`ln_1(x)`** brings the row to a standard size, whatever it has grown to.
# - **`q`, `k`, `v`** are three short rows made from it, by multiplying it with learned matrices. Every token has its
#   own three. There are several **heads**, which do this side by side; the picture shows one.
# - **`scores`** compare this token's `q` with the `k` of every token up to itself. Later tokens are hidden.
# - **`weights`**, here the attention weights and not the model's, are the scores turned into positive numbers that
#   add up to 1: how much of each token is taken in.
# - **`mix`** is the `v` of all these tokens, each times its weight, added up. This is where the tokens before `dead`
#   get into its row, and the only place.
# - **`attention`** puts the heads' mixes together, and is **added** to the row.
# - **`mlp`** works on the sum, brought to a standard size again. It is **added** too. What comes out enters the next
#   block.
#
# Change `position`, or add `layer=5` (the sixth block: blocks and heads are counted from 0) and `head=2`, and run it
# again.
#
# Here are the sizes of the model that you use, and the names of its arrays.

# %% tags=["chart"]
print(weights)
print("\nwte", weights.wte.shape, "  wpe", weights.wpe.shape)
print("blocks[0].ln_1:", weights.blocks[0].ln_1)
print("blocks[0].attn:", weights.blocks[0].attn.c_attn, "and", weights.blocks[0].attn.c_proj)
print("blocks[0].ln_2:", weights.blocks[0].ln_2)
print("blocks[0].mlp: ", weights.blocks[0].mlp.c_fc, "and", weights.blocks[0].mlp.c_proj)
print("ln_f:          ", weights.ln_f)

# %% [markdown]
# The arrays are in GPT-2's own layout: a linear layer is `x @ layer.weight + layer.bias`, with no transpose. They are
# read-only, because they are shared by everything in the notebook.
#
# **A trap to know of.** The notebook has a variable `weights`, the trained model. The checks call your functions with
# *other* models too, of other sizes. So take every size from the arguments: from the shape of `x`, from
# `n_head`, from the `weights` that `forward` is given. And models come and go: do not remember anything by the `id()`
# of an argument, since Python gives the `id()` of an object that is gone to a new one.
#
# ## Embeddings: from ids to rows
#
# How does a number such as 417 become a row of `n_embd` numbers? By looking it up. `wte` (token embeddings) has one
# row for each token of the vocabulary. `wpe` (position embeddings) has one row for each position. Both were learned
# in training. A token's row before the first block is the sum
#
#     wte[token id] + wpe[position]
#
# so the same word at two places begins with two different rows. Without `wpe` the model could hardly tell "dog bites
# man" from "man bites dog".

# %% tags=["chart"]
rows = weights.wte[token_ids] + weights.wpe[: len(token_ids)]
print("x has shape", rows.shape)
autograder.attention_charts.table_x(rows, words, weights)

# %% [markdown]
# The numbers of a row are called its **features**. They have no names; nobody chose what they mean. You will write the
# first line of the cell above yourself, in `forward`, once the parts are there.
#
# ## A linear layer
#
# Most of a model's weights are in linear layers: each row is multiplied by a matrix, and a row of numbers, the
# **bias**, is added. GPT-2 stores the matrix as `[n_in, n_out]`, so no transpose is needed. Write it once, and use it
# wherever there is a linear layer.


# %% solution="linear"
def linear(x, layer):
    """x: [..., n_in]; layer.weight: [n_in, n_out]; layer.bias: [n_out]. Returns [..., n_out]."""
    ### BEGIN SOLUTION
    return x @ layer.weight + layer.bias
    ### END SOLUTION


# %% check="step-linear"
autograder.check("step-linear")

# %% [markdown]
# A check of this kind is a **step**. It is worth no points, and it tells you at once whether a helper works, so that a
# mistake shows where it was made.
#
# ## GELU
#
# Two linear layers in a row are no more than one linear layer. To be worth having, they need something between them
# that is not linear. GPT-2 uses **GELU**, a smooth cousin of `max(x, 0)`, which is applied to each number by itself.
# The formula GPT-2 was trained with is the tanh form:
#
# $$\mathrm{gelu}(x) = \tfrac12\, x \left(1 + \tanh\left(\sqrt{2/\pi}\,\left(x + 0.044715\,x^3\right)\right)\right)$$
#
# There is another form, with the error function, that most libraries call GELU. It differs by up to 0.0005. A model has
# to be run with the function that it was trained with.


# %% solution="gelu"
def gelu(x):
    """GPT-2's GELU, the tanh form, of every element of x; an array of the same shape, whatever that is.

    x is not changed. Elements may be as large as they like.
    """
    ### BEGIN SOLUTION
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))
    ### END SOLUTION


# %% check="gelu-tanh"
autograder.check("gelu-tanh")

# %% [markdown]
# <details><summary>Hint</summary>
#
# One line is enough: NumPy's arithmetic and `np.tanh` work on whole arrays. A plain Python number for the factor, `(2
# / np.pi) ** 0.5`, keeps a float32 array float32. `np.sqrt(2 / np.pi)` is a NumPy float64, and in NumPy 2 it makes
# the result float64 too: just as right, and slower.
#
# </details>

# %% tags=["chart"]
xs = np.linspace(-4, 4, 25).astype(np.float32)
autograder.charts.line_chart(
    {"your gelu": (xs, gelu(xs))},
    reference={"max(x, 0)": (xs, np.maximum(xs, 0))},
    x_label="x",
    y_label="gelu(x)",
    title="GELU bends where max(x, 0) has a corner",
)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The curve runs close to 0 on the left, dips a little below it (to about -0.17 near -0.75)
# and follows `x` on the right.
#
# </details>
#
# ## Layer norm
#
# Each block adds to the rows, so their numbers drift and grow from block to block. Before a row is used, it is
# brought back to a standard size: its mean is subtracted, and it is divided by its standard deviation. Then each
# feature is scaled by a learned number and shifted by another, so that training can choose the size that serves best.
# For one row $x$ of $n$ numbers:
#
# $$\mu = \frac{1}{n}\sum_j x_j \qquad \sigma^2 = \frac{1}{n}\sum_j (x_j-\mu)^2 \qquad
# y_j = \frac{x_j-\mu}{\sqrt{\sigma^2+\varepsilon}}\, w_j + b_j$$
#
# Three details matter. The sum is divided by $n$, not by $n - 1$. The small number $\varepsilon$ stands *inside* the
# root; it keeps a row of equal numbers from being divided by 0. And every row has its own mean and variance: no row
# affects another.


# %% solution="layer-norm"
def layer_norm(x, weight, bias, eps=1e-5):
    """Normalize every row of x to mean 0 and variance 1, then scale by weight and shift by bias.

    x: [..., n_embd], where ... is any number of axes, or none. weight, bias: [n_embd].
    Returns an array of x's shape; x is not changed.
    """
    ### BEGIN SOLUTION
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return centered / np.sqrt(variance + eps) * weight + bias
    ### END SOLUTION


# %% check="layer-norm-rows"
autograder.check("layer-norm-rows")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `x.mean(axis=-1)` gives one number a row and drops the last axis, after which `x - mean` no longer lines up.
# `keepdims=True` keeps that axis, with length 1, and broadcasting does the rest. Write `x = x - mean`. The other
# form, `x -= mean`, writes into the caller's array.
#
# </details>

# %% tags=["chart"]
ln_1 = weights.blocks[0].ln_1
normed = layer_norm(rows, np.ones_like(ln_1.weight), np.zeros_like(ln_1.bias))
print("standard deviation of each row before:", rows.std(axis=-1).round(3))
print("and after, with weight 1 and bias 0:  ", normed.std(axis=-1).round(3))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The first line differs from row to row; the second is very nearly 1 everywhere. It falls
# short of 1 by a little, because of $\varepsilon$, and by more where the row was small.
#
# </details>
#
# ## Attention
#
# Here the rows meet. In "The king is dead, and the queen", what comes after "queen" depends on the words before it.
# **Attention** is how a position gathers what it needs from other positions. It has three steps.
#
# 1. From its row, each position makes three vectors, by three linear layers: a **query** (what am I looking for?), a
#    **key** (what do I have to offer?) and a **value** (what do I pass on to whoever is interested?).
# 2. A position's query is compared with the keys of all positions by a dot product, scaled as shown below. This gives
#    one **score** for each: the larger, the better the fit. The scores are made into numbers from 0 to 1 that add up
#    to 1. They are called **attention weights**.
# 3. The position's result is the average of all values, weighted by them.
#
# Here are three tokens, with a query, a key and a value each, small enough to calculate by hand. Take the third token.
# Its query `[2, 0, 0, 0]` fits the first key best, with a dot product of 6; the others get 0 and 2.

# %% tags=["chart"]
q = np.array([[1.0, 1, 0, 0], [0, 2, 0, 0], [2, 0, 0, 0]])
k = np.array([[3.0, 0, 0, 0], [0, 2, 0, 0], [1, 3, 0, 0]])
v = np.array([[10.0], [20], [30]])
first_weight = autograder.guess("How much of its attention does the third token give to the first?", unit="%")
first_weight

# %% tags=["chart"]
scores = k @ q[2] / 2  # of the third token; the picture says why they are halved
attention = np.exp(scores) / np.exp(scores).sum()
print(first_weight.beside(100 * attention[0]))
autograder.attention_charts.by_hand(q, k, v, words[:3])

# %% [markdown]
# Follow a row through the tables. **1.** Each query is multiplied with each key. **2.** The scores are divided by the
# square root of the number of features, which keeps them at one size however many there are. **3.** The keys of later
# tokens are hidden. Look at the second row: its best fit, 3, is hidden, because that token comes later. **4.**
# What is left is made into weights, by `exp` of each score divided by the sum of them all. This is called **softmax**.
# **5.** The values are added up by these weights. The third token's result, 12.7, lies close to the first value, 10.
#
# ### No looking ahead
#
# The model is to *predict* the next token. When it computes row `i`, it may use the tokens 0 to `i` and none after
# them: those are what it is to guess. So a query sees the keys up to its own position, **itself included**, and no
# later one. Attention of this kind is called **causal**. To hide a later key, its score is set to minus infinity
# before the softmax: `exp(-inf)` is 0, so its weight is 0, and the others still add up to 1.

# %% tags=["chart"]
autograder.attention_charts.who_sees_whom(words)

# %% [markdown]
# This has a consequence that the whole course rests on: **what comes later never changes an earlier row.** Row 3 of
# the result is the same whether the text ends there or goes on for a page.
#
# ### Several heads
#
# A position may need several things at once: the subject of the sentence, the last comma, the word before it. So
# attention is done `n_head` times side by side. Each **head** has its own part of the features: head 0 has the first
# `head_dim = n_embd / n_head` of them, head 1 the next, and so on. The heads do not talk to each other. Their results
# are laid side by side again at the end.
#
# NumPy's `@` multiplies the last two axes and repeats that over all axes before them. So if the heads come first,
# `[n_head, n_seq, head_dim]`, one `@` serves them all. You need two functions: one brings the heads to the front, the
# other brings them back.


# %% solution="split-heads"
def split_heads(x, n_head):
    """[n_seq, n_embd] to [n_head, n_seq, head_dim]: head h has features h * head_dim to (h + 1) * head_dim - 1."""
    ### BEGIN SOLUTION
    n_seq, n_embd = x.shape
    return x.reshape(n_seq, n_head, n_embd // n_head).transpose(1, 0, 2)
    ### END SOLUTION


# %% solution="merge-heads"
def merge_heads(heads):
    """[n_head, n_seq, head_dim] back to [n_seq, n_embd]: undoes split_heads."""
    ### BEGIN SOLUTION
    n_head, n_seq, head_dim = heads.shape
    return heads.transpose(1, 0, 2).reshape(n_seq, n_head * head_dim)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# `reshape` keeps the numbers in their order in memory and only divides them into axes differently. A row of `x` holds
# head 0's features, then head 1's, so the reshape that fits is `[n_seq, n_head, head_dim]`; then the axes have to trade
# places, which is what `transpose` does. Reshaping straight to `[n_head, n_seq, head_dim]` also runs, and mixes up
# tokens and features. For the way back, do the same two steps in the opposite order.
#
# </details>

# %% check="step-split-heads"
autograder.check("step-split-heads")

# %% check="step-merge-heads"
autograder.check("step-merge-heads")

# %% [markdown]
# Here is a table small enough to see what they do.

# %% tags=["chart"]
table = np.array([[0, 1, 2, 100, 101, 102], [10, 11, 12, 110, 111, 112]])  # 2 tokens, 2 heads of 3 features
print(split_heads(table, 2))
print("merged again:", np.array_equal(merge_heads(split_heads(table, 2)), table))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Two heads of two rows each: first `[0 1 2]` and `[10 11 12]`, then `[100 101 102]` and
# `[110 111 112]`. Each head has a row for each of the two tokens. Merged again, it is the table we began with.
#
# </details>
#
# ### Softmax
#
# **Overflow.** `exp(89)` is already too large for float32 and becomes infinity. But a softmax does not change when the
# same number is subtracted from all scores of a row, because that divides numerator and denominator alike. So subtract
# each row's largest score first: then no exponent is above 0, and at least one is exactly 0.


# %% solution="softmax"
def softmax(scores):
    """exp(scores), each row along the last axis divided by its sum. Scores may be of any size, or -inf.

    scores: [..., n], at least one of each row finite. Returns an array of the same shape; scores is not changed.
    """
    ### BEGIN SOLUTION
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)
    ### END SOLUTION


# %% check="step-softmax"
autograder.check("step-softmax")

# %% [markdown]
# ### The attention weights
#
# Now the scores and their softmax, for all heads and all queries at once.
#
# **Scaling.** The more numbers two vectors have, the larger their dot product is: for random ones, its size grows as
# the square root of `head_dim`. To keep scores at one size, they are divided by `sqrt(head_dim)`.
#
# **Hiding.** A hidden score becomes `-np.inf`. A number such as -10,000 hides a key only as long as every visible
# score is above it.


# %% solution="attention-weights"
def attention_weights(q, k):
    """The causal attention weights, [n_head, n_seq, n_seq]: what query i gives to each of the keys 0 to i, else 0.

    q, k: [n_head, n_seq, head_dim]. The last axis of the result adds up to 1. Scores of any size are allowed,
    of either sign: a million is nothing special.
    """
    ### BEGIN SOLUTION
    n_seq, head_dim = q.shape[1:]
    scores = q @ k.transpose(0, 2, 1) / head_dim**0.5  # [n_head, n_seq, n_seq]: query by key
    return softmax(np.where(np.tri(n_seq, dtype=bool), scores, -np.inf))
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint</summary>
#
# `q @ k.transpose(0, 2, 1)` gives the dot product of every query with every key. `np.tri(n_seq, dtype=bool)` is True
# on the diagonal and below it: where the key's position is not after the query's. `np.where` chooses between two
# values by such a mask. Mask first, then look for the largest score: a hidden one may be far above the visible ones.
# As in `gelu`, `head_dim**0.5` keeps float32, and `np.sqrt(head_dim)` gives float64.
#
# </details>

# %% check="step-attention-weights"
autograder.check("step-attention-weights")

# %% tags=["chart"]
q = k = np.zeros((1, 4, 2), dtype=np.float32)
print(attention_weights(q, k)[0].round(3))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# All scores are 0 here, so each query shares its attention equally among the tokens that it
# may see: 1 for the first, one half each for the second, then thirds and quarters. Above the diagonal there are
# zeros.
#
# </details>
#
# ### All of it
#
# What remains is to make the queries, keys and values, to use the weights, and to mix the heads' results by one more
# linear layer, `c_proj`. GPT-2 stores the three linear layers that make q, k and v as one, `c_attn`: its result has
# `3 * n_embd` features, first all queries, then all keys, then all values.


# %% solution="causal-self-attention"
def causal_self_attention(x, attn, n_head):
    """Multi-head causal self-attention: each row gathers from itself and the rows before it.

    x: [n_seq, n_embd]. attn.c_attn.weight: [n_embd, 3 * n_embd], for q, k and v in this order;
    attn.c_proj.weight: [n_embd, n_embd]; both have a bias. Returns [n_seq, n_embd].
    """
    ### BEGIN SOLUTION
    qkv = linear(x, attn.c_attn)  # [n_seq, 3 * n_embd]
    q, k, v = (split_heads(part, n_head) for part in np.split(qkv, 3, axis=-1))
    heads = attention_weights(q, k) @ v  # [n_head, n_seq, head_dim]
    return linear(merge_heads(heads), attn.c_proj)
    ### END SOLUTION


# %% check="attention-heads"
autograder.check("attention-heads")

# %% check="attention-causal"
autograder.check("attention-causal")

# %% check="attention-large-scores"
autograder.check("attention-large-scores")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Four lines are enough. `np.split` cuts an array into equal parts along an axis, and each part is then split into
# heads. With the heads in front, one `@` applies the attention weights to the values. If a check fails, the second
# folded line under its message names the mistake that gives the same numbers as your code, when it is a known one.
#
# </details>
#
# <details><summary>What you should see</summary>
#
# Three checks pass. They call your function with 1, 2 and more rows. Some of these numbers equal `n_head` or
# `head_dim`, and others do not, because a wrong reshape can look right when two sizes are equal.
#
# </details>
#
# ## The block
#
# A block is attention, then a small network of two linear layers with GELU between them, called the **MLP**.
# Attention moves information between rows; the MLP then works on each row by itself. Its inner layer is four times as
# wide as `x`.
#
# Neither replaces `x`. Each *adds* to it: `x = x + something(layer_norm(x))`. The running sum is the residual stream.
# It has two merits. A block that has nothing to say can add almost nothing, and what earlier blocks found stays
# available. And in training, the error reaches the first block by a straight path of additions;
# without it, a model of 12 blocks can hardly be trained.
#
# Mind the order. GPT-2 normalizes what goes *into* attention and into the MLP, and adds their results to the `x` that
# was *not* normalized. This is called **pre-norm**. The first transformers normalized after the addition.
#
# First the MLP by itself.


# %% solution="feed-forward"
def feed_forward(x, mlp):
    """The MLP: linear, gelu, linear. mlp.c_fc widens x, [n_seq, n_embd], to 4 * n_embd; mlp.c_proj narrows it."""
    ### BEGIN SOLUTION
    return linear(gelu(linear(x, mlp.c_fc)), mlp.c_proj)
    ### END SOLUTION


# %% check="step-feed-forward"
autograder.check("step-feed-forward")


# %% solution="transformer-block"
def transformer_block(x, block, n_head):
    """One pre-norm GPT-2 block: attention of ln_1(x) is added to x, and then the MLP of ln_2(x) to this new x.

    x: [n_seq, n_embd]. block has ln_1 and ln_2 (weight, bias), attn, and mlp with c_fc and c_proj.
    Returns [n_seq, n_embd]; x is not changed.
    """
    ### BEGIN SOLUTION
    x = x + causal_self_attention(layer_norm(x, block.ln_1.weight, block.ln_1.bias), block.attn, n_head)
    return x + feed_forward(layer_norm(x, block.ln_2.weight, block.ln_2.bias), block.mlp)
    ### END SOLUTION


# %% check="block-pre-norm"
autograder.check("block-pre-norm")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two additions, each with its own layer norm. The result of `layer_norm` must not be called `x`, because `x` is
# needed once more for the addition.
#
# </details>
#
# ### What the heads look at
#
# With the block written, you can watch attention at work. The next cell runs a line of *Romeo and Juliet* through the
# model, block by block, and keeps the attention weights of every head.

# %% tags=["chart"]
n_head, line_ids = weights.config.n_head, tokenizer.encode("O Romeo, Romeo! wherefore art thou Romeo?")
x = weights.wte[line_ids] + weights.wpe[: len(line_ids)]
maps = []  # maps[layer][head] is [n_seq, n_seq]
for block in weights.blocks:
    normed = layer_norm(x, block.ln_1.weight, block.ln_1.bias)
    q, k, v = np.split(linear(normed, block.attn.c_attn), 3, axis=-1)
    maps.append(attention_weights(split_heads(q, n_head), split_heads(k, n_head)))
    x = transformer_block(x, block, n_head)

# %% [markdown]
# Which head looks at the token just before? In the table of attention weights, that token is one to the left of the
# diagonal. So take the head with the largest mean there.

# %% tags=["chart"]
to_previous = np.array([[np.diagonal(one, -1).mean() for one in layer] for layer in maps])
layer, head = np.unravel_index(to_previous.argmax(), to_previous.shape)
chosen = maps[layer][head]  # or others, such as maps[0][0]
n_previous = sum(chosen[i].argmax() == i - 1 for i in range(1, len(chosen)))
print(f"The token before has the largest weight in {n_previous} of {len(chosen) - 1} rows.")
title = f"What each token looks at (block {layer}, head {head})"
autograder.attention_charts.head_map(chosen, tokenizer.tokens(line_ids), title, weights)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Each row adds up to 1, and the first has a single 1, because the first token has nothing else to look at. A frame
# marks the largest weight of each row. In 9 of the 13 other rows it marks the token just before: ` where` has 0.64
# for the `!` before it, and the second half of each `Romeo` has 0.64 to 0.80 for the first half. In the other 4 it
# marks the first token, or the token itself. Nobody programmed this; the head learned it in training. Most heads do
# nothing that has a name.
#
# </details>
#
# ## From rows to logits
#
# All the parts are there. `forward` looks up the embeddings, runs the blocks, applies the final layer norm `ln_f`, and
# turns each row into `n_vocab` logits.
#
# How does a row become logits? It is compared, by a dot product, with each token's row of `wte`. The same matrix that
# turned ids into rows turns rows into scores for ids: `x @ wte.T`. This is called a **tied head**. It makes sense,
# since a token's row in `wte` says what the token is like; a row at the end of the model is a description of the
# token that should come next, and the dot product says how well each token fits it. It also saves `n_vocab * n_embd`
# weights, nearly a third of the smallest published GPT-2.
#
# The model has one row in `wpe` for each position from 0 to `n_ctx - 1` and no more. A longer sequence has to be
# refused with a `ValueError`, and so has an empty one. Nor has `wte` a row for an id of `n_vocab` or more; looking it
# up raises an `IndexError`, which is as good. What matters is that there is an error: a sequence that is silently cut,
# a position that is silently used twice, or an id that is silently replaced gives wrong numbers that look fine.


# %% solution="forward"
def forward(token_ids, weights):
    """The logits [n_seq, n_vocab]: row i scores the token that follows token i.

    token_ids: a list of n_seq ints. ValueError unless 1 <= n_seq <= weights.config.n_ctx; ValueError or IndexError
    for an id of n_vocab or more.
    weights: wte [n_vocab, n_embd], wpe [n_ctx, n_embd], blocks (in their order), ln_f, and config with n_head.
    """
    ### BEGIN SOLUTION
    n_seq, config = len(token_ids), weights.config
    if not 1 <= n_seq <= config.n_ctx:
        raise ValueError(f"forward needs 1 to {config.n_ctx} token ids, got {n_seq}")
    x = weights.wte[np.asarray(token_ids)] + weights.wpe[:n_seq]
    for block in weights.blocks:
        x = transformer_block(x, block, config.n_head)
    return layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T
    ### END SOLUTION


# %% check="forward-recompute"
autograder.check("forward-recompute")

# %% check="forward-limits"
autograder.check("forward-limits")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The line for the embeddings stands further up, where the table `x` was drawn (there it is called `rows`). Look at
# the length before anything else. Then a loop over `weights.blocks`, and one line for the logits. `array.T` is the
# transpose.
#
# </details>
#
# The checks compare your logits with those of a second GPT-2, which computes in float64. The two are not equal to the
# last digit, and need not be. You compute in float32, which keeps about seven digits, and every block rounds again. How
# far the two drift apart is easily measured: the next cell runs your blocks in both.

# %% tags=["chart"]
drifted = autograder.guess("How far off is the worst logit after 12 blocks of float32?")
drifted

# %% tags=["chart"]
in_32 = weights.wte[token_ids] + weights.wpe[: len(token_ids)]
in_64 = in_32.astype(np.float64)
drift = []
for block in weights.blocks:
    in_32 = transformer_block(in_32, block, n_head)
    in_64 = transformer_block(in_64, block, n_head)
    drift.append(abs(in_32 - in_64).max())
print("largest difference after each block:", *(f"{d:.0e}" for d in drift))
logits = [layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T for x in (in_32, in_64)]
drifted.beside(abs(logits[0] - logits[1]).max())

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A difference of about 0.000005 from the first block on, which grows to about 0.00001 in twelve, and stays there in the
# logits. A check calls a logit right when it is within 0.001, plus one percent of the logit itself (`atol=1e-3,
# rtol=1e-2`). That is about a hundred times what rounding does in 12 blocks, so another order of the same operations
# passes. And it is far below what most mistakes do, which change logits by several tenths or more.
#
# </details>

# %% [markdown]
# Now the model can say what it expects. A softmax makes probabilities of the last row's logits.

# %% tags=["chart"]
how_sure = autograder.guess("How probable is the likeliest token after 'What is your'?", unit="%")
how_sure

# %% tags=["chart"]
prompt = "What is your"  # change it
next_token = softmax(forward(tokenizer.encode(prompt), weights)[-1])
print(how_sure.beside(100 * next_token.max()))
likeliest = np.argsort(-next_token)[:10]
tokens = map(repr, tokenizer.tokens(likeliest))
bars = dict(zip(tokens, next_token[likeliest], strict=True))
title = f"What may follow {prompt!r}: the ten likeliest tokens"
autograder.charts.bar_chart(bars, label="probability of the next token", title=title, model=weights)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Words that could indeed go on from there, and first letters of words, none of them certain.
# (The tokens are quoted, because many begin with a space.) The model is small and has read nothing but Shakespeare's
# plays.
#
# </details>
#
# ## Writing text
#
# To write, choose a token, append it, and run the model again on the longer sequence. Always choosing the token with
# the largest logit is called **greedy**. It is what the checks of this course use, because it involves no chance:
# equal logits give equal text.
#
# The function has "recompute" in its name because it does all the work again for every new token. That is what the
# next two stages do away with, and what they are compared with.
#
# Count what is fed: to get `n_new` tokens after a prompt of `P`, the model is run on `P`, `P + 1`, ... and at last on
# `P + n_new - 1` tokens. The last new token is returned and never fed. So `P + n_new - 1 <= n_ctx` is allowed, and
# one more is an error.


# %% solution="generate-recompute"
def generate_recompute(prompt_ids, n_new, weights):
    """The n_new greedy next ids, a list of n_new ints without the prompt; the whole sequence is run again for each.

    prompt_ids: a list of at least one id; it is not changed.
    ValueError when the prompt is empty, or when more than n_ctx tokens would have to be fed at once.
    """
    ### BEGIN SOLUTION
    token_ids = list(prompt_ids)
    for _ in range(n_new):
        token_ids.append(int(forward(token_ids, weights)[-1].argmax()))
    return token_ids[len(prompt_ids) :]
    ### END SOLUTION


# %% check="generate-greedy"
autograder.check("generate-greedy")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Begin with a copy, `list(prompt_ids)`, so that the caller's list stays as it is. The next token is decided by the
# *last* row of the logits, and `argmax` finds it. `forward` already refuses what is too long.
#
# </details>
#
# Greedy text tends to go round in circles. For text that is pleasant to read, the next token is *drawn* from the
# probabilities instead. Before the softmax, the logits are divided by a **temperature**. One below 1 makes likely
# tokens likelier still; close to 0, the choice is greedy again.


# %% tags=["chart"]
def sample(ids, n_new, temperature, seed=None):
    """Yields n_new ids, each drawn at random from the probabilities after all before it."""
    rng, ids = np.random.default_rng(seed), list(ids)
    for _ in range(n_new):
        probabilities = softmax(forward(ids, weights)[-1] / temperature)
        ids.append(int(rng.choice(len(probabilities), p=probabilities)))
        yield ids[-1]


# %% tags=["chart"]
prompt_ids = tokenizer.encode("ROMEO:\n")
print("--- greedy\n" + tokenizer.decode(prompt_ids + generate_recompute(prompt_ids, 40, weights)))
for temperature in (0.7, 1.0):
    print(f"\n--- sampled, temperature {temperature}")
    print(tokenizer.decode(prompt_ids + list(sample(prompt_ids, 40, temperature, seed=1))))

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The greedy text soon repeats itself. The sampled ones read like a play, in parts, and
# become wilder with a higher temperature.
#
# </details>
#
# ## What recomputing costs
#
# Every new token runs the model on everything before it. The chart below measures your `forward` on sequences of
# growing length: this is what *one* new token costs when the text is that long. Each point is the median of several
# runs, after one that is not counted; the bars span the middle half of the runs. If a line zigzags, the machine was
# busy with other things: run the cell again. With the model `gpt2-shape` the chart is drawn at the size of the real
# GPT-2, with random weights, which takes some minutes.

# %% tags=["chart"]
much_slower = autograder.guess(
    "A new token after 511 others takes how many times as long as one after 63?", unit="times"
)
much_slower

# %% tags=["chart"]
timed = weights  # or autograder.load_model("gpt2-shape")
lengths = [16, 64, 128, 256, 384, 512]
long_ids = tokenizer.encode(text * 80)[: lengths[-1]]
seconds = autograder.timing.sweep(lengths, {"recompute": lambda n: forward(long_ids[:n], timed)})
medians = dict(zip(lengths, [one.median for one in seconds["recompute"][1]], strict=True))
print(much_slower.beside(medians[512] / medians[64]))
autograder.cost_charts.next_token(seconds, timed)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A line that rises, at first almost straight and then ever more steeply. The linear layers
# cost the same for every row, so their time grows with the length `n`. Attention compares every query with every
# key, so its time grows with `n * n`. And to write a text of `n` tokens you pay for *all* the points on the way: the
# area under the curve.
#
# </details>
#
# ## Find the bug
#
# Somebody else's function, with numbers that are not right. Play with it, then choose the cause. You are told at once
# whether it fits, and why.

# %% tags=["chart"]
bug = autograder.puzzle("forward-pass")
bug

# %% tags=["chart"]
q, k = np.random.default_rng(0).normal(size=(2, 1, 5, 8))
print(bug.function(q, k)[0].round(2))  # try other q and k, and compare with your own attention_weights

# %% [markdown]
# Two questions, to see what you remember.

# %% tags=["chart"]
autograder.question("forward-pass", 1)

# %% tags=["chart"]
autograder.question("forward-pass", 2)

# %% [markdown]
# ## Show a friend
#
# Run this cell while somebody watches. The prompt and the temperature are yours to change. With the switch at the top
# of the notebook set to `"gpt2"`, it writes modern English, a few tokens a second at first, and slower with each one.
# The next stages do something about that.

# %% tags=["chart"]
prompt_ids = tokenizer.encode("JULIET:\n")
autograder.stream(tokenizer, prompt_ids, sample(prompt_ids, 100, temperature=0.7))

# %% [markdown]
# ## Questions
#
# Answer in a few sentences each. They are graded by hand.

# %% [markdown] written="why-positions" points=2
# **1. Why positions?** Suppose `wpe` were left out, so that a token's row before the first block depends on its
# id alone. Take the *first* block, and the result of attention for the *last* token of a text. Two earlier tokens of
# the text trade places. Does that result change? Why, or why not? And what does `wpe` change about it?
#
# ### BEGIN SOLUTION
# It does not change. Without `wpe`, the key and the value of a token in the first block depend on its id alone, and
# so do the scores with the last token's query. After the swap there are the same keys, values and attention weights,
# in another order, and a weighted sum does not depend on the order of its terms. With `wpe` each row carries its
# position, so the keys and values of the two tokens are others when they stand elsewhere, and the result changes.
#
# *Rubric. 1 point: it does not change, because the last token's weights and values are the same set and a sum has no
# order. 1 point: with wpe, keys and values depend on the position too. (Also right, and not asked for: in later
# blocks the order does show even without wpe, because the mask lets earlier tokens see different sets of tokens.)*
# ### END SOLUTION

# %% [markdown] written="what-is-repeated" points=2
# **2. What is done twice?** `generate_recompute` has just run the model on `n` tokens, and now runs it on `n + 1`.
# Which rows, of which arrays inside the model, come out with the very same numbers as before? Why is that certain? If
# you could keep some of them, which would the new token need?
#
# ### BEGIN SOLUTION
# The first `n` rows of everything: of the hidden states in every block, the queries, keys and values, and the logits.
# The ids and positions of the first `n` tokens are the same, and the mask keeps them from seeing the new token; all
# other steps treat each row by itself. So nothing that the new token brings can reach them. The new token's own row
# needs the keys and values of the earlier tokens, in every block and head. It needs none of their queries, hidden
# states or logits.
#
# *Rubric. 1 point: all rows but the last, because of the causal mask (and because everything else works row by row).
# 1 point: it is the keys and values, in every block, that the new token needs.*
# ### END SOLUTION

# %% [markdown]
# ## What comes next
#
# You have a complete GPT-2, and you know what it costs to use it this way. Almost all of the work for a new token
# repeats the work for the one before. In stage 2, the **KV cache**, you build the memory that keeps what can be kept;
# in stage 3, generation runs on it, one row at a time. The functions you wrote here are used again there, and
# `generate_recompute` remains the reference: whatever is faster has to give the same ids.
